"""Programs, scores and lists from a structured Gram matrix: a view of sparse co-occurrence counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, jit, over_rows
from recsys.kernels.gram.structured import (
    StructuredGram,
    add_head,
    add_row,
    levels,
    search,
    value_of,
)
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import solve_one
from recsys.utils.memory import check_memory


class StructuredView:
    """A Gram matrix as a table over popularities and sparse co-occurrence counts."""

    def __init__(self, gram: StructuredGram) -> None:
        self.gram = gram

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        return self.gram.rows(ids)

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        return self.gram.sub(rows, [item])[:, 0]

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[Any], offset: NDArray[Any], scale: NDArray[Any]
    ) -> NDArray[np.floating]:
        users, m = rows.shape
        out = np.empty((users, m), dtype=self.gram.dtype)
        shared = (
            self.gram.arrays, self.gram.order, rows.indptr, self.gram.place[rows.indices], weights,
            offset[self.gram.order], scale, out,
        )  # fmt: skip
        over_rows(users, _scores, *shared)
        return out

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], q_all: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        view = self.gram.place, self.gram.arrays
        return solve_programs(_programs, rows, *view, row_sums, q_all, exact, ridge, omega)


def solve_programs(
    programs: Any, rows: sp.csr_matrix, place: NDArray[np.int32], *given: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights and residuals of the rows' programs; `place` is the position of each item."""
    lengths = np.diff(rows.indptr)
    longest = int(lengths.max(initial=1))
    check_memory(8 * longest**2, f"the program of a user with {longest:,} items")
    alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
    shared = (
        np.argsort(-lengths, kind="stable"), rows.indptr, rows.indices, place[rows.indices], *given,
        TOLERANCE, longest, alpha, residuals,
    )  # fmt: skip
    over_rows(rows.shape[0], programs, *shared)
    return alpha, residuals


# ---- kernels


@jit
def begin_block(G, items, n, place_of, K):
    """Fill the lower triangle of an (n, n) block from tables: class levels, and popular pairs."""
    G = borrowed(G)
    head, classes, table, diagonal, popular = G.head, G.classes, G.table, G.diagonal, len(G.head)
    filled = len(table) == len(diagonal)
    for a in range(n):
        i = items[a]
        place_of[i] = a
        for b in range(a + 1):
            K[a, b] = table[classes[i], classes[items[b]]] if filled else 0.0
        K[a, a] += diagonal[classes[i]]
        if i < popular:
            row = head[i]
            for b in range(a):
                if items[b] < popular:
                    K[a, b] += row[items[b]]


@jit
def end_block(items, n, place_of, K):
    """Mirror the block, and forget its positions."""
    for a in range(n):
        place_of[items[a]] = -1
        for b in range(a):
            K[b, a] = K[a, b]


@jit
def _gather(G, items, n, place_of, K):
    """Fill the symmetric (n, n) block of the liked items, by their positions."""
    G = borrowed(G)
    indptr, indices, together, popular = G.indptr, G.indices, G.together, len(G.head)
    begin_block(G, items, n, place_of, K)
    for a in range(n):
        i = items[a]
        if i < popular:
            continue
        # Each pair with a rarer item is looked for in its row, by walking or by searching it.
        begin, end = indptr[i], indptr[i + 1]
        walk = end - begin <= 10 * n
        for k in range(end - begin if walk else n):
            if walk:
                p = begin + k
                j = indices[p]
                b = place_of[j]
                if j > i:
                    break
                if b < 0:
                    continue
            else:
                b = k
                j = items[b]
                if j >= i:
                    continue
                p = search(indices, begin, end, j)
                if p == end or indices[p] != j:
                    continue
            v = value_of(G, together[p], i, j)
            if b < a:
                K[a, b] += v
            else:
                K[b, a] += v
    end_block(items, n, place_of, K)


@jit
def _programs(
    first, stride, order, indptr, indices, places, G, row_sums, q_all, exact, ridge_p, omega, tol,
    longest, alpha, residuals,
):  # fmt: skip
    G = borrowed(G)
    indices, places, row_sums, q_all, omega, alpha = borrowed(
        (indices, places, row_sums, q_all, omega, alpha)
    )
    m = len(G.classes)
    block = np.empty(longest * longest, dtype=np.float32)
    small = np.empty(longest * longest, dtype=np.float32)
    work = np.empty((7, longest))
    sign, ridge = np.ones(longest), np.empty(longest)
    q, g, face = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.uint32)
    narrow = np.empty((2, longest), dtype=np.float32)
    place_of = np.full(m, -1, dtype=np.int32)
    for k in range(first, len(order), stride):
        u = order[k]
        items = indices[indptr[u] : indptr[u + 1]]
        n = len(items)
        if n == 0:
            continue
        K = block[: n * n].reshape(n, n)
        _gather(G, places[indptr[u] : indptr[u + 1]], n, place_of, K)
        g[:n] = 0.0
        for i in range(n):
            for j in range(n):
                g[j] += K[i, j]
        residuals[u] = solve_one(
            K, n, items, row_sums, q_all, m, exact, sign, ridge_p, omega[indptr[u] : indptr[u + 1]],
            ridge, alpha[indptr[u] : indptr[u + 1]], q, g, face, small, work, narrow, tol,
        )  # fmt: skip


@jit
def _scores(first, stride, G, order, indptr, places, weights, offset, scale, out):
    G = borrowed(G)
    users, m = out.shape
    classes, table, diagonal, split = G.classes, G.table, G.diagonal, G.split
    rows, popular = G.indptr, len(G.head)
    acc, level = np.empty(m), np.empty(len(diagonal))
    for u in range(first, users, stride):
        begin, end = indptr[u], indptr[u + 1]
        levels(begin, end, places, weights, classes, table, level)
        for j in range(m):
            acc[j] = level[classes[j]] - scale[u] * offset[j]
        add_head(G, begin, end, places, weights, acc)
        for p in range(begin, end):
            i, w = places[p], weights[p]
            add_row(G, i, w, split[i], rows[i + 1], acc)
            if i >= popular:
                acc[i] += w * diagonal[classes[i]]
        for j in range(m):
            out[u, order[j]] = acc[j]
