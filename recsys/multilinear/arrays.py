"""Named groups of arrays for compiled functions, which numba unpacks and caches by their types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Compressed", "Layout", "Target"]

Vector = NDArray[np.float64]


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
    """Targets, predictions (changed in place), the loss' code, a bound of its curvature, rows' weights.

    The weights have mean 1.
    """

    y: Vector
    pred: Vector
    loss: int
    curvature: float
    row_weights: Vector


class Layout(NamedTuple):
    """Layout of a vector of parameters.

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
