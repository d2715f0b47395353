"""The largest eigenvalue of a symmetric matrix that is known by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.utils.linalg import tridiagonal_eigenvalues

STEPS = 100  # at most
ENOUGH = 1e-12  # relative: of a vector that is left, and of what a step still adds


def largest_eigenvalue(
    product: Callable[[NDArray[np.float64]], NDArray[np.float64]], start: NDArray[np.float64]
) -> float:
    """Return it by Lanczos' method with full reorthogonalisation; the same bits for any threads.

    `product` multiplies the matrix with a vector. `start`, (n,), must not be orthogonal to the
    eigenvector: it is positive, for entries ≥ 0.
    """
    with threadpool_limits(1, "blas"):
        basis = [start / np.linalg.norm(start)]
        diagonal: list[float] = []
        beside: list[float] = []
        value = 0.0
        for _ in range(min(STEPS, len(start))):
            w = product(basis[-1])
            diagonal.append(float(w @ basis[-1]))
            before, value = value, float(tridiagonal_eigenvalues(diagonal, beside)[-1])
            for _ in range(2):
                for q in basis:
                    w = w - (w @ q) * q
            left = float(np.linalg.norm(w))
            if left <= ENOUGH * value or value - before <= ENOUGH * value:
                break
            beside.append(left)
            basis.append(w / left)
    return value
