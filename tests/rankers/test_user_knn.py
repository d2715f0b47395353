"""Nearest users against their formula, on weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import Recommender, UserKNN, load_ranker
from recsys.data import Interactions
from recsys.rankers.scoring import _best_sums
from recsys.utils.topn import LOWEST
from tests.reference import rankers as reference

FEW = settings(max_examples=25, deadline=None)


def weighted(seed, users=25, items=12):
    """Return amounts, of which some user has none; no two users are equally near to a third."""
    rng = np.random.default_rng(seed)
    R = (0.1 + rng.random((users, items))) * (rng.random((users, items)) < 0.6)
    R[rng.integers(users)] = 0
    return sp.csr_matrix(R.astype(np.float32))


def dense(R):
    return R.toarray().astype(np.float64)


def filled(R):
    return np.diff(R.indptr) > 0


@FEW
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_scores_are_those_of_the_formula_on_weights(seed, top_k):
    R = weighted(seed)
    found = UserKNN(top_k=top_k).fit(R, show_progress=False).scores(np.arange(25), R)
    expected = reference.user_neighbours(dense(R), dense(R), top_k)
    np.testing.assert_allclose(found[filled(R)], expected[filled(R)], rtol=1e-5, atol=1e-6)


@FEW
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_contributions_are_what_the_score_loses_with_the_neighbours_kept(seed, top_k):
    """The items that the row shares with its neighbours make the score up, each by its part of the cosines."""
    R = weighted(seed)
    model = UserKNN(top_k=top_k).fit(R, show_progress=False)
    user = int(np.flatnonzero(filled(R))[0])
    X = model.user_items_.toarray().astype(np.float64)
    units = model.item_users_.T.toarray().astype(np.float64)
    near = np.argsort(-np.float32(units @ units[user]), kind="stable")[:top_k]
    for item in (0, 5, int(R[user].indices[0])):
        told = model.explain(user, R[user], item, N=99)
        for liked, share in told.contributions:
            expected = units[user, liked] * units[near, liked] @ X[near, item]
            assert share == pytest.approx(expected, rel=1e-5, abs=1e-7)
        assert told.bias == pytest.approx(0.0, abs=1e-12)
        assert told.score == pytest.approx(model.scores(user, R[user])[0, item], rel=1e-5, abs=1e-6)


def test_similar_users_are_by_the_cosine():
    R = weighted(3)
    model = UserKNN().fit(R, show_progress=False)
    user = int(np.flatnonzero(filled(R))[0])
    ids, scores = model.similar_users(user, N=25)
    X = R.toarray() / np.maximum(np.linalg.norm(R.toarray(), axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(scores, (X @ X[user])[ids], rtol=1e-5, atol=1e-6)
    assert ids[0] == user and (np.diff(scores) <= 0).all()


def test_a_nearest_user_alone_gives_its_items():
    R = sp.csr_matrix([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=np.float32)
    model = UserKNN(top_k=1).fit(R[1:], show_progress=False)
    found = model.recommend(0, R[[0]], N=2, recalculate_user=True)
    assert found.ids.tolist() == [2, 3]
    assert found.scores[0] == pytest.approx(2 / np.sqrt(6)) and found.scores[1] == 0


def test_quantities_of_a_table_reach_the_scores_and_the_file(tmp_path):
    rng = np.random.default_rng(0)
    data = Interactions.from_ids(
        rng.integers(0, 20, 200),
        rng.integers(0, 15, 200),
        time=rng.integers(1, 30, 200),
        weight=rng.integers(1, 6, 200),
    )
    model = Recommender("user-knn").fit(data)
    plain = Recommender("user-knn").fit(Interactions.from_ids(data.users, data.items, time=data.time))
    user = data.user_ids[0]
    ours, theirs = (m.recommend(user, n=5, filter_liked=False)["score"] for m in (model, plain))
    assert list(ours) != list(theirs)
    model.save(tmp_path / "model")
    again = load_ranker(tmp_path / "model")
    rows = data.matrix
    np.testing.assert_array_equal(
        again.scores(np.arange(20), rows), model.ranker.scores(np.arange(20), rows)
    )


@pytest.mark.parametrize("skip_liked", [False, True])
def test_lists_of_neighbours_stay_within_their_arrays(skip_liked):
    """Rows are of items and lists of users: Python refuses an index beyond an array, compiled code does not."""
    X = sp.random(4, 60, 0.3, format="csr", dtype=np.float32, random_state=0)
    weights = X.T.tocsr()
    rows = X if not skip_liked else X[:, :4].tocsr()
    weights = weights if not skip_liked else weights[:4].tocsr()
    ids, best = np.full((4, 3), -1, np.int32), np.full((4, 3), LOWEST, np.float32)
    left = (rows.indptr, rows.indices, rows.data.astype(np.float64))
    right = (weights.indptr, weights.indices, weights.data)
    background = (np.zeros((4, 1)), np.zeros(4, np.int32), np.zeros(4), np.zeros(4))
    options = (np.arange(4), skip_liked, np.ones(4, np.uint8))
    _best_sums.py_func(0, 1, left, right, background, *options, ids, best)
    scores = (rows.astype(np.float64) @ weights).toarray().astype(np.float32)
    for user, row in enumerate(scores):
        left = [j for j in range(4) if not (skip_liked and rows[user, j])]
        expected = sorted(left, key=lambda j, row=row: (-row[j], j))[:3]
        assert ids[user][: len(expected)].tolist() == expected
