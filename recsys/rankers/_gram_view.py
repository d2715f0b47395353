"""The item Gram matrix as rankers use it: dense or structured, behind one interface."""

from __future__ import annotations

from typing import Any, Protocol

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel
from recsys.kernels.gram.structured import StructuredGram, pair_lengths, structured_bytes
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import MAX_STEPS, programs, programs_parallel, solve_one
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
    return dense <= SMALL or dense <= structured_bytes(int(pair_lengths(user_items).sum()), m)


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
                programs_parallel(threads, *shared)
        return alpha, residuals


class StructuredView:
    """A Gram matrix as a table over popularities and a sparse correction."""

    def __init__(self, gram: StructuredGram) -> None:
        self.gram = gram

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return whole rows."""
        return self.gram.rows(ids)

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the values between some items and one."""
        return self.gram.sub(rows, [item])[:, 0]

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[np.float64], offset: Any = None, scale: Any = None
    ) -> NDArray[np.floating]:
        """Return weighted sums of rows."""
        return weighted_structured(rows, weights, self.gram, offset, scale)

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], lone: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Return weights and residuals of the rows' programs."""
        longest = int(np.diff(rows.indptr).max(initial=1))
        check_memory(8 * longest**2, f"the program of a user with {longest:,} items")
        return solve_programs(rows, self.gram, row_sums, lone, exact, ridge, omega, TOLERANCE, MAX_STEPS)


def solve_programs(
    rows: sp.csr_matrix, gram: StructuredGram, row_sums: NDArray[np.float64],
    lone: NDArray[np.float64], exact: bool, ridge: float, omega: NDArray[np.float64], tol: float,
    max_steps: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Return the weights and residuals of CF-KOMD's programs, as on the dense matrix."""
    lengths = np.diff(rows.indptr)
    order = np.argsort(-lengths, kind="stable")
    alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
    c = gram.correction
    shared = (
        order, rows.indptr, rows.indices, c.indptr, c.indices, c.data, gram.classes, gram.table,
        row_sums, lone, exact, ridge, omega, tol, max_steps, int(lengths.max(initial=1)), alpha,
        residuals,
    )  # fmt: skip
    if rows.shape[0] <= 1:
        _programs(0, 1, *shared)
    else:
        with parallel() as threads:
            _programs_parallel(threads, *shared)
    return alpha, residuals


def weighted_structured(
    rows: sp.csr_matrix,
    weights: NDArray[np.float64],
    gram: StructuredGram,
    offset: NDArray[np.float64] | None = None,
    scale: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Return Σ_j weights[u,j]·K[j,:] − scale[u]·offset[:] for each row u, as `weighted_rows`."""
    users, m = rows.shape[0], len(gram.classes)
    out = np.empty((users, m), dtype=gram.correction.dtype)
    offset = np.zeros(m) if offset is None else offset
    scale = np.zeros(users) if scale is None else scale
    c = gram.correction
    arrays = (
        rows.indptr, rows.indices, weights, c.indptr, c.indices, c.data, gram.classes, gram.table,
        bool(gram.table.any()), offset, scale, out,
    )  # fmt: skip
    if users <= 1:
        _scores(0, 1, *arrays)
    else:
        with parallel() as threads:
            _scores_parallel(threads, *arrays)
    return out


# ---- kernels


@jit
def _gather(items, n, cptr, cind, cdata, classes, table, local, K):
    """Fill the (n, n) block of the liked items: the table's values and what corrects them."""
    for j in range(n):
        local[items[j]] = j
    for i in range(n):
        row = classes[items[i]]
        for j in range(n):
            K[i, j] = table[row, classes[items[j]]]
        begin, end = cptr[items[i]], cptr[items[i] + 1]
        if end - begin <= 10 * n:
            for p in range(begin, end):
                j = local[cind[p]]
                if j >= 0:
                    K[i, j] += cdata[p]
        else:
            at = begin
            for j in range(n):  # both sorted: each search starts where the last ended
                at += np.searchsorted(cind[at:end], items[j])
                if at < end and cind[at] == items[j]:
                    K[i, j] += cdata[at]
    for j in range(n):
        local[items[j]] = -1


@jit
def _programs(
    first, stride, order, indptr, indices, cptr, cind, cdata, classes, table, row_sums, lone, exact,
    ridge_p, omega, tol, max_steps, longest, alpha, residuals,
):  # fmt: skip
    m = len(classes)
    block = np.empty(longest * longest, dtype=np.float32)
    small = np.empty(longest * longest, dtype=np.float32)
    work = np.empty((7, longest))
    sign, ridge = np.ones(longest), np.empty(longest)
    q, g, face = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.uint32)
    narrow = np.empty((2, longest), dtype=np.float32)
    local = np.full(m, -1, dtype=np.int32)
    for k in range(first, len(order), stride):
        u = order[k]
        items = indices[indptr[u] : indptr[u + 1]]
        n = len(items)
        if n == 0:
            continue
        K = block[: n * n].reshape(n, n)
        _gather(items, n, cptr, cind, cdata, classes, table, local, K)
        g[:n] = 0.0
        for i in range(n):
            for j in range(n):
                g[j] += K[i, j]
        residuals[u] = solve_one(
            K, n, items, row_sums, lone, m, exact, sign, ridge_p, omega[indptr[u] : indptr[u + 1]],
            ridge, alpha[indptr[u] : indptr[u + 1]], q, g, face, small, work, narrow, tol, max_steps,
        )  # fmt: skip


@jit(parallel=True)
def _programs_parallel(
    threads, order, indptr, indices, cptr, cind, cdata, classes, table, row_sums, lone, exact,
    ridge_p, omega, tol, max_steps, longest, alpha, residuals,
):  # fmt: skip
    for t in numba.prange(threads):
        _programs(
            t, threads, order, indptr, indices, cptr, cind, cdata, classes, table, row_sums, lone,
            exact, ridge_p, omega, tol, max_steps, longest, alpha, residuals,
        )  # fmt: skip


@jit
def _scores(
    first, stride, indptr, indices, weights, cptr, cind, cdata, classes, table, filled, offset, scale,
    out,
):  # fmt: skip
    users, m = out.shape
    acc = np.empty(m)
    level = np.empty(len(table))
    for u in range(first, users, stride):
        level[:] = 0.0
        if filled:
            for p in range(indptr[u], indptr[u + 1]):
                row = table[classes[indices[p]]]
                for c in range(len(level)):
                    level[c] += weights[p] * row[c]
        for j in range(m):
            acc[j] = level[classes[j]] - scale[u] * offset[j]
        for p in range(indptr[u], indptr[u + 1]):
            w = weights[p]
            for k in range(cptr[indices[p]], cptr[indices[p] + 1]):
                acc[cind[k]] += w * cdata[k]
        for j in range(m):
            out[u, j] = acc[j]


@jit(parallel=True)
def _scores_parallel(
    threads, indptr, indices, weights, cptr, cind, cdata, classes, table, filled, offset, scale, out
):  # fmt: skip
    for t in numba.prange(threads):
        _scores(
            t, threads, indptr, indices, weights, cptr, cind, cdata, classes, table, filled, offset,
            scale, out,
        )  # fmt: skip
