"""The record of a fit: its history, its callback, its end."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from recsys.fm._order_weights import theta_step
from recsys.fm._problem import Problem
from recsys.fm._solvers import Solver

TINY = 1e-12  # share of the objective of a model of nothing below which an objective is 0
WORSE = 0.01  # share above the objective of a model of zeros at which an end is no success
RESTLESS = 5  # epochs without progress after which a solver that may rise has converged


class Record:
    """The history of one fit, and when it ends."""

    def __init__(self, owner: Any, solver: Solver, problem: Problem, held: Problem | None) -> None:
        self.owner, self.solver, self.problem, self.held = owner, solver, problem, held
        owner.n_iter_, owner.stopped_ = 0, "max_iter"
        self.started = time.perf_counter()
        self.least = self.last = problem.objective()
        self.trivial = problem.trivial()
        # no absolute number: a target in millionths is fitted as one in millions
        self.floor = TINY * (self.trivial if self.trivial > 0.0 else abs(self.least))
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
        if self.least - objective > owner.tol * max(abs(self.least), self.floor):
            self.still = 0
        else:
            self.still += 1
        self.least = min(self.least, objective)
        if self.still >= (1 if self.solver.monotone else RESTLESS):
            if self.solver.slower():
                self.still = 0
                return False
            self._converged(objective)
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

    def _converged(self, objective: float) -> None:
        """Say that the objective no longer falls; well above that of a model of zeros it has failed."""
        nonsense = objective > (1.0 + WORSE) * self.trivial + self.floor
        self.owner.stopped_ = "stalled" if nonsense else "tolerance"

    def finish(self) -> None:
        """Go back to the epoch of the least validation loss, if there is one."""
        if self.owner.stopped_ == "max_iter" and self.owner.n_iter_ < self.owner.max_iter:
            self._converged(self.owner.history_[-1]["objective"])  # the solver found no better point
        if self.held is not None:
            self.problem.model.z[:] = self.best[2]

    def warn(self) -> None:
        """Warn of a fit that is cut short or stuck, once the model, which may still serve, is kept."""
        owner, last = self.owner, self.owner.history_[-1]["objective"]
        if owner.stopped_ == "stalled":
            message = (
                f"the fit stalled at an objective of {last:.3g}, and a model of zeros has "
                f"{self.trivial:.3g}: scale the features, lower init_scale (now "
                f"{owner.init_scale:g}) or raise beta"
            )
        elif owner.stopped_ == "max_iter" and owner.tol > 0.0:
            message = (
                f"max_iter={owner.max_iter} epochs ended before one lowered the objective by less than "
                f"tol={owner.tol:g}: raise max_iter or tol, or set tol=0 to ask for just so many epochs"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
