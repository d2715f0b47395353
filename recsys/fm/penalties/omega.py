"""The ℓ1 norm of the interactions themselves: Ω_* = Σ_{i<j} |⟨p_i, p_j⟩|, for pairs of features.

Source: Atarashi et al. 2021, (9) and 3.2.
"""

from __future__ import annotations

import numpy as np

from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.multilinear.forms import Form

STEPS = 10  # of the approximate proximal operator


@PENALTIES.add("omega")
class Omega(Penalty):
    """Ω_* = Σ_{i<j} |⟨p_i, p_j⟩|: what TI and CS bound. O(features²) a value.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> Omega.value(Form(ANOVA, 2, 1), np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0]]))
    4.0
    """

    name = "omega"
    pairs_only = True

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
        return signs @ P

    @staticmethod
    def prox_approximate(P: Table, strength: float, form: Form = PAIRS) -> Table:
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
