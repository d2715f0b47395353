"""Sums over pairs of items, as an array."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.kernels.gram.counts import columns, mirror


def weighted_gram(user_items: sp.csr_matrix, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R.T @ diag(votes) @ R of a binary canonical R, (items, items) float64 in Fortran order."""
    m = user_items.shape[1]
    layout = columns(user_items)
    out: NDArray[np.float64] = np.zeros((m, m))
    with parallel() as threads:
        in_parts(
            threads, _sum_dense, user_items.indptr, user_items.indices, layout.indptr, layout.indices,
            layout.data, votes, out,
        )  # fmt: skip
        in_parts(threads, mirror, out)
    return out.T  # symmetric


# ---- kernels


@jit
def _sum_dense(first, stride, indptr, indices, item_ptr, item_users, position, votes, out):
    """Sum the votes of pairs into the upper triangle, row by row."""
    for i in range(first, len(out), stride):
        row = out[i]
        for k in range(item_ptr[i], item_ptr[i + 1]):
            vote = votes[item_users[k]]
            for p in range(position[k], indptr[item_users[k] + 1]):
                row[indices[p]] += vote
