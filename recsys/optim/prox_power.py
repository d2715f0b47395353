"""Proximal operators of powers of the ℓ1 norm and of the ℓ2,1 norm, of any order.

All entries of a column lose the same threshold, which is the power's derivative at the norm S of the
result: one equation in S. No sort is needed: starting from all entries, those below the threshold leave,
and S rises.

Source: Atarashi et al. 2021, Theorems 9 and 10.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.features import real_array
from recsys.utils.validation import check_integer, check_real

__all__ = ["prox_power_l1", "prox_power_l21"]


def prox_power_l1(q: ArrayLike, strength: float, order: int) -> NDArray[np.float64]:
    """Return argmin ½‖p − q‖² ``+ strength·‖p‖₁^order``.

    Source: Atarashi et al. 2021, Theorem 9. With S the sum of what is left, each magnitude loses
    ``strength·order·S^(order − 1)``, down to 0. O(features) a round; a few rounds.

    >>> prox_power_l1([3.0, -2.0, 0.5], 0.1, 3).round(3)  # each loses 0.3·S², S = 2.171
    array([ 1.586, -0.586,  0.   ])
    """
    q = real_array("q", q, 1)
    if not np.isfinite(q).all():
        raise InputError("q has entries that are not finite")
    check_real("strength", strength, 0.0)
    check_integer("order", order, 1)
    sizes = np.abs(q)
    if strength > 0.0 and len(q):
        power_cuts(sizes, np.ones(len(q)), math.log(strength) + math.log(order), order)
    return np.copysign(sizes, q)


def prox_power_l21(Q: ArrayLike, strength: float, order: int) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)^order`` over the rows of Q.

    Source: Atarashi et al. 2021, Theorem 10: rows keep their direction, and their lengths are those of
    `prox_power_l1`.
    """
    Q = real_array("Q", Q, 2)
    largest = np.abs(Q).max(axis=1, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    old = np.linalg.norm(Q / scale[:, None], axis=1) * scale  # no square leaves the range of numbers
    new = prox_power_l1(old, strength, order)
    return Q * np.divide(new, old, out=np.zeros_like(old), where=old > 0)[:, None]


# ---- kernels


@jit
def power_cuts(sizes, weights, log_strength, order):
    """Take ``strength·weight_j·S^(order − 1)`` from each magnitude, down to 0, in place.

    S is the sum of what is left.

    The weights, at most 1 (one is 1), are a step for each magnitude. Magnitudes are scaled by the
    largest, and `strength` is given as its logarithm, so that no power leaves the range of numbers.
    """
    d, r = len(sizes), order - 1.0
    top = 0.0
    for j in range(d):
        top = max(top, sizes[j])
    if top == 0.0 or log_strength == -np.inf:
        return
    if order == 1:
        for j in range(d):
            if weights[j] > 0.0:
                sizes[j] = max(sizes[j] - weights[j] * np.exp(log_strength), 0.0)
        return
    log_strength += (order - 2.0) * np.log(top)  # of sizes over the largest
    kept = np.ones(d, dtype=np.bool_)
    changed = True
    while changed:
        total, weight = 0.0, 0.0
        for j in range(d):
            if kept[j]:
                total += sizes[j] / top
                weight += weights[j]
        if weight == 0.0:  # what is left has no steps
            cut, mean, share, near = 0.0, 0.0, 0.0, True
        else:
            # S + weight·`strength`·S^r = total as a·x + b·x^r = 1, where S = x·start and max(a, b) = 1
            log_total, log_cut = np.log(total), log_strength + np.log(weight)
            log_start = min(log_total, (log_total - log_cut) / r)
            a, b = np.exp(log_start - log_total), np.exp(log_cut + r * log_start - log_total)
            x = _scaled_root(a, b, r)
            mean = total / weight
            cut, share = mean * b * x**r, mean * a * x
            near = b * x**r < 0.5
        changed, empty = False, True
        for j in range(d):
            if kept[j]:
                if _left(sizes[j] / top, weights[j], cut, mean, share, near) > 0.0:
                    empty = False
                else:
                    kept[j] = False
                    changed = True
        if empty:  # to rounding
            break
    for j in range(d):
        if kept[j]:
            sizes[j] = min(sizes[j], top * _left(sizes[j] / top, weights[j], cut, mean, share, near))
        else:
            sizes[j] = 0.0


@jit
def _left(size, weight, cut, mean, share, near):
    """Return size − weight·cut, where cut = mean − share, by the expression that cancels less."""
    if near:
        return size - weight * cut
    return (size - weight * mean) + weight * share


@jit
def _scaled_root(a, b, r):
    """Return the root of a·x + b·x^r = 1 in [½, 1], where max(a, b) = 1 and r ≥ 1.

    The left is convex and increasing, so that Newton's method from 1 falls towards the root.
    """
    x = 1.0
    for _ in range(60):
        power = b * x ** (r - 1.0)
        step = (a * x + power * x - 1.0) / (a + r * power)
        x -= step
        if step <= 1e-16 * x:
            break
    return x
