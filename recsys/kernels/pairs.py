"""Kernels of binary vectors as functions of four numbers, evaluated pair by pair.

Every kernel here depends on ⟨x,z⟩ = s, |x| = a, |z| = b and the dimension n alone. A kernel
hands over a `Plan`: an integer code, a few parameters and a table over 0…n. One compiled
`if` chain serves all kernels and caches on disk, where functions as arguments would not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

LINEAR, POWER, RBF, TANIMOTO, CONJUNCTION, DISJUNCTION = range(6)


class Plan(NamedTuple):
    """A kernel, ready for evaluation on vectors of dimension n.

    Attributes
    ----------
    code : int
        Branch of `value`.
    par : (4,) float64
        Parameters of that branch.
    table : (n + 1,) float64
        Table over counts, log-binomials or probabilities; (1,) where none is needed.
    log_scale : float
        log of the factor that raw values were divided by; 0 for none.
    logarithmic : bool
        Whether `value` returns logarithms.
    zero_at_zero : bool
        Whether vectors without a common element have value 0.
    """

    code: int
    par: NDArray[np.float64]
    table: NDArray[np.float64]
    log_scale: float = 0.0
    logarithmic: bool = False
    zero_at_zero: bool = True


def weights(plan: Plan, sizes: NDArray[np.int64], normalize: bool) -> NDArray[np.float64]:
    """Return per-vector factors w with K = value·wᵢ·wⱼ (shifts, if the plan is logarithmic).

    A vector whose own value is 0 gets weight 0 (shift +∞): it is null in feature space, and
    its row is 0 off the diagonal.
    """
    unique, inverse = np.unique(sizes, return_inverse=True)
    own = np.array([value(plan.code, s, s, s, plan.par, plan.table) for s in unique.tolist()])
    if plan.logarithmic:
        shift = 0.5 * own if normalize else np.zeros(len(own))
        return np.where(own == -np.inf, np.inf, shift)[inverse]
    with np.errstate(divide="ignore"):
        factor = 1.0 / np.sqrt(own) if normalize else np.ones(len(own))
    return np.where(own > 0, factor, 0.0)[inverse]


# ---- kernels


@jit
def value(code, s, a, b, par, table):
    """κ(x, z) up to its scale, or its logarithm (CONJUNCTION)."""
    if code == LINEAR:
        return float(s)
    if code == POWER:  # (⟨x,z⟩ + coef)^degree
        return (s + par[1]) ** par[0]
    if code == RBF:  # exp(−γ‖x − z‖²)
        return np.exp(-par[0] * (a + b - 2 * s))
    if code == TANIMOTO:  # |x ∩ z| / |x ∪ z|
        union = a + b - s
        return s / union if union > 0 else 1.0
    if code == CONJUNCTION:  # log C(⟨x,z⟩, c), the thesis' (6.4)
        return table[s]
    if code == DISJUNCTION:  # (6.7) over C(n,d); table[k] = 1 − C(n−k,d)/C(n,d)
        return table[a] - (table[a + b - s] - table[b])
    return np.nan


@jit
def scaled(code, logarithmic, s, a, b, wa, wb, par, table):
    """Return the value with the factors (or shifts) of both vectors applied."""
    v = value(code, s, a, b, par, table)
    if logarithmic:
        return np.exp(v - wa - wb) if v > -np.inf and wa < np.inf and wb < np.inf else 0.0
    return v * wa * wb
