"""The power of the ℓ2,1 norm that bounds CS: Ω = (Σ_j ‖p_j‖)^m / m!, m the order of the term.

Source: Atarashi et al. 2021, 6.1.2, (51) and Theorem 10; the 1/m! is ours, as in `l1_power`.
"""

from __future__ import annotations

import math

import numpy as np

from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.fm.penalties.l1_power import prox_sizes
from recsys.fm.penalties.l21 import L21
from recsys.multilinear.forms import Form
from recsys.optim.prox_power import prox_power_l21


@PENALTIES.add("l21-power")
class L21Power(Penalty):
    """Ω = (Σ_j ‖p_j‖)^m / m!: whole features are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> L21Power.value(Form(ANOVA, 3, 1), np.array([[3.0, 4.0], [0.0, 1.0]]))  # 6³ / 6
    36.0
    """

    name = "l21-power"
    prox_sizes = staticmethod(prox_sizes)

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the power of the sum of the rows' lengths."""
        m = form.penalty_order
        with np.errstate(over="ignore"):
            return float(np.sqrt((P * P).sum(axis=1)).sum() ** m) / math.factorial(m)

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
            strength = np.sqrt((P * P).sum(axis=1)).sum() ** (m - 1) / math.factorial(m - 1)
        return L21.subgradient(P) * strength
