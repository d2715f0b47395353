"""Stochastic steps on mini-batches of rows, or of pairs of a positive and a negative row.

AdaGrad shares the ℓ2 penalties among the rows that contain a feature, so a step touches non-zeros only.
PSGD takes the proximal operator of the whole table after every batch, as the paper defines it.

Sources: Duchi, Hazan and Singer 2011 (AdaGrad); Atarashi et al. 2021, 4.1, 5.1 and appendix B (PSGD),
with the steps of Bottou 2012, "Stochastic gradient descent tricks", 5.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recsys._jit import jit
from recsys.fm.objective import Objective
from recsys.fm.penalties import CS, L2, TI, prox_table
from recsys.fm.solvers.base import SOLVERS, WITH_PROX, Options, Solver
from recsys.multilinear.forms import ANOVA, MIXED, Compressed
from recsys.multilinear.losses import loss_slope
from recsys.multilinear.rows import room_for, row_backward, row_forward

SLOWER, SLOWEST = 0.5, 0.01  # of a step that no longer helps; the last share of the first
TINY = 1e-10  # beside the root of the summed squared gradients
ALONE = -1  # in the place of a second row where there is none


class Steps(NamedTuple):
    """Options of a stochastic pass: the penalties, the batches, the rate, and the free parameters."""

    alpha: float
    beta: float
    gamma: float
    penalty: int
    batch: int
    rate: float
    intercept: bool


class Stochastic(Solver):
    """Base of the solvers that walk over rows in a random order."""

    pairwise = True
    monotone = False

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.rate = options.learning_rate

    def slower(self) -> bool:
        """Halve the rate, down to a hundredth of the first."""
        self.rate *= SLOWER
        return self.rate >= SLOWEST * self.options.learning_rate

    def epoch(self) -> float:
        """Walk all rows in a random order, or as many random pairs."""
        p, n, by = self.objective, self.objective.X.shape[0], self.objective.regularization
        if p.loss.pairwise:
            first, second = p.draw(n)
        else:
            first, second = p.rng.permutation(n), np.full(n, ALONE)
        batch, rate = self.options.batch_size, float(self.rate)
        steps = Steps(by.alpha, by.beta, by.gamma, by.penalty.code, batch, rate, p.intercept)
        rows, samples = Compressed.of(p.X), (first.astype(np.int64), second.astype(np.int64))
        moved = self._walk(p.model.z, p.model.layout, rows, p.target, *samples, steps)
        p.refresh()
        return float(moved)

    def _walk(self, *arguments: Any) -> float:
        """Take the steps of these samples; returns the parameters' change."""
        raise NotImplementedError


@SOLVERS.add("adagrad")
class AdaGrad(Stochastic):
    """Stochastic steps over the root of each parameter's summed squared gradients."""

    penalties = ("l2",)

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.squares = np.zeros(len(objective.model.z))
        X, y = objective.X, objective.y
        if objective.loss.pairwise:
            touches = objective.shares_of(y > 0) + objective.shares_of(y <= 0)
        else:
            touches = np.bincount(X.indices, minlength=X.shape[1]) / max(X.shape[0], 1)
        self.share = np.divide(1.0, touches, out=np.zeros_like(touches), where=touches > 0)

    def _walk(self, *arguments: Any) -> float:
        return adagrad_epoch(*arguments, self.squares, self.share)


@SOLVERS.add("psgd")
class ProximalStochastic(Stochastic):
    """A proximal step of everything after every batch, of a rate that falls as 1/(1 + rate·β·steps).

    The batches of an epoch are of one size, up to one row, and at most `batch_size`.
    """

    penalties = WITH_PROX

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        self.batches = np.zeros(1)

    def _walk(self, *arguments: Any) -> float:
        return psgd_epoch(*arguments, self.batches)


# ---- kernels


