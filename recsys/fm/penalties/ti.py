"""The triangular inequality penalty: Ω = Σ_s K_A^m(|p_s|, 1), a bound of the interactions' ℓ1 norm.

Seen from one entry it is an ℓ1 norm whose strength is the symmetric polynomial of the others: running
totals of the |p_js| of a component give it. In the all-subsets model Π_j (1 + |p_js|) takes the place of
K_A^m.

Source: Atarashi et al. 2021, 3.3 and Theorem 3.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PENALTIES, Penalty, Table
from recsys.fm.penalties.l1 import prox_scalar
from recsys.multilinear.forms import ALL_SUBSETS, Form
from recsys.multilinear.symmetric import symmetric_polynomials, with_size, without
from recsys.optim.prox import prox_squared_l1

CODE = 2


def of_sizes(form: Form, sizes: np.ndarray) -> float:
    """Return Ω of one component's sizes: K_A^m(sizes, 1), or Π (1 + sizes)."""
    if form.kind == ALL_SUBSETS:
        return np.exp(np.log1p(sizes).sum())
    return symmetric_polynomials(sizes, form.penalty_order)[-1]


# ---- kernels


@jit
def totals_of(kind, sizes, order):
    """Return running totals: e_1…e_(order − 1) of the sizes, or log Π (1 + size)."""
    if kind == ALL_SUBSETS:
        return np.full(1, np.log1p(sizes).sum())
    return symmetric_polynomials(sizes, max(order - 1, 1))


@jit
def factor_without(kind, totals, sizes, j, rest):
    """Return what multiplies the j-th size in Ω, and fill `rest`, one longer than `totals`."""
    if kind == ALL_SUBSETS:
        return np.exp(totals[0] - np.log1p(sizes[j]))
    without(totals, sizes, j, rest)
    return rest[len(totals)]


@jit
def replace_size(kind, totals, sizes, j, rest, size):
    """Put a size in the j-th place of sizes and totals; `rest` is what `factor_without` filled."""
    if kind == ALL_SUBSETS:
        totals[0] += np.log1p(size) - np.log1p(sizes[j])
        sizes[j] = size
    else:
        with_size(totals, sizes, j, rest, size)


@jit
def prox_sizes(sizes, cuts):
    """Take the operator of ½(Σ|p|)² − ½Σp² in the metric of the cuts, which have a step for each size.

    The second half joins the gradient, and the first half's operator takes c_j·S from each
    (1 + c_j)·|p_j|, where S is the sum of what is left (Atarashi et al. 2021, Theorems 3 and 7).
    """
    left = -1.0  # S, by Newton's method on a concave increasing function, from below: finite, exact
    while True:
        top, bottom = 0.0, 1.0
        for j in range(len(sizes)):
            if (1.0 + cuts[j]) * sizes[j] > cuts[j] * left:
                top += (1.0 + cuts[j]) * sizes[j]
                bottom += cuts[j]
        if top / bottom <= left:
            break
        left = top / bottom
    for j in range(len(sizes)):
        sizes[j] = max((1.0 + cuts[j]) * sizes[j] - cuts[j] * left, 0.0)


# ---- the penalty


@PENALTIES.add("ti")
class TI(Penalty):
    """Ω = Σ_s K_A^m(|p_s|, 1): interactions are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> TI.value(Form(ANOVA, 2, 1), np.array([[1.0], [-2.0], [3.0]]))  # 2 + 3 + 6
    11.0
    """

    name, code = "ti", CODE
    half_squares = True
    order_two_only = ("prox", "prox_approximate", "prox_sizes")
    prox_scalar, prox_sizes = map(staticmethod, (prox_scalar, prox_sizes))

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum over components."""
        return float(sum(of_sizes(form, np.abs(P[:, s])) for s in range(P.shape[1])))

    @staticmethod
    def prox(P: Table, strength: float) -> Table:
        """Return the operator of ½Σ_s ‖p_s‖₁², which is Ω + ½‖P‖² for order 2."""
        out = np.empty_like(P)
        for s in range(P.shape[1]):
            out[:, s] = prox_squared_l1(P[:, s], 0.5 * strength)
        return out
