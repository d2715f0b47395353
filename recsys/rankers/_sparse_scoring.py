"""Scores and lists from a sparse item × item matrix: weighted sums of its rows, in a fixed order."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, jit, over_rows
from recsys.rankers._ties import UNORDERED, TieOrder
from recsys.utils.topn import offer, put_in_order


def sparse_sums(
    rows: sp.csr_matrix, votes: NDArray[np.float64], weights: sp.csr_matrix
) -> NDArray[np.float32]:
    """Return Σ_i votes[u, i]·weights[i, :] for each row u, summed in float64 in index order: float32.

    `votes`, (nnz,), are aligned with rows.indices; `weights` are float32 CSR.
    """
    out = np.empty((rows.shape[0], weights.shape[1]), dtype=np.float32)
    arrays = (rows.indptr, rows.indices, votes, weights.indptr, weights.indices, weights.data, out)
    over_rows(rows.shape[0], _sums, *arrays)
    return out


def fill_best(
    rows: sp.csr_matrix,
    votes: NDArray[np.float64],
    weights: sp.csr_matrix,
    skip_liked: bool,
    mask: NDArray[np.uint8],
    ids: NDArray[np.int32],
    best: NDArray[np.float32],
    ties: TieOrder = UNORDERED,
) -> None:
    """Fill ids and best as `recsys.utils.topn.top_n` would from `sparse_sums`, to the bit.

    Items that no liked one has a weight for tie at 0, and go by index, or in the order of `ties`: they
    are not scored.
    """
    arrays = (
        rows.indptr, rows.indices, votes, weights.indptr, weights.indices, weights.data, skip_liked,
        mask, ids, best, ties.order, ties.place,
    )  # fmt: skip
    over_rows(rows.shape[0], _best, *arrays)


# ---- kernels


@jit
def _sums(first, stride, indptr, indices, votes, wptr, wind, wdata, out):
    users, m = out.shape
    acc = np.empty(m)
    for u in range(first, users, stride):
        acc[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            w = votes[p]
            for k in range(wptr[indices[p]], wptr[indices[p] + 1]):
                acc[wind[k]] += w * wdata[k]
        for j in range(m):
            out[u, j] = acc[j]


@jit
def _best(
    first, stride, indptr, indices, votes, wptr, wind, wdata, skip_liked, mask, ids, best, order, place
):  # fmt: skip
    """Items are offered by their rank among equal scores, so that the earlier one stays."""
    ids, best = borrowed((ids, best))
    m = len(mask)
    ordered = len(order) > 0
    acc, touched = np.empty(m), np.empty(m, dtype=np.int32)
    seen, banned = np.zeros(m, dtype=np.uint8), np.zeros(m, dtype=np.uint8)
    for u in range(first, len(ids), stride):
        s, i = best[u], ids[u]
        begin, end = indptr[u], indptr[u + 1]
        count = size = np.int64(0)
        for p in range(begin, end):
            if skip_liked:
                banned[indices[p]] = 1
            w = votes[p]
            for k in range(wptr[indices[p]], wptr[indices[p] + 1]):
                j = wind[k]
                if seen[j] == 0:
                    seen[j], acc[j] = 1, 0.0
                    touched[count] = j
                    count += 1
                acc[j] += w * wdata[k]
        for k in range(count):
            j = touched[k]
            if banned[j] == 0 and mask[j] == 1:
                size = offer(s, i, size, acc[j], place[j] if ordered else j)
        for p in range(m):  # the others, at 0
            if size == len(s) and (s[0] > 0.0 or (s[0] == 0.0 and i[0] < p)):
                break
            j = order[p] if ordered else p
            if seen[j] == 0 and banned[j] == 0 and mask[j] == 1:
                size = offer(s, i, size, 0.0, p)
        put_in_order(s, i, size)
        if ordered:
            for k in range(size):
                i[k] = order[i[k]]
        for k in range(count):
            seen[touched[k]] = 0
        if skip_liked:  # else rows may be of other things than lists are, and more of them
            for p in range(begin, end):
                banned[indices[p]] = 0
