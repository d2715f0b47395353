"""Polynomials of the normalised co-occurrence of items, applied to rows: no power of it is formed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, over_rows

LANES = 8  # rows that one pass over the interactions serves: their float64 values fill a cache line


def by_likes(
    rows: sp.csr_matrix, votes: NDArray[np.float64], liked: sp.csr_matrix,
    per_user: NDArray[np.float64], per_item: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> NDArray[np.float32]:  # fmt: skip
    """Return Σ_d coefficients[d]·x P^(d+1) for each row x, P = S RᵀWR S by products with R alone.

    A row gets the same bits alone, in a batch, or on any number of threads. `votes` are the rows'
    values, aligned with rows.indices; `liked` is the pattern of R, `per_user` and `per_item` are the
    diagonals of W and S.
    """
    out = np.empty(rows.shape, dtype=np.float32)
    arrays = (
        rows.indptr, rows.indices, votes, liked.indptr, liked.indices, per_user, per_item,
        coefficients, out,
    )  # fmt: skip
    over_rows(-(-rows.shape[0] // LANES), _by_likes, *arrays)
    return out


def by_pairs(
    rows: sp.csr_matrix, votes: NDArray[np.float64], graph: sp.csr_matrix,
    coefficients: NDArray[np.float64],
) -> NDArray[np.float32]:  # fmt: skip
    """Return the same of a P that is given, symmetric, (items, items) float32 CSR."""
    out = np.empty(rows.shape, dtype=np.float32)
    arrays = (
        rows.indptr, rows.indices, votes, graph.indptr, graph.indices, graph.data, coefficients, out,
    )  # fmt: skip
    over_rows(-(-rows.shape[0] // LANES), _by_pairs, *arrays)
    return out


# ---- kernels


@jit
def _fill(block, indptr, indices, votes, x):
    """Put the rows of a block into the lanes of x."""
    x[:] = 0.0
    for c in range(min(LANES, len(indptr) - 1 - block * LANES)):
        u = block * LANES + c
        for p in range(indptr[u], indptr[u + 1]):
            x[indices[p], c] = votes[p]


@jit
def _write(block, total, out):
    for c in range(min(LANES, len(out) - block * LANES)):
        for i in range(len(total)):
            out[block * LANES + c, i] = total[i, c]


@jit
def _smooth(x, y, liked_ptr, liked_items, per_user):
    """Add x RᵀWR to y, lane by lane."""
    t = np.empty(LANES)
    for v in range(len(per_user)):
        begin, end = liked_ptr[v], liked_ptr[v + 1]
        t[:] = 0.0
        for p in range(begin, end):
            i = liked_items[p]
            for c in range(LANES):
                t[c] += x[i, c]
        some = False
        for c in range(LANES):
            t[c] *= per_user[v]
            some |= t[c] != 0.0
        if some:
            for p in range(begin, end):
                i = liked_items[p]
                for c in range(LANES):
                    y[i, c] += t[c]


@jit
def _by_likes(
    first, stride, indptr, indices, votes, liked_ptr, liked_items, per_user, per_item, coefficients,
    out,
):  # fmt: skip
    n, items = out.shape
    x, y = np.empty((items, LANES)), np.empty((items, LANES))
    total = np.empty((items, LANES))
    for block in range(first, (n + LANES - 1) // LANES, stride):
        _fill(block, indptr, indices, votes, x)
        total[:] = 0.0
        for d in range(len(coefficients)):
            for i in range(items):
                for c in range(LANES):
                    x[i, c] *= per_item[i]
                    y[i, c] = 0.0
            _smooth(x, y, liked_ptr, liked_items, per_user)
            for i in range(items):
                for c in range(LANES):
                    x[i, c] = y[i, c] * per_item[i]
                    total[i, c] += coefficients[d] * x[i, c]
        _write(block, total, out)


@jit
def _by_pairs(first, stride, indptr, indices, votes, g_ptr, g_items, g_data, coefficients, out):
    n, items = out.shape
    x, y = np.empty((items, LANES)), np.empty((items, LANES))
    total, t = np.empty((items, LANES)), np.empty(LANES)
    for block in range(first, (n + LANES - 1) // LANES, stride):
        _fill(block, indptr, indices, votes, x)
        total[:] = 0.0
        for d in range(len(coefficients)):
            y[:] = 0.0
            for i in range(items):
                some = False
                for c in range(LANES):
                    t[c] = x[i, c]
                    some |= t[c] != 0.0
                if not some:
                    continue
                for p in range(g_ptr[i], g_ptr[i + 1]):
                    j, w = g_items[p], np.float64(g_data[p])
                    for c in range(LANES):
                        y[j, c] += w * t[c]
            for i in range(items):
                for c in range(LANES):
                    x[i, c] = y[i, c]
                    total[i, c] += coefficients[d] * x[i, c]
        _write(block, total, out)
