"""The penalties Ω on the tables of factorization machines, and their compiled parts.

A solver is compiled once for all penalties: an integer code picks the branch, for numba keeps that on
disk. A new penalty is a class here, and a branch in each function of what its class says it has. A code
without a branch gives NaN, which makes every fit fail.

Source: Atarashi et al. 2021, 3 and 6. The 1/m! of the powers is ours: γ then means what TI's does.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, PRODUCT, Form
from recsys.multilinear.symmetric import elementary_polynomials, with_size, without
from recsys.optim.prox import (
    power_cuts,
    prox_l1,
    prox_l21,
    prox_power_l1,
    prox_power_l21,
    prox_squared_l1,
    prox_squared_l21,
)
from recsys.registry import Registry

__all__ = ["PENALTIES", "Penalty", "as_penalty", "code_of", "penalties"]

Table = NDArray[np.float64]  # (features, components)
PAIRS = Form(ANOVA, 2, 1)
L2, L1, TI, L21, CS, L1_POWER, L21_POWER = range(7)
SWEEPS, EXACT = 200, 1e-13  # of the operators of TI and CS above order 2: most sweeps, tolerance
STEPS = 10  # of the approximate operator of Ω_*


class Penalty:
    """A penalty Ω on one table P of a term. A solver serves those that have what it requires.

    Attributes
    ----------
    code : int
        Of the branches in the compiled functions.
    prox_scalar, prox_row, prox_sizes : bool
        Whether there is a branch for one entry, for one row, and for all magnitudes of a column or all
        norms of rows at once.
    has_prox : bool
        Whether `prox` is exact.
    """

    name: ClassVar[str]
    code: ClassVar[int] = -1
    prox_scalar: ClassVar[bool] = False
    prox_row: ClassVar[bool] = False
    prox_sizes: ClassVar[bool] = True
    has_prox: ClassVar[bool] = True
    vanishes: ClassVar[bool] = False  # Ω = 0: nothing beyond the squared norms of every model
    half_squares: ClassVar[bool] = False  # `prox` is of Ω + ½‖P‖², whose half joins the smooth part
    pairs_only: ClassVar[bool] = False  # defined for pairs of features of one table alone

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return Ω of one table of a term of this form."""
        raise NotImplementedError

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return argmin ½‖Q − P‖² + λ(Ω(Q) + ½‖Q‖² if `half_squares`), λ = `strength`."""
        raise NotImplementedError

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return one subgradient of Ω, with 0 for what is 0."""
        raise NotImplementedError

    @classmethod
    def offers(cls, required: tuple[str, ...]) -> bool:
        """Return whether it has all of these."""
        return all(getattr(cls, ability) for ability in required)

    @classmethod
    def limit(cls, form: Form) -> str:
        """Return why it is not defined for a term of this form, or nothing."""
        if cls.pairs_only and (form.deep or form.kind == PRODUCT):
            return f"penalty {cls.name!r} beyond pairs of features"
        return ""


PENALTIES: Registry[type[Penalty]] = Registry("penalty")


def as_penalty(name: str) -> Penalty:
    """Return the penalty of a name."""
    return PENALTIES.get(name)()


def penalties() -> list[type[Penalty]]:
    """Return all penalties, by their names; the one that vanishes first."""
    known = [PENALTIES.get(name) for name in PENALTIES.names()]
    return sorted(known, key=lambda kind: not kind.vanishes)


def code_of(penalty: Penalty) -> int:
    """Return the code of a penalty; −1, which has no branch, of one without any."""
    return penalty.code


def norms_of(P: Table) -> NDArray[np.float64]:
    """Return the lengths of the rows."""
    return np.asarray(np.sqrt((P * P).sum(axis=1)))


def unit_rows(P: Table) -> Table:
    """Return the rows at unit length; zeros stay."""
    norms = np.linalg.norm(P, axis=1, keepdims=True)
    return np.divide(P, norms, out=np.zeros_like(P), where=norms > 0)


def of_sizes(form: Form, sizes: NDArray[np.float64]) -> float:
    """Return K_A^m(sizes, 1), or Π (1 + sizes) for all subsets."""
    if form.kind == ALL_SUBSETS:
        return float(np.exp(np.log1p(sizes).sum()))
    return float(elementary_polynomials(sizes, form.penalty_order)[-1])


@PENALTIES.add("l2")
class NoPenalty(Penalty):
    """Ω = 0: ½α‖w‖² + ½β‖P‖² alone."""

    name, code = "l2", L2
    vanishes = prox_scalar = prox_row = True

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return 0."""
        return 0.0

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return P."""
        return P

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return zeros."""
        return np.zeros_like(P)


@PENALTIES.add("l1")
class EntryPenalty(Penalty):
    """Ω = ‖P‖₁: single entries of P become 0."""

    name, code = "l1", L1
    prox_scalar = True

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return ‖P‖₁."""
        return float(np.abs(P).sum())

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the soft threshold of each entry."""
        return prox_l1(P, strength)

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the signs."""
        return np.sign(P)


