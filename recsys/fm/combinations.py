"""Features that occur together: in how many rows, and with what weight in a factorization machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.utils.validation import check_integer, check_real

__all__ = ["Combination", "Combinations", "pairs_together", "strongest"]

BLOCK = 100_000  # products at a time


class Combination(NamedTuple):
    """Distinct features, the weight of their product, and the rows that have them all."""

    features: tuple[int, ...]
    weight: float
    rows: int


class Combinations(NamedTuple):
    """The combinations of largest weight, and how many have one that counts."""

    best: tuple[Combination, ...]
    weighted: int


def pairs_together(X: sp.csr_matrix) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of features that some row has both of, i < j, and the number of such rows.

    >>> i, j, rows = pairs_together(sp.csr_matrix([[1, 1, 0], [2, 1, 0], [0, 1, 1]]))
    >>> [*zip(i.tolist(), j.tolist(), rows.tolist())]
    [(0, 1, 2), (1, 2, 1)]
    """
    there = _there(X)
    counts = sp.triu(there.T @ there, k=1, format="csr")
    counts.sort_indices()
    found = counts.tocoo()
    return found.row.astype(np.int64), found.col.astype(np.int64), found.data.astype(np.int64)


def strongest(
    P: ArrayLike,
    X: sp.csr_matrix,
    order: int,
    n: int,
    min_rows: int = 1,
    least: float = 0.0,
    tick: Callable[[], None] | None = None,
) -> Combinations:
    """Return the combinations of an order with the weights Σ_s Π_j p_js of largest magnitude.

    A factorization machine has a weight for any combination, also for one that no row has, such as two
    values of one column: only those that at least `min_rows` rows of X have are compared. Weights up to
    `least`, by magnitude, count as none. `tick` is called for each first feature; what it raises ends
    the search.

    >>> X = sp.csr_matrix([[1, 1, 0], [1, 0, 1]])
    >>> strongest([[1.0], [0.5], [-2.0]], X, 2, 1).best
    (Combination(features=(0, 2), weight=-2.0, rows=1),)
    """
    check_integer("order", order, 2)
    check_integer("n", n, 1)
    check_integer("min_rows", min_rows, 1)
    check_real("least", least, 0.0)
    table = np.asarray(P, dtype=np.float64)
    used = np.flatnonzero((table != 0).any(axis=1))
    search = _Search(table[used], order, n, min_rows, least, tick)
    search.descend(_there(X)[:, used], (), np.ones(table.shape[1]))
    best = tuple(
        Combination(tuple(int(used[k]) for k in features), weight, rows)
        for features, weight, rows in search.best
    )
    return Combinations(best, search.weighted)


def _there(X: sp.csr_matrix) -> sp.csr_matrix:
    found = sp.csr_matrix(X, copy=True)
    found.eliminate_zeros()
    found.data = np.ones(len(found.data), dtype=np.int64)
    return found


class _Search:
    """Goes through the first features one by one, and through the last two as one sparse product."""

    def __init__(
        self, P: NDArray[np.float64], order: int, n: int, min_rows: int, least: float,
        tick: Callable[[], None] | None,
    ) -> None:  # fmt: skip
        self.P, self.order, self.n, self.tick = P, order, n, tick
        self.min_rows, self.least = min_rows, least
        self.best: list[tuple[tuple[int, ...], float, int]] = []
        self.weighted = 0

    def descend(self, rows: sp.csr_matrix, first: tuple[int, ...], q: NDArray[np.float64]) -> None:
        """Go through what comes after these first features, of whose rows p the product is q."""
        start = first[-1] + 1 if first else 0
        if self.order - len(first) == 2:
            self._pairs(rows, start, first, q)
            return
        columns = rows.tocsc()
        for k in range(start, len(self.P)):
            if self.tick is not None and not first:
                self.tick()
            mine = columns.indices[columns.indptr[k] : columns.indptr[k + 1]]
            product = q * self.P[k]
            if len(mine) >= self.min_rows and product.any():
                self.descend(rows[np.sort(mine)], (*first, k), product)

    def _pairs(
        self, rows: sp.csr_matrix, start: int, first: tuple[int, ...], q: NDArray[np.float64]
    ) -> None:
        i, j, count = pairs_together(rows[:, start:])
        keep = count >= self.min_rows
        i, j, count = i[keep] + start, j[keep] + start, count[keep]
        Q = q * self.P
        for at in range(0, len(i), BLOCK):
            a, b, c = i[at : at + BLOCK], j[at : at + BLOCK], count[at : at + BLOCK]
            weights = (Q[a] * self.P[b]).sum(axis=1)
            self.weighted += int((np.abs(weights) > self.least).sum())
            top = np.lexsort((b, a, -np.abs(weights)))[: self.n]
            self.best += [
                ((*first, int(a[k]), int(b[k])), float(weights[k]), int(c[k]))
                for k in top
                if abs(weights[k]) > self.least
            ]
            self.best = sorted(self.best, key=lambda entry: (-abs(entry[1]), entry[0]))[: self.n]
