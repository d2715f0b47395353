"""Sparse matrices: ones, other values or rows, a row of items, owners, unit length, singular vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import jit
from recsys.errors import FitError


def binary(X: sp.csr_matrix, dtype: Any = np.float64) -> sp.csr_matrix:
    """Return a matrix of ones where X, without explicit zeros, has entries; the pattern is shared."""
    return sp.csr_matrix((np.ones(X.nnz, dtype), X.indices, X.indptr), X.shape)


def entries_of(X: sp.csr_matrix, values: NDArray[Any]) -> sp.csr_matrix:
    """Return a matrix with X's pattern, shared and not copied, and other values; zeros stay stored."""
    return sp.csr_matrix((values, X.indices, X.indptr), X.shape)


def masked(X: sp.csr_matrix, mask: NDArray[np.bool_]) -> sp.csr_matrix:
    """Return the entries of X that a mask, (nnz,), has; zeros stay stored."""
    indptr = np.concatenate(([0], np.cumsum(mask)))[X.indptr].astype(X.indptr.dtype)
    return sp.csr_matrix((X.data[mask], X.indices[mask], indptr), X.shape)


def row_of(items: ArrayLike, n_items: int) -> sp.csr_matrix:
    """Return one row with some items, (1, n_items) float32; repeated items count once."""
    found = np.asarray(items, dtype=np.int32)
    if not (found[1:] > found[:-1]).all():  # a row of another matrix is sorted, and np.unique slow
        found = np.unique(found)
    ones = np.ones(len(found), dtype=np.float32)
    return sp.csr_matrix((ones, found, np.array([0, len(found)], np.int32)), (1, n_items))


def owners(X: sp.csr_matrix) -> NDArray[np.int64]:
    """Return the row of each stored entry, (nnz,) int64, in the order of `X.data`."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def random_halves(X: sp.csr_matrix, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which entries, in the order of `X.data`, are in a random ceil(n/2) of each row's n."""
    lengths, owner = np.diff(X.indptr), owners(X)
    order = np.lexsort((rng.random(X.nnz), owner))
    place = np.empty(X.nnz, dtype=np.int64)
    place[order] = np.arange(X.nnz) - np.repeat(X.indptr[:-1], lengths)
    return place < (lengths[owner] + 1) // 2


def row_votes(rows: sp.csr_matrix, votes: float) -> NDArray[np.float64]:
    """Return how much each row counts under the user-weight exponent, |row|^−votes, above 0, (rows,)."""
    return np.maximum(np.maximum(np.diff(rows.indptr), 1).astype(np.float64) ** -votes, 1e-300)


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return a float64 copy whose rows have length 1; empty ones stay empty."""
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    out = sp.csr_matrix(X, dtype=np.float64, copy=True)
    out.data *= np.repeat(scale, np.diff(out.indptr))
    return out


def leading_singular(
    A: Any, rank: int, *, passes: int, seed: int, oversamples: int = 10, flip_sign: bool = True
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the leading singular vectors and values, U, s and Vᵀ, by scikit-learn's randomized SVD.

    A is (n, m), an array or sparse matrix of float32 or float64. LAPACK's fastest routine does not
    always converge in float32 where singular values repeat; then QR iterations in float64 do.
    """
    from sklearn.utils.extmath import randomized_svd  # late: it takes half a second

    options = {"n_oversamples": oversamples, "n_iter": passes, "flip_sign": flip_sign}
    svd = partial(randomized_svd, n_components=rank, random_state=seed, **options)
    with threadpool_limits(1, "blas"):  # a second thread that waits for a processor takes far longer
        try:
            U, s, Vt = svd(A)
        except np.linalg.LinAlgError:
            U, s, Vt = svd(A.astype(np.float64), svd_lapack_driver="gesvd")
    if not np.isfinite(s).all():
        raise FitError("a singular value decomposition did not converge: lower the number of factors")
    return U, s, Vt


def submatrix(matrix: sp.csr_matrix, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.float64]:
    """Return matrix[rows][:, columns] as an array, by bisection: SciPy reads the rows whole."""
    matrix.sort_indices()
    out = np.zeros((len(rows), len(columns)))
    _look_up(matrix.indptr, matrix.indices, matrix.data, rows, columns, out)
    return out


@jit
def _look_up(indptr, indices, data, rows, columns, out):
    for r in range(len(rows)):
        for c in range(len(columns)):  # NumPy's searchsorted takes a second to compile
            low, end = indptr[rows[r]], indptr[rows[r] + 1]
            high = end
            while low < high:
                middle = (low + high) // 2
                if indices[middle] < columns[c]:
                    low = middle + 1
                else:
                    high = middle
            if low < end and indices[low] == columns[c]:
                out[r, c] = data[low]
