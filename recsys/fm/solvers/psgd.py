"""Proximal stochastic gradient steps: the proximal operator of the whole table after every batch.

Each batch of rows gives a gradient; the whole of P takes the step, shrinks by β and goes through the
proximal operator of the penalty, which costs as much as P is long, whatever the batch. A batch of one
row is PSGD; one with as many non-zeros as there are features, twice as dear as its gradient, is MB-PSGD.

A zero stays where the penalty exceeds the noise of a batch's gradient. Both scale with the step: a
smaller step does not help, a larger batch does. For that reason "sgd" and "adagrad" sum steps over many
batches before they apply the proximal operator once. The batches of an epoch are of one size, up to one
row, and at most `batch_size`: a small last batch would lift the zeros that the others had left.

Source: Atarashi et al. 2021, 4.1, 5.1 and appendix B; the steps: Bottou 2012,
"Stochastic gradient descent tricks", 5.2.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.chain import vanishes
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.stochastic import (
    BATCHES,
    Indices,
    Stochastic,
    batch_gradient,
    proximal_step,
)
from recsys.multilinear.arrays import Compressed

__all__ = ["ProximalStochastic"]


@SOLVERS.add("psgd")
class ProximalStochastic(Stochastic):
    """A proximal step of everything after every batch, of a rate that falls as 1/(1 + rate·β·steps)."""

    place = 13

    def _walk(self, first: Indices, second: Indices) -> float:
        objective, model = self.objective, self.objective.model
        return float(
            objective.compiled(psgd_epoch)(
                model.z, self.state, self.clock, model.layout, Compressed.of(objective.X),
                objective.target, first, second, self._steps(self.rate),
            )
        )  # fmt: skip


# ---- kernels


@jit
def psgd_epoch(z, state, clock, layout, rows, target, first, second, steps):
    """Walk the samples first[i] (with second[i], if not ALONE) in mini-batches; returns the change."""
    batches = (len(first) + steps.batch - 1) // steps.batch
    spec, features, k = layout.spec, layout.features, layout.components
    tables, slopes = np.empty((len(spec), layout.width, k)), np.empty(k)
    gradient = np.zeros(len(z))
    moved = 0.0
    for part in range(batches):
        start, stop = part * len(first) // batches, (part + 1) * len(first) // batches
        batch_gradient(
            z, layout, rows, target, first[start:stop], second[start:stop], tables, slopes, gradient
        )
        eta = steps.rate / (1.0 + steps.rate * steps.beta * clock[BATCHES])
        clock[BATCHES] += 1.0
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
        if not vanishes(steps.penalty):
            moved += proximal_step(z, state, layout, steps, eta, steps.gamma)
    return moved
