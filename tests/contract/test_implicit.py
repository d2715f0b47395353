"""What implicit's users count on, kept by every ranker: `docs/implicit.md` lists what differs on purpose.

The cases are those of implicit's own suite for its recommenders, in our words: a board on which user u
likes the items of its own parity but item u, so that item u is the one to recommend.
"""

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from implicit import als, bpr, evaluation, lmf, nearest_neighbours
from threadpoolctl import threadpool_limits

from recsys import (
    ALS,
    BM25,
    BPR,
    LMF,
    TFIDF,
    CapabilityError,
    Cosine,
    InputError,
    list_rankers,
    load_ranker,
    make_ranker,
)
from recsys.datasets import load_dataset
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.utils.topn import LOWEST
from tests.lists import assert_close, assert_same_lists

pytestmark = pytest.mark.thorough

SIZE = 50
USERS = np.arange(SIZE)
SMALL = {"auto": {"users": 12, "rounds": 1}}
SMALL |= {name: {"top_k": 50} for name in ("cosine", "tfidf", "bm25")}  # as implicit's own tests
SMALL |= {
    "als": {"factors": 2, "regularization": 0.0, "iterations": 30},
    "bpr": {"factors": 3},
    "lmf": {"factors": 3},
}
SMALL |= {
    name: {"factors": 3, "iterations": 10}
    for name in ("fm", "sparse-fm", "hofm", "bilinear", "pairnet", "all-subsets")
}
SMALL |= {name: {"factors": 8, "hidden": 16, "iterations": 40} for name in ("pair-dnn", "honfm")}
# Its fit draws negatives, and folding in has all of them (tests/rankers/test_lmf.py): other scores.
DRAWN = ("lmf",)


def board():
    every = np.arange(SIZE)
    liked = (every[:, None] + every) % 2 == 0
    np.fill_diagonal(liked, False)
    return sp.csr_matrix(liked.astype(np.float32))


R = board()


# Seconds of compiling, which another process makes for test_rankers at the same time.
LONG = ("auto", "all-subsets", "bilinear", "blend")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in list_rankers()
    ],
)
def fitted(request):
    return make_ranker(request.param, **SMALL.get(request.param, {})).fit(R, show_progress=False)


def test_the_item_withheld_is_the_first(fitted):
    if fitted.name in ("popularity", "content"):
        pytest.skip("knows nothing of the user, or of items without features")
    ids, scores = fitted.recommend(USERS, R, N=1)
    np.testing.assert_array_equal(ids[:, 0], USERS)
    for user in USERS.tolist():
        one, score = fitted.recommend(user, R[user], N=1)
        assert one.tolist() == [user]
        assert_close(score, scores[user])
    few = np.array([2, 3, 4])
    np.testing.assert_array_equal(fitted.recommend(few, R[few], N=1).ids[:, 0], few)


def test_a_list_of_items_comes_back_whole_with_the_liked_ones_last(fitted):
    """As in implicit, whose liked ones have the lowest float32 as their score, too."""
    listed = [6, 1, 4, 3, 2, 5, 6]
    plain = fitted.recommend(0, R[0], N=SIZE)
    ids, scores = fitted.recommend(0, R[0], items=listed, N=20)
    assert set(ids) == set(listed) and len(ids) == 6
    assert ids[3:].tolist() == [2, 4, 6] and (scores[3:] == LOWEST).all()
    np.testing.assert_array_equal(ids[:3], [k for k in plain.ids if k in (1, 3, 5)])
    assert_close(scores[:3], [s for k, s in zip(*plain, strict=True) if k in (1, 3, 5)])
    # fewer than asked for are never the liked ones
    assert fitted.recommend(0, R[0], items=listed, N=3).ids.tolist() == ids[:3].tolist()
    assert fitted.recommend(0, R[0], items=[2, 4]).ids.tolist() == [2, 4]


def test_lists_of_items_come_back_whole_in_a_batch(fitted):
    listed = np.arange(10) * 3
    ids, scores = fitted.recommend(USERS, R, items=listed)
    assert ids.shape == scores.shape == (SIZE, 10)
    for user in USERS:
        assert set(ids[user]) == set(listed)
        liked = np.isin(ids[user], R[user].indices)
        assert (scores[user][liked] == LOWEST).all() and (scores[user][~liked] > LOWEST).all()
        assert not liked[: 10 - liked.sum()].any()
        one = fitted.recommend(int(user), R[user], items=listed)
        assert_same_lists(one, (ids[user], scores[user]))


