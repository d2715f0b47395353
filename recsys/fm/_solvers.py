"""The solvers, each with what it serves: descent by coordinates, blocks and pairs; stochastic steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from recsys.errors import FitError, InputError
from recsys.fm import _block, _cd, _relational
from recsys.fm._losses import PENALTIES
from recsys.fm._problem import Problem
from recsys.fm._rows import ALL_SUBSETS, ANOVA, MIXED, PRODUCT, stochastic_epoch
from recsys.fm._split import split_rows

SLOWER, SLOWEST = 0.5, 0.01  # of a stochastic step that no longer helps; the last share of the first
REFRESH = 10  # epochs after which predictions are computed afresh
EVERY_KIND = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED)
NAMES = {
    ANOVA: "factorization machines", MIXED: "shared orders", ALL_SUBSETS: "the all-subsets model",
    PRODUCT: "polynomial networks",
}  # fmt: skip


class Options:
    """What a solver is told beside its problem."""

    def __init__(self, learning_rate: float, batch_size: int, threads: int | None) -> None:
        self.learning_rate, self.batch_size, self.threads = learning_rate, batch_size, threads


class Solver:
    """One way to lower a problem's objective, and what it can serve."""

    penalties: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[int, ...]] = EVERY_KIND
    orders: ClassVar[int | None] = None  # highest order of the TI and CS penalties
    pairwise: ClassVar[bool] = False
    monotone: ClassVar[bool] = True

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options

    def run(self, record: Callable[[float], bool], max_iter: int) -> None:
        """Make epochs until `record`, given the parameters' change, says stop."""
        for _ in range(max_iter):
            if record(self.epoch()):
                return

    def epoch(self) -> float:
        """Make one pass; `problem.pred` is current afterwards. Returns the parameters' change."""
        raise NotImplementedError

    def slower(self) -> bool:
        """Take shorter steps where longer ones no longer help; False if there are none."""
        return False

    def diverged(self, objective: float, epoch: int) -> FitError:
        """Return the error of an objective that is not finite."""
        return FitError(
            f"the objective is {objective} after {epoch} epochs: scale the features, "
            f"or raise beta (now {self.problem.beta:g})"
        )


class _Descent(Solver):
    """What the exact descents share: the bias, the linear weights, fresh predictions now and then."""

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        columns = problem.X.tocsc()
        columns.sort_indices()
        self.columns = (columns.indptr, columns.indices, columns.data)
        self.order = _cd.visiting_order(np.diff(columns.indptr), problem.X.shape[0])
        self.done = 0

    def epoch(self) -> float:
        problem, model = self.problem, self.problem.model
        moved = self._bias()
        if model.linear:
            moved += _cd.linear_epoch(
                self.order, *self.columns, problem.y, problem.pred, model.w, problem.loss,
                problem.curvature, problem.alpha,
            )  # fmt: skip
        for n in range(len(model.shapes)):
            moved += self._term(n)
        return self._finished(moved)

    def _bias(self) -> float:
        problem, z = self.problem, self.problem.model.z
        if not problem.intercept:
            return 0.0
        before = float(z[0])
        z[0] = _cd.bias_step(problem.y, problem.pred, before, problem.loss, problem.curvature)
        return abs(float(z[0]) - before)

    def _finished(self, moved: float) -> float:
        self.done += 1
        if self.done % REFRESH == 0:
            self._refresh()
        return moved

    def _refresh(self) -> None:
        self.problem.refresh()

    def _term(self, n: int) -> float:
        raise NotImplementedError


class CoordinateDescent(_Descent):
    """One parameter at a time: the minimum of the quadratic bound, then the penalty's threshold."""

    penalties = ("l2", "l1", "ti")

    def _term(self, n: int) -> float:
        p, model, X = self.problem, self.problem.model, self.problem.X
        shape, P = model.shapes[n], model.tables()[n]
        width = shape.order - 1 if shape.kind == ANOVA else shape.order
        table = np.empty((X.shape[0], width))
        order = shape.order if shape.kind in (ANOVA, MIXED) else 2
        return float(
            _cd.coordinate_epoch(
                shape.kind, X.indptr, X.indices, X.data, self.order, *self.columns, p.y, p.pred, P,
                table, model.theta[n], model.weights[n], p.loss, p.curvature, p.beta,
                PENALTIES[p.penalty], p.gamma, order,
            )
        )  # fmt: skip


class BlockDescent(_Descent):
    """A feature's whole row at a time: the bound's exact minimum, or a proximal step on the row."""

    penalties = ("l2", "l21", "cs")
    kinds = (ANOVA, ALL_SUBSETS)

    def _term(self, n: int) -> float:
        p, model, X = self.problem, self.problem.model, self.problem.X
        shape, P = model.shapes[n], model.tables()[n][0]
        width = shape.order - 1 if shape.kind == ANOVA else 1
        table = np.empty((X.shape[0], model.k, width))
        _block.fill_tables(shape.kind, X.indptr, X.indices, X.data, P, table)
        return float(
            _block.block_epoch(
                shape.kind, X.indptr, X.indices, X.data, self.order, *self.columns, p.y, p.pred, P,
                table, width, p.loss, p.curvature, p.beta, PENALTIES[p.penalty],
                p.gamma,
            )
        )  # fmt: skip


