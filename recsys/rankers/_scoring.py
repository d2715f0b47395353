"""Scores from a dense item × item matrix: weighted sums of its rows, in a fixed order.

Each score is summed over the user's liked items in index order in float64, whatever the
block, so that a user gets the same bits alone, in a batch, or on any number of threads.
BLAS promises none of that.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel

TILE = 64  # columns a pass works on: 64 float32 × thousands of rows stay in the second-level cache


def weighted_rows(
    rows: sp.csr_matrix,
    weights: NDArray[np.float64],
    matrix: NDArray[np.floating],
    offset: NDArray[np.float64] | None = None,
    scale: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Return Σ_j weights[u,j]·matrix[j,:] − scale[u]·offset[:] for each row u.

    Parameters
    ----------
    rows : (users, items) CSR
        Which rows of `matrix` each user sums.
    weights : (nnz,) float64
        Aligned with rows.indices.
    matrix : (items, items) float32 or float64, C order
    offset : (items,) float64, optional
    scale : (users,) float64, optional

    Returns
    -------
    (users, items), the matrix' dtype
    """
    users, m = rows.shape[0], matrix.shape[1]
    out = np.empty((users, m), dtype=matrix.dtype)
    offset = np.zeros(m) if offset is None else offset
    scale = np.zeros(users) if scale is None else scale
    arrays = (rows.indptr, rows.indices.view(np.uint32), weights, matrix, offset, scale, out)
    if users <= 1:
        if users:
            _one_user(*arrays)
    elif rows.nnz < 4 * m:
        with parallel() as threads:
            _direct(threads, *arrays)
    else:
        with parallel():
            _packed((m + TILE - 1) // TILE, *arrays)
    return out


def inner_products(left: NDArray[np.floating], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return left·rightᵀ in a fixed order of summation: the same bits alone and in a batch."""
    users, factors = left.shape
    indptr = np.arange(users + 1, dtype=np.int64) * factors
    every = np.tile(np.arange(factors, dtype=np.int32), users)
    rows = sp.csr_matrix((np.ones(users * factors, np.float32), every, indptr), (users, factors))
    weights = np.ascontiguousarray(left, dtype=np.float64).ravel()
    return weighted_rows(rows, weights, np.ascontiguousarray(right.T))


def cosines(vectors: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the cosines of some of the vectors with all, (ids, vectors); 0 with an empty one."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(norms > 0, norms, 1.0)
    return inner_products(unit[ids].astype(np.float64), np.asarray(unit, dtype=np.float32))


# ---- kernels


@jit
def _accumulate(acc, matrix, first, width, indices, weights, begin, end):
    """acc[c] += Σ_p weights[p]·matrix[indices[p], first + c], in the order of p.

    Four products are added in float32 before they join the float64 sum: their rounding is
    that of the float32 matrix itself, and the loop runs at twice the width. The rows are
    slices: written matrix[i, k] the loop is not vectorised, and four times as slow.
    """
    p = begin
    while p + 4 <= end:
        a = matrix[indices[p], first : first + width]
        b = matrix[indices[p + 1], first : first + width]
        d = matrix[indices[p + 2], first : first + width]
        e = matrix[indices[p + 3], first : first + width]
        w0, w1 = np.float32(weights[p]), np.float32(weights[p + 1])
        w2, w3 = np.float32(weights[p + 2]), np.float32(weights[p + 3])
        for c in range(width):
            acc[c] += (w0 * a[c] + w1 * b[c]) + (w2 * d[c] + w3 * e[c])
        p += 4
    while p < end:
        a, w0 = matrix[indices[p], first : first + width], np.float32(weights[p])
        for c in range(width):
            acc[c] += w0 * a[c]
        p += 1


@jit
def _accumulate_tile(acc, pack, indices, weights, begin, end):
    """Add the same sums over a tile of 64 columns: too narrow for slices to pay."""
    p = begin
    while p + 4 <= end:
        r0, r1, r2, r3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
        w0, w1 = np.float32(weights[p]), np.float32(weights[p + 1])
        w2, w3 = np.float32(weights[p + 2]), np.float32(weights[p + 3])
        for c in range(64):
            acc[c] += (w0 * pack[r0, c] + w1 * pack[r1, c]) + (w2 * pack[r2, c] + w3 * pack[r3, c])
        p += 4
    while p < end:
        r, w = indices[p], np.float32(weights[p])
        for c in range(64):
            acc[c] += w * pack[r, c]
        p += 1


@jit
def _user(u, indptr, indices, weights, matrix, offset, scale, out, acc):
    m = matrix.shape[1]
    for first in range(0, m, 1024):
        width = min(1024, m - first)
        acc[:width] = 0.0
        _accumulate(acc, matrix, first, width, indices, weights, indptr[u], indptr[u + 1])
        for c in range(width):
            out[u, first + c] = acc[c] - scale[u] * offset[first + c]


@jit
def _one_user(indptr, indices, weights, matrix, offset, scale, out):
    _user(0, indptr, indices, weights, matrix, offset, scale, out, np.empty(1024))


@jit(parallel=True)
def _direct(threads, indptr, indices, weights, matrix, offset, scale, out):
    for t in numba.prange(threads):
        acc = np.empty(1024)
        for u in range(t, len(out), threads):
            _user(u, indptr, indices, weights, matrix, offset, scale, out, acc)


@jit(parallel=True)
def _packed(tiles, indptr, indices, weights, matrix, offset, scale, out):
    """Many users: copy a tile of columns together, and run all users over it."""
    items, m = matrix.shape
    for t in numba.prange(tiles):
        first = t * 64
        width = min(64, m - first)
        pack = np.empty((items, 64), dtype=matrix.dtype)
        for i in range(items):
            for c in range(width):
                pack[i, c] = matrix[i, first + c]
            for c in range(width, 64):
                pack[i, c] = 0.0
        acc = np.empty(64)
        for u in range(len(out)):
            acc[:] = 0.0
            _accumulate_tile(acc, pack, indices, weights, indptr[u], indptr[u + 1])
            for c in range(width):
                out[u, first + c] = acc[c] - scale[u] * offset[first + c]
