"""The base class of penalties, and their registry."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.multilinear.forms import ANOVA, PRODUCT, Form
from recsys.registry import Registry

__all__ = ["PAIRS", "PENALTIES", "Penalty", "as_penalty", "penalties"]

Table = NDArray[np.float64]  # (features, components)
PAIRS = Form(ANOVA, 2, 1)


class Penalty:
    """A penalty Ω on the tables P of a factorization machine, (features, components) each.

    A subclass sets `name`, defines `value`, and of the rest what it has; what is left None is what it
    does not offer. Solvers ask by these names (`recsys.fm.solvers.base.Solver.required`).

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


PENALTIES: Registry[type[Penalty]] = Registry("penalty", "recsys.fm.penalties")


def as_penalty(name: str) -> Penalty:
    """Return the penalty of a name."""
    return PENALTIES.get(name)()


def penalties() -> list[type[Penalty]]:
    """Return all registered penalties, by their names; the one that vanishes first."""
    known = [PENALTIES.get(name) for name in PENALTIES.names()]
    return sorted(known, key=lambda kind: not kind.vanishes)
