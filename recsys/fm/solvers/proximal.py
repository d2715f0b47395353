"""Gradients of the whole vector: FISTA, the non-monotone nmAPGD, sub-gradients, and L-BFGS of SciPy.

Sources: Beck and Teboulle 2009 with the restart of O'Donoghue and Candès; Li and Lin 2015; for the
inexact nmAPGD on Ω_*, Atarashi et al. 2021, 8.2, and for sub-gradients 3.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from recsys.fm.objective import Objective
from recsys.fm.solvers.base import SOLVERS, WITH_PROX, Options, Solver

Vector = NDArray[np.float64]
RESTLESS = 5  # epochs without progress after which nmAPGD returns to its lowest point
SMALLEST = 1e-14  # step at which a line search gives up
AGAIN = 1e-6  # the step with which a search for a sub-gradient step starts anew
BURST = 10  # iterations of L-BFGS between two steps on the weights of orders or components


class Proximal(Solver):
    """Base of the solvers of whole vectors: a step size by backtracking, and the current points."""

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.step = 1.0
        self.now = objective.model.z.copy()
        self.before = self.now
        self.t = 1.0
        self.value = objective.value()

    def weigh(self) -> float:
        """Take the step on the weights, and compute the objective after it."""
        moved = super().weigh()
        if moved > 0.0:
            self.value = self.objective.value()
        return moved

    def _forward_backward(self, at: Vector) -> tuple[Vector, float]:
        """Return the proximal gradient step from `at` and its objective; the step size is kept."""
        p = self.objective
        value, gradient = p.smooth(at)
        while True:
            new = p.proximal(at - self.step * gradient, self.step)
            change = new - at
            reached = p.smooth_value(new)
            bound = value + float(gradient @ change) + float(change @ change) / (2.0 * self.step)
            if reached <= bound + 1e-12 * abs(value) or self.step < SMALLEST:
                return new, reached + p.rough(new)
            self.step *= 0.5

    def _settle(self, z: Vector) -> float:
        """Put the model there; returns the change."""
        moved = float(np.abs(z - self.objective.model.z).sum())
        self.objective.model.z[:] = z
        self.objective.refresh()
        return moved


@SOLVERS.add("fista")
class Fista(Proximal):
    """Accelerated proximal gradient; the momentum starts afresh when the objective rose."""

    penalties = WITH_PROX

    def epoch(self) -> float:
        """Take one accelerated step."""
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.t * self.t))
        ahead = self.now + (self.t - 1.0) / t * (self.now - self.before)
        new, value = self._forward_backward(ahead)
        if value > self.value:
            new, value = self._forward_backward(self.now)
            t = 1.0
            if value > self.value:  # at the precision of the arithmetic
                new, value = self.now, self.value
        self.before, self.now, self.t, self.value = self.now, new, t, value
        self.step *= 1.5
        return self._settle(new)


@SOLVERS.add("nmapgd")
class NonMonotone(Proximal):
    """Accelerated proximal gradient that lets the objective rise below a running mean of it (nmAPGD)."""

    monotone = False

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.mean, self.q = self.value, 1.0
        self.best, self.least = self.now, self.value  # the lowest point so far, and its objective
        self.since = 0  # epochs from the start, or from the last return to the lowest point

    def slower(self) -> bool:
        """Return to the lowest point and start afresh there, where the objective may not rise any more.

        False if it is there, or if nothing was gained since it last came from there.
        """
        if self.value <= self.least or self.since <= RESTLESS:
            return False
        self.before = self.now = self.best
        self.value = self.mean = self.least
        self.t = self.q = 1.0
        self.since = 0
        self._settle(self.best)
        return True

    def weigh(self) -> float:
        """Take the step on the weights and restart."""
        moved = super().weigh()
        if moved > 0.0:
            self.mean, self.q = self.value, 1.0
            self.best, self.least = self.now, self.value
        return moved

    def epoch(self) -> float:
        """Take one accelerated step, or a plain one where it rose too far."""
        t = 0.5 * (1.0 + np.sqrt(4.0 * self.t * self.t + 1.0))
        ahead = self.now + (self.t - 1.0) / t * (self.now - self.before)
        new, value = self._forward_backward(ahead)
        change = new - ahead
        if value > self.mean - 1e-5 * float(change @ change):
            plain, other = self._forward_backward(self.now)
            if other < value or not np.isfinite(value):
                new, value = plain, other
        weight = 0.8 * self.q
        self.q = weight + 1.0
        self.mean = (weight * self.mean + value) / self.q
        self.before, self.now, self.t, self.value = self.now, new, t, value
        if value < self.least:
            self.best, self.least = new, value
        self.since += 1
        self.step *= 1.5
        return self._settle(new)


@SOLVERS.add("subgradient")
class SubGradient(Proximal):
    """Sub-gradient steps on the objective whole, found by backtracking."""

    monotone = False

    def epoch(self) -> float:
        """Take one step that lowers the objective enough, if there is one."""
        p = self.objective
        gradient = p.subgradient(self.now)
        square = float(gradient @ gradient)
        while True:
            new = self.now - self.step * gradient
            value = p.smooth_value(new) + p.rough(new)
            if value <= self.value - 1e-4 * self.step * square:
                self.now, self.value = new, value
                self.step *= 2.0
                break
            if self.step < SMALLEST:
                self.step = AGAIN
                break
            self.step *= 0.5
        return self._settle(self.now)


@SOLVERS.add("lbfgs")
class Lbfgs(Solver):
    """Limited-memory BFGS, where no penalty but the squared norms is asked for."""

    penalties = ("l2",)

    def run(self, ended: Callable[[float], bool], max_iter: int) -> None:
        """Leave the loop to scipy, which may itself end earlier.

        Where weights of orders or components are learned, each of their steps makes another problem, for
        which scipy begins anew: one after every BURST iterations.
        """
        p = self.objective
        over, left = False, max_iter
        while left > 0 and not over:
            burst = min(BURST, left) if p.learns_theta or p.learns_weights else left
            made = 0

            def settle(z: Vector, burst: int = burst) -> None:
                nonlocal made, over
                moved = float(np.abs(z - p.model.z).sum())
                p.model.z[:] = z
                p.refresh()
                made += 1
                if made == burst:
                    moved += self.weigh()
                over = ended(moved)
                if over or made == burst:
                    raise StopIteration  # how scipy's `minimize` is told to end

            minimize(
                p.smooth,
                p.model.z.copy(),
                jac=True,
                method="L-BFGS-B",
                callback=settle,
                options={"maxiter": burst, "maxfun": 20 * burst, "ftol": 0.0, "gtol": 1e-12},
            )
            left -= made
            if made < burst and not over:  # it found nothing better
                p.refresh()
                over = self.weigh() == 0.0 or made == 0
