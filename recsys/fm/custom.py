"""Penalties and losses that a user defines, in a file of the user's own.

A penalty of single entries or of rows needs its value and its proximal operator; a loss needs its value,
its derivative and a bound of its curvature. The functions may be plain Python of numbers, or compiled
by numba. Their parameters arrive as an array, so that another value of a parameter compiles nothing.
What calls them is compiled again for each class of penalty or loss, once in a process.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from recsys._jit import jit
from recsys._specialised import Replacements, compiled
from recsys.errors import InputError
from recsys.fm.penalties import chain
from recsys.fm.penalties.base import PAIRS, Penalty, Table, parameters_of
from recsys.multilinear import losses
from recsys.multilinear.forms import Form
from recsys.multilinear.losses import LOSSES, Loss

__all__ = [
    "CustomLoss",
    "SeparablePenalty",
    "as_loss",
    "loss_argument",
    "penalty_argument",
    "replacements",
]


class SeparablePenalty(Penalty):
    """A penalty that is a sum over entries of P, or over its rows (features), for users to define.

    A subclass has a constructor with numeric parameters, as scikit-learn's estimators have, `value`, and
    one of `prox_scalar` and `prox_row`. All other proximal operators follow. With `prox_scalar` the
    solvers "cd", "relational", "sgd", "adagrad", "psgd", "fista", "nmapgd" and "katyusha" take it, with
    `prox_row` "block" in place of the first two.

    Attributes
    ----------
    prox_scalar : static method
        ``prox_scalar(value, strength, parameters)``: argmin over q of ½(q − value)² ``+ strength·ω(q)``,
        for one entry; symmetric about 0. `parameters` is a float64 array in the order of the
        constructor.
    prox_row : static method
        ``prox_row(norm, strength, parameters)``: the factor of a row of that length.

    Examples
    --------
    >>> import numpy as np
    >>> class Hard(SeparablePenalty):  # the number of entries, times a weight
    ...     def __init__(self, weight=1.0):
    ...         self.weight = weight
    ...     def value(self, form, P):
    ...         return self.weight * float(np.count_nonzero(P))
    ...     @staticmethod
    ...     def prox_scalar(value, strength, parameters):
    ...         return value if value * value > 2.0 * strength * parameters[0] else 0.0
    >>> Hard(weight=2.0).prox(np.array([[3.0, -1.0]]), 1.0)
    array([[ 3., -0.]])
    """

    def __init_subclass__(cls) -> None:
        """Derive the proximal operators of columns and tables from that of one entry or one row."""
        super().__init_subclass__()
        own = cls.prox_scalar or cls.prox_row
        if own is None or (cls.prox_scalar and cls.prox_row):
            raise InputError(f"penalty {cls.__name__} must define one of prox_scalar and prox_row")
        cls.prox_sizes = staticmethod(_prox_sizes(compiled(own), cls.prox_scalar is None))

    def prox(self, P: Table, strength: float, form: Form = PAIRS) -> Table:
        """Return argmin ½‖Q − P‖² ``+ strength·Ω(Q)``, (features, components)."""
        sizes = np.abs(P).ravel() if self.prox_scalar else np.linalg.norm(P, axis=1)
        new = sizes.copy()
        type(self).prox_sizes(new, np.full(len(sizes), float(strength)), self.parameters)
        if self.prox_scalar:
            return np.copysign(new.reshape(P.shape), P)
        return P * np.divide(new, sizes, out=np.zeros_like(sizes), where=sizes > 0)[:, None]

    prox_approximate = prox


class CustomLoss(BaseEstimator):  # type: ignore[misc]
    """A loss ℓ(p, y) of a prediction and a target, for users to define.

    Attributes
    ----------
    curvature : float > 0
        A bound on ∂²ℓ/∂p²; a property, if it depends on parameters.
    for_numbers, for_classes : bool
        Whether targets may be numbers, or two classes, which are −1 and 1.
    loss_value, loss_slope : static methods
        loss_value(p, y, parameters) and its derivative in p.

    Examples
    --------
    >>> import numpy as np
    >>> class LogCosh(CustomLoss):
    ...     curvature = 1.0
    ...     @staticmethod
    ...     def loss_value(p, y, parameters):
    ...         return np.log(np.cosh(p - y))
    ...     @staticmethod
    ...     def loss_slope(p, y, parameters):
    ...         return np.tanh(p - y)
    >>> LogCosh().name
    'LogCosh'
    """

    curvature: float
    for_numbers: ClassVar[bool] = True
    for_classes: ClassVar[bool] = False
    pairwise: ClassVar[bool] = False
    loss_value: ClassVar[Any] = None
    loss_slope: ClassVar[Any] = None

    @property
    def name(self) -> str:
        """The name in messages."""
        return type(self).__name__

    @property
    def parameters(self) -> NDArray[np.float64]:
        """The parameters in the order of the constructor, as compiled code gets them."""
        return parameters_of(self)


def as_loss(given: str | CustomLoss) -> Loss | CustomLoss:
    """Return a loss that is given by its name or as an object."""
    return given if isinstance(given, CustomLoss) else LOSSES.get(given)


def loss_argument(loss: Loss | CustomLoss) -> Any:
    """Return the loss as compiled code takes it: a code, or the parameters of a custom one."""
    return loss.parameters if isinstance(loss, CustomLoss) else loss.code


def penalty_argument(penalty: Penalty) -> Any:
    """Return the penalty as compiled code takes it: a code, or the parameters of a custom one."""
    return penalty.parameters if isinstance(penalty, SeparablePenalty) else chain.code_of(penalty)


def replacements(penalty: Penalty, loss: Loss | CustomLoss) -> Replacements:
    """Return which functions custom ones take the part of; none for those of this package."""
    found: Replacements = ()
    if isinstance(penalty, SeparablePenalty):
        found += _of_penalty(type(penalty))  # type: ignore[arg-type]
    if isinstance(loss, CustomLoss):
        found += _of_loss(type(loss))  # type: ignore[arg-type]
    return found


# ---- kernels, made for each class once


@cache
def _prox_sizes(own: Any, rows: bool) -> Any:
    @jit(cache=False)
    def prox_sizes(sizes, cuts, parameters):
        for j in range(len(sizes)):
            if rows:
                sizes[j] *= own(sizes[j], cuts[j], parameters)
            else:
                sizes[j] = abs(own(sizes[j], cuts[j], parameters))

    return prox_sizes


@cache
def _of_penalty(kind: type[SeparablePenalty]) -> Replacements:
    rows, sizes_of = kind.prox_scalar is None, kind.prox_sizes
    own = compiled(kind.prox_row if rows else kind.prox_scalar)

    @jit(cache=False)
    def acts_on_rows(penalty):
        return rows

    @jit(cache=False)
    def no(penalty):
        return False

    @jit(cache=False)
    def prox(penalty, value, strength):
        return own(value, strength, penalty)

    @jit(cache=False)
    def prox_sizes(penalty, kind, order, sizes, cuts):
        sizes_of(sizes, cuts, penalty)

    @jit(cache=False)
    def totals_of(penalty, kind, sizes, order):
        return np.zeros(1)

    @jit(cache=False)
    def factor_without(penalty, kind, totals, sizes, j, rest):
        return 1.0

    @jit(cache=False)
    def replace_size(penalty, kind, totals, sizes, j, rest, size):
        pass

    return (
        (chain.acts_on_rows, acts_on_rows),
        (chain.vanishes, no),
        (chain.has_totals, no),
        (chain.prox_row if rows else chain.prox_scalar, prox),
        (chain.prox_sizes, prox_sizes),
        (chain.totals_of, totals_of),
        (chain.factor_without, factor_without),
        (chain.replace_size, replace_size),
    )


@cache
def _of_loss(kind: type[CustomLoss]) -> Replacements:
    if kind.loss_value is None or kind.loss_slope is None:
        raise InputError(f"loss {kind.__name__} must define loss_value and loss_slope")
    value, slope = compiled(kind.loss_value), compiled(kind.loss_slope)

    @jit(cache=False)
    def loss_value(loss, p, y):
        return value(p, y, loss)

    @jit(cache=False)
    def loss_slope(loss, p, y):
        return slope(p, y, loss)

    @jit(cache=False)
    def is_squared(loss):
        return False

    return (
        (losses.loss_value, loss_value),
        (losses.loss_slope, loss_slope),
        (losses.is_squared, is_squared),
    )
