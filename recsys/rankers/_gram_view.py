"""The item Gram matrix as rankers use it: dense or structured, behind one interface."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, parallel
from recsys.kernels.gram.counts import count_type, pair_lengths, sparse_bytes
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import programs
from recsys.rankers._scoring import weighted_rows
from recsys.utils.memory import check_memory, free_memory

SMALL = 128_000_000  # bytes of a dense matrix that are not worth saving
MODEST = 512_000_000  # bytes of an item matrix that are not worth saving where lists are slower without
TIMES_DATA = 4  # beyond, a matrix takes at most so many times what the interactions take


def worth_dense(items: int, budget: int | None) -> bool:
    """Return whether weights that are sparse are kept as an array: a small one, within the budget."""
    return 4 * items * items <= (SMALL if budget is None else min(SMALL, budget))


def memory_limit(user_items: sp.csr_matrix, budget: int | None) -> int:
    """Return the bytes an item matrix may take: the budget, or by default a share of free memory."""
    if budget is not None:
        return budget
    likes = 8 * (user_items.nnz + user_items.shape[0])
    return min(free_memory() // 4, max(TIMES_DATA * likes, MODEST))


def prefers_dense(user_items: sp.csr_matrix, budget: int | None) -> bool:
    """Return whether the dense item matrix is the better form: small, or smaller than sparse."""
    m = user_items.shape[1]
    dense = 4 * m * m
    if dense > memory_limit(user_items, budget):
        return False
    return dense <= SMALL or dense <= sparse_bytes(int(pair_lengths(user_items).sum()), m)


def prefers_rows(user_items: sp.csr_matrix, budget: int | None, dtype: type | None = None) -> bool:
    """Return whether even the sparse item matrix would take more than it may.

    `dtype` is that of the sparse matrix; the smallest that holds the counts when not given.
    """
    m = user_items.shape[1]
    limit = memory_limit(user_items, budget)
    lengths = np.diff(user_items.indptr).astype(np.int64)
    most = int(np.square(lengths).sum())  # pairs, counted once for each row that has them
    sizes = np.bincount(user_items.indices, minlength=m)
    if dtype is None:
        dtype = count_type(sizes)
    if sparse_bytes(min(most, m * m), m, dtype) <= limit:
        return False
    pairs = int(pair_lengths(user_items).sum()) - int((sizes > 0).sum())  # the diagonal is apart
    return sparse_bytes(pairs, m, dtype) > limit


class GramView(Protocol):
    """The interface of an item Gram matrix for rankers, in any form."""

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return whole rows, (ids, items)."""

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the values between some items and one."""

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[Any], offset: NDArray[Any], scale: NDArray[Any]
    ) -> NDArray[np.floating]:
        """Return Σ_j weights[u,j]·K[j,:] − scale[u]·offset[:] for each row u."""

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], q_all: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Return weights and residuals of CF-KOMD's programs (10.2), one a row.

        The ridge of each interaction is `ridge` over its `omega`, (nnz,), aligned with rows.indices.
        """


class DenseView:
    """A Gram matrix as an array, (items, items) float32 or float64."""

    def __init__(self, gram: NDArray[np.floating]) -> None:
        self.gram = gram

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        return self.gram[ids]

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        return self.gram[rows, item].astype(np.float64)

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[Any], offset: NDArray[Any], scale: NDArray[Any]
    ) -> NDArray[np.floating]:
        return weighted_rows(rows, weights, self.gram, offset, scale)

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], q_all: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        lengths = np.diff(rows.indptr)
        longest = int(lengths.max(initial=1))
        alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
        shared = (
            np.argsort(-lengths, kind="stable"), rows.indptr, rows.indices.view(np.uint32), self.gram,
            row_sums, q_all, exact, ridge, omega, TOLERANCE, longest, alpha, residuals,
        )  # fmt: skip
        if rows.shape[0] <= 1:
            programs(0, 1, *shared)
        else:
            with parallel() as threads:
                need = 8 * threads * longest**2
                check_memory(need, f"the program of a user with {longest:,} items")
                in_parts(threads, programs, *shared)
        return alpha, residuals