def test_a_list_of_items_is_ranked_by_score_where_liked_ones_are_not_filtered(fitted):
    rng = np.random.default_rng(0)
    every = fitted.scores(USERS, R)
    for user in (0, 7, 49):
        listed = rng.choice(SIZE, 10, replace=False)
        ids, scores = fitted.recommend(user, R[user], items=listed, filter_already_liked_items=False)
        order = np.lexsort((listed, -every[user][listed]))
        assert_same_lists((ids, scores), (listed[order], every[user][listed][order]))


@pytest.mark.parametrize("wrong", [[-1], [-3, -5], [51, 300], [50]])
def test_an_item_that_is_none_is_an_index_error_too(fitted, wrong):
    for kind in (IndexError, InputError):
        with pytest.raises(kind, match="is not within 0…49"):
            fitted.recommend(0, R[0], items=[1, 2, *wrong])
        with pytest.raises(kind, match="is not within 0…49"):
            fitted.recommend(0, R[0], filter_items=wrong)


def test_filters_hold_in_batches_and_where_more_is_asked_for_than_there_is(fitted):
    few = np.array([2, 3, 4])
    ids = fitted.recommend(few, R[few], N=1, filter_items=[0, 2]).ids
    assert not np.isin(ids, [0, 2]).any()
    assert len(fitted.recommend(0, R[0], N=10_000).ids) == SIZE - R[0].nnz


def test_unfiltered_batches_are_single_calls(fitted):
    ids, scores = fitted.recommend(USERS, R, N=5, filter_already_liked_items=False)
    for user in (0, 13, 49):
        one = fitted.recommend(user, R[user], N=5, filter_already_liked_items=False)
        assert_same_lists(one, (ids[user], scores[user]))


def test_a_row_recalculated_gives_what_the_fit_gave_or_is_not_implemented(fitted):
    try:
        ids, scores = fitted.recommend(USERS, R, N=1, recalculate_user=True)
    except NotImplementedError as error:
        assert isinstance(error, CapabilityError) and isinstance(error, InputError)
        assert "fold-in" not in fitted.capabilities
        return
    wanted = fitted.recommend(USERS, R, N=1)
    np.testing.assert_array_equal(ids, wanted.ids)
    if fitted.name not in DRAWN:
        np.testing.assert_allclose(scores, wanted.scores, atol=1e-3)
    for user in USERS.tolist():  # whoever is named, the row decides
        one = fitted.recommend(0, R[user], N=1, recalculate_user=True)
        np.testing.assert_array_equal(one.ids, ids[user])
        np.testing.assert_allclose(one.scores, scores[user], rtol=1e-5, atol=1e-6)


def test_what_is_not_offered_is_not_implemented(fitted):
    calls = {
        "explain": lambda: fitted.explain(0, R[0], 1),
        "similar-items": lambda: fitted.similar_items(0),
        "similar-users": lambda: fitted.similar_users(0),
        None: lambda: fitted.similar_items(0, recalculate_item=True, item_users=R[0]),
    }
    for ability, call in calls.items():
        if ability in fitted.capabilities:
            call()
            continue
        for kind in (NotImplementedError, InputError, ValueError):
            with pytest.raises(kind):
                call()


def test_implicits_own_metrics_take_every_ranker(fitted):
    from implicit.evaluation import precision_at_k

    if fitted.name in ("popularity", "content"):
        pytest.skip("knows nothing of the user, or of items without features")
    assert precision_at_k(fitted, R, sp.csr_matrix(np.eye(SIZE)), K=1, show_progress=False) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
def test_it_can_be_fitted_on_any_dtype(fitted, dtype):
    again = make_ranker(fitted.name, **SMALL.get(fitted.name, {})).fit(
        R.astype(dtype), show_progress=False
    )
    assert_close(again.scores(USERS, R), fitted.scores(USERS, R))


def test_similar_ones_have_one_parity(fitted):
    if fitted.name in ("popularity", "ease", "slim", "slist", "pairnet", "content"):
        pytest.skip("similar by weights, features or products of three, not by co-occurrence")
    if "similar-items" in fitted.capabilities:
        ids, scores = fitted.similar_items(USERS, N=10)
        assert (ids % 2 == USERS[:, None] % 2).all()
        some = fitted.similar_items(USERS, N=10, items=np.arange(10))[0]
        assert (np.sort(some, axis=1) == np.arange(10)).all()
        without = fitted.similar_items(USERS, N=10, filter_items=np.arange(10) * 5)[0]
        assert (without % 5 != 0).all()
        for item in USERS.tolist():
            assert (fitted.similar_items(item, N=10)[0] % 2 == item % 2).all()
    if "similar-users" in fitted.capabilities:
        ids, scores = fitted.similar_users(USERS, N=10)
        assert (ids % 2 == USERS[:, None] % 2).all()
        np.testing.assert_allclose(scores[:, 0], 1, atol=1e-4)
        for user in USERS.tolist():
            assert (fitted.similar_users(user, N=10)[0] % 2 == user % 2).all()
        some = fitted.similar_users(USERS, N=10, users=np.arange(10))[0]
        assert (np.sort(some, axis=1) == np.arange(10)).all()
        assert (fitted.similar_users(USERS, N=10, filter_users=np.arange(10) * 5)[0] % 5 != 0).all()


