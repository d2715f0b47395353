"""The projection onto the simplex, and the joint shrinkage of magnitudes under powers of their sum.

Source: Atarashi et al. 2021, Theorems 3, 7, 9 and 10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit


def project_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest point of the simplex {θ ≥ 0, Σθ = 1} to a finite v, of any size."""
    with np.errstate(over="ignore"):  # what is so far below the largest is 0
        v = v - v.max()  # a constant changes nothing, and 1 is lost beside 10¹⁶
        u = np.sort(v)[::-1]
        sums = (np.cumsum(u) - 1.0) / np.arange(1, len(u) + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)


# ---- kernels


@jit
def power_cuts(sizes, cut, order):
    """Replace sizes ≥ 0 by argmin ½‖p − sizes‖² + cut/order·(Σp)^order over p ≥ 0.

    Each loses ``cut·S^(order − 1)``, down to 0, with S the sum of what is left. Those that lose all of
    themselves leave one after the other, and S rises.
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
        if cut > 0.0 and count > 0 and order > 1:
            # S + count·cut·S^r = total by Newton's method, falling
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
