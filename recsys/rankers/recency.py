"""Recency: the age of each interaction of a row, in newer interactions, and its weight."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.utils.sparse import owners


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
    if users is not None:
        times = times[users]
    if np.array_equal(rows.indptr, times.indptr) and np.array_equal(rows.indices, times.indices):
        return np.array(times.data, dtype=np.float64)
    if times.nnz == 0:
        return np.zeros(rows.nnz)
    known, asked = (owners(X) * np.int64(rows.shape[1]) + X.indices for X in (times, rows))
    at = np.minimum(np.searchsorted(known, asked), times.nnz - 1)
    return np.where(known[at] == asked, times.data[at], 0.0)