def test_items_without_users_are_similar_to_nothing():
    dense = R.toarray()
    dense[[42, 49]] = dense[:, [42, 49]] = 0
    for name in list_rankers():
        if name in (
            "auto",
            "pair-dnn",
            "honfm",
            "blend",
            "fm",
            "sparse-fm",
            "hofm",
            "bilinear",
            "pairnet",
            "all-subsets",
        ):
            continue  # built of the others, or of factors that start at random
        ranker = make_ranker(name, **SMALL.get(name, {})).fit(dense, show_progress=False)
        if "similar-items" in ranker.capabilities and not hasattr(ranker, "item_embeddings"):
            assert not np.isin(ranker.similar_items(np.arange(40), N=10)[0], [42, 49]).any(), name


def test_a_list_of_items_gets_implicits_own_answer():
    """Ids and scores of implicit's ALS with our factors, where nothing ties."""
    from implicit.cpu.als import AlternatingLeastSquares

    data = load_dataset("sample").matrix
    ours = make_ranker("als", factors=8, iterations=3).fit(data, show_progress=False)
    theirs = AlternatingLeastSquares(factors=8, num_threads=1)
    theirs.user_factors, theirs.item_factors = ours.user_factors, ours.item_factors
    rng = np.random.default_rng(0)
    for user in rng.choice(data.shape[0], 20, replace=False).tolist():
        liked = data[user].indices
        listed = rng.permutation(
            np.concatenate([liked[:5], rng.choice(data.shape[1], 8, replace=False)])
        )
        listed = np.unique(listed)
        for filtered in (True, False):
            options = {"items": listed, "filter_already_liked_items": filtered, "N": 30}
            found, wanted = (
                ours.recommend(user, data[user], **options),
                theirs.recommend(user, data[user], **options),
            )
            fresh = wanted[1] > LOWEST
            np.testing.assert_array_equal(found.ids[: fresh.sum()], wanted[0][fresh])
            assert set(found.ids[fresh.sum() :]) == set(wanted[0][~fresh])
            np.testing.assert_allclose(found.scores, wanted[1], rtol=1e-5, atol=1e-6)


def test_factors_are_read_by_implicits_names():
    ranker = make_ranker("als", factors=3, num_threads=2)
    assert ranker.user_factors is None and ranker.item_factors is None  # as implicit before fit
    ranker.fit(R, show_progress=False)
    assert ranker.user_factors is ranker.user_factors_ and ranker.user_factors.shape == (SIZE, 3)
    assert ranker.item_factors is ranker.item_factors_
    assert ranker.num_threads == 2
    folded = ranker.user_embeddings(sp.vstack([R, R]))  # not the users of the fit, but their rows
    np.testing.assert_allclose(folded[:SIZE], folded[SIZE:])


def test_factors_and_their_norms_are_read_but_not_written():
    from implicit.cpu.als import AlternatingLeastSquares

    ranker = make_ranker("als", factors=3)
    ranker.fit(R, show_progress=False)
    theirs = AlternatingLeastSquares(factors=3, num_threads=1)
    theirs.user_factors, theirs.item_factors = ranker.user_factors, ranker.item_factors
    for name in ("user_factors", "item_factors"):
        with pytest.raises(AttributeError):
            setattr(ranker, name, None)


