"""The table of docs/implicit.md, row by row against implicit itself."""

import inspect
import io
import re
import warnings
from pathlib import Path

import implicit
import numpy as np
import pytest
import scipy.sparse as sp
from implicit import als, ann, approximate_als, bpr, datasets, evaluation, lmf, nearest_neighbours
from implicit.cpu.als import AlternatingLeastSquares
from implicit.recommender_base import ModelFitError, RecommenderBase
from threadpoolctl import threadpool_limits

import recsys
from recsys import (
    ALS,
    BM25,
    BPR,
    LMF,
    TFIDF,
    CapabilityError,
    Cosine,
    FitError,
    list_rankers,
    load_dataset,
    load_ranker,
)  # fmt: skip
from recsys.data import split
from recsys.evaluation.metrics.ranking import average_precision, ndcg, precision

PAGE = Path(__file__).parents[2] / "docs" / "implicit.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## Item by item")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| (`.*?) \| (.*) \| (.*) \|$", SECTION, re.MULTILINE)
ONE = {"random_state": 3, "num_threads": 1}
DATA = load_dataset("sample")
R = DATA.matrix
USERS = np.arange(0, R.shape[0], 40)
CHECKS = {}


def row(name):
    """Register the check of the row that begins with this name of implicit."""

    def register(check):
        CHECKS[name] = check
        return check

    return register


def pair(ours, theirs, matrix=R, **params):
    """Return both models, fitted with the same parameters: where none are given, implicit's defaults."""
    defaults = {name: known.default for name, known in inspect.signature(theirs).parameters.items()}
    shared = {name: defaults[name] for name in defaults.keys() & inspect.signature(ours).parameters}
    params = shared | params | ONE
    one, two = ours(**params), theirs(**params)
    # implicit asks for one thread of BLAS, which ours sets: the last bits depend on it.
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore")
        two.fit(matrix, show_progress=False)
    return one.fit(matrix, show_progress=False), two


def fitted():
    return pair(
        ALS, als.AlternatingLeastSquares, factors=8, regularization=0.05, alpha=2.0, iterations=4
    )


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)


def assert_same_factors(ours, theirs):
    np.testing.assert_array_equal(ours.user_factors, theirs.user_factors)
    np.testing.assert_array_equal(ours.item_factors, theirs.item_factors)


def assert_same_values(ours, theirs):
    """The scores of both lists; items of equal ones may change ranks."""
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    alone = np.append(np.diff(theirs[1]) < -1e-6, False) & np.insert(np.diff(theirs[1]) < -1e-6, 0, True)
    np.testing.assert_array_equal(np.asarray(ours[0])[alone], np.asarray(theirs[0])[alone])


@row("AlternatingLeastSquares(factors=50)")
def _():
    assert_same_factors(*pair(ALS, als.AlternatingLeastSquares, factors=50, iterations=3))


@row("AlternatingLeastSquares(dtype=, use_native=, use_cg=, calculate_training_loss=)")
def _():
    theirs = set(inspect.signature(als.AlternatingLeastSquares).parameters)
    ours = set(inspect.signature(ALS).parameters)
    assert ALS().regularization != als.AlternatingLeastSquares().regularization
    left_out = {"dtype", "use_native", "use_cg", "calculate_training_loss", "use_gpu"}
    assert theirs - ours == left_out and "ridge_power" in ours
    assert ALS().dtype == np.float32


@row("BayesianPersonalizedRanking(verify_negative_samples=True)")
def _():
    assert_same_factors(*pair(BPR, bpr.BayesianPersonalizedRanking, factors=5, iterations=3))
    default = inspect.signature(bpr.BayesianPersonalizedRanking).parameters["verify_negative_samples"]
    assert default.default is True


@row("LogisticMatrixFactorization")
def _():
    ours, theirs = pair(LMF, lmf.LogisticMatrixFactorization, factors=5, iterations=3)
    assert_same_factors(ours, theirs)
    weighted = R.copy()
    weighted.data *= 1 + np.arange(len(weighted.data)) % 3
    mine, there = pair(LMF, lmf.LogisticMatrixFactorization, matrix=weighted, factors=5, iterations=3)
    assert_same_factors(mine, theirs)
    assert not np.array_equal(there.item_factors, theirs.item_factors)


@row("CosineRecommender")
def _():
    for ours, name in ((Cosine, "Cosine"), (TFIDF, "TFIDF"), (BM25, "BM25")):
        one, two = ours(20), getattr(nearest_neighbours, f"{name}Recommender")(20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            two.fit(R, show_progress=False)
        one.fit(R, show_progress=False)
        for user in USERS.tolist():
            if R[user].nnz:
                assert_same_values(one.recommend(user, R[user]), two.recommend(user, R[user]))


@row("ItemItemRecommender")
def _():
    assert hasattr(nearest_neighbours, "ItemItemRecommender")
    assert not hasattr(recsys, "ItemItemRecommender")


@row("normalize")
def _():
    for weigh in (
        nearest_neighbours.normalize,
        nearest_neighbours.tfidf_weight,
        nearest_neighbours.bm25_weight,
    ):
        weighted = weigh(R).tocsr().astype(np.float32)
        assert_same_factors(
            *pair(ALS, als.AlternatingLeastSquares, weighted, factors=4, iterations=2, alpha=2.0)
        )


@row("fit(user_items, show_progress=, callback=)")
def _():
    told = {"ours": [], "theirs": []}
    ours = ALS(factors=2, iterations=3, **ONE)
    theirs = als.AlternatingLeastSquares(factors=2, iterations=3, **ONE)
    assert ours.fit(R, show_progress=False, callback=lambda *said: told["ours"].append(said)) is ours
    done = theirs.fit(R, show_progress=False, callback=lambda *said: told["theirs"].append(said))
    assert done is None
    assert [said[0] for said in told["ours"]] == [said[0] for said in told["theirs"]] == [0, 1, 2]


@row("recommend(userid, user_items[userid], N=, filter_already_liked_items=)")
def _():
    ours, theirs = fitted()
    for user in USERS.tolist():
        for known in (True, False):
            options = {"N": 7, "filter_already_liked_items": known}
            assert_same(
                ours.recommend(user, R[user], **options), theirs.recommend(user, R[user], **options)
            )


@row("recommend(userids, user_items[userids])")
def _():
    ours, theirs = fitted()
    assert_same(ours.recommend(USERS, R[USERS]), theirs.recommend(USERS, R[USERS]))


@row("recommend(filter_items=)")
def _():
    ours, theirs = fitted()
    out = np.arange(0, R.shape[1], 3)
    assert_same(ours.recommend(3, R[3], filter_items=out), theirs.recommend(3, R[3], filter_items=out))


@row("recommend(items=)")
def _():
    ours, theirs = fitted()
    only = np.union1d(np.arange(5), R[3].indices[:2])
    one, two = (model.recommend(3, R[3], items=only, N=20) for model in (ours, theirs))
    np.testing.assert_allclose(one[1], two[1], rtol=1e-4, atol=1e-5)
    fresh = one[1] > one[1].min()
    np.testing.assert_array_equal(one[0][fresh], two[0][fresh])


@row("recommend(recalculate_user=True)")
def _():
    ours, theirs = fitted()
    found = ours.recommend(USERS, R[USERS], recalculate_user=True)
    assert_same(found, theirs.recommend(USERS, R[USERS], recalculate_user=True))
    ours, theirs = pair(LMF, lmf.LogisticMatrixFactorization, factors=3, iterations=2)
    with pytest.raises(NotImplementedError):
        theirs.recommend(3, R[3], recalculate_user=True)
    assert len(ours.recommend(3, R[3], recalculate_user=True).ids) == 10


@row("rank_items(userid, user_items, selected_items)")
def _():
    ours, theirs = fitted()
    selected = np.setdiff1d(np.arange(12), R[3].indices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.rank_items(3, R[3], selected.tolist())
    assert_same(ours.recommend(3, R[3], N=len(selected), items=selected), expected)


@row("recommend_all(user_items)")
def _():
    ours, theirs = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.recommend_all(R, N=5)
    full = np.diff(R.indptr) > 0
    found = ours.recommend(np.arange(R.shape[0]), R, N=5).ids
    np.testing.assert_array_equal(found[full], np.asarray(expected)[full])
    assert "path" in inspect.signature(recsys.Recommender.recommend_all).parameters


@row("similar_items(itemid)")
def _():
    ours, theirs = fitted()
    assert_same(ours.similar_items(5), theirs.similar_items(5))
    assert_same(ours.similar_items([5, 6], N=4), theirs.similar_items([5, 6], N=4))
    assert_same(ours.similar_users(5), theirs.similar_users(5))


@row("similar_items(recalculate_item=True)")
def _():
    ours, theirs = fitted()
    with pytest.raises(CapabilityError):
        ours.similar_items(5, recalculate_item=True, item_users=R.T.tocsr()[5])
    assert len(theirs.similar_items(5, recalculate_item=True, item_users=R.T.tocsr()[5])[0]) == 10


@row("recalculate_user(userid, row)")
def _():
    ours, theirs = fitted()
    factors = theirs.recalculate_user(3, R[3])
    scores = ours.scores(3, R[3], recalculate_user=True)[0]
    np.testing.assert_allclose(scores, theirs.item_factors @ factors.ravel(), rtol=1e-3, atol=1e-5)
    assert not hasattr(ours, "recalculate_item")


@row("partial_fit_users(userids, rows)")
def _():
    ours, theirs = fitted()
    changed = R[[7]]
    theirs.partial_fit_users(np.array([3]), changed)
    assert_same(ours.recommend(3, changed, recalculate_user=True), theirs.recommend(3, changed))
    assert hasattr(recsys.EASE, "partial_fit")


@row("explain(userid, user_items, itemid)")
def _():
    ours, theirs = fitted()
    item = int(theirs.recommend(3, R[3])[0][0])
    assert theirs.explain(3, R, item)[0] == pytest.approx(ours.scores(3, R[3])[0, item], abs=0.1)
    with pytest.raises(CapabilityError):
        ours.explain(3, R[3], item)
    why = recsys.Recommender("als:factors=4").fit(DATA).explain(DATA.user_ids[3], DATA.item_ids[item])
    assert "Similar" in str(why)


@row("save(file)")
def _():
    ours, theirs = fitted()
    one, two = io.BytesIO(), io.BytesIO()
    ours.save(one)
    theirs.save(two)
    one.seek(0)
    two.seek(0)
    assert_same(
        load_ranker(one).recommend(3, R[3]), AlternatingLeastSquares.load(two).recommend(3, R[3])
    )
    assert one.getvalue() != two.getvalue()


@row("user_factors")
def _():
    ours, theirs = fitted()
    assert_same_factors(ours, theirs)
    np.testing.assert_allclose(ours.user_norms, theirs.user_norms, rtol=1e-6)
    np.testing.assert_allclose(ours.item_norms, theirs.item_norms, rtol=1e-6)


@row("solver")
def _():
    ours, theirs = fitted()
    for name in ("solver", "YtY", "XtX"):
        assert hasattr(theirs, name) and not hasattr(ours, name)


@row("to_gpu()")
def _():
    assert not hasattr(ALS, "to_gpu") and hasattr(AlternatingLeastSquares, "to_gpu")


@row("NMSLibAlternatingLeastSquares")
def _():
    pytest.importorskip("usearch")
    from recsys.embeddings import ItemIndex

    ours, theirs = fitted()
    exact, _ = theirs.recommend(USERS, R[USERS], filter_already_liked_items=False)
    found, _ = ItemIndex(ours.item_factors).search(ours.user_factors[USERS], N=10)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, found, strict=True)]) > 0.95


@row("ModelFitError")
def _():
    assert issubclass(ModelFitError, Exception) and issubclass(FitError, Exception)
    wild = {"factors": 3, "iterations": 20, "learning_rate": 1e30}
    with pytest.raises(ModelFitError), np.errstate(all="ignore"):
        bpr.BayesianPersonalizedRanking(**wild, **ONE).fit(R, show_progress=False)
    with pytest.raises(FitError), np.errstate(all="ignore"):
        BPR(**wild, **ONE).fit(R, show_progress=False)


def halves():
    train, test = evaluation.train_test_split(R, train_percentage=0.7, random_state=0)
    ranker = ALS(factors=8).fit(train, show_progress=False)
    users = np.flatnonzero(np.diff(test.indptr) * np.diff(train.indptr))
    train, test = (
        sp.csr_matrix(sp.diags(np.isin(np.arange(len(part.indptr) - 1), users) * 1.0) @ part)
        for part in (train, test)
    )
    return ranker, train.astype(np.float32), test.astype(np.float32), users


@row("train_test_split(train_percentage=0.7, random_state=3)")
def _():
    ranker, train, _, users = halves()
    assert ranker.recommend(users, train[users]).ids.shape == (len(users), 10)
    train, test = evaluation.train_test_split(R, train_percentage=0.7, random_state=3)
    fold = next(split(DATA, "train-test-split:fraction=0.3:draws=rows", seed=3))
    assert (fold.train != train).nnz == (fold.test != test).nnz == 0
    report = recsys.evaluate(DATA, "popularity", protocol="train-test-split", metrics="ndcg@10")
    assert report.results and report.folds == 1


@row("leave_k_out_split(K=2)")
def _():
    train, test = evaluation.leave_k_out_split(R, K=2, random_state=0)
    assert ALS(factors=2).fit(train, show_progress=False).n_items_ == test.shape[1]
    fold = next(split(DATA, "next-2:items=random:kept=2"))
    assert np.array_equal(np.diff(fold.test.indptr), np.diff(test.indptr))
    others = []
    for seed in (0, 1):  # what it draws follows numpy's global generator
        np.random.seed(seed)
        others.append(evaluation.leave_k_out_split(R, K=2, random_state=0)[1])
    assert (others[0] != others[1]).nnz


@row("ndcg_at_k")
def _():
    ranker, train, test, users = halves()
    scores = ranker.scores(users, train[users])
    given = (scores, train[users], test[users], 5)
    found = evaluation.ndcg_at_k(ranker, train, test, K=5, show_progress=False)
    assert found == pytest.approx(ndcg(*given).mean(), rel=1e-6)
    found = evaluation.mean_average_precision_at_k(ranker, train, test, K=5, show_progress=False)
    assert found == pytest.approx(average_precision(*given, "min").mean(), rel=1e-6)


@row("precision_at_k")
def _():
    ranker, train, test, users = halves()
    ours = precision(ranker.scores(users, train[users]), train[users], test[users], 5)
    theirs = evaluation.precision_at_k(ranker, train, test, K=5, show_progress=False)
    positives = np.minimum(np.diff(test[users].indptr), 5)
    assert theirs == pytest.approx(5 * ours.sum() / positives.sum())
    assert theirs != pytest.approx(ours.mean())


@row("AUC_at_k")
def _():
    ranker, train, test, users = halves()
    from recsys.evaluation.metrics.ranking import auc

    few = evaluation.AUC_at_k(ranker, train, test, K=5, show_progress=False)
    ours = auc(ranker.scores(users, train[users]), train[users], test[users]).mean()
    assert few < ours


@row("ranking_metrics_at_k")
def _():
    ranker, train, test, _ = halves()
    found = evaluation.ranking_metrics_at_k(ranker, train, test, K=5, show_progress=False)
    assert set(found) == {"precision", "map", "ndcg", "auc"}
    report = recsys.evaluate(DATA, "popularity", metrics=["ndcg@5", "map@5", "auc"], folds=2)
    assert set(report.results[0].metrics) == {"ndcg@5", "map@5", "auc"}


@row("get_movielens")
def _():
    from recsys.datasets import list_datasets

    assert {"movielens-1m", "lastfm"} <= set(list_datasets())


def first(cell):
    return re.match(r"`([^`]*)`", cell)[1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [first(left) for left, _, _ in ROWS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_holds_against_implicit(name):
    CHECKS[name]()


def test_every_check_has_its_row():
    assert set(CHECKS) == {first(left) for left, _, _ in ROWS}


def test_every_public_name_of_implicit_is_in_a_row():
    named = set(re.findall(r"\w+", " ".join(left for left, _, _ in ROWS)))
    public = {
        name
        for module in (als, approximate_als, bpr, lmf, nearest_neighbours, evaluation)
        for name, found in inspect.getmembers(module)
        if (inspect.isclass(found) or inspect.isroutine(found)) and not name.startswith("_")
    }
    public |= {
        name
        for kind in (
            RecommenderBase, AlternatingLeastSquares, nearest_neighbours.ItemItemRecommender,
        )
        for name, _ in inspect.getmembers(kind)
        if not name.startswith("_")
    }  # fmt: skip
    public |= {name for name in dir(datasets) if name.startswith("get_")}
    # What these modules import from elsewhere.
    public -= {
        "RecommenderBase", "coo_matrix", "csr_matrix", "array", "all_pairs_knn", "NearestNeighboursScorer",
        "check_csr", "check_random_state", "tqdm", "bincount", "log", "sqrt", "memoryview", "ones",
    }  # fmt: skip
    assert public <= named, public - named
    assert ann.__name__ == "implicit.ann" and implicit.__version__.startswith("0.7")


def test_the_page_lists_every_default_that_differs():
    pairs = {
        "ALS": als.AlternatingLeastSquares, "BPR": bpr.BayesianPersonalizedRanking,
        "LMF": lmf.LogisticMatrixFactorization, "BM25": nearest_neighbours.BM25Recommender,
    }  # fmt: skip
    listed = re.findall(
        r"^\| `([A-Z0-9]+)` \| `(.*)` \| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    found = []
    for name, theirs in pairs.items():
        defaults = [
            {key: known.default for key, known in inspect.signature(kind).parameters.items()}
            for kind in (theirs, getattr(recsys, name))
        ]
        other = sorted(
            key for key in defaults[0].keys() & defaults[1] if defaults[0][key] != defaults[1][key]
        )
        if other:
            found.append((name, *(", ".join(f"{key}={of[key]}" for key in other) for of in defaults)))
    assert found == listed


def test_our_names_are_there():
    """What the middle column names in code is importable, a method, a protocol or a metric."""
    known = set(dir(recsys)) | set(list_rankers())
    for _, ours, _ in ROWS:
        for code in re.findall(r"`([^`]*)`", ours):
            name = re.match(r"[\w.]+", code.replace('"', ""))[0]
            parts = name.split(".")
            found = name in known or hasattr(recsys.ALS, name) or hasattr(recsys.Recommender, name)
            found |= name in (
                "partial_fit",
                "map",
                "ndcg",
                "precision",
                "auc",
                "split",
                "lastfm",
            )
            found |= len(parts) > 1 and parts[0] in ("Recommender", "recsys")
            assert found, code


def test_the_first_lines_say_which_regularization_differs():
    opening = PAGE.read_text(encoding="utf-8").split("\n\n")[1]
    theirs = inspect.signature(als.AlternatingLeastSquares).parameters["regularization"].default
    assert f"`regularization={ALS().regularization}` where implicit has\n`{theirs}`" in opening


def test_a_file_of_implicit_is_not_read(tmp_path):
    model = als.AlternatingLeastSquares(factors=2, iterations=1)
    model.fit(R, show_progress=False)
    model.save(tmp_path / "theirs.npz")
    with pytest.raises(recsys.InputError, match=r"theirs\.npz is not a ranker file"):
        recsys.load(tmp_path / "theirs.npz")
