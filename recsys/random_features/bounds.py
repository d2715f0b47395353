"""The number of components that a random kernel map needs for a given error.

Each component of a pair's product is one draw of K(x, ω)·K(y, ω), which lies within B² of zero, where B
bounds |K(x, ω)|; D of them have a mean within ε of the kernel but with probability 2 exp(−Dε²/2B⁴)
(Hoeffding). The bound is over all rows of an ℓ1 length, and mostly far above what is needed: what a map
errs by on rows at hand is measured by its products.

Source: Atarashi et al. 2019, and Atarashi's thesis, Lemmas 4.3 and 4.5. For ANOVA kernels they have
B = R^m; Σ over m distinct features of Π|x_j| is at most R^m/m!, for which (m!)⁴ times fewer will do.
"""

from __future__ import annotations

from math import ceil, exp, factorial, log

from recsys.errors import InputError
from recsys.utils.validation import check_choice, check_integer, check_real

__all__ = ["components_for"]

KERNELS = ("anova", "all-subsets")
SMALLEST = 1e-150
MOST = 2**53  # a float beyond has no integer of its own


def components_for(
    error: float, probability: float = 0.05, kernel: str = "anova", degree: int = 2, radius: float = 1.0
) -> int:
    """Return a D from which a `RandomKernelMap` errs on a pair of rows by at least `error` seldom.

    For two rows of ℓ1 length `radius` or less, and bases drawn independently of them from the Rademacher
    distribution.

    Parameters
    ----------
    error : float > 0
        ε, of the kernel's value.
    probability : float in (0, 1)
        Of an error of ε or more.
    kernel : "anova" or "all-subsets"
    degree : int ≥ 1
        Of the ANOVA kernel.
    radius : float > 0
        R: the largest sum of absolute values of a row.

    Raises
    ------
    InputError
        For parameters out of range, or if no number of components that can be counted is enough.

    Examples
    --------
    >>> components_for(0.01), components_for(0.01, degree=3)
    (4612, 57)
    """
    check_real("error", error, 0.0, open_low=True)
    check_real("probability", probability, 0.0, 1.0, open_low=True)
    if probability == 1.0:
        raise InputError("probability must be below 1: any map errs by as much with probability 1")
    size = _size(kernel, degree, radius)
    if not SMALLEST < error:  # its square is no number, or not all of it
        share = size * size / error
        with_room = 2.0 * share * share * log(2.0 / probability)
    else:
        with_room = 2.0 * size**4 / error**2 * log(2.0 / probability) if size < 1e60 else float("inf")
    if not with_room < MOST:
        raise InputError(
            f"rows of length {radius:g} need more components than can be counted: scale them, or ask "
            "for less"
        )
    return max(1, ceil(with_room))


def _size(kernel: str, degree: int, radius: float) -> float:
    """Return B: what |K(x, ω)| is at most."""
    check_choice("kernel", kernel, KERNELS)
    check_integer("degree", degree, 1)
    radius = check_real("radius", radius, 0.0, open_low=True)
    if kernel == "all-subsets":
        return exp(min(radius, 700.0))
    try:
        return float(radius**degree) / factorial(degree)
    except OverflowError:  # of either: R^m/m! by factors
        out = 1.0
        for t in range(1, degree + 1):
            out *= radius / t
        return out
