"""Limited-memory BFGS of scipy, for smooth objectives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from recsys.fm.solvers.base import SOLVERS, Solver

BURST = 10  # iterations between two steps on the weights of orders or components


@SOLVERS.add("lbfgs")
class Lbfgs(Solver):
    """Limited-memory BFGS, where no penalty but the squared norms is asked for."""

    penalties = ("l2",)
    place = 9

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

            def settle(z: NDArray[np.float64], burst: int = burst) -> None:
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
