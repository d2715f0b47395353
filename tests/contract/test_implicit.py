"""What implicit's users count on, kept by every ranker: `docs/implicit.md` lists what differs on purpose.

The cases are those of implicit's own suite for its recommenders, in our words: a board on which user u
likes the items of its own parity but item u, so that item u is the one to recommend.
"""

import io
import pickle
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import (
    CapabilityError,
    InputError,
    ModelFileError,
    NotFittedError,
    list_rankers,
    load_ranker,
    make_ranker,
)
from recsys.datasets import load_dataset
from recsys.rankers import fit_package, load_package
from recsys.rankers.base import LOWEST
from recsys.reranking import rerank

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
    name: {"factors": 3, "iterations": 10} for name in ("fm", "sparse-fm", "hofm", "bilinear", "pairnet", "all-subsets")
}  # fmt: skip
SMALL["bayesian-fm"] = {"factors": 3, "iterations": 10, "draws": 4}
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
        assert one.tolist() == [user] and score[0] == scores[user, 0]
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
    np.testing.assert_array_equal(scores[:3], [s for k, s in zip(*plain, strict=True) if k in (1, 3, 5)])
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
        np.testing.assert_array_equal(one.ids, ids[user])
        np.testing.assert_array_equal(one.scores, scores[user])


def test_a_list_of_items_is_ranked_by_score_where_liked_ones_are_not_filtered(fitted):
    rng = np.random.default_rng(0)
    every = fitted.scores(USERS, R)
    for user in (0, 7, 49):
        listed = rng.choice(SIZE, 10, replace=False)
        ids, scores = fitted.recommend(user, R[user], items=listed, filter_already_liked_items=False)
        order = np.lexsort((listed, -every[user][listed]))
        np.testing.assert_array_equal(ids, listed[order])
        np.testing.assert_array_equal(scores, every[user][listed][order])


def test_what_speaks_to_people_leaves_liked_items_out_of_a_list(fitted):
    """The command line and the service filter by lists of items; nobody is told what they have."""
    listed = [6, 1, 4, 3, 2, 5, 6]
    wanted = fitted.recommend(0, R[0], items=[1, 3, 5])
    reranked = rerank(fitted, 0, R[0], 20, items=listed)
    np.testing.assert_array_equal(reranked.scores, wanted.scores)
    np.testing.assert_array_equal(reranked.ids, wanted.ids)
    varied = rerank(fitted, 0, R[0], 20, items=listed, diversity=0.5, item_users=R.tocsc())
    assert set(varied.ids) == {1, 3, 5}
    assert set(rerank(fitted, 0, R[0], 20, items=listed, dislikes=[3], dislike_weight=0).ids) == {1, 5}
    kept = rerank(fitted, 0, R[0], 20, items=listed, filter_already_liked_items=False)
    assert set(kept.ids) == set(listed) and (kept.scores > LOWEST).all()
    with pytest.raises(InputError, match="not both"):
        rerank(fitted, 0, R[0], items=listed, filter_items=[1])
    with pytest.raises(IndexError, match="items 50 is not within"):
        rerank(fitted, 0, R[0], items=[50])


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
        np.testing.assert_array_equal(one.ids, ids[user])
        np.testing.assert_array_equal(one.scores, scores[user])


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


def test_all_of_implicits_metrics_at_once(fitted):
    """Lists that are recomputed here: hits, and the discounts that implicit's source has."""
    from implicit.evaluation import leave_k_out_split, ranking_metrics_at_k

    data = load_dataset("sample").matrix
    train, test = leave_k_out_split(data, K=2, random_state=0)
    ranker = make_ranker(fitted.name, **SMALL.get(fitted.name, {})).fit(train, show_progress=False)
    found = ranking_metrics_at_k(ranker, train, test, K=5, show_progress=False)
    users = np.flatnonzero(np.diff(test.indptr))
    ids = ranker.recommend(users, train[users], N=5).ids
    hit = np.array([np.isin(row, test[u].indices) for u, row in zip(users, ids, strict=True)])
    positives = np.diff(test.indptr)[users]
    assert found["precision"] == pytest.approx(hit.sum() / np.minimum(positives, 5).sum())
    gains = 1 / np.log2(np.arange(2, 7))
    ideal = np.array([gains[: min(5, n)].sum() for n in positives])
    assert found["ndcg"] == pytest.approx(((hit @ gains) / ideal).mean(), rel=1e-5)
    assert set(found) == {"precision", "map", "ndcg", "auc"} and 0 < found["auc"] < 1


def test_it_can_be_sent_elsewhere(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.scores(USERS, R), fitted.scores(USERS, R))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
def test_it_can_be_fitted_on_any_dtype(fitted, dtype):
    again = make_ranker(fitted.name, **SMALL.get(fitted.name, {})).fit(
        R.astype(dtype), show_progress=False
    )
    np.testing.assert_array_equal(again.scores(USERS, R), fitted.scores(USERS, R))


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
            "bayesian-fm",
            "hofm",
            "bilinear",
            "pairnet",
            "all-subsets",
        ):
            continue  # built of the others, or of factors that start at random
        ranker = make_ranker(name, **SMALL.get(name, {})).fit(dense, show_progress=False)
        if "similar-items" in ranker.capabilities and not hasattr(ranker, "item_embeddings"):
            assert not np.isin(ranker.similar_items(np.arange(40), N=10)[0], [42, 49]).any(), name


