"""The item Gram matrix as rankers use it: dense or structured, behind one interface."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, parallel
from recsys.kernels.gram.counts import pair_lengths, sparse_bytes
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import MAX_STEPS, programs
from recsys.rankers._scoring import weighted_rows
from recsys.utils.memory import check_memory, free_memory

SMALL = 128_000_000  # bytes of a dense matrix that nobody misses


def prefers_dense(user_items: sp.csr_matrix, budget: int | None) -> bool:
    """Return whether the dense item matrix is the better form: small, or smaller than sparse."""
    m = user_items.shape[1]
    dense = 4 * m * m
    limit = free_memory() * 3 // 4 if budget is None else budget
    if dense > limit:
        return False
    return dense <= SMALL or dense <= sparse_bytes(int(pair_lengths(user_items).sum()), m)


class GramView(Protocol):
    """What a ranker asks of an item Gram matrix, in whichever form."""

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return whole rows, (ids, items)."""

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the values between some items and one."""

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[np.float64], offset: Any = None, scale: Any = None
    ) -> NDArray[np.floating]:
        """Return Σ_j weights[u,j]·K[j,:] − scale[u]·offset[:] for each row u."""

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], lone: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Return weights and residuals of CF-KOMD's programs (10.2), one a row.

        The ridge of each like is `ridge` over its `omega`, (nnz,), aligned with rows.indices.
        """


class DenseView:
    """A Gram matrix as an array, (items, items) float32 or float64."""

    def __init__(self, gram: NDArray[np.floating]) -> None:
        self.gram = gram

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return whole rows."""
        return self.gram[ids]

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the values between some items and one."""
        return self.gram[rows, item].astype(np.float64)

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[np.float64], offset: Any = None, scale: Any = None
    ) -> NDArray[np.floating]:
        """Return weighted sums of rows."""
        return weighted_rows(rows, weights, self.gram, offset, scale)

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], lone: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Return weights and residuals of the rows' programs."""
        lengths = np.diff(rows.indptr)
        longest = int(lengths.max(initial=1))
        alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
        shared = (
            np.argsort(-lengths, kind="stable"), rows.indptr, rows.indices.view(np.uint32), self.gram,
            row_sums, lone, exact, ridge, omega, TOLERANCE, MAX_STEPS, longest, alpha, residuals,
        )  # fmt: skip
        if rows.shape[0] <= 1:
            programs(0, 1, *shared)
        else:
            with parallel() as threads:
                need = 8 * threads * longest**2
                check_memory(need, f"the program of a user with {longest:,} items")
                in_parts(threads, programs, *shared)
        return alpha, residuals
