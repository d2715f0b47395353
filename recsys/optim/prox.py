"""Proximal operators of the sparse penalties, by sorting and by randomised selection.

Source: Atarashi et al. 2021, Theorems 3 and 7 and Algorithm 2 (formulas in the design's errata).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.features import real_array
from recsys.utils.validation import check_choice, check_real

__all__ = ["prox_l1", "prox_l21", "prox_squared_l1", "prox_squared_l21"]


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
    cut = select(sizes.copy(), strength) if method == "random" else sorted_cut(np.sort(sizes), strength)
    return np.sign(q) * np.maximum(sizes - cut, 0.0)


def prox_squared_l21(Q: ArrayLike, strength: float) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)²``, the proximal operator of CS.

    Q is (features, components).
    """
    Q = real_array("Q", Q, 2)
    norms = np.linalg.norm(Q, axis=1)
    return _scaled(Q, norms, prox_squared_l1(norms, strength))


def _scaled(
    Q: NDArray[np.float64], old: NDArray[np.float64], new: NDArray[np.float64]
) -> NDArray[np.float64]:
    return Q * np.divide(new, old, out=np.zeros_like(old), where=old > 0)[:, None]


# ---- kernels


@jit
def sorted_cut(ascending, strength):
    """Return 2λS_θ/(1 + 2λθ), what is taken from each magnitude."""
    total = cut = 0.0
    for j in range(len(ascending)):
        value = ascending[len(ascending) - 1 - j]
        total += value
        level = 2.0 * strength * total / (1.0 + 2.0 * strength * (j + 1))
        if value <= level:
            break
        cut = level
    return cut


@jit
def select(values, strength):
    """Return the same by random pivots, in expected linear time; permutes values."""
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


def project_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest point of the simplex {θ ≥ 0, Σθ = 1} to a finite v, of any size."""
    v = real_array("v", v, 1, finite=True)
    if v.size == 0:
        raise InputError("v has no entry, and the simplex of none has no point")
    with np.errstate(over="ignore"):  # what is so far below the largest is 0
        v = v - v.max()  # a constant changes nothing, and 1 is lost beside 10¹⁶
        u = np.sort(v)[::-1]
        sums = (np.cumsum(u) - 1.0) / np.arange(1, len(u) + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)
