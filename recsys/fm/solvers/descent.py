"""Shared parts of the exact descents: the order of the columns, the bias, the linear weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.fm.objective import Objective
from recsys.fm.solvers.base import Options, Solver
from recsys.multilinear.arrays import Compressed, Target
from recsys.multilinear.linear import bias_step, linear_epoch

RARE = 0.01  # share of the rows below which a column is rare
REFRESH = 10  # epochs after which predictions are computed afresh


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
        """Lay out the columns."""
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
