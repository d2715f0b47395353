"""The base class of penalties, and their registry."""

from __future__ import annotations

import inspect
import numbers
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from recsys.errors import InputError
from recsys.multilinear.forms import ANOVA, PRODUCT, Form
from recsys.registry import Registry

__all__ = ["PAIRS", "PENALTIES", "Penalty", "as_penalty", "parameters_of", "penalties"]

Table = NDArray[np.float64]  # (features, components)
PAIRS = Form(ANOVA, 2, 1)


class Penalty(BaseEstimator):  # type: ignore[misc]
    """A penalty Ω on the tables P of a factorization machine, (features, components) each.

    A subclass sets `name`, defines `value`, and of the rest what it has; what is left None is what it
    does not offer. Solvers ask by these names (`recsys.fm.solvers.base.Solver.required`). Parameters are
    those of the constructor, as scikit-learn has them: `set_params(penalty__gamma=3.0)` of an estimator
    reaches them. To define a penalty in a file of one's own, subclass `recsys.fm.SeparablePenalty`.

    Attributes
    ----------
    prox : callable
        ``prox(P, strength, form)``: argmin ½‖Q − P‖² + λ(Ω(Q) + ½‖Q‖² if `half_squares`), where λ is
        `strength` and Ω that of a term of this form (of pairs of features where none is given).
    prox_approximate : callable
        The same, perhaps inexact; it is `prox` where that is there.
    prox_scalar : callable, compiled
        ``prox_scalar(value, strength)`` of one entry, the others held fixed: for coordinate descent.
    prox_row : callable, compiled
        ``prox_row(norm, strength)``: the factor of a row of that length, the others held fixed.
    prox_sizes : callable, compiled
        ``prox_sizes(sizes, cuts)``, in place: all magnitudes of the entries of a column, or all norms of
        rows, at once, with a threshold for each; in another order than 2 that of `chain.prox_sizes` for
        its form.
    subgradient : callable
        subgradient(P, form), (features, components): one of Ω, with 0 for what is 0.

    Examples
    --------
    >>> PENALTIES.get("l21").offers(("prox_row",)), PENALTIES.get("omega").offers(("prox_row",))
    (True, False)

    Notes
    -----
    The compiled parts of the package's own penalties are reached through `recsys.fm.penalties.chain`.
    Those of others have one more argument at the end, `parameters`.
    """

    name: ClassVar[str]
    vanishes: ClassVar[bool] = False  # Ω = 0: nothing beyond the squared norms of every model
    half_squares: ClassVar[bool] = False  # `prox` is of Ω + ½‖P‖², whose half joins the smooth part
    pairs_only: ClassVar[bool] = False  # defined for pairs of features of one table alone

    prox: ClassVar[Any] = None
    prox_approximate: ClassVar[Any] = None
    prox_scalar: ClassVar[Any] = None
    prox_row: ClassVar[Any] = None
    prox_sizes: ClassVar[Any] = None
    subgradient: ClassVar[Any] = None

    def __init_subclass__(cls) -> None:
        """Use the exact proximal operator where an approximate one is asked for."""
        super().__init_subclass__()
        if cls.prox is not None and cls.prox_approximate is None:
            cls.prox_approximate = inspect.getattr_static(cls, "prox")
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @property
    def parameters(self) -> NDArray[np.float64]:
        """The parameters in the order of the constructor, as compiled code gets them."""
        return parameters_of(self)

    @staticmethod
    def value(form: Form, P: Table) -> float:
        """Return Ω of one table of a term of this form."""
        raise NotImplementedError

    @classmethod
    def offers(cls, required: tuple[str, ...]) -> bool:
        """Return whether it has all of these abilities."""
        return all(getattr(cls, ability) for ability in required)

    @classmethod
    def limit(cls, required: tuple[str, ...], form: Form) -> str:
        """Return why these abilities do not hold for a term of this form, or nothing."""
        if cls.pairs_only and (form.deep or form.kind == PRODUCT):
            return f"penalty {cls.name!r} beyond pairs of features"
        return ""


def parameters_of(given: BaseEstimator) -> NDArray[np.float64]:
    """Return the parameters of an object as finite numbers, in the order of its constructor."""
    names = [name for name in inspect.signature(type(given)).parameters if hasattr(given, name)]
    for name in names:
        value = getattr(given, name)
        if not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
            raise InputError(f"{name} of {type(given).__name__} must be a finite number, not {value!r}")
    return np.array([float(getattr(given, name)) for name in names])


PENALTIES: Registry[type[Penalty]] = Registry("penalty", "recsys.fm.penalties")


def as_penalty(given: str | Penalty) -> Penalty:
    """Return a penalty that is given by its name, with its default parameters, or as an object.

    Raises
    ------
    InputError
        If there is none of this name, or the object is no penalty.

    Examples
    --------
    >>> as_penalty("ti")
    TI()
    """
    if isinstance(given, Penalty):
        return given
    if isinstance(given, type) and issubclass(given, Penalty):
        raise InputError(f"penalty is the class {given.__name__}: give an object, {given.__name__}(…)")
    if not isinstance(given, str):
        raise InputError(f"penalty must be a name or a recsys.fm.Penalty, not {given!r}")
    return PENALTIES.get(given)()


def penalties() -> list[type[Penalty]]:
    """Return all registered penalties, by their names; the one that vanishes first."""
    known = [PENALTIES.get(name) for name in PENALTIES.names()]
    return sorted(known, key=lambda kind: not kind.vanishes)
