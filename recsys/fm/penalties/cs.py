"""The Cauchy–Schwarz penalty: Ω = K_A^m of the rows' lengths, a bound of the interactions' ℓ1 norm.

It is TI with the length of a feature's row in place of |p_js|, and has its running sums.

Source: Atarashi et al. 2021, 3.4 and Theorem 7.
"""

from __future__ import annotations

import numpy as np

from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.fm.penalties.l21 import L21, prox_row
from recsys.fm.penalties.ti import descend_sizes, factors_of, of_sizes, prox_sizes
from recsys.multilinear.forms import Form
from recsys.optim.prox import prox_squared_l21


@PENALTIES.add("cs")
class CS(Penalty):
    """Ω = K_A^m(‖p_1‖ … ‖p_d‖, 1): whole features are left out, those with strong partners last.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> CS.value(Form(ANOVA, 2, 1), np.array([[3.0, 4.0], [0.0, 2.0]]))
    10.0
    """

    name = "cs"
    half_squares = True
    prox_row, prox_sizes = map(staticmethod, (prox_row, prox_sizes))

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return Ω of the rows' lengths."""
        return float(of_sizes(form, np.sqrt((P * P).sum(axis=1))))

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the proximal operator of Ω + ½‖P‖²; in order 2 that is ½(Σ_j ‖p_j‖)²."""
        if not form.deep:
            return prox_squared_l21(P, 0.5 * strength)
        norms = np.linalg.norm(P, axis=1)
        sizes = norms.copy()
        descend_sizes(form.kind, form.penalty_order, sizes, np.full(len(P), strength))
        return P * np.divide(sizes, norms, out=np.zeros_like(norms), where=norms > 0)[:, None]

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the rows at unit length, times the symmetric polynomials of the others' lengths."""
        norms = np.sqrt((P * P).sum(axis=1))
        return L21.subgradient(P) * factors_of(form.kind, form.penalty_order, norms)[:, None]
