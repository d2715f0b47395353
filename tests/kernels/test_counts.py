"""Counts of pairs: against products of matrices, as they are and after rows came and went."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.kernels.gram.counts import (
    ItemCounts,
    check_counts,
    count_type,
    dense_counts,
    sparse_counts,
)
from tests.strategies import liked_matrices

SMALL = settings(max_examples=40, deadline=None)


def pairs(R):
    X = R.toarray().astype(np.int64)
    return X.T @ X


@SMALL
@given(liked_matrices())
def test_both_forms_hold_the_product(R):
    for counts in (dense_counts(R), sparse_counts(R)):
        np.testing.assert_array_equal(counts.toarray(), pairs(R))
        assert counts.vectors == R.shape[0]
        check_counts(counts, R.shape[1])
    sparse = sparse_counts(R)
    assert (np.diff(sparse.sizes[sparse.order]) <= 0).all()  # popular ones first
    assert sparse.together.diagonal().sum() == 0 and (sparse.together.data > 0).all()


@pytest.mark.thorough
@SMALL
@given(liked_matrices(min_users=3), st.integers(0, 2**31), st.integers(0, 3))
def test_rows_that_come_and_go_leave_the_counts_of_a_refit(R, seed, more):
    rng = np.random.default_rng(seed)
    touched = rng.random(R.shape[0]) < 0.5
    before = R[touched]
    after = sp.csr_matrix((rng.random(before.shape) < 0.4).astype(np.float32))
    whole = R.tolil()
    whole[np.flatnonzero(touched)] = after
    whole = sp.csr_matrix(whole)
    wider = sp.csr_matrix((whole.data, whole.indices, whole.indptr), (R.shape[0], R.shape[1] + more))
    for count in (dense_counts, sparse_counts):
        found = count(R).changed(before, after, R.shape[0]).extended(R.shape[1] + more)
        refit = count(wider)
        np.testing.assert_array_equal(found.toarray(), pairs(wider))
        data, other = (c.together if c.dense else c.together.data for c in (found, refit))
        assert data.dtype == other.dtype
        check_counts(found, R.shape[1] + more)


def test_what_was_never_counted_is_not_taken_out():
    R = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32))
    wrong = sp.csr_matrix(np.array([[1, 0, 1]], dtype=np.float32))
    for counts in (dense_counts(R), sparse_counts(R)):
        was = counts.toarray()
        with pytest.raises(InputError, match="never counted together"):
            counts.changed(wrong, sp.csr_matrix(wrong.shape, dtype=np.float32), 3)
        np.testing.assert_array_equal(counts.toarray(), was)


@pytest.mark.parametrize(
    "second, kind", [(255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, np.uint32)]
)
def test_counts_are_of_the_smallest_type_that_holds_them(second, kind):
    assert count_type(np.array([second, 3, 10**7])) is kind


def test_a_pair_that_all_share_fills_its_type():
    R = sp.csr_matrix(np.ones((300, 2), dtype=np.float32))
    for counts in (dense_counts(R), sparse_counts(R)):
        assert counts.toarray().tolist() == [[300, 300], [300, 300]]


def broken(R, **changes):
    counts = sparse_counts(R)
    parts = {"together": counts.together.copy(), "sizes": counts.sizes, "order": counts.order}
    parts |= {"vectors": counts.vectors} | changes
    return ItemCounts(**parts)


def test_counts_of_no_rows_are_refused():
    R = sp.csr_matrix(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=np.float32))
    twice = sparse_counts(R).together.copy()
    twice.data = twice.data + np.uint8(3)
    for name, counts in {
        "an item twice": broken(R, order=np.array([0, 0, 1], np.int32)),
        "an order out of range": broken(R, order=np.array([0, 1, 7], np.int32)),
        "more pairs than users": broken(R, together=twice),
        "more users than there are": broken(R, vectors=2),
        "signed": broken(R, together=sparse_counts(R).together.astype(np.int16)),
    }.items():
        with pytest.raises(ValueError, match="_"):
            check_counts(counts, 3)
            pytest.fail(name)
