"""Where compiled code asks a penalty: one chain of integer codes over all of them.

The solvers are compiled once, for any penalty, and numba keeps them on disk: an integer picks the branch
at run time. A class or a function for each penalty (skglm's way, by jitclasses) would compile every
solver again for every penalty, in every process, as numba caches neither. So a new penalty has its
compiled parts in its own file and a branch here in each function that it offers; the rest of its file is
found by itself. A code without a branch gives NaN, which no fit survives unnoticed.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import cs, l1, l1_power, l2, l21, l21_power, ti
from recsys.multilinear.forms import ALL_SUBSETS

__all__ = [
    "L2", "acts_on_rows", "factor_without", "has_totals", "prox_row", "prox_scalar", "prox_sizes",
    "replace_size", "totals_of",
]  # fmt: skip

L2, L1, TI, L21, CS = l2.CODE, l1.CODE, ti.CODE, l21.CODE, cs.CODE
L1_POWER, L21_POWER = l1_power.CODE, l21_power.CODE

# ---- kernels


@jit
def acts_on_rows(penalty):
    """Return whether it sees a feature's row by its length alone, and not entry by entry."""
    return penalty == L21 or penalty == CS or penalty == L21_POWER


@jit
def has_totals(penalty):
    """Return whether its strength on one size depends on the others, through running totals."""
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
    """Return what a row of that length is multiplied by."""
    if penalty == L21 or penalty == CS:
        return l21.prox_row(norm, strength)
    if penalty == L2:
        return l2.prox_row(norm, strength)
    return np.nan


@jit
def prox_sizes(penalty, kind, order, sizes, cuts):
    """Put the sizes after the operator of all of them, with a strength for each, in their place."""
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
    """Return the running totals of the sizes, in a form of this kind and order."""
    if penalty == TI or penalty == CS:
        return ti.totals_of(kind, sizes, order)
    return np.zeros(1)


@jit
def factor_without(penalty, kind, totals, sizes, j, rest):
    """Return what multiplies the j-th size in Ω, 1 where it does not depend on the others."""
    if penalty == TI or penalty == CS:
        return ti.factor_without(kind, totals, sizes, j, rest)
    return 1.0


@jit
def replace_size(penalty, kind, totals, sizes, j, rest, size):
    """Put a size in the j-th place of sizes and totals; `rest` is what `factor_without` filled."""
    if penalty == TI or penalty == CS:
        ti.replace_size(kind, totals, sizes, j, rest, size)
