"""Proximal operators by what they are the minimum of."""

from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def power_l1(sizes, cuts, order):
    """Return argmin Σ (p_j − a_j)² / (2c_j) + ‖p‖₁^order / order of sizes a, by halving the cut's exponent.

    All p_j = max(a_j − c_j·t, 0) with t = (Σ p)^(order − 1): the left side grows with t, the right falls.
    Decimals of 50 digits have room for every power of a float.
    """
    with localcontext(prec=50, Emin=-999_999, Emax=999_999):
        sizes, cuts = [Decimal(float(a)) for a in sizes], [Decimal(float(c)) for c in cuts]
        if not any(sizes) or not any(cuts):
            return np.array(sizes, dtype=float)

        def left(t):
            return [max(a - c * t, Decimal(0)) for a, c in zip(sizes, cuts, strict=True)]

        top = max(a / c for a, c in zip(sizes, cuts, strict=True) if c > 0)
        low, high = Decimal(0), Decimal(8_000)  # of the powers of ten that t is below the top
        for _ in range(110):
            middle = (low + high) / 2
            t = top * Decimal(10) ** -middle
            if t < sum(left(t)) ** (order - 1):
                high = middle
            else:
                low = middle
        return np.array(left(top * Decimal(10) ** -low), dtype=float)


def anova_objective(p, sizes, strength, order, ridge):
    """Return ½‖p − a‖² + strength·(Σ of the products of `order` of p + ½·ridge·‖p‖²), by enumeration."""
    products = sum(np.prod(some) for some in combinations(p, order))
    return 0.5 * ((p - sizes) ** 2).sum() + strength * (products + 0.5 * ridge * (p @ p))


def anova_l1(sizes, strength, order, ridge=1.0):
    """Return the argmin of `anova_objective` over p ≥ 0, the best of a search from several points."""
    starts = [np.array(sizes), np.zeros(len(sizes)), 0.3 * np.array(sizes)]
    found = [
        minimize(
            anova_objective,
            start,
            (np.array(sizes), strength, order, ridge),
            "L-BFGS-B",
            bounds=[(0.0, None)] * len(sizes),
            options={"ftol": 1e-15, "gtol": 1e-11},
        )
        for start in starts
    ]
    best = min(found, key=lambda result: result.fun)
    return best.x, best.fun
