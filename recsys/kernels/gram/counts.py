"""Co-occurrences of items as sparse matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.utils.memory import check_memory


def cooccurrence(
    user_items: sp.csr_matrix, votes: NDArray[np.float64] | None = None, budget: int | None = None
) -> sp.csr_matrix:
    """Return R.T @ diag(votes) @ R as float32 CSR, summed in float64, the diagonal stored.

    `user_items` is binary and canonical; `votes` are 1 and `budget`, in bytes, is what is free by
    default.
    """
    m = user_items.shape[1]
    check_budget(sparse_bytes(int(pair_lengths(user_items).sum()), m, np.float32), m, budget)
    R = sp.csr_matrix(user_items, dtype=np.float64)
    out = sp.csr_matrix(R.T @ (R if votes is None else sp.diags(votes) @ R))
    empty = np.flatnonzero(np.bincount(R.indices, minlength=m) == 0)
    if len(empty):  # their zeros are stored
        out = sp.csr_matrix(out + sp.csr_matrix((np.ones(len(empty)), (empty, empty)), (m, m)))
        out.data[out.indptr[empty]] = 0.0
    out.sort_indices()
    return out.astype(np.float32)


def pair_lengths(user_items: sp.csr_matrix, layout: sp.csc_matrix | None = None) -> NDArray[np.int64]:
    """Return how many items each item shares a user with, itself among them: a row of R.T @ R."""
    R = sp.csr_matrix(
        (np.ones(user_items.nnz, np.float32), user_items.indices, user_items.indptr), user_items.shape
    )
    return np.diff((R.T @ R).indptr).astype(np.int64)


def columns(user_items: sp.csr_matrix) -> sp.csc_matrix:
    """Return the transpose's layout with, as data, each entry's position in the CSR arrays."""
    entries = np.arange(user_items.nnz, dtype=np.int64)
    return sp.csr_matrix((entries, user_items.indices, user_items.indptr), user_items.shape).tocsc()


def sparse_bytes(entries: int, items: int, dtype: type = np.float32) -> int:
    """Return the bytes of this many entries as CSR."""
    return entries * (4 + np.dtype(dtype).itemsize) + 24 * items


def check_budget(need: int, items: int, budget: int | None) -> None:
    """Refuse what exceeds the budget, or what is free."""
    what = f"the sparse item × item matrix of {items:,} items"
    if budget is None:
        check_memory(need, what)
    else:
        enough = f"pass memory={-(-need // 10**6)}MB, or keep fewer items"
        check_memory(need, what, budget, enough)


# ---- kernels


@jit
def mirror(first, stride, out):
    """Copy the upper triangle to the lower one, tile by tile."""
    m = len(out)
    tile = 64
    tiles = (m + tile - 1) // tile
    for t in range(first, tiles, stride):
        # Thread-private rows: tile t of the lower triangle reads the upper one only.
        for s in range(t + 1):
            for i in range(t * tile, min((t + 1) * tile, m)):
                for j in range(s * tile, min((s + 1) * tile, i)):
                    out[i, j] = out[j, i]
