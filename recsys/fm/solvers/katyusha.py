"""Katyusha: mini-batches with the variance taken out by full gradients, and negative momentum.

Source: Allen-Zhu 2017.
"""

from __future__ import annotations

import numpy as np

from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.proximal import Proximal

__all__ = ["Katyusha"]


@SOLVERS.add("katyusha")
class Katyusha(Proximal):
    """Mini-batch steps with the variance taken out by a full gradient, and its negative momentum."""

    required = ("prox",)
    monotone = False
    place = 8

    def epoch(self) -> float:
        """Draw as many rows as there are from one full gradient on; keep what lowers the objective."""
        with np.errstate(over="ignore", invalid="ignore"):  # steps too long are taken back below
            return self._epoch()

    def _epoch(self) -> float:
        p, n = self.objective, self.objective.X.shape[0]
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
            part = p.of_rows(p.rng.randint(n, size=size))
            gradient = mean + part.smooth(x)[1] - part.smooth(snapshot)[1]
            ahead = p.proximal(ahead - 2.0 * step * gradient, 2.0 * step)
            y = p.proximal(x - step * gradient, step)
            total += y
        best = min((y, total / inner), key=lambda z: p.smooth_value(z) + p.rough(z))
        value = p.smooth_value(best) + p.rough(best)
        if value < self.value:
            self.now, self.value = best, value
            self.step *= 1.5
        else:
            self.step *= 0.5
        return self._settle(self.now)
