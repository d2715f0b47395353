"""The record of a fit: its history, its callback, its end."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from recsys.fm._problem import Problem
from recsys.fm._simplex import theta_step
from recsys.fm._solvers import Solver

RESTLESS = 5  # epochs without progress after which a solver that may rise has converged


class Record:
    """The history of one fit, and when it ends."""

    def __init__(self, owner: Any, solver: Solver, problem: Problem, held: Problem | None) -> None:
        self.owner, self.solver, self.problem, self.held = owner, solver, problem, held
        owner.n_iter_, owner.stopped_ = 0, "max_iter"
        self.started = time.perf_counter()
        self.least = self.last = problem.objective()
        self.best = (np.inf, 0, problem.model.z)
        self.still = 0
        self._note(self.last, np.inf)

    def __call__(self, moved: float) -> bool:
        owner, problem = self.owner, self.problem
        if owner._learns_theta():
            moved += theta_step(problem)
        objective = problem.objective()
        owner.n_iter_ += 1
        if not np.isfinite(objective):
            raise self.solver.diverged(objective, owner.n_iter_)
        self._note(objective, moved)
        if owner.callback is not None and owner.callback(owner.n_iter_, objective):
            owner.stopped_ = "callback"
            return True
        if self.held is not None and owner.n_iter_ - self.best[1] >= owner.patience:
            owner.stopped_ = "validation"
            return True
        if self.least - objective > owner.tol * max(abs(self.least), 1e-12):
            self.still = 0
        else:
            self.still += 1
        self.least = min(self.least, objective)
        if self.still >= (1 if self.solver.monotone else RESTLESS):
            if self.solver.slower():
                self.still = 0
                return False
            owner.stopped_ = "tolerance"
            return True
        return False

    def _note(self, objective: float, moved: float) -> None:
        entry = {
            "objective": objective, "violation": moved, "seconds": time.perf_counter() - self.started,
        }  # fmt: skip
        if self.held is not None:
            self.held.refresh()
            entry["validation"] = self.held.data_loss(self.held.pred)
            if entry["validation"] < self.best[0]:
                self.best = (entry["validation"], self.owner.n_iter_, self.problem.model.z.copy())
        self.owner.history_.append(entry)

    def finish(self) -> None:
        """Go back to the epoch of the least validation loss, if there is one."""
        if self.held is not None:
            self.problem.model.z[:] = self.best[2]
