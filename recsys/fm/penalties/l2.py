"""No penalty beyond the squared norms that every model has: Ω = 0."""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.multilinear.forms import Form

# ---- kernels


@jit
def prox_scalar(value, strength):
    """Return the value."""
    return value


@jit
def prox_row(norm, strength):
    """Return 1: the row stays."""
    return 1.0


@jit
def prox_sizes(sizes, cuts):
    """Leave the sizes as they are."""


# ---- the penalty


@PENALTIES.add("l2")
class L2(Penalty):
    """Ω = 0: ½α‖w‖² + ½β‖P‖² alone.

    Examples
    --------
    >>> import numpy as np
    >>> from recsys.multilinear import ANOVA, Form
    >>> L2.value(Form(ANOVA, 2, 1), np.ones((3, 2)))
    0.0
    """

    name = "l2"
    vanishes = True
    prox_scalar, prox_row, prox_sizes = map(staticmethod, (prox_scalar, prox_row, prox_sizes))

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
