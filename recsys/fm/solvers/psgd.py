"""Proximal stochastic gradient steps: the operator of the whole table after every batch.

Each batch of rows gives a gradient; the whole of P takes the step, shrinks by β and goes through the
operator of the penalty, which costs as much as P is long, whatever the batch. A batch of one row is
PSGD; one with as many non-zeros as there are features, twice as dear as its gradient, is MB-PSGD.

A zero is left when the noise of a batch's gradient exceeds the penalty's pull, and both scale with the
step: a smaller step does not help, a larger batch does. "sgd" and "adagrad" sum steps over many batches
for that reason before they take the operator once. So the batches of an epoch are of one size, give or
take a row, at most `batch_size`: a last one of the few rows that are left over would lift the zeros that
the others had left.

Source: Atarashi et al. 2021, 4.1, 5.1 and appendix B; the steps: Bottou 2012,
"Stochastic gradient descent tricks", 5.2.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm.penalties.chain import L2
from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.stochastic import BATCHES, Steps, Stochastic, batch_gradient, proximal_step
from recsys.multilinear.arrays import Compressed

__all__ = ["ProximalStochastic"]


@SOLVERS.add("psgd")
class ProximalStochastic(Stochastic):
    """A proximal step of everything after every batch, of a rate that falls as 1/(1 + rate·β·steps)."""

    place = 13

    def epoch(self) -> float:
        """Walk all rows in a random order, or as many random pairs."""
        first, second = self._sampled()
        self.passes += 1
        objective, model, by = self.objective, self.objective.model, self.objective.regularization
        steps = Steps(
            by.alpha, by.beta, by.gamma, by.penalty.code, self.options.batch_size, float(self.rate),
            False, objective.intercept,
        )  # fmt: skip
        moved = float(
            psgd_epoch(
                model.z, self.state, self.clock, model.layout, Compressed.of(objective.X),
                objective.target, first, second, steps,
            )
        )  # fmt: skip
        objective.refresh()
        return moved


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
        if steps.penalty != L2:
            moved += proximal_step(z, state, layout, steps, eta, steps.gamma)
    return moved
