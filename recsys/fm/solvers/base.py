"""The base class of solvers with their requirements, and what the exact descents share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.fm.objective import Objective
from recsys.fm.penalties import PENALTIES, Penalty
from recsys.fm.solvers.weights import lambda_step, theta_step
from recsys.multilinear.forms import (
    ALL_SUBSETS,
    ANOVA,
    FORM_NAMES,
    MIXED,
    POWER,
    PRODUCT,
    Compressed,
    Form,
)
from recsys.multilinear.losses import Loss, Target, bias_step, linear_epoch
from recsys.registry import Registry

WITH_PROX = tuple(name for name in PENALTIES if name != "omega")
RARE = 0.01  # share of the rows below which a column is rare
REFRESH = 10  # epochs after which predictions are computed afresh


class Options(NamedTuple):
    """Options of a solver."""

    learning_rate: float
    batch_size: int
    threads: int | None
    split: int | None = None  # columns of the left part of a row


class Solver:
    """An optimization algorithm for an objective, whose model it changes in place."""

    penalties: ClassVar[tuple[str, ...]] = tuple(PENALTIES)  # that it supports
    kinds: ClassVar[tuple[int, ...]] = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED, POWER)  # of terms
    pairwise: ClassVar[bool] = False  # whether it supports losses over pairs of rows
    monotone: ClassVar[bool] = True  # whether the objective never increases

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


class Shrinkage(NamedTuple):
    """The weights β of the squares and γ of the penalty, by its code."""

    beta: float
    penalty: Any
    gamma: float


def visiting_order(counts: NDArray[Any], rows: int) -> NDArray[np.int64]:
    """Return the columns as the descents visit them, given how many rows each is in: rare ones first.

    Frequent columns would leave nothing to explain to the many rare ones. These are taken backwards, so
    that in rows of pairs the columns of one side stay together.
    """
    rare = counts < RARE * rows
    every = np.arange(len(counts))
    return np.concatenate([every[rare][::-1], every[~rare]])


class Descent(Solver):
    """Minimise a quadratic bound of the objective along some parameters at a time, term by term."""

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.done = 0
        by = objective.regularization
        self.shrinkage = Shrinkage(by.beta, by.penalty.code, by.gamma)
        self._prepare()

    def _prepare(self) -> None:
        X = self.objective.X
        columns = X.tocsc()
        columns.sort_indices()
        self.rows, self.columns = Compressed.of(X), Compressed.of(columns)
        self.order = visiting_order(self.objective.counts(), X.shape[0])

    def epoch(self) -> float:
        """Visit the bias, the linear weights and every term once."""
        objective, model = self.objective, self.objective.model
        moved = self._bias(objective.target)
        if model.linear:
            moved += linear_epoch(
                self.order, self.columns, objective.target, model.w, objective.regularization.alpha
            )
        for n in range(len(model.forms)):
            moved += self._term(n)
        return self._finished(moved)

    def _bias(self, target: Target) -> float:
        if not self.objective.intercept:
            return 0.0
        change = bias_step(target)
        self.objective.model.z[0] += change
        return abs(change)

    def _finished(self, moved: float) -> float:
        self.done += 1
        if self.done % REFRESH == 0:
            self.objective.refresh()
        return moved

    def _term(self, n: int) -> float:
        raise NotImplementedError
