"""Stochastic steps on mini-batches of rows, or of pairs of a positive and a negative row.

The ℓ2 penalties are shared among the rows that contain a feature, so a step touches non-zeros only.
The sparse ones act by the proximal step of the whole table, delayed: once in a window of batches,
with the window's steps summed, and at the end of an epoch. A window is as long as the curvature of
the loss allows, for the noise of the gradients, which would lift every zero, cancels within it.

The paper's own PSGD, which applies the proximal operator after every batch, is `psgd`.

Sources: Atarashi et al. 2021, 4.1 and 5.1; Mishchenko, Khaled and Richtárik 2022,
"Proximal and federated random reshuffling", for the delay; Duchi, Hazan and Singer 2011 (AdaGrad).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import FitError
from recsys.fm.objective import Objective
from recsys.fm.penalties.chain import acts_on_rows, prox_sizes, vanishes
from recsys.fm.solvers.base import SOLVERS, Options, Solver
from recsys.fm.stopping import FAR
from recsys.multilinear.arrays import Compressed, weight_mask
from recsys.multilinear.forms import ANOVA, MIXED
from recsys.multilinear.losses import loss_slope
from recsys.multilinear.rows import row_backward, row_forward

__all__ = ["AdaGrad", "Stochastic"]

Indices = NDArray[np.int64]

SLOWER, SLOWEST = 0.5, 0.01  # of a stochastic step that no longer helps; the last share of the first
WORKS = 1e-12  # the step at which the search for one that works ends
TRIED = 5  # epochs after which a step is said to work
SEARCHED = 5000  # most rows of such an epoch; what works on them is tried on all rows once
LARGEST = 0.1  # share of them that are those of the largest norm, which forbid a step first
PAYS = 8.0  # entries of a window of batches for each feature: then its proximal step costs little beside
TINY = 1e-10  # beside the root of the summed squared gradients
ALONE = -1  # in the place of a second row where there is none
BATCHES, SQUARES, WAITING = range(3)  # of the clock


class Steps(NamedTuple):
    """Options of a stochastic pass: the penalties, the batches, the rate, and the free parameters."""

    alpha: float
    beta: float
    gamma: float
    penalty: Any
    batch: int
    rate: float
    adaptive: bool
    intercept: bool


@SOLVERS.add("sgd")
class Stochastic(Solver):
    """Steps on mini-batches, of a rate over the root of the epoch."""

    required = ("prox_sizes",)
    pairwise = True
    monotone = False
    resumes = True
    place = 11
    adaptive: ClassVar[bool] = False

    def __init__(self, objective: Objective, options: Options) -> None:
        super().__init__(objective, options)
        sparse = not objective.regularization.penalty.vanishes
        self.state = np.zeros(len(objective.model.z) if self.adaptive or sparse else 1)
        self.clock = np.zeros(3)
        self.start = objective.model.z.copy()
        self.rate = options.learning_rate
        X, y = objective.X, objective.y
        if objective.loss.pairwise:
            touches = objective.shares_of(y > 0) + objective.shares_of(y <= 0)
        else:
            touches = np.bincount(X.indices, minlength=X.shape[1]) / max(X.shape[0], 1)
        self.share = np.divide(1.0, touches, out=np.zeros_like(touches), where=touches > 0)
        self.passes = 0
        # How many rows an epoch walks, fewer while a step that works is looked for, and which surely.
        self.sure, self.most = np.empty(0, dtype=np.int64), X.shape[0]

    def get_state(self) -> Any:
        """Return the sums of squared gradients and the clock."""
        return self.state, self.clock

    def set_state(self, state: Any, passes: int) -> None:
        """Continue from this state after `passes` passes, unless another penalty has another state."""
        squares, clock = state
        if len(squares) == len(self.state):
            self.state, self.clock, self.passes = squares, clock, passes

    def slower(self) -> bool:
        """Halve the rate, down to a hundredth of the first."""
        self.rate *= SLOWER
        return self.rate >= SLOWEST * self.options.learning_rate

    def epoch(self) -> float:
        """Walk all rows in a random order, or as many random pairs."""
        first, second = self._sampled()
        self.passes += 1
        moved = self._walk(first, second)
        self.objective.refresh()
        return moved

    def _sampled(self) -> tuple[Indices, Indices]:
        """Return all rows in a random order (and ALONE beside each), or as many random pairs."""
        objective, n = self.objective, self.objective.X.shape[0]
        if objective.loss.pairwise:
            first, second = objective.draw(n)
        else:
            first, second = objective.rng.permutation(n), np.full(n, ALONE)
            if len(self.sure):
                some = np.concatenate([first[: self.most - len(self.sure)], self.sure])
                first = objective.rng.permutation(some)
        return first[: self.most].astype(np.int64), second[: self.most].astype(np.int64)

    def _steps(self, rate: float) -> Steps:
        objective, by = self.objective, self.objective.regularization
        return Steps(
            by.alpha, by.beta, by.gamma, objective.penalty_argument, self.options.batch_size,
            float(rate), self.adaptive, objective.intercept,
        )  # fmt: skip

    def _walk(self, first: Indices, second: Indices) -> float:
        """Take the steps of these samples; returns the parameters' change."""
        objective, model = self.objective, self.objective.model
        steps = self._steps(self.rate if self.adaptive else self.rate / np.sqrt(self.passes))
        return float(
            objective.compiled(stochastic_epoch)(
                model.z, self.state, self.clock, model.layout, Compressed.of(objective.X),
                objective.target, first, second, steps, self.share,
            )
        )  # fmt: skip

    def diverged(self, objective: float, epoch: int) -> FitError:
        """Return the error, with a learning rate of which an epoch lowers the objective.

        Rates are tried on few rows, and one that lowers it there in an epoch of all.
        """
        given, p = self.options.learning_rate, self.objective
        p.model.z[:] = self.start
        p.refresh()
        before = p.value()
        self.rate = given  # a fit that ran away slowly has halved it
        rows = p.X.shape[0]
        few = min(max(SEARCHED, self.options.batch_size), rows)
        sizes = np.asarray(p.X.multiply(p.X).sum(axis=1)).ravel()
        largest = np.argsort(-sizes, kind="stable")[: int(LARGEST * few)]
        while self.rate > WORKS:
            self.rate *= 0.25
            self.sure = largest if few < rows else largest[:0]
            if self._lowers(before, few, TRIED):
                self.sure = largest[:0]
                if few == rows or self._lowers(before, rows, 1):
                    break
        return FitError(
            f"learning_rate={given:g} diverges: the objective is {objective:.3g} after {epoch} epochs; "
            f"learning_rate={self.rate:g} lowers it"
        )

    def _lowers(self, before: float, most: int, epochs: int) -> bool:
        """Return whether `epochs` epochs end below this objective, and none is far above it."""
        p = self.objective
        self.state[:], self.clock[:], self.passes, p.model.z[:] = 0.0, 0.0, 0, self.start
        self.most = most
        for _ in range(epochs):
            self.epoch()
            now = self.objective.value()
            if not now < FAR * before:
                return False
        return now < before


