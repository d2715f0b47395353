"""The gradient of the loss in the weights of interactions that are absent from a model.

For distinct features S the product x_S = Π_{j∈S} x_j would be a further column: g_S = mean(ℓ'·x_S) is
the derivative of the mean loss in its weight, and h_S = c·mean(x_S²), c the loss' greatest curvature,
bounds how the derivative changes. Where every product of a factorization machine is 0 its own gradient
is 0, whatever g is. These values tell whether any interaction is left to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Slopes", "interaction_slopes"]

BLOCK = 256  # first features at a time


class Slopes(NamedTuple):
    """Interactions of one order that rows have, (n, order), features ascending; g and h of each."""

    features: NDArray[np.int64]
    slope: NDArray[np.float64]
    curvature: NDArray[np.float64]


def interaction_slopes(
    X: sp.csr_matrix,
    slopes: NDArray[np.float64],
    order: int,
    curvature: float = 1.0,
    worth: Callable[[float], bool] | None = None,
) -> Iterator[Slopes]:
    """Go through all combinations of distinct features that some row of a canonical CSR has, in parts.

    `slopes` are ∂ℓ/∂p of each row, `curvature` is that of the loss. `worth` is called with a bound on
    |g| of all combinations that begin with some features: where it returns False they are left out.
    Above order 2 this is what makes a search end.

    >>> X = sp.csr_matrix([[1.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    >>> part = next(interaction_slopes(X, np.array([1.0, -1.0]), 2))
    >>> part.features.tolist(), part.slope.tolist(), part.curvature.tolist()
    ([[0, 1], [0, 2]], [1.0, -1.5], [2.0, 4.5])
    """
    largest = float(np.abs(X.data).max()) if X.nnz else 0.0
    yield from _descend(
        X.tocsc(), slopes / X.shape[0], np.full(X.shape[0], curvature / X.shape[0]), (), order, largest,
        worth,
    )  # fmt: skip


def _descend(
    X: sp.csc_matrix, first: NDArray[np.float64], second: NDArray[np.float64], chosen: tuple[int, ...],
    left: int, largest: float, worth: Callable[[float], bool] | None,
) -> Iterator[Slopes]:  # fmt: skip
    """Go through what comes after the chosen features, with the rows' parts of g and h."""
    start = chosen[-1] + 1 if chosen else 0
    if left == 2:
        yield from _pairs(X, first, second, chosen, start)
        return
    sizes, by_row = np.abs(first) @ abs(X), X.tocsr()
    for j in range(start, X.shape[1]):
        rows = X.indices[X.indptr[j] : X.indptr[j + 1]]
        bound = float(sizes[j]) * largest ** (left - 1)
        if len(rows) and (worth is None or worth(bound)):
            values = X.data[X.indptr[j] : X.indptr[j + 1]]
            mine = sp.csc_matrix(by_row[rows]) if len(rows) < X.shape[0] else X
            yield from _descend(
                mine, first[rows] * values, second[rows] * values**2, (*chosen, j), left - 1, largest,
                worth,
            )  # fmt: skip


def _pairs(
    X: sp.csc_matrix, first: NDArray[np.float64], second: NDArray[np.float64], chosen: tuple[int, ...],
    start: int,
) -> Iterator[Slopes]:  # fmt: skip
    """Go through the pairs after the chosen features, as sparse products of blocks of columns."""
    rest = sp.csr_matrix(X[:, start:])
    at = np.repeat(np.arange(rest.shape[0]), np.diff(rest.indptr))
    by_slope, by_curve, squares = rest.copy(), rest.copy(), rest.copy()
    by_slope.data = rest.data * first[at]
    squares.data = rest.data**2
    by_curve.data = squares.data * second[at]
    columns, columns2 = rest.tocsc(), squares.tocsc()
    for begin in range(0, rest.shape[1], BLOCK):
        part = slice(begin, begin + BLOCK)
        i, j, h = _above(columns2[:, part].T @ by_curve, begin)
        a, b, g = _above(columns[:, part].T @ by_slope, begin)
        if len(i) == 0:
            continue
        # a sparse product leaves out sums that are 0: gradients are put where the curvatures are
        keys, theirs = i * rest.shape[1] + j, a * rest.shape[1] + b
        place = np.minimum(np.searchsorted(keys, theirs), len(keys) - 1)
        there = keys[place] == theirs
        slope = np.zeros(len(keys))
        slope[place[there]] = g[there]
        before = np.tile(np.array(chosen, dtype=np.int64), (len(keys), 1))
        yield Slopes(np.hstack([before, np.column_stack([i, j]) + start]), slope, h)


def _above(product: sp.spmatrix, begin: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the entries of a block of rows above the diagonal, in order."""
    found = sp.csr_matrix(product)
    found.sort_indices()
    i = np.repeat(np.arange(begin, begin + found.shape[0]), np.diff(found.indptr)).astype(np.int64)
    keep = found.indices > i
    return i[keep], found.indices[keep].astype(np.int64), found.data[keep]