def test_any_format_and_any_real_dtype_is_taken_without_a_warning(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = fitted.recommend(3, R[3])
        for given in (R[3].tocsc(), R[3].tocoo(), R[3].toarray(), R[3].astype(np.float64)):
            np.testing.assert_array_equal(fitted.recommend(3, given).ids, wanted.ids)
    with pytest.raises(ValueError, match="rows for"):
        fitted.recommend(0, R.tocsc())


# ---- the same answer as implicit's own code gives


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
    assert ranker.dtype == np.float32 and ranker.num_threads == 2
    with pytest.raises(IndexError, match="userid"):
        ranker.user_embeddings(sp.vstack([R, R]))


def test_factors_and_their_norms_are_read_but_not_written():
    from implicit.cpu.als import AlternatingLeastSquares

    ranker = make_ranker("als", factors=3)
    assert ranker.user_norms is None and ranker.item_norms is None
    ranker.fit(R, show_progress=False)
    theirs = AlternatingLeastSquares(factors=3, num_threads=1)
    theirs.user_factors, theirs.item_factors = ranker.user_factors, ranker.item_factors
    np.testing.assert_allclose(ranker.user_norms, theirs.user_norms, rtol=1e-6)
    np.testing.assert_allclose(ranker.item_norms, theirs.item_norms, rtol=1e-6)
    for name in ("user_factors", "item_factors", "user_norms", "item_norms", "dtype"):
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


# ---- open files


def test_an_open_file_is_written_and_read(fitted, tmp_path):
    first = tmp_path / "path"
    fitted.save(first)
    buffer = io.BytesIO()
    fitted.save(buffer)
    assert buffer.getvalue() == first.read_bytes() and not buffer.closed
    wanted = fitted.scores(USERS, R)
    buffer.seek(0)
    np.testing.assert_array_equal(load_ranker(buffer).scores(USERS, R), wanted)
    buffer.seek(0)
    assert type(fitted).load(buffer).get_params() == fitted.get_params()


@pytest.fixture
def ranker():
    return make_ranker("popularity").fit(R, show_progress=False)


@pytest.mark.parametrize("buffering", [-1, 0])
def test_files_open_on_disk(ranker, tmp_path, buffering):
    with open(tmp_path / "m", "wb", buffering) as file:
        file.write(b"before")
        ranker.save(file)
        assert not file.closed
    with open(tmp_path / "m", "rb", buffering) as file:
        file.seek(6)
        assert load_ranker(file).name == "popularity"
        assert not file.closed and file.read() == b""
    with tempfile.NamedTemporaryFile() as file:
        ranker.save(file)
        file.seek(0)
        assert load_ranker(file).name == "popularity"


def test_a_package_in_an_open_file():
    data = load_dataset("sample")
    package = fit_package(make_ranker("popularity"), data, show_progress=False)
    buffer = io.BytesIO()
    package.save(buffer)
    buffer.seek(0)
    assert load_package(buffer).item_ids.tolist() == package.item_ids.tolist()


class Trickle(io.RawIOBase):
    """A stream that gives and takes little at a time, and cannot seek."""

    def __init__(self, content=b""):
        self.content, self.taken = content, b""

    def readable(self):
        return True

    def writable(self):
        return True

    def readinto(self, view):
        size = min(len(view), 7)
        part, self.content = self.content[:size], self.content[size:]
        view[: len(part)] = part
        return len(part)

    def write(self, view):
        self.taken += bytes(view[:1001])
        return min(len(view), 1001)


def test_a_stream_that_cannot_seek_and_gives_little_at_a_time(ranker):
    stream = Trickle()
    ranker.save(stream)
    buffer = io.BytesIO()
    ranker.save(buffer)
    assert stream.taken == buffer.getvalue()
    assert load_ranker(Trickle(buffer.getvalue())).name == "popularity"

    class Little(io.BytesIO):
        def readinto(self, view):
            return super().readinto(memoryview(view)[:7])

    assert load_ranker(Little(buffer.getvalue())).name == "popularity"


def test_files_that_cannot_be_used_are_one_error(ranker, tmp_path):
    buffer = io.BytesIO()
    ranker.save(buffer)
    with pytest.raises(InputError, match="open for text"):
        ranker.save(io.StringIO())
    with pytest.raises(InputError, match="open for text"):
        load_ranker(io.StringIO())
    for wrong in (None, 3, [], b"x"):
        with pytest.raises(InputError, match="a path or an open file is needed"):
            ranker.save(wrong)
        with pytest.raises(InputError, match="a path or an open file is needed"):
            load_ranker(wrong)
    (tmp_path / "there").write_bytes(buffer.getvalue())
    with (
        open(tmp_path / "there", "rb") as file,
        pytest.raises(InputError, match="there cannot be written"),
    ):
        ranker.save(file)
    with (
        open(tmp_path / "other", "wb") as file,
        pytest.raises(ModelFileError, match="other cannot be read"),
    ):
        load_ranker(file)
    closed = io.BytesIO(buffer.getvalue())
    closed.close()
    with pytest.raises(ModelFileError, match="this BytesIO cannot be read"):
        load_ranker(closed)
    with pytest.raises(InputError, match="this BytesIO cannot be written"):
        ranker.save(closed)
    for size in (0, 5, 100, len(buffer.getvalue()) - 1):
        with pytest.raises(ModelFileError, match="this BytesIO"):
            load_ranker(io.BytesIO(buffer.getvalue()[:size]))
    with pytest.raises(ModelFileError, match="this BytesIO holds a popularity ranker, not a ease"):
        type(make_ranker("ease")).load(io.BytesIO(buffer.getvalue()))
    unfitted = io.BytesIO()
    with pytest.raises(NotFittedError):
        make_ranker("ease").save(unfitted)
    assert unfitted.getvalue() == b""