@SOLVERS.add("adagrad")
class AdaGrad(Stochastic):
    """Stochastic steps over the root of each parameter's summed squared gradients."""

    place = 12
    adaptive = True


# ---- kernels


@jit
def stochastic_epoch(z, state, clock, layout, rows, target, first, second, steps, share):
    """Walk the samples first[i] (with second[i], if not ALONE) in mini-batches; returns the change.

    A feature's ℓ2 penalty is shared among the samples that contain it: its expectation is the penalty,
    and a step touches the samples' non-zeros only. `share` is 1 / (expected touches a sample). The
    sparse penalties are not shared, for what is shared selects nothing: their proximal operator is that
    of the whole table, taken after a window of batches with the steps of the window summed.
    `state` sums squared gradients; `clock` counts batches, sums squared derivatives of the loss, and has
    the steps since the last proximal step.
    """
    indptr, indices = rows.indptr, rows.indices
    batch = steps.batch
    spec, features, k = layout.spec, layout.features, layout.components
    tables, slopes = np.empty((len(spec), layout.width, k)), np.empty(k)
    gradient = np.zeros(len(z))
    touched = np.empty(features, dtype=np.int64)
    times = np.zeros(features, dtype=np.int64)
    batches = (len(first) + batch - 1) // batch
    entries = max(len(rows.data) / max(len(target.y), 1) * batch, 1.0)  # of a batch
    shortest = int(np.ceil(PAYS * features / entries))  # a proximal step costs no more than its window
    window = min(batches, shortest)
    moved = 0.0
    for start in range(0, len(first), batch):
        stop = min(start + batch, len(first))
        size = stop - start
        count = 0
        for b in range(start, stop):
            i, other = first[b], second[b]
            for side in range(1 if other == ALONE else 2):
                row = i if side == 0 else other
                for q in range(indptr[row], indptr[row + 1]):
                    if times[indices[q]] == 0:
                        touched[count] = indices[q]
                        count += 1
                    times[indices[q]] += 1
        squares = batch_gradient(
            z, layout, rows, target, first[start:stop], second[start:stop], tables, slopes, gradient
        )
        if steps.intercept:
            moved += _step(z, state, gradient, 0, steps, 0.0)
        gradient[0] = 0.0
        for c in range(count):
            j = touched[c]
            part = times[j] * share[j] / size
            times[j] = 0
            if layout.linear:
                moved += _step(z, state, gradient, 1 + j, steps, steps.alpha * part)
                gradient[1 + j] = 0.0
            for n in range(len(spec)):
                for f in range(spec[n, 2]):
                    at = spec[n, 3] + (f * features + j) * k
                    moved += _move_row(z, state, gradient, at, k, steps, steps.beta * part)
        clock[BATCHES] += 1.0
        clock[SQUARES] += squares / size
        clock[WAITING] += 1.0
        if not vanishes(steps.penalty) and (clock[WAITING] >= window or stop == len(first)):
            moved += proximal_step(z, state, layout, steps, steps.rate, steps.gamma * clock[WAITING])
            clock[WAITING] = 0.0
            longest = _window(z, state, clock, layout, steps, target.curvature * batch)
            window = max(shortest, min(batches, longest))
    return moved


