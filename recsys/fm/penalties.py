"""The penalties Ω on the tables of factorization machines, and their compiled parts.

A new penalty is a line in `PENALTIES`, a branch for its code in each function here that needs one, and
its name in the solvers that serve it.

Source: Atarashi et al. 2021, 3 and 6. The 1/m! of the powers is ours: γ then means what TI's does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, PRODUCT, Form
from recsys.multilinear.symmetric import elementary_polynomials, with_size, without

Table = NDArray[np.float64]  # (features, components)
PAIRS = Form(ANOVA, 2, 1)
L2, L1, TI, L21, CS, L1_POWER, L21_POWER, OMEGA = range(8)
SWEEPS, EXACT = 200, 1e-13  # of the operators of TI and CS above order 2: most sweeps, tolerance
STEPS = 10  # of the approximate operator of Ω_*


@dataclass(frozen=True)
class Penalty:
    """A penalty Ω on one table P of a term.

    All but Ω_* are functions of sizes: the magnitudes of each column, or the lengths of the rows.
    """

    name: str
    code: int

    @property
    def half_squares(self) -> bool:
        """Whether `prox` is of Ω + ½‖P‖², whose half joins the smooth part of the objective."""
        return self.code in (TI, CS)

    def refuses(self, form: Form) -> bool:
        """Return whether it is not defined for a term of this form."""
        return self.code == OMEGA and (form.deep or form.kind == PRODUCT)

    def _sizes(self, P: Table) -> Table:
        """Return the sizes, in columns that do not depend on each other."""
        by_row = acts_on_rows.py_func(self.code)
        return np.linalg.norm(P, axis=1, keepdims=True) if by_row else np.abs(P)

    def value(self, form: Form, P: Table) -> float:
        """Return Ω of one table of a term of this form."""
        if self.code == L2:
            return 0.0
        if self.code == OMEGA:
            W = np.abs(P @ P.T)
            return 0.5 * float(W.sum() - np.trace(W))
        sizes, m = self._sizes(P), form.penalty_order
        if self.code in (L1, L21):
            return float(sizes.sum())
        if self.code in (L1_POWER, L21_POWER):
            with np.errstate(over="ignore"):
                return float((sizes.sum(axis=0) ** m).sum()) / math.factorial(m)
        if form.kind == ALL_SUBSETS:
            return float(np.exp(np.log1p(sizes).sum(axis=0)).sum())
        return float(sum(elementary_polynomials(column.copy(), m)[-1] for column in sizes.T))

    def prox(self, P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return argmin ½‖Q − P‖² + λ(Ω(Q) + ½‖Q‖² if `half_squares`), λ = `strength`.

        Of Ω_* an approximation: the best of some sub-gradient steps of 1/(t + 1) from P (14).
        """
        if self.code != OMEGA:
            out = np.array(P)
            prox_table(self.code, form.kind, form.penalty_order, out, strength, 1.0)
            return out

        def value(R: Table) -> float:
            return 0.5 * float(((R - P) ** 2).sum()) + strength * self.value(PAIRS, R)

        Q = best = P
        for t in range(1, STEPS + 1):
            Q = Q - (Q - P + strength * self.subgradient(Q)) / (t + 1)
            best = min(best, Q, key=value)
        return best

    def subgradient(self, P: Table, form: Form = PAIRS) -> Table:
        """Return a subgradient of Ω, which is 0 for zero parameters."""
        if self.code == L2:
            return np.zeros_like(P)
        if self.code == OMEGA:
            signs = np.sign(P @ P.T)
            np.fill_diagonal(signs, 0.0)
            return np.asarray(signs @ P)
        sizes, m = self._sizes(P), form.penalty_order
        out = np.divide(P, sizes, out=np.zeros_like(P), where=sizes > 0)
        if self.code in (TI, CS):
            out *= np.column_stack([factors_of(form.kind, m, column.copy()) for column in sizes.T])
        elif self.code in (L1_POWER, L21_POWER):
            with np.errstate(over="ignore"):
                out *= sizes.sum(axis=0) ** (m - 1) / math.factorial(m - 1)
        return out


