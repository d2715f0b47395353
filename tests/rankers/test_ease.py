"""EASE, also on few items: against dense arrays, and against the inverse where all items are kept."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.lab.long_tail import long_tail
from recsys import FitError, InputError, make_ranker
from recsys.rankers.scoring import co_occurrences
from tests.reference import sparse_inverse as reference
from tests.strategies import liked_matrices

REGULARIZATION = st.sampled_from([0.5, 20.0, 500.0])


def regressions(R, regularization, top_k, **params):
    """The weights by regressions, of whichever `top_k`."""
    model = make_ranker("ease", regularization=regularization, **params)
    votes = np.maximum(np.diff(R.indptr), 1.0) ** -model.votes
    order = np.argsort(R.T @ votes, kind="stable")
    return model._regressions(co_occurrences(R[:, order], votes), order, top_k)


def test_votes_weigh_users_in_either_form():
    top_k = 12
    R = long_tail(100, 60, 1500, seed=1)
    votes = np.diff(R.indptr) ** -0.5
    found = regressions(R, 2.0, top_k, votes=0.5).toarray()
    counts = (R.multiply(votes[:, None]).T @ R).toarray()
    A = counts + 2.0 * np.eye(60)
    cosines = counts**2 / np.diag(counts)[:, None]
    for j in range(60):
        kept = np.flatnonzero(found[:, j])
        left_out = np.setdiff1d(np.arange(60), [*kept, j])
        assert len(kept) <= top_k
        assert cosines[left_out, j].max(initial=0) <= cosines[kept, j].min() * (1 + 1e-6)
        expected = np.linalg.solve(A[np.ix_(kept, kept)], A[kept, j])
        np.testing.assert_allclose(found[kept, j], expected, atol=1e-6)
    ranker = make_ranker("ease", regularization=2.0, votes=0.5, top_k=top_k).fit(R)
    np.testing.assert_allclose(ranker.weights_, found, atol=1e-6)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    liked_matrices(max_users=30, max_items=15),
    REGULARIZATION,
    st.integers(1, 20),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([0.0, 0.6]),
)
def test_a_ridge_may_depend_on_popularity_in_either_form(
    R, regularization, top_k, power, dropout, votes
):
    expected = reference.weights(
        R.toarray().astype(np.float64), regularization, top_k, votes, power, dropout
    )
    ranker = make_ranker(
        "ease",
        regularization=regularization,
        top_k=top_k,
        votes=votes,
        ridge_power=power,
        dropout=dropout,
    )
    found = ranker.fit(R, show_progress=False).weights_
    if votes == 0:  # rounded cosines may keep another item of equals
        np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-6)


def test_top_k_of_all_items_is_the_dense_inverse():
    R = long_tail(100, 60, 1500, seed=1)
    dense = make_ranker("ease").fit(R).weights_
    for top_k in (59, 60, 1000):
        np.testing.assert_array_equal(make_ranker("ease", top_k=top_k).fit(R).weights_, dense)


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(liked_matrices(max_users=30, max_items=15), REGULARIZATION, st.integers(1, 20))
def test_each_item_is_regressed_on_the_items_most_like_it(R, regularization, top_k):
    assume(top_k < R.shape[1] - 1)  # beyond, `fit` inverts the whole matrix
    expected = reference.weights(R.toarray().astype(np.float64), regularization, top_k)
    found = regressions(R, regularization, top_k)
    assert found.dtype == np.float32 and found.has_sorted_indices
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6, rtol=1e-6)
    assert np.diff(found.tocsc().indptr).max(initial=0) <= top_k and (found.diagonal() == 0).all()


@pytest.mark.thorough
def test_it_is_the_reference_on_a_larger_catalogue():
    R = long_tail(300, 400, 6000, seed=3)
    for top_k in (1, 30, 200):
        expected = reference.weights(R.toarray().astype(np.float64), 5.0, top_k)
        found = regressions(R, 5.0, top_k).toarray()
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_items_nobody_has_and_items_alone_have_no_weights():
    R = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0]], dtype=np.float32))
    found = regressions(R, 1.0, 2)
    assert found.nnz == 2
    np.testing.assert_allclose(found.toarray()[:2, :2], [[0, 2 / 3], [2 / 3, 0]], rtol=1e-6)


def test_one_user():
    R = sp.csr_matrix(np.ones((1, 4), dtype=np.float32))
    found = regressions(R, 1.0, 2).toarray()
    expected = np.zeros((4, 4))  # of equal items the earlier; (11ᵀ + I)⁻¹1 = 1/3 for two
    for j, others in enumerate(([1, 2], [0, 2], [0, 1], [0, 1])):
        expected[others, j] = 1 / 3
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_of_equal_cosines_the_rarer_item_is_kept():
    R = np.zeros((8, 3), dtype=np.float32)
    R[:4, 0] = 1  # the target; item 1 shares two of its four users, item 2 one of its one
    R[2:6, 1] = 1
    R[0, 2] = 1
    found = regressions(sp.csr_matrix(R), 1.0, 1).toarray()
    assert found[2, 0] == np.float32(0.5) and found[1, 0] == 0


def test_more_items_are_closer_to_ease():
    R = long_tail(300, 400, 6000, seed=3)
    dense = make_ranker("ease", regularization=50.0).fit(R).weights_
    gaps = []
    for top_k in (5, 20, 100):
        found = regressions(R, 50.0, top_k).toarray()
        gaps.append(np.abs(found - dense).sum() / np.abs(dense).sum())
    assert gaps == sorted(gaps, reverse=True)


def test_errors():
    R = long_tail(100, 60, 1500, seed=1)
    with pytest.raises(InputError, match="top_k must be an integer of at least 1, not 0"):
        make_ranker("ease", top_k=0).fit(R)
    with pytest.raises(InputError, match="dropout must be a finite number of at least 0 and below 1"):
        make_ranker("ease", dropout=1.0).fit(R)
    with pytest.raises(FitError, match="cannot invert its matrices: raise regularization"):
        make_ranker("ease", top_k=20, regularization=1e-12).fit(R)
    twins = sp.csr_matrix(np.ones((1000, 30), dtype=np.float32))
    for votes in (0.0, 0.3, 0.5):
        make_ranker("ease", top_k=20, regularization=1e-9, votes=votes).fit(twins)


def test_items_that_nobody_has_do_not_change_the_ridge_of_others(liked):
    options = {"regularization": 3.0, "ridge_power": 0.7, "dropout": 0.3}
    weights = make_ranker("ease", **options).fit(liked, show_progress=False).weights_
    more = sp.hstack([liked, sp.csr_matrix((liked.shape[0], 4))]).tocsr()
    found = make_ranker("ease", **options).fit(more, show_progress=False).weights_
    n = liked.shape[1]
    np.testing.assert_allclose(found[:n, :n], weights, atol=1e-6)
    assert not found[n:].any() and not found[:, n:].any()


def test_dropout_is_the_mean_over_all_ways_to_hide_likes():
    R = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=float)
    p, ridge = 0.3, 0.8
    ways = [np.array(bits, float) for bits in itertools.product((0, 1), repeat=int(R.sum()))]
    A, Y = np.zeros((3, 3)), np.zeros((3, 3))
    for bits in ways:
        X = np.zeros_like(R)
        X[R > 0] = bits / (1 - p)  # the mean of what is left is R
        probability = np.prod(np.where(bits > 0, 1 - p, p))
        A += probability * X.T @ X
        Y += probability * X.T @ R
    expected = np.zeros((3, 3))
    for j in range(3):
        others = [i for i in range(3) if i != j]
        inner = A[np.ix_(others, others)] + ridge * np.eye(2)
        expected[others, j] = np.linalg.solve(inner, Y[others, j])
    ranker = make_ranker("ease", regularization=ridge, dropout=p)
    np.testing.assert_allclose(ranker.fit(R, show_progress=False).weights_, expected, atol=1e-6)
