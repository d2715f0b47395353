"""The sum of the lengths of the rows: Ω = Σ_j ‖p_j‖."""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.base import PAIRS, PENALTIES, Penalty, Table
from recsys.fm.penalties.l1 import prox_sizes
from recsys.multilinear.forms import Form
from recsys.optim.prox import prox_l21

# ---- kernels


@jit
def prox_row(norm, strength):
    """Return the factor of a row of that norm, which is shortened by `strength`, down to 0."""
    return max(0.0, 1.0 - strength / norm) if norm > 0.0 else 0.0


# ---- the penalty


@PENALTIES.add("l21")
class L21(Penalty):
    """Ω = Σ_j ‖p_j‖: whole features are left out.

    Examples
    --------
    >>> import numpy as np
    >>> L21.prox(np.array([[3.0, 4.0], [0.1, 0.1]]), 1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    name = "l21"
    prox_row, prox_sizes = map(staticmethod, (prox_row, prox_sizes))

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return the sum of the rows' lengths."""
        return float(np.sqrt((P * P).sum(axis=1)).sum())

    @staticmethod
    def prox(P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return the rows, each shortened by `strength`."""
        return prox_l21(P, strength)

    @staticmethod
    def subgradient(P: Table, form: Form = PAIRS) -> Table:
        """Return the rows at unit length; zeros stay."""
        norms = np.linalg.norm(P, axis=1, keepdims=True)
        return np.divide(P, norms, out=np.zeros_like(P), where=norms > 0)