@jit
def batch_gradient(z, layout, rows, target, first, second, tables, slopes, gradient):
    """Add the gradient of a batch's mean loss; returns the sum of the loss' squared derivatives.

    A row's derivative is times its weight; of pairs the rows were drawn by theirs. `tables` and `slopes`
    are room, (terms, width, components) and (components,).
    """
    y, loss, size, row_weights = target.y, target.loss, len(first), target.row_weights
    squares, mask = 0.0, weight_mask(row_weights)
    for b in range(size):
        i, other = first[b], second[b]
        if other == ALONE:
            pred = row_forward(z, layout, rows, i, tables)
            r = row_weights[i & mask] * loss_slope(loss, pred, y[i])
            squares += r * r
            r /= size
            row_backward(z, layout, rows, i, tables, r, slopes, gradient)
        else:
            down = row_forward(z, layout, rows, other, tables)
            up = row_forward(z, layout, rows, i, tables)
            r = loss_slope(loss, up - down, 1.0)
            squares += r * r
            r /= size
            row_backward(z, layout, rows, i, tables, r, slopes, gradient)
            row_forward(z, layout, rows, other, tables)
            row_backward(z, layout, rows, other, tables, -r, slopes, gradient)
    return squares


@jit
def _rate_of(square, rate, adaptive):
    """Return the step of a parameter whose gradients' squares sum up to this."""
    return rate / (np.sqrt(square) + TINY) if adaptive else rate


@jit
def _row_rate(state, at, k, rate, adaptive):
    """Return the one step of a feature's row, which a penalty on the row's length needs."""
    if not adaptive:
        return rate
    total = 0.0
    for s in range(k):
        total += state[at + s]
    return rate / (np.sqrt(total / k) + TINY)