PENALTIES = {
    name: Penalty(name, code)
    for name, code in {
        "l2": L2,  # Ω = 0: ½α‖w‖² + ½β‖P‖² alone
        "l1": L1,  # ‖P‖₁: single entries of P become 0
        "l21": L21,  # Σ_j ‖p_j‖: whole features are left out
        "ti": TI,  # Σ_s K_A^m(|p_s|, 1): interactions are left out (3.3, Theorem 3)
        "cs": CS,  # K_A^m(‖p_1‖ … ‖p_d‖, 1): whole features, strong partners last (3.4, Theorem 7)
        "l1-power": L1_POWER,  # Σ_s ‖p_s‖₁^m / m!, which bounds TI (6.1.1, Theorem 9)
        "l21-power": L21_POWER,  # (Σ_j ‖p_j‖)^m / m!, which bounds CS (6.1.2, Theorem 10)
        "omega": OMEGA,  # Σ_{i<j} |⟨p_i, p_j⟩|: what TI and CS bound; O(features²) a value (9)
    }.items()
}


# ---- kernels


@jit
def acts_on_rows(penalty):
    """Return whether it sees a feature's row by its length alone, and not entry by entry."""
    return penalty == L21 or penalty == CS or penalty == L21_POWER


@jit
def prox_scalar(penalty, value, strength):
    """Return the proximal step of one entry, the others held fixed."""
    if penalty == L2:
        return value
    return np.sign(value) * max(abs(value) - strength, 0.0)


@jit
def prox_table(penalty, kind, order, P, strength, ahead):
    """Replace a table by the operator of `Penalty.prox` of `ahead` times it; returns the change."""
    features, components = P.shape
    by_row = acts_on_rows(penalty)
    sizes, new = np.empty(features), np.empty(features)
    moved = 0.0
    for s in range(1 if by_row else components):
        for j in range(features):
            if by_row:
                square = 0.0
                for c in range(components):
                    square += P[j, c] * P[j, c]
                sizes[j] = np.sqrt(square)
            else:
                sizes[j] = abs(P[j, s])
            new[j] = ahead * sizes[j]
        prox_sizes(penalty, kind, order, new, strength)
        for j in range(features):
            factor = new[j] / sizes[j] if sizes[j] > 0.0 else 0.0
            moved += abs(new[j] - sizes[j])
            for c in range(0 if by_row else s, components if by_row else s + 1):
                P[j, c] *= factor
    return moved


@jit
def prox_sizes(penalty, kind, order, sizes, cut):
    """Replace magnitudes by their joint proximal operator of this strength, in place."""
    if penalty == L1 or penalty == L21:
        for j in range(len(sizes)):
            sizes[j] = max(sizes[j] - cut, 0.0)
    elif penalty == L1_POWER or penalty == L21_POWER:
        power_cuts(sizes, cut / math.gamma(float(order)), order)
    elif penalty == TI or penalty == CS:
        if kind == ALL_SUBSETS or order > 2:
            descend_sizes(kind, order, sizes, cut)
        else:  # Ω + ½Σp² = ½(Σ|p|)² (Theorems 3 and 7)
            power_cuts(sizes, cut, 2)


@jit
def descend_sizes(kind, order, sizes, cut):
    """Apply the proximal operator of Ω + ½‖p‖² of any order, in place, entry by entry until none moves.

    With the others held fixed, the best magnitude is (a_j − cut·factor)/(1 + cut), down to 0. A small
    cut leaves a convex problem; under a large one no single magnitude improves the result.
    """
    before = sizes.copy()
    rest = np.empty(max(order, 2))
    whole = before.sum()
    for _ in range(SWEEPS):
        totals = sums_of(kind, sizes, order)
        moved = 0.0
        for j in range(len(sizes)):
            if before[j] > 0.0:
                factor = factor_of_sums(kind, totals, sizes, j, rest)
                size = max(before[j] - cut * factor, 0.0) / (1.0 + cut)
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
