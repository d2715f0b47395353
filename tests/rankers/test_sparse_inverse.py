"""Sparse EASE against dense arrays, against dense EASE where all items are kept, and in its budget."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.lab.long_tail import long_tail
from recsys import FitError, InputError, load_ranker, make_ranker
from recsys.rankers import ease
from recsys.rankers.sparse_inverse import sparse_inverse_weights
from tests.reference import sparse_inverse as reference
from tests.strategies import liked_matrices

REGULARIZATION = st.sampled_from([0.5, 20.0, 500.0])
PLENTY = 10**9


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(liked_matrices(max_users=30, max_items=20), REGULARIZATION, st.integers(0, 3))
def test_it_is_ease_where_all_items_are_kept(R, regularization, more):
    items = R.shape[1]
    dense = make_ranker("ease", regularization=regularization).fit(R).weights_
    found = sparse_inverse_weights(R, regularization, max(1, items - 1 + more), PLENTY)
    np.testing.assert_allclose(found.toarray(), dense, atol=1e-6, rtol=1e-6)


def test_it_is_ease_on_movielens_where_all_items_are_kept(movielens):
    R = movielens.matrix
    R = R[:, np.flatnonzero(np.diff(R.tocsc().indptr) >= 100)].tocsr()
    dense = make_ranker("ease").fit(R)
    found = sparse_inverse_weights(R, 500.0, R.shape[1], PLENTY)
    np.testing.assert_allclose(found.toarray(), dense.weights_, atol=1e-6)


@pytest.mark.parametrize("top_k", [12, 59])
def test_votes_weigh_users_in_either_form(top_k):
    R = long_tail(100, 60, 1500, seed=1)
    votes = np.diff(R.indptr) ** -0.5
    found = sparse_inverse_weights(R, 2.0, top_k, PLENTY, votes=votes).toarray()
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
    if top_k == 59:
        dense = make_ranker("ease", regularization=2.0, votes=0.5).fit(R).weights_
        np.testing.assert_allclose(found, dense, atol=1e-6)
    else:
        ranker = make_ranker("ease", regularization=2.0, votes=0.5, top_k=top_k).fit(R)
        np.testing.assert_array_equal(ranker.weights_, found)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    liked_matrices(max_users=30, max_items=15), REGULARIZATION, st.integers(1, 20),
    st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from([0.0, 0.4]), st.sampled_from([0.0, 0.6]),
)  # fmt: skip
def test_a_ridge_may_depend_on_popularity_in_either_form(
    R, regularization, top_k, power, dropout, votes
):
    expected = reference.weights(
        R.toarray().astype(np.float64), regularization, top_k, votes, power, dropout
    )
    ranker = make_ranker(
        "ease", regularization=regularization, top_k=top_k, votes=votes, ridge_power=power,
        dropout=dropout,
    )  # fmt: skip
    found = ranker.fit(R, show_progress=False).weights_
    if votes == 0:  # rounded cosines may keep another item of equals
        np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-6)
    if top_k >= R.shape[1] - 1:
        forced = sparse_inverse_weights(
            R, ranker._ridge(np.asarray(R.sum(axis=0), np.float64).ravel()), top_k, PLENTY
        )
        plain = make_ranker("ease", regularization=regularization, ridge_power=power, dropout=dropout)
        dense = plain.fit(R, show_progress=False).weights_
        np.testing.assert_allclose(forced.toarray(), dense, atol=1e-6, rtol=1e-6)


def test_top_k_of_all_items_is_the_dense_inverse():
    R = long_tail(100, 60, 1500, seed=1)
    dense = make_ranker("ease").fit(R).weights_
    for top_k in (59, 60, 1000):
        np.testing.assert_array_equal(make_ranker("ease", top_k=top_k).fit(R).weights_, dense)
    sparse = make_ranker("ease", top_k=59, memory=16 * 60 * 60 - 1)
    with pytest.raises(InputError, match="EASE on 60 items with top_k=59 needs"):
        sparse.fit(R)  # its blocks are as large


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(liked_matrices(max_users=30, max_items=15), REGULARIZATION, st.integers(1, 20))
def test_each_item_is_regressed_on_the_items_most_like_it(R, regularization, top_k):
    expected = reference.weights(R.toarray().astype(np.float64), regularization, top_k)
    found = sparse_inverse_weights(R, regularization, top_k, PLENTY)
    assert found.dtype == np.float32 and found.has_sorted_indices
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6, rtol=1e-6)
    assert np.diff(found.tocsc().indptr).max(initial=0) <= top_k and (found.diagonal() == 0).all()


@pytest.mark.thorough
def test_it_is_the_reference_on_a_larger_catalogue():
    R = long_tail(300, 400, 6000, seed=3)
    for top_k in (1, 30, 200):
        expected = reference.weights(R.toarray().astype(np.float64), 5.0, top_k)
        found = sparse_inverse_weights(R, 5.0, top_k, PLENTY).toarray()
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_items_nobody_has_and_items_alone_have_no_weights():
    R = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0]], dtype=np.float32))
    found = sparse_inverse_weights(R, 1.0, 2, PLENTY)
    assert found.nnz == 2
    np.testing.assert_allclose(found.toarray()[:2, :2], [[0, 2 / 3], [2 / 3, 0]], rtol=1e-6)


def test_one_user():
    R = sp.csr_matrix(np.ones((1, 4), dtype=np.float32))
    found = sparse_inverse_weights(R, 1.0, 2, PLENTY).toarray()
    expected = np.zeros((4, 4))  # of equal items the earlier; (11ᵀ + I)⁻¹1 = 1/3 for two
    for j, others in enumerate(([1, 2], [0, 2], [0, 1], [0, 1])):
        expected[others, j] = 1 / 3
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_of_equal_cosines_the_rarer_item_is_kept():
    R = np.zeros((8, 3), dtype=np.float32)
    R[:4, 0] = 1  # the target; item 1 shares two of its four users, item 2 one of its one
    R[2:6, 1] = 1
    R[0, 2] = 1
    found = sparse_inverse_weights(sp.csr_matrix(R), 1.0, 1, PLENTY).toarray()
    assert found[2, 0] == np.float32(0.5) and found[1, 0] == 0


def test_more_items_are_closer_to_ease():
    R = long_tail(300, 400, 6000, seed=3)
    dense = make_ranker("ease", regularization=50.0).fit(R).weights_
    gaps = []
    for top_k in (5, 20, 100, 399):
        found = sparse_inverse_weights(R, 50.0, top_k, PLENTY).toarray()
        gaps.append(np.abs(found - dense).sum() / np.abs(dense).sum())
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-6


@pytest.mark.thorough
def test_results_do_not_depend_on_threads():
    R = long_tail(400, 600, 20_000, seed=1)
    found = [sparse_inverse_weights(R, 50.0, 300, PLENTY)]
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        found.append(sparse_inverse_weights(R, 50.0, 300, PLENTY))
    finally:
        numba.set_num_threads(before)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def test_a_dense_inverse_that_does_not_fit_is_sparse(monkeypatch, tmp_path):
    R = long_tail(200, 300, 4000, seed=1)
    monkeypatch.setattr(ease, "TOP_K", 20)
    monkeypatch.setattr("recsys.rankers._gram_view.SMALL", 0)
    ranker = make_ranker("ease", memory=16 * 300 * 300 - 1).fit(R)
    assert sp.issparse(ranker.weights_) and ranker.weights_.dtype == np.float32
    assert np.diff(ranker.weights_.tocsc().indptr).max() == 20
    dense = make_ranker("ease", memory=16 * 300 * 300).fit(R)
    np.testing.assert_array_equal(dense.weights_, make_ranker("ease").fit(R).weights_)
    ranker.save(tmp_path / "m.recsys")
    again = load_ranker(tmp_path / "m.recsys")
    users = np.arange(200)
    for mine, kept in zip(ranker.recommend(users, R), again.recommend(users, R), strict=True):
        np.testing.assert_array_equal(mine, kept)
    expected = R.toarray() @ ranker.weights_.toarray()
    np.testing.assert_allclose(ranker.scores(users, R), expected, atol=1e-5)


def test_what_fits_is_kept(monkeypatch):
    R = long_tail(200, 300, 4000, seed=1)
    most = 0
    for memory in (400_000, 450_000, 500_000, 600_000):
        found = make_ranker("ease", memory=memory).fit(R).weights_
        top_k = int((found != 0).sum(axis=0).max())
        assert most < top_k < 200
        most = top_k
        with pytest.raises(InputError, match=f"with top_k={top_k + 1} needs"):
            make_ranker("ease", memory=memory, top_k=top_k + 1).fit(R)


def test_errors():
    R = long_tail(100, 60, 1500, seed=1)
    with pytest.raises(InputError, match="top_k must be an integer of at least 1, not 0"):
        make_ranker("ease", top_k=0).fit(R)
    with pytest.raises(InputError, match="memory must be a size such as 4GB or 500MB, not 'much'"):
        make_ranker("ease", memory="much").fit(R)
    needed = r"EASE on 60 items with top_k=20 needs .* KB and has 1\.0 KB: lower top_k, raise memory"
    with pytest.raises(InputError, match=needed):
        make_ranker("ease", top_k=20, memory=1000).fit(R)
    with pytest.raises(FitError, match="cannot invert its matrices: raise regularization"):
        make_ranker("ease", top_k=20, regularization=1e-12).fit(R)
    twins = sp.csr_matrix(np.ones((1000, 30), dtype=np.float32))
    make_ranker("ease", top_k=20, regularization=1e-9).fit(twins)
