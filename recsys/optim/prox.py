"""Proximal operators of the sparse penalties.

Source: Atarashi et al. 2021, Theorems 3, 7, 9 and 10 and Algorithms 2 and 3 (formulas in the design's
errata).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    return _of_rows(prox_l1, Q, strength)


def prox_squared_l1(q: ArrayLike, strength: float, method: str = "random") -> NDArray[np.float64]:
    """Return argmin ½‖p − q‖² ``+ strength·‖p‖₁²``, the proximal operator of TI.

    `method` is "random", selection in expected linear time, or "sort", in O(d log d); the results are
    the same.
    """
    q = real_array("q", q, 1)
    check_real("strength", strength, 0.0)
    check_choice("method", method, ("random", "sort"))
    sizes, total, count = np.abs(q), 0.0, 0  # what is above the cut so far
    if method == "sort":
        ranked = np.sort(sizes)[::-1]
        levels = 2.0 * strength * np.cumsum(ranked) / (1.0 + 2.0 * strength * np.arange(1, len(q) + 1))
        count = int((ranked > levels).sum())
        total = ranked[:count].sum()
    else:
        rng, left = np.random.default_rng(0), sizes
        while len(left):
            pivot = rng.choice(left)
            upper = left[left >= pivot]
            many, most = count + len(upper), total + upper.sum()
            if pivot * (1.0 + 2.0 * strength * many) > 2.0 * strength * most:
                count, total, left = many, most, left[left < pivot]
            else:
                left = left[left > pivot]
    cut = 2.0 * strength * total / (1.0 + 2.0 * strength * count)
    return np.sign(q) * np.maximum(sizes - cut, 0.0)


def prox_squared_l21(Q: ArrayLike, strength: float) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)²``, the proximal operator of CS.

    Q is (features, components).
    """
    return _of_rows(prox_squared_l1, Q, strength)


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
    power_cuts(sizes, strength * order, order)
    return np.copysign(sizes, q)


def prox_power_l21(Q: ArrayLike, strength: float, order: int) -> NDArray[np.float64]:
    """Return argmin ½‖P − Q‖² ``+ strength·(Σ_j ‖p_j‖)^order`` over the rows of Q.

    Source: Atarashi et al. 2021, Theorem 10.
    """
    return _of_rows(prox_power_l1, Q, strength, order)


def _of_rows(operator: Callable[..., Any], Q: ArrayLike, *options: Any) -> NDArray[np.float64]:
    """Apply an operator to the lengths of the rows, which keep their direction."""
    Q = real_array("Q", Q, 2)
    norms = np.linalg.norm(Q, axis=1)
    lengths = operator(norms, *options)
    return Q * np.divide(lengths, norms, out=np.zeros_like(norms), where=norms > 0)[:, None]


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
def power_cuts(sizes, cut, order):
    """Take ``cut·S^(order − 1)`` from each magnitude, down to 0, in place; S is the sum of the rest.

    Those that lose all of themselves leave one after the other, and S rises.
    """
    r = order - 1.0
    kept = sizes > 0.0
    while True:
        total, count = 0.0, 0
        for j in range(len(sizes)):
            if kept[j]:
                total += sizes[j]
                count += 1
        S = total
        if (
            cut > 0.0 and count > 0 and order > 1
        ):  # S + count·cut·S^r = total by Newton's method, falling
            S = min(total, (total / (count * cut)) ** (1.0 / r))
            for _ in range(200):
                power = count * cut * S ** (r - 1.0)
                step = (S + power * S - total) / (1.0 + r * power)
                S -= step
                if step <= 1e-16 * S:
                    break
        changed = False
        for j in range(len(sizes)):
            if kept[j] and sizes[j] <= cut * S**r:
                kept[j] = False
                changed = True
        if not changed:
            break
    for j in range(len(sizes)):
        sizes[j] = max(sizes[j] - cut * S**r, 0.0) if kept[j] else 0.0