@PENALTIES.add("l21")
class RowPenalty(Penalty):
    """Ω = Σ_j ‖p_j‖: whole features are left out."""

    name, code = "l21", L21
    prox_row = True

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum of the rows' lengths."""
        return float(norms_of(P).sum())

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the rows, each shortened by `strength`."""
        return prox_l21(P, strength)

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the rows at unit length; zeros stay."""
        return unit_rows(P)


@PENALTIES.add("ti")
class TriangularInequality(Penalty):
    """Ω = Σ_s K_A^m(|p_s|, 1), which bounds the interactions' ℓ1 norm: interactions are left out.

    Source: Atarashi et al. 2021, 3.3 and Theorem 3.
    """

    name, code = "ti", TI
    half_squares = prox_scalar = True

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


@PENALTIES.add("cs")
class CauchySchwarz(Penalty):
    """Ω = K_A^m(‖p_1‖ … ‖p_d‖, 1): whole features are left out, those with strong partners last.

    Source: Atarashi et al. 2021, 3.4 and Theorem 7.
    """

    name, code = "cs", CS
    half_squares = prox_row = True

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return Ω of the rows' lengths."""
        return of_sizes(form, norms_of(P))

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the proximal operator of Ω + ½‖P‖²; in order 2 that is ½(Σ_j ‖p_j‖)²."""
        if not form.deep:
            return prox_squared_l21(P, 0.5 * strength)
        sizes = np.linalg.norm(P, axis=1)
        descend_sizes(form.kind, form.penalty_order, sizes, np.full(len(P), strength))
        return unit_rows(P) * sizes[:, None]

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the rows at unit length, times the symmetric polynomials of the others' lengths."""
        factors = factors_of(form.kind, form.penalty_order, norms_of(P))
        return unit_rows(P) * factors[:, None]


@PENALTIES.add("l1-power")
class EntryPower(Penalty):
    """Ω = Σ_s ‖p_s‖₁^m / m!, which bounds TI: interactions are left out.

    Source: Atarashi et al. 2021, 6.1.1, (45) and Theorem 9.
    """

    name, code = "l1-power", L1_POWER

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum over components."""
        m = form.penalty_order
        with np.errstate(over="ignore"):
            return float((np.abs(P).sum(axis=0) ** m).sum()) / math.factorial(m)

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the proximal operator, column by column."""
        m = form.penalty_order
        columns = [prox_power_l1(P[:, s], strength / math.factorial(m), m) for s in range(P.shape[1])]
        return np.column_stack(columns)

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the signs, times ‖p_s‖₁^(m − 1) / (m − 1)!."""
        m = form.penalty_order
        with np.errstate(over="ignore"):
            return np.sign(P) * (np.abs(P).sum(axis=0) ** (m - 1) / math.factorial(m - 1))


@PENALTIES.add("l21-power")
class RowPower(Penalty):
    """Ω = (Σ_j ‖p_j‖)^m / m!, which bounds CS: whole features are left out.

    Source: Atarashi et al. 2021, 6.1.2, (51) and Theorem 10.
    """

    name, code = "l21-power", L21_POWER

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the power of the sum of the rows' lengths."""
        m = form.penalty_order
        with np.errstate(over="ignore"):
            return float(norms_of(P).sum() ** m) / math.factorial(m)

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the proximal operator: rows keep their direction."""
        m = form.penalty_order
        return prox_power_l21(P, strength / math.factorial(m), m)

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the rows at unit length, times (Σ_j ‖p_j‖)^(m − 1) / (m − 1)!."""
        m = form.penalty_order
        with np.errstate(over="ignore"):
            return unit_rows(P) * (norms_of(P).sum() ** (m - 1) / math.factorial(m - 1))


