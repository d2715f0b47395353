"""Sub-gradient steps on the whole objective.

Source: Atarashi et al. 2021, 3.2.
"""

from __future__ import annotations

from recsys.fm.solvers.base import SOLVERS
from recsys.fm.solvers.proximal import SMALLEST, Proximal

__all__ = ["SubGradient"]

AGAIN = 1e-6  # the step with which a search that gave up starts anew


@SOLVERS.add("subgradient")
class SubGradient(Proximal):
    """Sub-gradient steps on the objective whole, found by backtracking."""

    monotone = False
    place = 10

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
