"""Named groups of arrays for compiled functions, which numba unpacks and caches by their types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

__all__ = ["Compressed", "Layout", "Target", "column_counts"]

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
    """Targets, the current predictions (changed in place), the loss, and the bound of its curvature."""

    y: Vector
    pred: Vector
    loss: Any  # a code, or the parameters of a custom loss
    curvature: float


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
def column_counts(indices, columns):
    """Return how many entries each column has, (columns,) int64, from the indices of rows."""
    out = np.zeros(columns, dtype=np.int64)
    for j in indices:
        out[j] += 1
    return out
