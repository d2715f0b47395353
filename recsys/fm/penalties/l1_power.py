"""The power of the ℓ1 norm that bounds TI: Ω = Σ_s ‖p_s‖₁^m / m!, m the order of the term.

K_A^m(|p_s|, 1) ≤ ‖p_s‖₁^m / m!, and in order 2 the two differ by ½‖p_s‖². Its proximal operator is exact
in any order, where that of K_A^m is not convex; the source takes it for the proximal solvers above order
2.

Source: Atarashi et al. 2021, 6.1.1, (45) and Theorem 9; the 1/m! is ours: γ then means what TI's does.
"""

from __future__ import annotations

import math

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.multilinear.forms import Form
from recsys.optim.prox_power import power_cuts, prox_power_l1

# ---- kernels


@jit
def prox_sizes(order, sizes, cuts):
    """Apply the proximal operator of ‖p‖₁^m / m!, with a threshold for each magnitude, in place."""
    top = 0.0
    for j in range(len(cuts)):
        top = max(top, cuts[j])
    if top > 0.0:
        power_cuts(sizes, cuts / top, np.log(top) - math.lgamma(float(order)), order)


# ---- the penalty


@PENALTIES.add("l1-power")
class L1Power(Penalty):
    """Ω = Σ_s ‖p_s‖₁^m / m!: interactions are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> L1Power.value(Form(ANOVA, 3, 1), np.array([[1.0], [-2.0], [3.0]]))  # 6³ / 6
    36.0
    """

    name = "l1-power"
    prox_sizes = staticmethod(prox_sizes)

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