class RelationalDescent(_Descent):
    """Coordinate descent on rows that are pairs of objects which repeat, such as (user, item)."""

    penalties = ("l2", "l1", "ti")
    kinds = (ANOVA,)

    def __init__(self, problem: Problem, options: Options) -> None:
        Solver.__init__(self, problem, options)
        self.done = 0
        found = split_rows(problem.X)
        if found is None:
            raise InputError(
                "solver 'relational' needs rows made of a left and a right part that repeat, such as "
                "users and items: no column parts these rows so; use solver='cd'"
            )
        self.pairs, self.cut, order = found
        counts = np.bincount(problem.X.indices, minlength=problem.X.shape[1])
        self.runs = _relational.runs_of(_cd.visiting_order(counts, problem.X.shape[0]), self.cut)
        problem.X, problem.y, problem.pred = problem.X[order], problem.y[order], problem.pred[order]

    def epoch(self) -> float:
        p = self.problem
        moved = self._bias()
        for term in self._terms():
            first = term.degree == 1
            moved += _relational.epoch(
                self.pairs, term, p.y, p.pred, p.loss, p.curvature, p.alpha if first else p.beta,
                0 if first else PENALTIES[p.penalty], p.gamma, threads=self.options.threads,
                runs=self.runs,
            )  # fmt: skip
        return self._finished(moved)

    def _terms(self) -> list[_relational.PairTerm]:
        model = self.problem.model
        tables = [(s.order, P[0]) for s, P in zip(model.shapes, model.tables(), strict=True)]
        if model.linear:
            tables.insert(0, (1, model.w[:, None]))
        return [
            _relational.PairTerm(np.ones(order + 1), P[: self.cut], P[self.cut :], np.ones(P.shape[1]))
            for order, P in tables
        ]

    def _refresh(self) -> None:
        sides = self.pairs.sides
        self.problem.pred = self.problem.model.z[0] + _relational.predict_pairs(
            self._terms(), sides[0].rows, sides[1].rows, self.pairs.left, self.pairs.right,
            threads=self.options.threads,
        )  # fmt: skip


class Stochastic(Solver):
    """Steps on mini-batches of rows, or of pairs of a positive and a negative row.

    The ℓ2 penalties are shared among the rows that contain a feature, so a step touches non-zeros only.
    The sparse ones act by the proximal step of the whole table, delayed: once in a window of batches,
    with the window's steps summed, and at the end of an epoch. A window is as long as the curvature of
    the loss allows, for the noise of the gradients, which would lift every zero, cancels within it.

    Sources: Atarashi et al. 2021, 4.1 and 5.1 (PSGD, MB-PSGD); Mishchenko, Khaled and Richtárik 2022,
    "Proximal and federated random reshuffling", for the delay.
    """

    penalties = ("l2", "l1", "ti", "l21", "cs")
    orders = 2
    pairwise = True
    monotone = False
    adaptive: ClassVar[bool] = False

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        sparse = problem.penalty != "l2"
        self.state = np.zeros(len(problem.model.z) if self.adaptive or sparse else 1)
        self.clock = np.zeros(3)
        self.start = problem.model.z.copy()
        self.rate = options.learning_rate
        X, y = problem.X, problem.y
        if problem.pairwise:
            up = np.asarray((X[y > 0] != 0).mean(axis=0)).ravel()
            touches = up + np.asarray((X[y <= 0] != 0).mean(axis=0)).ravel()
        else:
            touches = np.bincount(X.indices, minlength=X.shape[1]) / max(X.shape[0], 1)
        self.share = np.divide(1.0, touches, out=np.zeros_like(touches), where=touches > 0)
        self.passes = 0

    def slower(self) -> bool:
        self.rate *= SLOWER
        return self.rate >= SLOWEST * self.options.learning_rate

    def epoch(self) -> float:
        p, n = self.problem, self.problem.X.shape[0]
        if p.pairwise:
            first, second = p.draw(n)
        else:
            first, second = p.rng.permutation(n), np.full(n, -1)
        self.passes += 1
        rate = self.rate if self.adaptive else self.rate / np.sqrt(self.passes)
        moved = self._walk(first, second, rate)
        p.refresh()
        return moved

    def _walk(self, first: np.ndarray, second: np.ndarray, rate: float) -> float:
        p, model, X = self.problem, self.problem.model, self.problem.X
        return float(
            stochastic_epoch(
                model.z, self.state, self.clock, model.spec, model.theta, model.weights, model.features,
                X.indptr, X.indices, X.data, p.y, first.astype(np.int64), second.astype(np.int64),
                p.loss, p.curvature, model.linear, p.intercept, model.width, model.k,
                self.options.batch_size, rate, self.adaptive, p.alpha, p.beta, p.gamma,
                PENALTIES[p.penalty], self.share,
            )
        )  # fmt: skip

    def diverged(self, objective: float, epoch: int) -> FitError:
        given, p = self.options.learning_rate, self.problem
        p.model.z[:] = self.start
        p.refresh()
        before = p.objective()
        while self.rate > 1e-12:  # what works: the first step an epoch of which lowers the objective
            self.rate *= 0.25
            self.state[:], self.clock[:], self.passes, p.model.z[:] = 0.0, 0.0, 0, self.start
            self.epoch()
            now = p.objective()
            if np.isfinite(now) and now < before:
                break
        return FitError(
            f"learning_rate={given:g} diverges: the objective is {objective} after {epoch} epochs; "
            f"learning_rate={self.rate:g} works"
        )


class AdaGrad(Stochastic):
    """Stochastic steps over the root of each parameter's summed squared gradients."""

    adaptive = True
