"""The sum of absolute values: Ω = ‖P‖₁."""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.multilinear.forms import Form
from recsys.optim.prox import prox_l1

# ---- kernels


@jit
def prox_scalar(value, strength):
    """Return the soft-thresholded value."""
    return np.sign(value) * max(abs(value) - strength, 0.0)


@jit
def prox_sizes(sizes, cuts):
    """Subtract its threshold from each magnitude, down to 0."""
    for j in range(len(sizes)):
        sizes[j] = max(sizes[j] - cuts[j], 0.0)


# ---- the penalty


@PENALTIES.add("l1")
class L1(Penalty):
    """Ω = ‖P‖₁: single entries of P become 0.

    Examples
    --------
    >>> import numpy as np
    >>> L1.prox(np.array([[3.0, -0.5]]), 1.0)
    array([[ 2., -0.]])
    """

    name = "l1"
    prox_scalar, prox_sizes = map(staticmethod, (prox_scalar, prox_sizes))

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
