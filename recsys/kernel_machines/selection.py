"""The radius-margin ratio of a Gram matrix, by which kernels are compared without validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.kernels.expressiveness import TOLERANCE, Program, margin_program, radius_program
from recsys.utils.validation import check_real

SOLVER_TOLERANCE = 1e-7


def radius_margin_ratio(K: ArrayLike, y: ArrayLike, identity: float = 0.0) -> float:
    """Return R²/(rows·ρ²) of a Gram matrix; smaller values give lower error bounds.

    Parameters
    ----------
    K : (rows, rows) float
    y : (rows,)
        Two classes.
    identity : float in 0…1
        Share t of the identity in K ← (1 − t)·K + t·(mean diagonal)·I, which keeps the ratio finite for
        inseparable classes.

    Returns
    -------
    float
        Infinite if K does not separate the classes.

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
    G = np.asarray(K, dtype=np.float64)
    share = check_real("identity", identity, 0.0, 1.0)
    if share > 0:
        own = float(np.mean(np.diag(G)))
        G = (1.0 - share) * G
        G[np.diag_indices_from(G)] += share * own
    solved = separation(G, y)
    return ratio_of(G, solved, radius_program(G, tol=SOLVER_TOLERANCE))


def separation(G: NDArray[np.float64], y: ArrayLike) -> Program:
    """Solve the margin program, more tightly where its rounding might pass for a margin."""
    solved = margin_program(G, y, tol=SOLVER_TOLERANCE)
    if solved.squared <= 10.0 * solved.gap:
        solved = margin_program(G, y, tol=TOLERANCE)
    return solved


def floor(G: NDArray[np.float64]) -> float:
    """Return the ρ² below which classes count as inseparable: a share of the mean diagonal."""
    return 1e-9 * max(float(np.mean(np.diag(G))), 1e-300)


def ratio_of(G: NDArray[np.float64], solved: Program, ball: Program) -> float:
    """Return R²/(rows·ρ²) from the two programs of G, infinite where ρ is 0 but for rounding."""
    return ball.squared / solved.squared / len(G) if solved.squared > floor(G) else float("inf")
