"""The triangular inequality penalty: Ω = Σ_s K_A^m(|p_s|, 1), a bound of the interactions' ℓ1 norm.

For one entry it is an ℓ1 norm whose weight is an elementary symmetric polynomial of the other
magnitudes. Running sums over the |p_js| of a component give it. In the all-subsets model Π_j (1 +
|p_js|) replaces K_A^m.

Source: Atarashi et al. 2021, 3.3 and Theorem 3.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.fm.penalties.l1 import prox_scalar
from recsys.multilinear.forms import ALL_SUBSETS, Form
from recsys.multilinear.symmetric import elementary_polynomials, with_size, without
from recsys.optim.prox import prox_squared_l1

SWEEPS, EXACT = 200, 1e-13  # of the proximal operator above order 2: most sweeps, tolerance


def of_sizes(form: Form, sizes: np.ndarray) -> float:
    """Return Ω of one component's sizes: K_A^m(sizes, 1), or Π (1 + sizes)."""
    if form.kind == ALL_SUBSETS:
        return np.exp(np.log1p(sizes).sum())
    return elementary_polynomials(sizes, form.penalty_order)[-1]


# ---- kernels


@jit
def totals_of(kind, sizes, order):
    """Return running sums: e_1…e_(order − 1) of the magnitudes, or log Π (1 + size)."""
    if kind == ALL_SUBSETS:
        return np.full(1, np.log1p(sizes).sum())
    return elementary_polynomials(sizes, max(order - 1, 1))


@jit
def factor_without(kind, totals, sizes, j, rest):
    """Return the factor of the j-th magnitude in Ω, and fill `rest`, one longer than `totals`."""
    if kind == ALL_SUBSETS:
        return np.exp(totals[0] - np.log1p(sizes[j]))
    without(totals, sizes, j, rest)
    return rest[len(totals)]


@jit
def factors_of(kind, order, sizes):
    """Return the derivative of Ω in each magnitude, (sizes,)."""
    totals, rest = totals_of(kind, sizes, order), np.empty(max(order, 2))
    out = np.empty(len(sizes))
    for j in range(len(sizes)):
        out[j] = factor_without(kind, totals, sizes, j, rest)
    return out


@jit
def replace_size(kind, totals, sizes, j, rest, size):
    """Replace the j-th magnitude in `sizes` and `totals`; `rest` is as `factor_without` filled it."""
    if kind == ALL_SUBSETS:
        totals[0] += np.log1p(size) - np.log1p(sizes[j])
        sizes[j] = size
    else:
        with_size(totals, sizes, j, rest, size)


@jit
def descend_sizes(kind, order, sizes, cuts):
    """Apply the proximal operator of Ω + ½‖p‖² of any order, in place, entry by entry until none moves.

    With the others held fixed, the best magnitude is (a_j − c_j·factor)/(1 + c_j), down to 0. Thresholds
    c that are small beside the curvature of the penalty leave a convex problem, whose one minimum is
    found in a few sweeps. Under large ones there may be several, and the result is one that no single
    magnitude improves.
    """
    given = sizes.copy()
    rest = np.empty(max(order, 2))
    whole = given.sum()
    for _ in range(SWEEPS):
        totals = totals_of(kind, sizes, order)
        moved = 0.0
        for j in range(len(sizes)):
            if given[j] > 0.0:
                factor = factor_without(kind, totals, sizes, j, rest)
                size = max(given[j] - cuts[j] * factor, 0.0) / (1.0 + cuts[j])
                moved += abs(size - sizes[j])
                if size != sizes[j]:
                    replace_size(kind, totals, sizes, j, rest, size)
        if moved <= EXACT * whole:
            break


@jit
def deep_prox_sizes(kind, order, sizes, cuts):
    """Do as `prox_sizes` in another order than 2: −½‖p‖² joins the gradient, the rest is a prox."""
    for j in range(len(sizes)):
        sizes[j] *= 1.0 + cuts[j]
    descend_sizes(kind, order, sizes, cuts)


@jit
def prox_sizes(sizes, cuts):
    """Apply the proximal operator of ½(Σ|p|)² − ½Σp² in the metric of `cuts`, a step for each magnitude.

    The second half joins the gradient, and the first half's proximal operator takes c_j·S from each
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

    name = "ti"
    half_squares = True
    prox_scalar, prox_sizes = map(staticmethod, (prox_scalar, prox_sizes))

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum over components."""
        return float(sum(of_sizes(form, np.abs(P[:, s])) for s in range(P.shape[1])))

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the proximal operator of Ω + ½‖P‖²; in order 2 that is ½Σ_s ‖p_s‖₁²."""
        out = np.empty_like(P)
        for s in range(P.shape[1]):
            if form.deep:
                sizes, cuts = np.abs(P[:, s]), np.full(len(P), strength)
                descend_sizes(form.kind, form.penalty_order, sizes, cuts)
                out[:, s] = np.copysign(sizes, P[:, s])
            else:
                out[:, s] = prox_squared_l1(P[:, s], 0.5 * strength)
        return out

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the signs, times the symmetric polynomials of the component's others."""
        out = np.sign(P)
        for s in range(P.shape[1]):
            out[:, s] *= factors_of(form.kind, form.penalty_order, np.abs(P[:, s]))
        return out
