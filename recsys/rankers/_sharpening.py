"""Sharpening of sparse item weights: what neighbours of neighbours explain is taken off."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import SUMS, in_parts, jit, parallel
from recsys.kernels.gram.counts import cooccurrence
from recsys.rankers._eigenvalue import largest_eigenvalue
from recsys.utils.sparse import binary, owners, row_votes

DENSE = 0.25  # of all pairs; above it matrix products are faster
ROWS = 1024
USERS = 0.8  # between all interactions alike (0) and all users alike (1); from Gowalla's training half


def sharpen(weights: sp.csr_matrix, liked: sp.csr_matrix, amount: float) -> None:
    """Take `amount`·W·P off W, (items, items) float32 CSR, where W has entries, in place.

    P = D^−½ RᵀU^−0.8 R D^−½ over its largest eigenvalue, D and U the items' and users' numbers of
    interactions: the smoothing of scores over the graph. No product W·P is ever formed.
    """
    sizes = np.maximum(np.bincount(liked.indices, minlength=liked.shape[1]), 1)
    scale, per_user = sizes.astype(np.float64) ** -0.5, row_votes(liked, USERS)
    ones = binary(liked)
    amount = amount / largest_eigenvalue(
        lambda v: scale * (ones.T @ (per_user * (ones @ (scale * v)))), np.sqrt(1.0 / scale)
    )
    if weights.nnz > DENSE * weights.shape[0] ** 2:
        _sharpen_dense(weights, liked, per_user, scale, amount)
        return
    columns = liked.tocsc()
    with parallel() as threads:
        in_parts(
            threads, _sharpen, weights.indptr, weights.indices, weights.data, columns.indptr,
            columns.indices, per_user, scale, amount,
        )  # fmt: skip


def _sharpen_dense(
    weights: sp.csr_matrix, liked: sp.csr_matrix, per_user: NDArray[Any], scale: NDArray[Any],
    amount: float,
) -> None:  # fmt: skip
    """Do the same by matrix products, a block of rows at a time; one BLAS thread gives the same bits."""
    P = cooccurrence(liked, per_user, None).toarray()
    P *= (scale * amount).astype(np.float32)[:, None]
    P *= scale.astype(np.float32)
    with threadpool_limits(1, "blas"):
        for start in range(0, weights.shape[0], ROWS):
            part = weights[start : start + ROWS]
            product = part.toarray() @ P
            owner = owners(part)
            begin = weights.indptr[start]
            weights.data[begin : begin + part.nnz] -= product[owner, part.indices]


# ---- kernels


@jit(fastmath=SUMS)
def _sharpen(first, stride, indptr, indices, data, col_ptr, col_users, per_user, per_item, amount):
    of_users = np.zeros(len(per_user))
    for i in range(first, len(per_item), stride):
        begin, end = indptr[i], indptr[i + 1]
        if begin == end:
            continue
        of_users[:] = 0.0
        for p in range(begin, end):
            j = indices[p]
            w = data[p] * per_item[j]
            for q in range(col_ptr[j], col_ptr[j + 1]):
                of_users[col_users[q]] += w
        of_users *= per_user
        # The neighbours' users only: those users' interactions are many more, and most are no
        # neighbours.
        for p in range(begin, end):
            j = indices[p]
            v = 0.0
            for q in range(col_ptr[j], col_ptr[j + 1]):
                v += of_users[col_users[q]]
            data[p] -= amount * v * per_item[j]
