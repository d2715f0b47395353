"""Kernels of binary vectors as functions of four numbers, evaluated pair by pair.

Every kernel here depends on ⟨x,z⟩ = s, |x| = a, |z| = b and the dimension n alone. A kernel
hands over a `Plan`: an integer code, a few parameters and a table over 0…n. One compiled
`if` chain serves all kernels and caches on disk, where functions as arguments would not.
"""

from __future__ import annotations

from math import expm1, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

LINEAR, POWER, RBF, TANIMOTO, CONJUNCTION, DISJUNCTION = range(6)
NEGATION, LITERAL, CONJUNCTION_L, DISJUNCTION_L = range(6, 10)
HIT, HIT_L, HIT_SUM, CONJUNCTION_OF_D, CONJUNCTION_OF_DL = range(10, 15)


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
    whole : bool
        Whether raw values are counts: whole numbers.
    """

    code: int
    par: NDArray[np.float64]
    table: NDArray[np.float64]
    log_scale: float = 0.0
    logarithmic: bool = False
    zero_at_zero: bool = True
    whole: bool = False


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
    """κ(x, z) up to its scale, or its logarithm where the plan says so."""
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
    if code == NEGATION:  # (6.9); par = n
        return par[0] - a - b + s
    agree = int(par[0]) - a - b + 2 * s  # literals true in both, n of 2n in every vector
    if code == LITERAL:  # (6.10); par = n
        return float(agree)
    if code == CONJUNCTION_L:  # log C(L, c), (6.11); par = n
        return table[agree]
    if code == DISJUNCTION_L:  # (6.12) over 2^d C(n,d); par = n, 2^−d; table = C(k,d)/C(n,d)
        return (1.0 - 2.0 * par[1]) + par[1] * table[agree]
    # Below, table[k] is the share of the N inner features that k ones satisfy; par[1] = 1/N.
    if code == HIT:  # (6.14) over C(N,d); par = n, 1/N, d
        return hit_both(table[s], table[a] - table[s], table[b] - table[s], par[1], par[2])
    if code == HIT_L:  # (6.16) over C(N,d); every vector satisfies table[n]
        one = table[int(par[0])] - table[agree]
        return hit_both(table[agree], one, one, par[1], par[2])
    if code == HIT_SUM:  # κ* over its largest value; weights of d = 1…D follow the table
        total = 0.0
        for d in range(1, int(par[2]) + 1):
            share = hit_both(table[s], table[a] - table[s], table[b] - table[s], par[1], d)
            total += table[int(par[0]) + d] * share
        return total
    if code == CONJUNCTION_OF_D:  # log C(κ_mD, c), (6.18); par = n, 1/n, d, c; table[n + 1] = log C(n,d)
        n = int(par[0])
        share = hit_both(table[s], table[a] - table[s], table[b] - table[s], par[1], par[2])
        return log_choose(share, table[n + 1], par[3])
    if code == CONJUNCTION_OF_DL:  # log C(κ_D, c), (6.20); par = n, 2^−d, d, c; last: log 2^d C(n,d)
        share = (1.0 - 2.0 * par[1]) + par[1] * table[agree]
        return log_choose(share, table[int(par[0]) + 1], par[3])
    return np.nan


@jit
def hit_both(both, first, second, unit, d):
    """Return the share of the d-subsets of N features that meet two sets of features.

    The sets have `both` in common and `first`, `second` to themselves, as shares of N = 1/unit;
    a unit of 0 is an infinite N. Everything is written with expm1 and log1p in differences of
    like sign, so that sets rarer than the rounding of 1 keep their digits.
    """
    if d == 1:
        return both
    steps = int(d) if unit * d > 1e-13 else 1
    times = 1.0 if steps > 1 else d
    rest = 1.0 - both
    miss = lost_x = lost_y = lost = gain = 0.0
    for i in range(steps):
        size = 1.0 - i * unit
        left = size - both
        if left <= 0.5 * unit:
            return 1.0
        miss += log1p(-both / size)
        lost_x += log1p(-first / left) if left - first > 0.5 * unit else -np.inf
        lost_y += log1p(-second / left) if left - second > 0.5 * unit else -np.inf
        free = left - first - second
        if free > 0.5 * unit and lost > -np.inf:
            lost += log1p(-(first + second) / left)
            gain += log1p(first * second / (left * free))
        else:
            lost = -np.inf
    if rest <= 0.0:
        return 1.0
    miss, lost_x, lost_y = times * miss, times * lost_x, times * lost_y
    one_each = expm1(lost_x) * expm1(lost_y)
    if lost > -np.inf and times * gain < 1.0:
        one_each -= np.exp(times * lost) * expm1(times * gain)
    elif lost > -np.inf:  # far apart, and their product might be 0·∞
        one_each -= np.exp(times * (lost + gain)) - np.exp(times * lost)
    else:
        one_each -= np.exp(lost_x + lost_y)
    return -expm1(miss) + np.exp(miss) * max(one_each, 0.0)


@jit
def log_choose(share, log_scale, c):
    """Return log C(v, c) for v = share·exp(log_scale), a whole number; −∞ where v < c."""
    if share <= 0.0:
        return -np.inf
    log_v = np.log(share) + log_scale
    total = 0.0
    v = np.rint(np.exp(log_v)) if log_v < 34.0 else np.inf
    for i in range(int(c)):
        if v == np.inf:  # beyond 2⁴⁹ the subtrahend is below the rounding
            total += log_v - np.log(i + 1.0)
        elif v - i <= 0.0:
            return -np.inf
        else:
            total += np.log((v - i) / (i + 1.0))
    return total


@jit
def scaled(code, logarithmic, s, a, b, wa, wb, par, table):
    """Return the value with the factors (or shifts) of both vectors applied."""
    v = value(code, s, a, b, par, table)
    if logarithmic:
        return np.exp(v - wa - wb) if v > -np.inf and wa < np.inf and wb < np.inf else 0.0
    return v * wa * wb