def test_rankers_are_recommenders_once_implicit_is_imported_by_one_of_them():
    """In a process of its own: what is registered stays so."""
    code = """
import sys
from recsys import make_ranker
ranker = make_ranker("ease")
assert "implicit" not in sys.modules  # importing it takes a third of a second
make_ranker("als", factors=2, iterations=1).fit([[1, 1, 0], [0, 1, 1]], show_progress=False)
from implicit.recommender_base import RecommenderBase
assert isinstance(ranker, RecommenderBase) and issubclass(type(ranker), RecommenderBase)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- beside implicit itself, with its own parameters

SAMPLE = load_dataset("sample").matrix
SOME = np.arange(0, SAMPLE.shape[0], 40)
ONE = {"random_state": 3, "num_threads": 1}


def pair(ours, theirs, matrix=SAMPLE, **params):
    """Return both models, fitted with the same parameters: where none are given, implicit's defaults."""
    defaults = {name: known.default for name, known in inspect.signature(theirs).parameters.items()}
    shared = {name: defaults[name] for name in defaults.keys() & inspect.signature(ours).parameters}
    params = shared | params | ONE
    one, two = ours(**params), theirs(**params)
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore")
        two.fit(matrix, show_progress=False)
    return one.fit(matrix, show_progress=False), two


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def both():
    params = {"factors": 8, "regularization": 0.05, "alpha": 2.0, "iterations": 4}
    return pair(ALS, als.AlternatingLeastSquares, **params)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ALS, als.AlternatingLeastSquares),
        (BPR, bpr.BayesianPersonalizedRanking),
        (LMF, lmf.LogisticMatrixFactorization),
    ],
)
def test_factors_are_implicits(ours, theirs):
    one, two = pair(ours, theirs, factors=5, iterations=3)
    for name in ("user_factors", "item_factors"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("ours", [Cosine, TFIDF, BM25])
def test_neighbours_are_implicits(ours):
    one, two = ours(20), getattr(nearest_neighbours, f"{ours.__name__}Recommender")(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two.fit(SAMPLE, show_progress=False)
    one.fit(SAMPLE, show_progress=False)
    for user in SOME[np.diff(SAMPLE.indptr)[SOME] > 0].tolist():
        wanted = two.recommend(user, SAMPLE[user])[1]  # items of equal scores may change ranks
        np.testing.assert_allclose(one.recommend(user, SAMPLE[user]).scores, wanted, rtol=1e-5)


def test_lists_and_similar_ones_are_implicits(both):
    ours, theirs = both
    out = np.arange(0, SAMPLE.shape[1], 3)
    for options in (
        {},
        {"N": 7, "filter_already_liked_items": False},
        {"recalculate_user": True},
        {"filter_items": out},
    ):
        wanted = theirs.recommend(SOME, SAMPLE[SOME], **options)
        assert_same(ours.recommend(SOME, SAMPLE[SOME], **options), wanted)
    assert_same(ours.similar_items([5, 6], N=4), theirs.similar_items([5, 6], N=4))
    assert_same(ours.similar_users(5), theirs.similar_users(5))
    theirs.partial_fit_users(np.array([3]), SAMPLE[[7]])
    wanted = theirs.recommend(3, SAMPLE[[7]])
    assert_same(ours.recommend(3, SAMPLE[[7]], recalculate_user=True), wanted)


def test_callbacks_are_called_as_implicits():
    calls = {"ours": [], "theirs": []}
    ALS(factors=2, iterations=3, **ONE).fit(
        SAMPLE, show_progress=False, callback=lambda *told: calls["ours"].append(told[0])
    )
    als.AlternatingLeastSquares(factors=2, iterations=3, **ONE).fit(
        SAMPLE, show_progress=False, callback=lambda *told: calls["theirs"].append(told[0])
    )
    assert calls["ours"] == calls["theirs"] == [0, 1, 2]


def test_metrics_are_implicits_where_they_have_one_name():
    train, test = evaluation.train_test_split(SAMPLE, train_percentage=0.7, random_state=0)
    users = np.flatnonzero(np.diff(test.indptr) * np.diff(train.indptr))
    kept = sp.diags(np.isin(np.arange(train.shape[0]), users) * 1.0)
    train, test = (sp.csr_matrix(kept @ part).astype(np.float32) for part in (train, test))
    ranker = ALS(factors=8).fit(train, show_progress=False)
    asked = [parse_metric(name) for name in ("ndcg@5", "map@5")]
    values = ranking_values(asked, ranker.scores(users, train[users]), train[users], test[users])
    for value, theirs in zip(
        values.T, (evaluation.ndcg_at_k, evaluation.mean_average_precision_at_k), strict=True
    ):
        wanted = theirs(ranker, train, test, K=5, show_progress=False)
        assert value.mean() == pytest.approx(wanted, rel=1e-6)


def test_a_file_of_implicit_is_not_read(tmp_path):
    model = als.AlternatingLeastSquares(factors=2, iterations=1)
    model.fit(SAMPLE, show_progress=False)
    model.save(tmp_path / "theirs.npz")
    with pytest.raises(InputError, match=r"theirs\.npz is not a ranker file"):
        load_ranker(tmp_path / "theirs.npz")
