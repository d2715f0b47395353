"""Solvers of whole gradients: FISTA, nmAPGD, Katyusha, L-BFGS, sub-gradients.

Sources: Beck and Teboulle 2009 with the restart of O'Donoghue and Candès; Li and Lin 2015; Allen-Zhu
2017; for sub-gradients and the inexact nmAPGD on Ω_*, Atarashi et al. 2021, 3.2 and 8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from recsys.fm._problem import Problem, omega_slope
from recsys.fm._solvers import Options, Solver

Vector = NDArray[np.float64]
SMALLEST = 1e-14  # step at which a line search gives up


class _Proximal(Solver):
    """What the proximal gradient solvers share: a step found by backtracking."""

    penalties: ClassVar[tuple[str, ...]] = ("l2", "l1", "ti", "l21", "cs")
    orders = 2

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self.step = 1.0
        self.now = problem.model.z.copy()
        self.before = self.now
        self.t = 1.0
        self.value = problem.objective()

    def _forward_backward(self, at: Vector) -> tuple[Vector, float]:
        """Return the proximal gradient step from `at` and its objective."""
        p = self.problem
        value, gradient = p.smooth(at)
        while True:
            new = p.proximal(at - self.step * gradient, self.step)
            change = new - at
            reached = self._smooth_value(new)
            bound = value + float(gradient @ change) + float(change @ change) / (2.0 * self.step)
            if reached <= bound + 1e-12 * abs(value) or self.step < SMALLEST:
                return new, reached + p.rough(new)
            self.step *= 0.5

    def _smooth_value(self, z: Vector) -> float:
        p = self.problem
        p.pred[:] = p.model.predict(p.X, z, p.threads)
        d = 1 + p.model.features
        return p.data_loss(p.pred) + p.ridge(z) - 0.5 * p._squares * float(z[d:] @ z[d:])

    def _settle(self, z: Vector) -> float:
        moved = float(np.abs(z - self.problem.model.z).sum())
        self.problem.model.z[:] = z
        self.problem.refresh()
        return moved


class Fista(_Proximal):
    """Accelerated proximal gradient; the momentum starts afresh when the objective rose."""

    def epoch(self) -> float:
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.t * self.t))
        ahead = self.now + (self.t - 1.0) / t * (self.now - self.before)
        new, value = self._forward_backward(ahead)
        if value > self.value:
            self.t = 1.0
            new, value = self._forward_backward(self.now)
            t = 1.0
            if value > self.value:  # at the precision of the arithmetic
                new, value = self.now, self.value
        self.before, self.now, self.t, self.value = self.now, new, t, value
        self.step *= 1.5
        return self._settle(new)


class NonMonotone(_Proximal):
    """Accelerated proximal gradient that lets the objective rise below a running mean of it (nmAPGD)."""

    penalties = ("l2", "l1", "ti", "l21", "cs", "omega")
    monotone = False

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self.mean, self.q = self.value, 1.0

    def epoch(self) -> float:
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
        self.step *= 1.5
        return self._settle(new)


class Katyusha(_Proximal):
    """Mini-batch steps with the variance taken out by a full gradient, and its negative momentum."""

    monotone = False

    def epoch(self) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # steps too long are taken back below
            return self._epoch()

    def _epoch(self) -> float:
        p, n = self.problem, self.problem.X.shape[0]
        size = max(self.options.batch_size, 1)
        inner = max(n // size, 1)
        self._forward_backward(self.now)  # finds 1/L
        snapshot = self.now.copy()
        _, mean = p.smooth(snapshot)
        y = self.now.copy()
        ahead, total = self.now.copy(), np.zeros_like(y)
        step = self.step / 3.0
        for _ in range(inner):
            x = 0.5 * ahead + 0.5 * snapshot
            rows = p.rng.randint(n, size=size)
            part = self._part(rows)
            gradient = mean + part.smooth(x)[1] - part.smooth(snapshot)[1]
            ahead = p.proximal(ahead - 2.0 * step * gradient, 2.0 * step)
            y = p.proximal(x - step * gradient, step)
            total += y
        best = min((y, total / inner), key=lambda z: self._smooth_value(z) + p.rough(z))
        value = self._smooth_value(best) + p.rough(best)
        if value < self.value:
            self.now, self.value = best, value
            self.step *= 1.5
        else:
            self.step *= 0.5
        return self._settle(self.now)

    def _part(self, rows: NDArray[np.int64]) -> Problem:
        p = self.problem
        part = object.__new__(Problem)
        part.__dict__ |= p.__dict__
        part.X, part.y = p.X[rows], p.y[rows]
        part.pred = np.empty(len(rows))
        return part


class SubGradient(_Proximal):
    """Sub-gradient steps on the objective whole, found by backtracking."""

    penalties = ("l2", "l1", "l21", "omega")
    monotone = False

    def epoch(self) -> float:
        p = self.problem
        _, gradient = p.smooth(self.now)
        for slope, tables in zip(p.model.tables(gradient), p.model.tables(self.now), strict=True):
            for g, P in zip(slope, tables, strict=True):
                g += p.gamma * _slope(p.penalty, P)
        square = float(gradient @ gradient)
        while True:
            new = self.now - self.step * gradient
            value = self._smooth_value(new) + p.rough(new)
            if value <= self.value - 1e-4 * self.step * square:
                self.now, self.value = new, value
                self.step *= 2.0
                break
            if self.step < SMALLEST:
                self.step = 1e-6
                break
            self.step *= 0.5
        return self._settle(self.now)


def _slope(penalty: str, P: Vector) -> Vector:
    if penalty == "omega":
        return omega_slope(P)
    if penalty == "l1":
        return np.sign(P)
    if penalty == "l21":
        norms = np.linalg.norm(P, axis=1, keepdims=True)
        return np.divide(P, norms, out=np.zeros_like(P), where=norms > 0)
    return np.zeros_like(P)


class Lbfgs(Solver):
    """Limited-memory BFGS of scipy, for what is smooth."""

    penalties = ("l2",)

    def run(self, record: Callable[[float], bool], max_iter: int) -> None:
        p = self.problem

        def settle(z: Vector) -> None:
            moved = float(np.abs(z - p.model.z).sum())
            p.model.z[:] = z
            p.refresh()
            if record(moved):
                raise StopIteration

        minimize(
            p.smooth, p.model.z.copy(), jac=True, method="L-BFGS-B", callback=settle,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 1e-12},
        )  # fmt: skip
