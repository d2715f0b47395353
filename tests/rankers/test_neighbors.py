"""Nearest neighbours against implicit's classes, on the same weighted input."""

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender, TFIDFRecommender

from recsys import BM25, TFIDF, Cosine, InputError, Recommender, load_ranker, make_ranker
from tests.reference import rankers as reference

PAIRS = {
    "cosine": (Cosine, CosineRecommender),
    "tfidf": (TFIDF, TFIDFRecommender),
    "bm25": (BM25, BM25Recommender),
}


def weighted(seed, users=30, items=15):
    """Return numbers of plays, of which some user has none."""
    rng = np.random.default_rng(seed)
    plays = rng.integers(1, 50, (users, items)) * (rng.random((users, items)) < 0.3)
    plays[rng.integers(users)] = 0
    return sp.csr_matrix(plays.astype(np.float64))


def both(name, R, **params):
    ours, theirs = PAIRS[name]
    found = ours(**params).fit(R, show_progress=False)
    expected = theirs(**{"K" if key == "top_k" else key: value for key, value in params.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is given COO, by itself
        expected.fit(R, show_progress=False)
    return found, expected


def assert_same_list(ours, theirs, scores_of_theirs):
    """Items of equal scores, whose order is a heap's in implicit, may change ranks; nothing else may."""
    (ids, scores), (expected, values) = ours, theirs
    above = values > 0  # what shares no user comes after, by index
    ids, scores, expected, values = (
        ids[: above.sum()],
        scores[: above.sum()],
        expected[above],
        values[above],
    )
    np.testing.assert_allclose(scores, values, rtol=1e-6)
    np.testing.assert_allclose([scores_of_theirs[item] for item in ids.tolist()], values, rtol=1e-6)
    apart = np.abs(np.subtract.outer(values, values)) > 1e-6 * values[:, None]
    np.fill_diagonal(apart, True)
    apart[-1:] &= len(values) < 6  # a tie may go on after the end of the list
    alone = apart.all(axis=1)
    np.testing.assert_array_equal(ids[alone], expected[alone])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 20), st.booleans())
@pytest.mark.parametrize("name", PAIRS)
def test_lists_are_those_of_implicit(name, seed, top_k, skip):
    R = weighted(seed)
    found, expected = both(name, R, top_k=top_k)
    for user in range(R.shape[0]):
        if not R[user].nnz:
            continue
        ids, scores = expected.recommend(user, R[user], N=6, filter_already_liked_items=skip)
        ours = found.recommend(user, R[user], N=6, filter_already_liked_items=skip)
        everything = expected.recommend(user, R[user], N=15, filter_already_liked_items=False)
        assert_same_list(
            ours, (ids, scores), dict(zip(*map(np.ndarray.tolist, everything), strict=True))
        )
        assert (ours.scores[int((scores > 0).sum()) :] == 0).all()


@pytest.mark.thorough
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 15))
@pytest.mark.parametrize("name", PAIRS)
def test_similar_items_are_those_of_implicit(name, seed, top_k):
    R = weighted(seed)
    found, expected = both(name, R, top_k=top_k)
    for item in range(R.shape[1]):
        ids, scores = expected.similar_items(item, N=6)
        ours, values = found.similar_items(item, N=6)
        row = expected.similarity[item].toarray().ravel()
        assert_same_list((ours, values), (ids, scores), dict(enumerate(row.tolist())))


@pytest.mark.parametrize("K1, B", [(0.0, 0.0), (100.0, 0.5), (1.2, 1.0)])
def test_parameters_of_bm25_are_those_of_implicit(K1, B):
    R = weighted(5)
    found, expected = both("bm25", R, K1=K1, B=B)
    np.testing.assert_allclose(found.weights_.toarray(), expected.similarity.toarray(), rtol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
def test_scores_are_those_of_the_formulas_on_weights(name):
    R = weighted(3).toarray()
    model = make_ranker(name, top_k=4).fit(R, show_progress=False)
    weigh = {
        "cosine": lambda R: R,
        "tfidf": reference.tfidf,
        "bm25": lambda R: reference.bm25(R, 1.2, 0.75),
    }[name]
    expected = reference.neighbours(R, R, 4, weigh, unit=name != "bm25")
    full = R.sum(axis=1) > 0
    np.testing.assert_allclose(model.scores(np.arange(len(R)), R)[full], expected[full], rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_values_weigh_in_scores_and_in_reasons(name, tmp_path):
    R = weighted(4)
    model = make_ranker(name).fit(R, show_progress=False)
    user = int(np.flatnonzero(np.diff(R.indptr) > 2)[0])
    ids = model.recommend(user, R[user]).ids
    scores = model.scores(user, R[user]).ravel()
    twice = model.scores(user, 2 * R[user]).ravel()
    np.testing.assert_allclose(twice, 2 * scores, rtol=1e-6)
    told = model.explain(user, R[user], int(ids[0]), N=100)
    assert sum(share for _, share in told.contributions) == pytest.approx(told.score, rel=1e-12)
    assert told.score == pytest.approx(scores[ids[0]], rel=1e-6)
    model.save(tmp_path / "model")
    again = load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(again.scores(user, R[user]).ravel(), scores)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    "plays",
    [[[3.0]], [[1, 2, 0], [0, 0, 0]], [[1, 1], [1, 1]], [[1, 1, 0], [1, 1, 0], [0, 0, 5]]],
    ids=["one item", "an empty row", "all", "all items but one"],
)
def test_small_matrices_give_finite_scores(name, plays):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make_ranker(name).fit(plays, show_progress=False)
    assert np.isfinite(model.weights_.data).all()
    assert np.isfinite(model.scores(np.arange(len(plays)), plays)).all()


@pytest.mark.parametrize(
    "spec, message",
    [
        ({"top_k": 0}, "top_k"),
        ({"K1": -1.0}, "K1"),
        ({"B": 1.5}, "B must"),
        ({"num_threads": -1}, "num_threads"),
    ],
)
def test_parameters_out_of_range_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        make_ranker("bm25", **spec)


def test_a_table_of_neighbours_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("recsys.utils.resources.free_memory", lambda: 1000)
    with pytest.raises(InputError, match="lower top_k"):
        make_ranker("cosine").fit(weighted(1), show_progress=False)


@pytest.mark.thorough
def test_looking_one_up_imports_its_module_alone():
    code = (
        "import sys; from recsys import make_ranker; make_ranker('bm25');"
        "assert 'recsys.rankers.neighbors' in sys.modules;"
        "assert 'recsys.rankers.sequences' not in sys.modules and 'implicit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", PAIRS)
def test_parameters_are_in_the_order_of_implicit(name):
    ours, theirs = PAIRS[name]
    given = ["top_k" if key == "K" else key for key in inspect.signature(theirs).parameters]
    assert list(inspect.signature(ours).parameters)[: len(given)] == given


@pytest.mark.parametrize("name", ["bm25", "user-knn", "slim", "slist", "ease", "cf-komd"])
def test_the_list_of_a_user_who_likes_every_item_is_empty_with_reasons_too(name):
    model = Recommender(name).fit(sp.csr_matrix([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
    assert len(model.recommend(0, why=True)) == 0
    assert list(model.recommend(1, why=True)["item"]) == [1]
