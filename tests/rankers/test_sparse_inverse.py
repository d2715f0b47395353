"""Sparse EASE against dense arrays, against dense EASE where nothing is dropped, and in its budget."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recsys import InputError, load_ranker, make_ranker
from recsys.datasets.synthetic import long_tail
from recsys.rankers import _sparse_inverse as sparse
from recsys.rankers import ease
from tests.reference import sparse_inverse as reference
from tests.strategies import liked_matrices

REGULARIZATION = st.sampled_from([0.5, 20.0, 500.0])


@settings(max_examples=60, deadline=None)
@given(liked_matrices(max_users=30, max_items=20), REGULARIZATION)
def test_it_is_ease_where_nothing_is_dropped(R, regularization):
    items = R.shape[1]
    dense = make_ranker("ease", regularization=regularization).fit(R).weights_
    found = make_ranker("ease", regularization=regularization, top_k=items).fit(R).weights_
    np.testing.assert_allclose(found, dense, atol=1e-6, rtol=1e-6)


def test_it_is_ease_on_movielens_where_nothing_is_dropped(movielens):
    R = movielens.matrix
    dense = make_ranker("ease").fit(R)
    found = make_ranker("ease", top_k=R.shape[1]).fit(R)
    np.testing.assert_allclose(found.weights_, dense.weights_, atol=1e-6)
    some = np.arange(50)
    np.testing.assert_array_equal(found.recommend(some, R[some])[0], dense.recommend(some, R[some])[0])


@settings(max_examples=60, deadline=None)
@given(liked_matrices(max_users=30, max_items=12), REGULARIZATION, st.sampled_from([0.01, 0.1, 0.3]))
def test_incomplete_factors_are_those_of_dense_arrays(R, regularization, tolerance):
    items = R.shape[1]
    S, scale, order = reference.scaled(R.toarray().astype(np.float64), regularization)
    L = reference.factor(S, regularization * scale**2, tolerance)
    assume(L is not None)
    near = [np.abs(np.abs(X[X != 0]) - tolerance).min(initial=1.0) for X in (L, S)]
    assume(min(near) > 1e-9)  # rounding decides there
    rows = R[:, order].tocsr()
    rows.sort_indices()
    columns = rows.tocsc()
    begins = np.zeros(items + 1, dtype=np.int64)
    indices, values = np.empty(items**2, dtype=np.int32), np.empty(items**2)
    outcome = sparse._factor(
        rows.indptr, rows.indices, columns.indptr, columns.indices, scale, regularization, tolerance, 0.0,
        begins, indices, values,
    )  # fmt: skip
    assert outcome == sparse.DONE
    count = begins[-1]
    found = sp.csc_matrix((values[:count], indices[:count], begins), shape=(items, items))
    np.testing.assert_allclose(found.toarray(), L, atol=1e-12)
    M = reference.inverse(L, tolerance)
    assume(np.abs(np.abs(M[M != 0]) - tolerance).min() > 1e-9)
    whole = sparse._incomplete_inverse(found, tolerance, int((M != 0).sum()))
    if whole.nnz == (M != 0).sum():
        np.testing.assert_allclose(whole.toarray(), M, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(liked_matrices(max_users=30, max_items=12), REGULARIZATION, st.integers(1, 4))
def test_the_largest_weights_are_kept(R, regularization, top_k):
    items = R.shape[1]
    top_k = min(top_k, items)
    S, scale, order = reference.scaled(R.toarray().astype(np.float64), regularization)
    M = np.linalg.inv(np.linalg.cholesky(S))
    full = reference.weights(M, scale, order, items)
    found = sparse.sparse_inverse_weights(R, regularization, top_k, items).toarray()
    kept = found != 0
    assert kept.sum(axis=0).max(initial=0) <= top_k
    np.testing.assert_allclose(found[kept], full[kept], rtol=1e-5, atol=1e-7)
    expected = np.abs(reference.weights(M, scale, order, top_k)).sum(axis=0)
    np.testing.assert_allclose(
        np.abs(found).sum(axis=0), expected, rtol=1e-5, atol=1e-7
    )  # ties may swap


@settings(max_examples=100, deadline=None)
@given(liked_matrices(max_users=60, max_items=40), st.floats(1e-3, 1e3), st.integers(1, 10))
def test_little_room_is_kept_to_and_gives_finite_weights(R, regularization, entries):
    entries = min(entries, R.shape[1])
    found = sparse.sparse_inverse_weights(R, regularization, entries, entries)
    assert np.isfinite(found.data).all() and found.dtype == np.float32
    assert np.diff(found.tocsc().indptr).max(initial=0) <= entries and (found.diagonal() == 0).all()


def test_factor_and_inverse_fill_their_room():
    R = long_tail(300, 400, 6000, seed=3)
    order = np.argsort(np.diff(R.tocsc().indptr), kind="stable")
    rows = R[:, order].tocsr()
    rows.sort_indices()
    scale = 1 / np.sqrt(np.sort(np.diff(R.tocsc().indptr)) + 50.0)
    for entries in (2, 20, 60):
        most = entries * 400
        L, tolerance, shift = sparse._incomplete_factor(rows, rows.tocsc(), scale, 50.0, 0.0, most)
        M = sparse._incomplete_inverse(L, tolerance, most)
        assert shift == 0.0 and 0.3 * most < L.nnz <= most and 0.3 * most < M.nnz <= most


def test_more_room_is_closer_to_ease():
    R = long_tail(300, 400, 6000, seed=3)
    dense = make_ranker("ease", regularization=50.0).fit(R).weights_
    gaps = []
    for entries in (60, 100, 200, 400):
        found = sparse.sparse_inverse_weights(R, 50.0, entries, entries).toarray()
        gaps.append(np.abs(found - dense).sum() / np.abs(dense).sum())
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-6


def test_results_do_not_depend_on_threads():
    import numba

    R = long_tail(200, 300, 4000, seed=1)
    found = [sparse.sparse_inverse_weights(R, 50.0, 10, 30)]
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        found.append(sparse.sparse_inverse_weights(R, 50.0, 10, 30))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0].toarray(), found[1].toarray())


def test_a_dense_inverse_that_does_not_fit_is_sparse(monkeypatch, tmp_path):
    R = long_tail(200, 300, 4000, seed=1)
    monkeypatch.setattr(ease, "TOP_K", 20)
    monkeypatch.setattr(ease, "SMALL", 0)
    ranker = make_ranker("ease", memory=16 * 300 * 300 - 1).fit(R)
    assert sp.issparse(ranker.weights_) and ranker.weights_.dtype == np.float32
    assert np.diff(ranker.weights_.tocsc().indptr).max() == 20
    dense = make_ranker("ease", memory=16 * 300 * 300).fit(R)
    np.testing.assert_array_equal(dense.weights_, make_ranker("ease").fit(R).weights_)
    tight = make_ranker("ease", memory=sparse.ENTRY_BYTES * 300 * 7).fit(R)
    assert np.diff(tight.weights_.tocsc().indptr).max() == 7
    ranker.save(tmp_path / "m.recsys")
    again = load_ranker(tmp_path / "m.recsys")
    users = np.arange(200)
    for mine, kept in zip(ranker.recommend(users, R), again.recommend(users, R), strict=True):
        np.testing.assert_array_equal(mine, kept)
    expected = R.toarray() @ ranker.weights_.toarray()
    np.testing.assert_allclose(ranker.scores(users, R), expected, atol=1e-5)


def test_small_catalogues_are_cut_but_not_approximated():
    R = long_tail(100, 60, 1500, seed=1)
    dense = make_ranker("ease", regularization=5.0).fit(R).weights_
    found = make_ranker("ease", regularization=5.0, top_k=4).fit(R).weights_
    kept = found != 0
    assert (kept.sum(axis=0) == 4).all()
    np.testing.assert_allclose(found[kept], dense[kept], rtol=1e-5)


def test_errors():
    R = long_tail(100, 60, 1500, seed=1)
    with pytest.raises(InputError, match="top_k must be a whole number of at least 1, not 0"):
        make_ranker("ease", top_k=0).fit(R)
    with pytest.raises(InputError, match="memory must be a size such as 4GB or 500MB, not 'much'"):
        make_ranker("ease", memory="much").fit(R)
    needed = "EASE on 60 items with top_k=20 needs 0.0 GB and has 0.0 GB: lower top_k, raise memory"
    with pytest.raises(InputError, match=needed):
        make_ranker("ease", top_k=20, memory=1000).fit(R)
