"""Dispatch of compiled code over the penalties, by one chain of integer codes.

The solvers are compiled once, for any penalty, and numba keeps them on disk: an integer picks the branch
at run time. A class or a function for each penalty (skglm's way, by jitclasses) would compile every
solver again for every penalty, in every process, as numba caches neither. So a penalty of this package
has its compiled parts in its own file and a branch here in each function that it offers. Its code is its
position in `CHAIN`: it is not chosen by hand, and is the same in every process, as the disk cache needs.
A code without a branch gives NaN, which makes every fit fail.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import cs, l1, l1_power, l2, l21, l21_power, ti
from recsys.fm.penalties.base import Penalty
from recsys.multilinear.forms import ALL_SUBSETS

__all__ = [
    "CHAIN", "L2", "acts_on_rows", "code_of", "factor_without", "has_totals", "prox_row", "prox_scalar",
    "prox_sizes", "replace_size", "totals_of", "vanishes",
]  # fmt: skip

CHAIN: tuple[type[Penalty], ...] = (
    l2.L2, l1.L1, ti.TI, l21.L21, cs.CS, l1_power.L1Power, l21_power.L21Power,
)  # fmt: skip
L2, L1, TI, L21, CS, L1_POWER, L21_POWER = range(len(CHAIN))


def code_of(penalty: Penalty) -> int:
    """Return the code of a penalty of this package; −1, which has no branch, of one without any."""
    return CHAIN.index(type(penalty)) if type(penalty) in CHAIN else -1


# ---- kernels


@jit
def acts_on_rows(penalty):
    """Return whether it sees a feature's row by its length alone, and not entry by entry."""
    return penalty == L21 or penalty == CS or penalty == L21_POWER


@jit
def vanishes(penalty):
    """Return whether it is 0: nothing is to be done for it."""
    return penalty == L2


@jit
def has_totals(penalty):
    """Return whether the threshold of one magnitude depends on the others, through running sums."""
    return penalty == TI or penalty == CS


@jit
def prox_scalar(penalty, value, strength):
    """Return the proximal step of one entry."""
    if penalty == L2:
        return l2.prox_scalar(value, strength)
    if penalty == L1:
        return l1.prox_scalar(value, strength)
    if penalty == TI:
        return l1.prox_scalar(value, strength)
    return np.nan


@jit
def prox_row(penalty, norm, strength):
    """Return the factor of a row of that norm."""
    if penalty == L21 or penalty == CS:
        return l21.prox_row(norm, strength)
    if penalty == L2:
        return l2.prox_row(norm, strength)
    return np.nan


@jit
def prox_sizes(penalty, kind, order, sizes, cuts):
    """Replace magnitudes by their joint proximal operator, with a threshold for each, in place."""
    if penalty == L1 or penalty == L21:
        l1.prox_sizes(sizes, cuts)
    elif penalty == L1_POWER or penalty == L21_POWER:
        l1_power.prox_sizes(order, sizes, cuts)
    elif penalty == TI or penalty == CS:
        if kind == ALL_SUBSETS or order > 2:
            ti.deep_prox_sizes(kind, order, sizes, cuts)
        else:
            ti.prox_sizes(sizes, cuts)
    elif penalty != L2:
        sizes[:] = np.nan


@jit
def totals_of(penalty, kind, sizes, order):
    """Return the running sums of the magnitudes, in a form of this kind and order."""
    if penalty == TI or penalty == CS:
        return ti.totals_of(kind, sizes, order)
    return np.zeros(1)


@jit
def factor_without(penalty, kind, totals, sizes, j, rest):
    """Return the factor of the j-th magnitude in Ω, 1 where it does not depend on the others."""
    if penalty == TI or penalty == CS:
        return ti.factor_without(kind, totals, sizes, j, rest)
    return 1.0


@jit
def replace_size(penalty, kind, totals, sizes, j, rest, size):
    """Replace the j-th magnitude in `sizes` and `totals`; `rest` is as `factor_without` filled it."""
    if penalty == TI or penalty == CS:
        ti.replace_size(kind, totals, sizes, j, rest, size)