@jit
def adagrad_epoch(z, layout, rows, target, first, second, steps, squares, share):
    """Walk the samples first[i] (with second[i], if not ALONE) in mini-batches; returns the change.

    A feature's ℓ2 penalty is shared among its samples: `share` is 1 / (expected touches a sample).
    """
    indptr, indices = rows.indptr, rows.indices
    spec, features, k = layout.spec, layout.features, layout.components
    tables, room = np.empty((len(spec), layout.width, k)), room_for(layout, rows)
    gradient = np.zeros(len(z))
    touched = np.empty(features, dtype=np.int64)
    times = np.zeros(features, dtype=np.int64)
    moved = 0.0
    for start in range(0, len(first), steps.batch):
        stop = min(start + steps.batch, len(first))
        count = 0
        for b in range(start, stop):
            for side in range(1 if second[b] == ALONE else 2):
                row = first[b] if side == 0 else second[b]
                for q in range(indptr[row], indptr[row + 1]):
                    if times[indices[q]] == 0:
                        touched[count] = indices[q]
                        count += 1
                    times[indices[q]] += 1
        batch_gradient(
            z, layout, rows, target, first[start:stop], second[start:stop], tables, room, gradient
        )
        if steps.intercept:
            moved += _step(z, squares, gradient, 0, steps.rate, 0.0)
        gradient[0] = 0.0
        for c in range(count):
            j = touched[c]
            part = times[j] * share[j] / (stop - start)
            times[j] = 0
            if layout.linear:
                moved += _step(z, squares, gradient, 1 + j, steps.rate, steps.alpha * part)
                gradient[1 + j] = 0.0
            for n in range(len(spec)):
                for f in range(spec[n, 2]):
                    at = spec[n, 3] + (f * features + j) * k
                    for s in range(k):
                        moved += _step(z, squares, gradient, at + s, steps.rate, steps.beta * part)
                        gradient[at + s] = 0.0
    return moved


@jit
def _step(z, squares, gradient, at, rate, shrink):
    g = gradient[at]
    squares[at] += g * g
    eta = rate / (np.sqrt(squares[at]) + TINY)
    old = z[at]
    z[at] = (old - eta * g) / (1.0 + eta * shrink)  # the ℓ2 part implicitly: stable at any share
    return abs(z[at] - old)


@jit
def batch_gradient(z, layout, rows, target, first, second, tables, room, gradient):
    """Add the gradient of a batch's mean loss; `tables` and `room` are for a row."""
    y, loss, size, row_weights = target.y, target.loss, len(first), target.row_weights
    for b in range(size):
        i, other = first[b], second[b]
        if other == ALONE:
            pred = row_forward(z, layout, rows, i, tables)
            r = row_weights[i] * loss_slope(loss, pred, y[i]) / size
            row_backward(z, layout, rows, i, tables, r, room, gradient)
        else:
            down = row_forward(z, layout, rows, other, tables)
            up = row_forward(z, layout, rows, i, tables)
            r = loss_slope(loss, up - down, 1.0) / size
            row_backward(z, layout, rows, i, tables, r, room, gradient)
            row_forward(z, layout, rows, other, tables)
            row_backward(z, layout, rows, other, tables, -r, room, gradient)


@jit
def psgd_epoch(z, layout, rows, target, first, second, steps, done):
    """Walk the samples first[i] (with second[i], if not ALONE) in mini-batches; returns the change."""
    batches = (len(first) + steps.batch - 1) // steps.batch
    spec, features, k = layout.spec, layout.features, layout.components
    tables, room = np.empty((len(spec), layout.width, k)), room_for(layout, rows)
    gradient = np.zeros(len(z))
    moved = 0.0
    for part in range(batches):
        start, stop = part * len(first) // batches, (part + 1) * len(first) // batches
        batch_gradient(
            z, layout, rows, target, first[start:stop], second[start:stop], tables, room, gradient
        )
        eta = steps.rate / (1.0 + steps.rate * steps.beta * done[0])
        done[0] += 1.0
        for at in range(len(z)):
            old, shrink = z[at], steps.beta
            if at == 0:
                shrink = 0.0
                gradient[0] *= steps.intercept
            elif at <= features:
                shrink = steps.alpha
                gradient[at] *= layout.linear
            z[at] = (old - eta * gradient[at]) / (1.0 + eta * shrink)  # implicitly: stable at any step
            moved += abs(z[at] - old)
            gradient[at] = 0.0
        if steps.penalty != L2:
            moved += proximal_step(z, layout, steps.penalty, eta * steps.gamma)
    return moved


@jit
def proximal_step(z, layout, penalty, strength):
    """Take the proximal step of each whole table; returns the change."""
    features, k = layout.features, layout.components
    moved = 0.0
    for n in range(len(layout.spec)):
        kind, order, factors, at = layout.spec[n]
        if kind != ANOVA and kind != MIXED:
            order = 2  # of the penalties on interactions, as `Form.penalty_order`
        # The operator of TI and CS is of Ω + ½‖P‖²: a step on −½‖P‖² goes before.
        ahead = 1.0 + strength if penalty == TI or penalty == CS else 1.0
        for f in range(factors):
            P = z[at + f * features * k : at + (f + 1) * features * k].reshape((features, k))
            moved += prox_table(penalty, kind, order, P, strength, ahead)
    return moved