@PENALTIES.add("omega")
class Omega(Penalty):
    """Ω_* = Σ_{i<j} |⟨p_i, p_j⟩|: what TI and CS bound. O(features²) a value.

    Source: Atarashi et al. 2021, (9) and 3.2.
    """

    name = "omega"
    pairs_only = True
    prox_sizes = has_prox = False

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum of the pairs' absolute weights."""
        W = P @ P.T
        return 0.5 * float(np.abs(W).sum() - np.abs(np.diag(W)).sum())

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return (sign(PPᵀ) without its diagonal)·P."""
        signs = np.sign(P @ P.T)
        np.fill_diagonal(signs, 0.0)
        return np.asarray(signs @ P)

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return an approximate proximal operator: sub-gradient steps of 1/(t + 1) from P (14)."""
        Q = P
        P, best = Q.copy(), Q

        def value(R: Table) -> float:
            return 0.5 * float(((R - Q) ** 2).sum()) + strength * Omega.value(form, R)

        lowest = value(Q)
        for t in range(1, STEPS + 1):
            P = P - (P - Q + strength * Omega.subgradient(P)) / (t + 1)
            now = value(P)
            if now < lowest:
                lowest, best = now, P.copy()
        return best


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
    """Return the proximal step of one entry, the others held fixed."""
    if penalty == L2:
        return value
    if penalty == L1 or penalty == TI:
        return np.sign(value) * max(abs(value) - strength, 0.0)
    return np.nan


@jit
def prox_row(penalty, norm, strength):
    """Return the factor of a row of that norm, the others held fixed."""
    if penalty == L21 or penalty == CS:
        return max(0.0, 1.0 - strength / norm) if norm > 0.0 else 0.0
    if penalty == L2:
        return 1.0
    return np.nan


@jit
def prox_sizes(penalty, kind, order, sizes, cuts):
    """Replace magnitudes by their joint proximal operator, with a threshold for each, in place."""
    if penalty == L1 or penalty == L21:
        for j in range(len(sizes)):
            sizes[j] = max(sizes[j] - cuts[j], 0.0)
    elif penalty == L1_POWER or penalty == L21_POWER:
        power_cuts(sizes, cuts / math.gamma(float(order)), order)
    elif penalty == TI or penalty == CS:
        if kind == ALL_SUBSETS or order > 2:  # −½‖p‖² joins the gradient, the rest is a prox
            for j in range(len(sizes)):
                sizes[j] *= 1.0 + cuts[j]
            descend_sizes(kind, order, sizes, cuts)
        else:
            square_sizes(sizes, cuts)
    elif penalty != L2:
        sizes[:] = np.nan


@jit
def square_sizes(sizes, cuts):
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
        totals = sums_of(kind, sizes, order)
        moved = 0.0
        for j in range(len(sizes)):
            if given[j] > 0.0:
                factor = factor_of_sums(kind, totals, sizes, j, rest)
                size = max(given[j] - cuts[j] * factor, 0.0) / (1.0 + cuts[j])
                moved += abs(size - sizes[j])
                if size != sizes[j]:
                    replace_in_sums(kind, totals, sizes, j, rest, size)
        if moved <= EXACT * whole:
            break


@jit
def factors_of(kind, order, sizes):
    """Return the derivative of K_A^m(sizes, 1), or of Π (1 + size), in each magnitude."""
    totals, rest = sums_of(kind, sizes, order), np.empty(max(order, 2))
    out = np.empty(len(sizes))
    for j in range(len(sizes)):
        out[j] = factor_of_sums(kind, totals, sizes, j, rest)
    return out


@jit
def sums_of(kind, sizes, order):
    """Return e_1…e_(order − 1) of the magnitudes, or log Π (1 + size)."""
    if kind == ALL_SUBSETS:
        return np.full(1, np.log1p(sizes).sum())
    return elementary_polynomials(sizes, max(order - 1, 1))


@jit
def factor_of_sums(kind, totals, sizes, j, rest):
    """Return the factor of the j-th magnitude in Ω, and fill `rest`, one longer than `totals`."""
    if kind == ALL_SUBSETS:
        return np.exp(totals[0] - np.log1p(sizes[j]))
    without(totals, sizes, j, rest)
    return rest[len(totals)]


@jit
def replace_in_sums(kind, totals, sizes, j, rest, size):
    """Replace the j-th magnitude in `sizes` and `totals`; `rest` is as `factor_of_sums` filled it."""
    if kind == ALL_SUBSETS:
        totals[0] += np.log1p(size) - np.log1p(sizes[j])
        sizes[j] = size
    else:
        with_size(totals, sizes, j, rest, size)


@jit
def totals_of(penalty, kind, sizes, order):
    """Return the running sums of the magnitudes, in a form of this kind and order."""
    if has_totals(penalty):
        return sums_of(kind, sizes, order)
    return np.zeros(1)


@jit
def factor_without(penalty, kind, totals, sizes, j, rest):
    """Return the factor of the j-th magnitude in Ω, 1 where it does not depend on the others."""
    if has_totals(penalty):
        return factor_of_sums(kind, totals, sizes, j, rest)
    return 1.0


@jit
def replace_size(penalty, kind, totals, sizes, j, rest, size):
    """Replace the j-th magnitude in `sizes` and `totals`; `rest` is as `factor_without` filled it."""
    if has_totals(penalty):
        replace_in_sums(kind, totals, sizes, j, rest, size)
