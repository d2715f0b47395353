"""The radius-margin ratio of a Gram matrix, by which kernels are compared without validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.kernels.expressiveness import Program, margin_program, radius_program
from recsys.utils.validation import check_real

SOLVER_TOLERANCE = 1e-7


def radius_margin_ratio(K: ArrayLike, y: ArrayLike, identity: float = 0.0) -> float:
    """Return R²/(rows·ρ²) of a Gram matrix, infinite for classes that K does not separate.

    Smaller values give lower error bounds.

    Parameters
    ----------
    K : (rows, rows) float
    y : (rows,)
        Two classes.
    identity : float in 0…1
        Share t of the identity in K ← (1 − t)·K + t·(mean diagonal)·I, which keeps the ratio finite for
        inseparable classes.

    Notes
    -----
    Source: Polato's thesis, 8.4 and 9.3.2; ρ is the distance between the hulls, as in `margin`.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernels import make_kernel
    >>> from recsys.kernel_machines import radius_margin_ratio
    >>> round(radius_margin_ratio(make_kernel("mdnf")(table.X, normalize=True), table.y), 2)
    0.07
    """
    share = check_real("identity", identity, 0.0, 1.0)
    K = np.asarray(K, dtype=np.float64)
    G = (1.0 - share) * K
    G[np.diag_indices_from(G)] += share * float(np.mean(np.diag(K)))
    return ratio_and_programs(G, y)[0]


def ratio_and_programs(G: NDArray[np.float64], y: ArrayLike) -> tuple[float, Program, Program]:
    """Return R²/(rows·ρ²) of G and the programs of ρ and R."""
    margin = margin_program(G, y, tol=SOLVER_TOLERANCE)
    if margin.squared <= 10.0 * margin.gap:  # rounding might pass for a margin
        margin = margin_program(G, y)
    ball = radius_program(G, tol=SOLVER_TOLERANCE)
    separated = margin.squared > least_margin(G)
    return ball.squared / margin.squared / len(G) if separated else float("inf"), margin, ball


def least_margin(G: NDArray[np.float64]) -> float:
    """Return the ρ² below which classes count as inseparable: a share of the mean diagonal."""
    return 1e-9 * max(float(np.mean(np.diag(G))), 1e-300)
