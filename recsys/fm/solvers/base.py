"""The base class of solvers and their requirements."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from recsys.fm.objective import Objective
from recsys.fm.penalties import PENALTIES, Penalty
from recsys.fm.solvers.weights import lambda_step, theta_step
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, FORM_NAMES, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.losses import Loss
from recsys.registry import Registry


class Options(NamedTuple):
    """Options of a solver."""

    learning_rate: float
    batch_size: int
    threads: int | None
    split: int | None = None  # columns of the left part of a row


class Solver:
    """An optimization algorithm for an objective, whose model it changes in place.

    Attributes
    ----------
    penalties, kinds : tuple
        Supported penalties and forms of terms.
    pairwise : bool
        Whether it supports losses over pairs of rows.
    monotone : bool
        Whether the objective never increases.
    """

    penalties: ClassVar[tuple[str, ...]] = tuple(PENALTIES)
    kinds: ClassVar[tuple[int, ...]] = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED, POWER)
    pairwise: ClassVar[bool] = False
    monotone: ClassVar[bool] = True

    def __init__(self, objective: Objective, options: Options) -> None:
        self.objective, self.options = objective, options

    def run(self, ended: Callable[[float], bool], max_iter: int) -> None:
        """Make epochs until `ended` returns True for the change of the parameters."""
        for _ in range(max_iter):
            if ended(self.epoch() + self.weigh()):
                return

    def epoch(self) -> float:
        """Make one pass that leaves `pred` of the objective current; return the parameters' change."""
        raise NotImplementedError

    def weigh(self) -> float:
        """Take a step on the weights of orders and components that are learned; returns their change."""
        moved = theta_step(self.objective) if self.objective.learns_theta else 0.0
        return moved + (lambda_step(self.objective) if self.objective.learns_weights else 0.0)

    def slower(self) -> bool:
        """Take shorter steps where longer ones no longer help; False if there are none."""
        return False


WITH_PROX = tuple(name for name in PENALTIES if name != "omega")
SOLVERS: Registry[type[Solver]] = Registry("solver", "recsys.fm.solvers")


def refusal(solver: str, loss: Loss, penalty: Penalty, forms: list[Form]) -> str:
    """Return why a solver cannot handle an objective, or '': it follows from its requirements."""
    able = SOLVERS.get(solver)
    if loss.pairwise and not able.pairwise:
        return f"loss {loss.name!r}, which compares rows"
    if penalty.name not in able.penalties:
        return f"penalty {penalty.name!r}"
    for form in forms:
        if form.kind not in able.kinds:
            return FORM_NAMES[form.kind]
        if penalty.refuses(form):
            return f"penalty {penalty.name!r} beyond pairs of features"
    return ""
