"""Recency: how old each like of a row is, counted in newer likes, and what that makes it weigh."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit


def newer(indptr: NDArray[np.integer], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many likes of the same row are strictly newer than each like.

    Parameters
    ----------
    indptr : (rows + 1,) int
    times : (nnz,) float64
        Likes of equal times are equally recent.

    Returns
    -------
    (nnz,) int64
    """
    out = np.empty(len(times), dtype=np.int64)
    _newer(indptr, times, out)
    return out


def elapsed(indptr: NDArray[np.integer], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long before the newest like of its row each like happened, in the times' unit."""
    lengths = np.diff(indptr)
    filled = np.asarray(indptr[:-1])[lengths > 0]
    newest = np.zeros(len(lengths))
    if len(filled):
        newest[lengths > 0] = np.maximum.reduceat(times, filled)
    return np.asarray(np.repeat(newest, lengths) - times, dtype=np.float64)


def recency_weights(
    rows: sp.csr_matrix, times: NDArray[np.float64] | None, recency: float
) -> NDArray[np.float64]:
    """Return what each like weighs: (newer likes + 1)^−recency; 1 where nothing tells likes apart.

    Parameters
    ----------
    rows : (users, items) CSR
    times : (nnz,) float64, optional
        Aligned with rows.indices.
    recency : float ≥ 0

    Returns
    -------
    (nnz,) float64
    """
    if times is None or not recency:
        return np.ones(rows.nnz)
    return np.asarray((newer(rows.indptr, times) + 1.0) ** -recency, dtype=np.float64)


def aligned(
    rows: sp.csr_matrix, times: sp.csr_matrix, users: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Return the time of each like, aligned with rows.indices; 0, unknown, where there is none.

    Parameters
    ----------
    rows : (users, items) CSR, indices sorted
    times : (…, items) float64 CSR, indices sorted, no item twice in a row
    users : (users,) int, optional
        Which row of `times` belongs to each row; its own number when not given.
    """
    users = np.arange(rows.shape[0]) if users is None else users
    out = np.zeros(rows.nnz)
    _aligned(rows.indptr, rows.indices, users, times.indptr, times.indices, times.data, out)
    return out


# ---- kernels


@jit
def _newer(indptr, times, out):
    for u in range(len(indptr) - 1):
        begin, end = indptr[u], indptr[u + 1]
        order = np.argsort(times[begin:end])
        first = end - begin  # of the likes as old as the one before
        for p in range(end - begin - 1, -1, -1):
            later = order[p + 1] if p + 1 < end - begin else -1
            if later < 0 or times[begin + order[p]] < times[begin + later]:
                first = p + 1
            out[begin + order[p]] = end - begin - first


@jit
def _aligned(indptr, indices, users, t_indptr, t_indices, t_data, out):
    for u in range(len(users)):
        q, end = t_indptr[users[u]], t_indptr[users[u] + 1]
        for p in range(indptr[u], indptr[u + 1]):
            while q < end and t_indices[q] < indices[p]:
                q += 1
            if q < end and t_indices[q] == indices[p]:
                out[p] = t_data[q]
