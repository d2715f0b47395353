"""Recency: the age of each interaction of a row, in newer interactions, and its weight."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit


def newer(indptr: NDArray[np.integer], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many interactions of the same row are strictly newer than each, (nnz,) int64."""
    ends = np.repeat(np.asarray(indptr[1:], dtype=np.int64), np.diff(indptr))
    order = np.lexsort((times, ends))
    last = np.ones(len(times), dtype=np.bool_)  # of the interactions of one row and time
    last[:-1] = (ends[order][1:] != ends[order][:-1]) | (times[order][1:] != times[order][:-1])
    after = np.flatnonzero(last)  # where the next group begins, less 1
    out = np.empty(len(times), dtype=np.int64)
    out[order] = ends[order] - after[np.cumsum(last) - last] - 1
    return out


def recency_weights(
    rows: sp.csr_matrix, times: NDArray[np.float64] | None, recency: float
) -> NDArray[np.float64]:
    """Return the weights (newer interactions + 1)^−recency, (nnz,); all are 1 where all times are equal.

    Times are aligned with rows.indices.
    """
    if times is None or not recency:
        return np.ones(rows.nnz)
    return np.asarray((newer(rows.indptr, times) + 1.0) ** -recency, dtype=np.float64)


def aligned(
    rows: sp.csr_matrix, times: sp.csr_matrix, users: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Return the time of each interaction, aligned with rows.indices; 0 if unknown.

    Indices of `rows` and `times`, (…, items), are sorted, none twice in a row. `users` says which row of
    `times` belongs to each row; its own number by default.
    """
    users = np.arange(rows.shape[0]) if users is None else users
    out = np.zeros(rows.nnz)
    if _aligned.small(times.nnz + rows.nnz):
        columns = max(rows.shape[1], times.shape[1], 1)
        owners = np.repeat(np.arange(times.shape[0]), np.diff(times.indptr))
        known = owners * columns + times.indices
        asked = (
            np.repeat(np.asarray(users, dtype=np.int64), np.diff(rows.indptr)) * columns + rows.indices
        )
        at = np.searchsorted(known, asked)
        found = (
            known[np.minimum(at, len(known) - 1)] == asked if len(known) else np.zeros(len(asked), bool)
        )
        out[found] = times.data[at[found]]
        return out
    _aligned(rows.indptr, rows.indices, users, times.indptr, times.indices, times.data, out)
    return out


# ---- kernels


@jit
def _aligned(indptr, indices, users, t_indptr, t_indices, t_data, out):
    for u in range(len(users)):
        q, end = t_indptr[users[u]], t_indptr[users[u] + 1]
        for p in range(indptr[u], indptr[u + 1]):
            while q < end and t_indices[q] < indices[p]:
                q += 1
            if q < end and t_indices[q] == indices[p]:
                out[p] = t_data[q]