@jit
def _step(z, state, gradient, at, steps, shrink):
    g = gradient[at]
    eta = steps.rate
    if len(state) > 1:
        state[at] += g * g
    if steps.adaptive:
        eta = _rate_of(state[at], steps.rate, True)
    old = z[at]
    z[at] = (old - eta * g) / (1.0 + eta * shrink)  # the ℓ2 part implicitly: stable at any share
    return abs(z[at] - old)


@jit
def _move_row(z, state, gradient, at, k, steps, shrink):
    """Step on one feature's row."""
    moved = 0.0
    if not acts_on_rows(steps.penalty):
        for s in range(k):
            moved += _step(z, state, gradient, at + s, steps, shrink)
            gradient[at + s] = 0.0
        return moved
    for s in range(k):
        state[at + s] += gradient[at + s] ** 2
    eta = _row_rate(state, at, k, steps.rate, steps.adaptive)
    for s in range(k):
        old = z[at + s]
        z[at + s] = (old - eta * gradient[at + s]) / (1.0 + eta * shrink)
        gradient[at + s] = 0.0
        moved += abs(z[at + s] - old)
    return moved


@jit
def _penalty_order(kind, order):
    """Return the order of the penalties on interactions, as `Form.penalty_order`."""
    return order if kind == ANOVA or kind == MIXED else 2


@jit
def proximal_step(z, state, layout, steps, rate, strength):
    """Take the proximal step of each whole table in the metric of the steps; returns the change."""
    spec, features, k = layout.spec, layout.features, layout.components
    adaptive, penalty = steps.adaptive, steps.penalty
    moved = 0.0
    sizes, cuts = np.empty(features), np.empty(features)
    for n in range(len(spec)):
        kind, order = spec[n, 0], _penalty_order(spec[n, 0], spec[n, 1])
        for f in range(spec[n, 2]):
            base = spec[n, 3] + f * features * k
            if not acts_on_rows(penalty):
                for s in range(k):
                    for j in range(features):
                        at = base + j * k + s
                        sizes[j] = abs(z[at])
                        cuts[j] = _rate_of(state[at], rate, adaptive) * strength
                    prox_sizes(penalty, kind, order, sizes, cuts)
                    for j in range(features):
                        at = base + j * k + s
                        moved += abs(abs(z[at]) - sizes[j])
                        z[at] = np.copysign(sizes[j], z[at]) if sizes[j] > 0.0 else 0.0
            else:
                norms = np.empty(features)
                for j in range(features):
                    square = 0.0
                    for s in range(k):
                        square += z[base + j * k + s] ** 2
                    norms[j] = sizes[j] = np.sqrt(square)
                    cuts[j] = _row_rate(state, base + j * k, k, rate, adaptive) * strength
                prox_sizes(penalty, kind, order, sizes, cuts)
                for j in range(features):
                    factor = sizes[j] / norms[j] if norms[j] > 0.0 else 0.0
                    moved += norms[j] - sizes[j]
                    for s in range(k):
                        z[base + j * k + s] *= factor
    return moved


@jit
def _window(z, state, clock, layout, steps, curvature):
    """Return for how many batches the steps may be summed: up to half the inverse of the curvature.

    A parameter's curvature is bounded by that of the loss times its mean squared derivative, which is
    the mean squared gradient over the mean squared derivative of the loss.
    """
    spec, k, rate, adaptive = layout.spec, layout.components, steps.rate, steps.adaptive
    most = 1e-300
    for n in range(len(spec)):
        for row in range(spec[n, 2] * layout.features):
            at = spec[n, 3] + row * k
            for s in range(k):
                if state[at + s] > 0.0:
                    if acts_on_rows(steps.penalty):
                        eta = _row_rate(state, at, k, rate, adaptive)
                    else:
                        eta = _rate_of(state[at + s], rate, adaptive)
                    most = max(most, eta * state[at + s])
    longest = 0.5 * clock[SQUARES] / (curvature * most)
    return int(min(longest, 1e9))
