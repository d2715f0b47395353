"""Named groups of arrays for compiled functions, which numba unpacks and caches by their types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

__all__ = ["ALIKE", "Compressed", "Layout", "Target", "weight_mask"]

Vector = NDArray[np.float64]

ALIKE: Vector = np.ones(1)  # the weights of rows that all have the same one
MOST_ROWS = 2**31 - 1


class Compressed(NamedTuple):
    """The arrays of a sparse matrix: of its rows (CSR) or of its columns (CSC)."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: Vector

    @classmethod
    def of(cls, X: object) -> Compressed:
        """Return the arrays of a CSR or CSC matrix, not copied."""
        return cls(X.indptr, X.indices, X.data)  # type: ignore[attr-defined]


class Target(NamedTuple):
    """Targets, the current predictions (changed in place), the loss, and the bound of its curvature.

    `row_weights` are those of the rows in the mean loss, of mean 1, or `ALIKE`. Compiled passes read the
    one of row i at `i & weight_mask(row_weights)`; the innermost loops of `fm` branch instead, since the
    product with 1 takes up to a tenth of their time.
    """

    y: Vector
    pred: Vector
    loss: int  # its code
    curvature: float
    row_weights: Vector = ALIKE

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return len(self.row_weights) > 1


class Layout(NamedTuple):
    """Layout of a vector of parameters: the terms, and the factors of their parts.

    `spec` is (kind, order, factors, offset) of each term; `theta` the weights of the orders, (terms,
    orders); `weights` those of the components, (terms, k); `width` the longest table of a row.
    """

    spec: NDArray[np.int64]
    theta: Vector
    weights: Vector
    features: int
    components: int
    width: int
    linear: bool


# ---- kernels


@jit
def weight_mask(row_weights):
    """Return what `&` makes of a row's index that of its weight: the same, or 0 where there is one."""
    return MOST_ROWS if len(row_weights) > 1 else 0
