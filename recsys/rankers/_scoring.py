"""Scores from a dense item × item matrix: weighted sums of its rows, in a fixed order.

Each score is summed over the user's liked items in index order, 32 of them at a time in the matrix'
precision and those sums in float64, whatever the block, so that a user gets the same bits alone, in a
batch, or on any number of threads. BLAS promises none of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, jit, over_rows

TILE = 128  # columns a pass works on: 128 float32 × thousands of rows stay in the second-level cache
TOGETHER = 32  # products added in the matrix' precision before they join a float64 sum


def weighted_rows(
    rows: sp.csr_matrix,
    weights: NDArray[np.float64],
    matrix: NDArray[np.floating],
    offset: NDArray[np.float64] | None = None,
    scale: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Return Σ_j weights[u,j]·matrix[j,:] − scale[u]·offset[:] for each row u, in the matrix' dtype.

    `weights`, (nnz,), are aligned with rows.indices; the matrix is float32 or float64, in C order.
    """
    users, m = rows.shape[0], matrix.shape[1]
    out = np.empty((users, m), dtype=matrix.dtype)
    offset = np.zeros(m) if offset is None else offset
    scale = np.zeros(users) if scale is None else scale
    arrays = (rows.indptr, rows.indices.view(np.uint32), weights, matrix, offset, scale, out)
    if users and _direct.small(rows.nnz * m):
        _in_numpy(*arrays)
    elif users:
        over_rows(users, _direct if users == 1 or rows.nnz < 4 * m else _packed, *arrays)
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


def _in_numpy(indptr, indices, weights, matrix, offset, scale, out):
    """Do as `_direct`, product by product in the same order, in NumPy."""
    for u in range(len(out)):
        acc = np.zeros(matrix.shape[1])
        for begin in range(indptr[u], indptr[u + 1], TOGETHER):
            stop = min(begin + TOGETHER, indptr[u + 1])
            products = weights[begin:stop].astype(np.float32)[:, None] * matrix[indices[begin:stop]]
            part = np.zeros(matrix.shape[1], dtype=matrix.dtype)
            eights = len(products) // 8 * 8
            for a, b, d, e, f, g, h, k in products[:eights].reshape(-1, 8, matrix.shape[1]):
                part += ((a + b) + (d + e)) + ((f + g) + (h + k))
            for a in products[eights:]:
                part += a
            acc += part
        out[u] = acc - scale[u] * offset


@jit
def _accumulate(acc, part, matrix, first, width, indices, weights, begin, end):
    """acc[c] += Σ_p weights[p]·matrix[indices[p], first + c], in the order of p.

    Eight products are added as a tree, and four such sums, in the matrix' precision before they join the
    float64 sum: their rounding is near that of a float32 matrix itself, and the loops run at twice the
    width. The rows are slices: written matrix[i, k] the loop is not vectorised, and four times as slow.
    """
    p = begin
    while p < end:
        stop = min(p + TOGETHER, end)
        part[:width] = 0.0
        while p + 8 <= stop:
            a = matrix[indices[p], first : first + width]
            b = matrix[indices[p + 1], first : first + width]
            d = matrix[indices[p + 2], first : first + width]
            e = matrix[indices[p + 3], first : first + width]
            f = matrix[indices[p + 4], first : first + width]
            g = matrix[indices[p + 5], first : first + width]
            h = matrix[indices[p + 6], first : first + width]
            k = matrix[indices[p + 7], first : first + width]
            w0, w1 = np.float32(weights[p]), np.float32(weights[p + 1])
            w2, w3 = np.float32(weights[p + 2]), np.float32(weights[p + 3])
            w4, w5 = np.float32(weights[p + 4]), np.float32(weights[p + 5])
            w6, w7 = np.float32(weights[p + 6]), np.float32(weights[p + 7])
            for c in range(width):
                part[c] += ((w0 * a[c] + w1 * b[c]) + (w2 * d[c] + w3 * e[c])) + (
                    (w4 * f[c] + w5 * g[c]) + (w6 * h[c] + w7 * k[c])
                )
            p += 8
        while p < stop:
            a, w0 = matrix[indices[p], first : first + width], np.float32(weights[p])
            for c in range(width):
                part[c] += w0 * a[c]
            p += 1
        for c in range(width):
            acc[c] += part[c]


@jit
def _accumulate_tile(acc, part, pack, indices, weights, begin, end):
    """Add the same sums over a tile of columns: too narrow for slices to pay."""
    p = begin
    while p < end:
        stop = min(p + TOGETHER, end)
        part[:] = 0.0
        while p + 8 <= stop:
            r0, r1, r2, r3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            r4, r5, r6, r7 = indices[p + 4], indices[p + 5], indices[p + 6], indices[p + 7]
            w0, w1 = np.float32(weights[p]), np.float32(weights[p + 1])
            w2, w3 = np.float32(weights[p + 2]), np.float32(weights[p + 3])
            w4, w5 = np.float32(weights[p + 4]), np.float32(weights[p + 5])
            w6, w7 = np.float32(weights[p + 6]), np.float32(weights[p + 7])
            for c in range(TILE):
                part[c] += (
                    (w0 * pack[r0, c] + w1 * pack[r1, c]) + (w2 * pack[r2, c] + w3 * pack[r3, c])
                ) + ((w4 * pack[r4, c] + w5 * pack[r5, c]) + (w6 * pack[r6, c] + w7 * pack[r7, c]))
            p += 8
        while p < stop:
            r, w = indices[p], np.float32(weights[p])
            for c in range(TILE):
                part[c] += w * pack[r, c]
            p += 1
        for c in range(TILE):
            acc[c] += part[c]


@jit(inline="always")
def _user(u, indptr, indices, weights, matrix, offset, scale, out, acc, part):
    m = matrix.shape[1]
    for first in range(0, m, 1024):
        width = min(1024, m - first)
        acc[:width] = 0.0
        _accumulate(acc, part, matrix, first, width, indices, weights, indptr[u], indptr[u + 1])
        for c in range(width):
            out[u, first + c] = acc[c] - scale[u] * offset[first + c]


@jit
def _direct(first, stride, indptr, indices, weights, matrix, offset, scale, out):
    indices, weights, matrix = borrowed((indices, weights, matrix))
    acc, part = np.empty(1024), np.empty(1024, dtype=matrix.dtype)
    for u in range(first, len(out), stride):
        _user(u, indptr, indices, weights, matrix, offset, scale, out, acc, part)


@jit
def _packed(first_tile, stride, indptr, indices, weights, matrix, offset, scale, out):
    """Many users: copy a tile of columns together, and run all users over it."""
    indices, weights = borrowed((indices, weights))
    items, m = matrix.shape
    pack = np.empty((items, TILE), dtype=matrix.dtype)
    acc, part = np.empty(TILE), np.empty(TILE, dtype=matrix.dtype)
    for first in range(first_tile * TILE, m, stride * TILE):
        width = min(TILE, m - first)
        for i in range(items):
            for c in range(width):
                pack[i, c] = matrix[i, first + c]
            for c in range(width, TILE):
                pack[i, c] = 0.0
        for u in range(len(out)):
            acc[:] = 0.0
            _accumulate_tile(acc, part, pack, indices, weights, indptr[u], indptr[u + 1])
            for c in range(width):
                out[u, first + c] = acc[c] - scale[u] * offset[first + c]
