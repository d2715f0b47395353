"""Katyusha: stochastic steps with the variance taken out by full gradients, and negative momentum.

As with `psgd`, every step moves all of P and applies the proximal operator to all of it, whatever the
batch.

Sources: Allen-Zhu 2017; Atarashi et al. 2021, appendix C.2.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties import L2
from recsys.fm.solvers.base import SOLVERS, WITH_PROX
from recsys.fm.solvers.proximal import Proximal
from recsys.fm.solvers.stochastic import ALONE, Steps, batch_gradient, proximal_step
from recsys.multilinear.forms import Compressed
from recsys.multilinear.rows import room_for


@SOLVERS.add("katyusha")
class Katyusha(Proximal):
    """Mini-batch steps with the variance taken out by a full gradient, and its negative momentum."""

    penalties = WITH_PROX
    monotone = False
    place = 8

    def epoch(self) -> float:
        """Draw as many rows as there are from one full gradient on; keep what lowers the objective."""
        with np.errstate(over="ignore", invalid="ignore"):  # steps too long are taken back below
            return self._epoch()

    def _epoch(self) -> float:
        p, by, n = self.objective, self.objective.regularization, self.objective.X.shape[0]
        size = max(self.options.batch_size, 1)
        inner = max(n // size, 1)
        self._forward_backward(self.now)  # finds 1/L
        _, mean = p.smooth(self.now)
        y, total = self.now.copy(), np.zeros_like(self.now)
        drawn = p.rng.randint(n, size=inner * size).astype(np.int64)
        rest = by.beta - p.half_squares
        steps = Steps(by.alpha, rest, by.gamma, by.penalty.code, size, self.step / 3.0, p.intercept)
        variance_reduced_steps(
            self.now,
            mean,
            y,
            total,
            p.model.layout,
            Compressed.of(p.X),
            p.target,
            drawn,
            steps,
            p.half_squares,
        )
        best = min((y, total / inner), key=lambda z: p.smooth_value(z) + p.rough(z))
        value = p.smooth_value(best) + p.rough(best)
        if value < self.value:
            self.now, self.value = best, value
            self.step *= 1.5
        else:
            self.step *= 0.5
        return self._settle(self.now)


# ---- kernels


@jit
def variance_reduced_steps(snapshot, mean, y, total, layout, rows, target, drawn, steps, half):
    """Take one epoch's steps, for the drawn rows in batches.

    `mean` is the gradient of the smooth part at the snapshot; y becomes the last point, total the sum of
    all of them. Of the steps, beta is what the smooth part has of ½‖P‖², and rate the length; `half` is
    the weight of the ½‖P‖² that the penalty's proximal operator has.
    """
    batch, rate = steps.batch, steps.rate
    spec, k, n = layout.spec, layout.components, len(snapshot)
    tables, room = np.empty((len(spec), layout.width, k)), room_for(layout, rows)
    here, there = np.zeros(n), np.zeros(n)
    ahead = snapshot.copy()
    alone = np.full(batch, ALONE)
    for start in range(0, len(drawn), batch):
        picked = drawn[start : start + batch]
        for at in range(n):
            y[at] = 0.5 * ahead[at] + 0.5 * snapshot[at]
        batch_gradient(y, layout, rows, target, picked, alone, tables, room, here)
        batch_gradient(snapshot, layout, rows, target, picked, alone, tables, room, there)
        for at in range(n):
            g = mean[at]
            if at == 0:
                g += (here[at] - there[at]) * steps.intercept
            elif at <= layout.features:
                g += (here[at] - there[at] + steps.alpha * (y[at] - snapshot[at])) * layout.linear
            else:
                g += here[at] - there[at] + steps.beta * (y[at] - snapshot[at])
            ahead[at] -= 2.0 * rate * g
            y[at] -= rate * g
            here[at] = there[at] = 0.0
        if steps.penalty != L2:
            _operator(ahead, layout, steps, 2.0 * rate, half)
            _operator(y, layout, steps, rate, half)
        for at in range(n):
            total[at] += y[at]


@jit
def _operator(z, layout, steps, rate, half):
    """Apply the proximal operator of the penalty with its ½‖P‖², unlike `proximal_step`."""
    if half > 0.0:
        for at in range(1 + layout.features, len(z)):
            z[at] /= 1.0 + rate * half
    proximal_step(z, layout, steps.penalty, rate * steps.gamma)
