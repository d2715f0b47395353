"""Proximal operators of the sparse penalties.

Source: Atarashi et al. 2021, Theorems 3, 7, 9 and 10 and Algorithms 2 and 3 (formulas in the design's
errata).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.features import real_array
from recsys.utils.validation import check_choice, check_integer, check_real

__all__ = [
    "prox_l1",
    "prox_l21",
    "prox_power_l1",
    "prox_power_l21",
    "prox_squared_l1",
    "prox_squared_l21",
]


def prox_l1(q: ArrayLike, strength: float) -> NDArray[np.float64]:
    """Return argmin ½‖p − q‖² ``+ strength·‖p‖₁``, any shape."""
    q = real_array("q", q)
    check_real("strength", strength, 0.0)
    return np.sign(q) * np.maximum(np.abs(q) - strength, 0.0)


def prox_l21(Q: ArrayLike, strength: float) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·Σ_j ‖p_j‖`` over the rows of Q, (features, components)."""
    Q = real_array("Q", Q, 2)
    check_real("strength", strength, 0.0)
    norms = np.linalg.norm(Q, axis=1)
    return _scaled(Q, norms, np.maximum(norms - strength, 0.0))


def prox_squared_l1(q: ArrayLike, strength: float, method: str = "random") -> NDArray[np.float64]:
    """Return argmin ½‖p − q‖² ``+ strength·‖p‖₁²``, the proximal operator of TI.

    `method` is "random", selection in expected linear time, or "sort", in O(d log d); the results are
    the same.
    """
    q = real_array("q", q, 1)
    check_real("strength", strength, 0.0)
    check_choice("method", method, ("random", "sort"))
    sizes = np.abs(q)
    if method == "random":
        cut = select(sizes.copy(), strength)
    else:  # 2λS_θ/(1 + 2λθ), θ the last whose magnitude is above it
        ranked = np.sort(sizes)[::-1]
        levels = 2.0 * strength * np.cumsum(ranked) / (1.0 + 2.0 * strength * np.arange(1, len(q) + 1))
        cut = max(levels[ranked > levels], default=0.0)
    return np.sign(q) * np.maximum(sizes - cut, 0.0)


def prox_squared_l21(Q: ArrayLike, strength: float) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)²``, the proximal operator of CS.

    Q is (features, components).
    """
    Q = real_array("Q", Q, 2)
    norms = np.linalg.norm(Q, axis=1)
    return _scaled(Q, norms, prox_squared_l1(norms, strength))


def prox_power_l1(q: ArrayLike, strength: float, order: int) -> NDArray[np.float64]:
    """Return argmin ½‖p − q‖² ``+ strength·‖p‖₁^order``.

    With S the sum of what is left, each magnitude loses ``strength·order·S^(order − 1)``, down to 0.

    Source: Atarashi et al. 2021, Theorem 9.

    >>> prox_power_l1([3.0, -2.0, 0.5], 0.1, 3).round(3)  # each loses 0.3·S², S = 2.171
    array([ 1.586, -0.586,  0.   ])
    """
    q = real_array("q", q, 1, finite=True)
    check_real("strength", strength, 0.0)
    check_integer("order", order, 1)
    sizes = np.abs(q)
    power_cuts(sizes, np.full(len(q), strength * order), order)
    return np.copysign(sizes, q)


def prox_power_l21(Q: ArrayLike, strength: float, order: int) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)^order`` over the rows of Q.

    Source: Atarashi et al. 2021, Theorem 10: rows keep their direction, and their lengths are those of
    `prox_power_l1`.
    """
    Q = real_array("Q", Q, 2)
    norms = np.linalg.norm(Q, axis=1)
    return _scaled(Q, norms, prox_power_l1(norms, strength, order))


def _scaled(
    Q: NDArray[np.float64], old: NDArray[np.float64], new: NDArray[np.float64]
) -> NDArray[np.float64]:
    return Q * np.divide(new, old, out=np.zeros_like(old), where=old > 0)[:, None]


def project_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest point of the simplex {θ ≥ 0, Σθ = 1} to a finite v, of any size."""
    v = real_array("v", v, 1, finite=True)
    if v.size == 0:
        raise InputError("v must have at least one entry")
    with np.errstate(over="ignore"):  # what is so far below the largest is 0
        v = v - v.max()  # a constant changes nothing, and 1 is lost beside 10¹⁶
        u = np.sort(v)[::-1]
        sums = (np.cumsum(u) - 1.0) / np.arange(1, len(u) + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)


# ---- kernels


@jit
def select(values, strength):
    """Return 2λS_θ/(1 + 2λθ), the loss of each magnitude, by random pivots; permutes values."""
    low, high = 0, len(values)
    total, count = 0.0, 0
    seed = np.uint64(88172645463325252)
    while low < high:
        at = low
        for turn in range(5):  # the largest of a few draws: the cut is high, few values lie above it
            seed ^= seed << np.uint64(13)
            seed ^= seed >> np.uint64(7)
            seed ^= seed << np.uint64(17)
            drawn = low + int(seed % np.uint64(high - low))
            if turn == 0 or values[drawn] > values[at]:
                at = drawn
        pivot = values[at]
        values[at] = values[low]
        values[low] = pivot
        mid = low + 1  # [low, mid): at least the pivot
        upper = pivot
        for p in range(low + 1, high):
            v = values[p]
            if v >= pivot:
                values[p] = values[mid]
                values[mid] = v
                mid += 1
                upper += v
        if pivot * (1.0 + 2.0 * strength * (count + mid - low)) > 2.0 * strength * (total + upper):
            total += upper
            count += mid - low
            low = mid
        else:
            low, high = low + 1, mid
    return 2.0 * strength * total / (1.0 + 2.0 * strength * count)


@jit
def power_cuts(sizes, cuts, order):
    """Take ``cut_j·S^(order − 1)`` from each magnitude, down to 0, in place; S is the sum of the rest.

    Those that lose all of themselves leave one after the other, and S rises.
    """
    r = order - 1.0
    kept = sizes > 0.0
    while True:
        total, cut = 0.0, 0.0
        for j in range(len(sizes)):
            if kept[j]:
                total += sizes[j]
                cut += cuts[j]
        S = total
        if cut > 0.0 and order > 1:  # S + cut·S^r = total by Newton's method, falling to the root
            S = min(total, (total / cut) ** (1.0 / r))
            for _ in range(200):
                power = cut * S ** (r - 1.0)
                step = (S + power * S - total) / (1.0 + r * power)
                S -= step
                if step <= 1e-16 * S:
                    break
        changed = False
        for j in range(len(sizes)):
            if kept[j] and sizes[j] <= cuts[j] * S**r:
                kept[j] = False
                changed = True
        if not changed:
            break
    for j in range(len(sizes)):
        sizes[j] = max(sizes[j] - cuts[j] * S**r, 0.0) if kept[j] else 0.0
