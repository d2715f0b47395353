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

# Branches of `value`, numbered by their positions. Numba freezes module constants.
# CONJUNCTION is a table of ⟨x,z⟩, as a logarithm: also of high powers; those in _L are of literals, a
# table of the agreeing variables.
CODES = 15
(
    LINEAR,
    POWER,
    RBF,
    TANIMOTO,
    CONJUNCTION,
    DISJUNCTION,
    NEGATION,
    LITERAL,
    CONJUNCTION_L,
    DISJUNCTION_L,
    HIT,
    HIT_L,
    HIT_SUM,
    CONJUNCTION_OF_D,
    CONJUNCTION_OF_DL,
) = range(CODES)

# The vector around which normalised values saturate.
NOWHERE = 0
AT_FULL = 1  # all ones
AT_EMPTY = 2


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
    integer : bool
        Whether raw values are counts: integers.
    saturates : int
        AT_FULL or AT_EMPTY if normalised values tend to 1 around that vector as the degree or n
        grows, and `centred` serves the kernel; NOWHERE otherwise.
    """

    code: int
    par: NDArray[np.float64]
    table: NDArray[np.float64]
    log_scale: float = 0.0
    logarithmic: bool = False
    zero_at_zero: bool = True
    integer: bool = False
    saturates: int = NOWHERE


class Centre(NamedTuple):
    """The values of each vector that `centred` needs, besides its number of ones.

    `short` is 1 − K(x, reference), accurate to the last digits, 1 for a null vector; `missed` the share
    of the disjunctions that the vector does not satisfy, 0 where a kernel has none. `dtype` is float32,
    or float64 where centred values leave the range of float32.
    """

    short: NDArray[np.float64]
    missed: NDArray[np.float64]
    dtype: type


def centre(plan: Plan, sizes: NDArray[np.int64]) -> Centre | None:
    """Return how to centre a kernel on vectors with these numbers of ones, or None where it need not be.

    Where values tend to 1, what tells vectors apart is in digits that K has lost. The kernel centred on
    a reference vector r, K(x,z) − K(x,r) − K(r,z) + 1, keeps them: it is small where K is close to 1,
    and computed without taking such differences. Programs over a simplex, scores less a mean of the
    others and distances do not change by it (beyond a constant): terms of x or of z alone drop out.
    """
    if plan.saturates == NOWHERE:
        return None
    unique, inverse = np.unique(sizes, return_inverse=True)
    w = weights(plan, unique, True)
    null = np.isinf(w) if plan.logarithmic else w == 0
    null |= unique == 0  # of a cold item nothing is known
    short, missed = np.ones(len(unique)), np.ones(len(unique))
    share_short = short_of_one.plain if short_of_one.small(1000 * len(unique)) else short_of_one
    for k, size in enumerate(unique.tolist()):
        if not null[k]:
            short[k], missed[k] = share_short(plan.code, size, plan.par, plan.table)
    seen = short[~null]
    if len(seen) == 0 or seen.min() > 0.01:  # float32 then holds what tells vectors apart to 1e-3
        return None
    # Values that are powers of the distance are tiny between popular items, and K has their digits.
    if plan.saturates == AT_EMPTY and (plan.logarithmic or plan.code == RBF) and seen.max() > 0.9:
        return None
    least = seen[seen > 0].min(initial=1.0)
    # Entries are products of two such shares; float32 ends at 1e-38.
    return Centre(short[inverse], missed[inverse], np.float64 if least < 1e-15 else np.float32)


def weights(plan: Plan, sizes: NDArray[np.int64], normalize: bool) -> NDArray[np.float64]:
    """Return per-vector factors w with K = value·wᵢ·wⱼ (shifts, if the plan is logarithmic).

    A vector whose own value is 0 gets weight 0 (shift +∞): it is null in feature space, and
    its row is 0 off the diagonal.
    """
    unique, inverse = np.unique(sizes, return_inverse=True)
    own_value = value.plain if value.small(100 * len(unique)) else value
    with np.errstate(all="ignore"):
        own = np.array([own_value(plan.code, s, s, s, plan.par, plan.table) for s in unique.tolist()])
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
            share = hit_both(table[s], table[a] - table[s], table[b] - table[s], par[1], float(d))
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
    equal sign, so that sets rarer than the rounding of 1 keep their digits.
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
    """Return log C(v, c) for v = share·exp(log_scale), an integer; −∞ where v < c."""
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


@jit
def missed_share(share, unit, d):
    """Return which share of the d-subsets of 1/unit features misses a set with this share of them."""
    steps = int(d) if unit * d > 1e-13 else 1
    times = 1.0 if steps > 1 else d
    total = 0.0
    for i in range(steps):
        size = 1.0 - i * unit
        if size - share <= 0.5 * unit:
            return 0.0
        total += log1p(-share / size)
    return np.exp(times * total)


@jit
def missed_by(code, share, par, table):
    """Return the share of the disjunctions that inner features with this share do not satisfy."""
    if code == HIT_SUM:
        total = 0.0
        for d in range(1, int(par[2]) + 1):
            total += table[int(par[0]) + d] * missed_share(share, par[1], float(d))
        return total
    return missed_share(share, par[1], par[2])


@jit
def short_of_one(code, a, par, table):
    """Return 1 − K(x, reference) and the share that x misses, x with a ones, for `centre`."""
    n = int(par[0])
    if code == DISJUNCTION:
        missed = table[len(table) // 2 + a]
        return missed / (1.0 + np.sqrt(table[a])), missed
    if code == HIT or code == HIT_SUM:
        missed = missed_by(code, table[a], par, table)
        return missed / (1.0 + np.sqrt(1.0 - missed)), missed
    if code == CONJUNCTION_OF_D:
        missed, unit, log_k = missed_share(table[a], par[1], par[2]), np.exp(-table[n + 1]), 0.0
        for i in range(int(par[3])):
            log_k += 0.5 * log1p(-missed / (1.0 - i * unit))
        return -expm1(log_k), missed
    if code == NEGATION:
        return a / (n + np.sqrt(n * (n - a))), 0.0
    if code == LITERAL:
        return a / n, 0.0
    if code == RBF:
        return -expm1(-par[0] * a), 0.0
    return -less_one_at(code, n - a, par, table), 0.0


@jit
def less_one_at(code, agree, par, table):
    """Return K − 1 of two vectors that agree in `agree` variables, for kernels of literals."""
    n = int(par[0])
    if code == CONJUNCTION_L:
        return expm1(table[agree] - table[n])
    if code == DISJUNCTION_L:
        return par[1] / (1.0 - par[1]) * (table[agree] - 1.0)
    if code == HIT_L:
        one = missed_share(table[n], par[1], par[2])
        either = missed_share(2.0 * table[n] - table[agree], par[1], par[2])
        return (either - one) / (1.0 - one)
    unit, total = np.exp(-table[n + 1]), 0.0  # CONJUNCTION_OF_DL
    for i in range(int(par[3])):
        total += log1p(par[1] * (table[agree] - 1.0) / (1.0 - par[1] - i * unit))
    return expm1(total)


@jit
def centred(code, logarithmic, s, a, b, wa, wb, ea, eb, ma, mb, par, table):
    """K(x,z) − K(x,r) − K(r,z) + 1 of the normalised kernel; e, m are `Centre`'s short and missed."""
    null = wa == np.inf or wb == np.inf if logarithmic else wa == 0.0 or wb == 0.0
    if null:  # K(x, ·) = 0, and 1 − K(x, r) = 1
        return ea * eb
    if code == LITERAL:
        return 2.0 * s / par[0]
    n = int(par[0])
    if code == NEGATION:
        return (n * s - a * b) / (n * np.sqrt(float(n - a) * (n - b))) + ea * eb
    if code == RBF:
        return expm1(2.0 * par[0] * s) * (1.0 - ea) * (1.0 - eb) + ea * eb
    if code == CONJUNCTION_L or code == DISJUNCTION_L or code == HIT_L or code == CONJUNCTION_OF_DL:
        return less_one_at(code, n - a - b + 2 * s, par, table) + ea + eb
    # Around the full vector: with K(x,r) = 1 − e and K = ρ·K(x,r)·K(r,z) it is (ρ − 1)(1−e)(1−e') + ee',
    # of the size of the smaller e; where neither is small nothing is lost by a difference.
    if min(ea, eb) > 0.25:
        return scaled(code, logarithmic, s, a, b, wa, wb, par, table) - 1.0 + ea + eb
    if code == DISJUNCTION:
        either = table[len(table) // 2 + a + b - s]
    elif code == CONJUNCTION_OF_D:
        either = missed_share(table[a] + table[b] - table[s], par[1], par[2])
    else:
        either = missed_by(code, table[a] + table[b] - table[s], par, table)
    if code != CONJUNCTION_OF_D:
        return (either - ma * mb) * wa * wb + ea * eb
    unit, log_rho = np.exp(-table[n + 1]), 0.0
    for i in range(int(par[3])):
        bottom = (1.0 - ma - i * unit) * (1.0 - mb - i * unit)
        log_rho += log1p(((either - ma * mb) - i * unit * either) / bottom)
    return expm1(log_rho) * (1.0 - ea) * (1.0 - eb) + ea * eb
