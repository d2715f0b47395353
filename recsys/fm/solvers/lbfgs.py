"""Limited-memory BFGS of scipy, for what is smooth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from recsys.fm.solvers.base import SOLVERS, Solver

__all__ = ["Lbfgs"]


@SOLVERS.add("lbfgs")
class Lbfgs(Solver):
    """Limited-memory BFGS, where no penalty but the squared norms is asked for."""

    required = ("vanishes",)
    place = 9

    def run(self, ended: Callable[[float], bool], max_iter: int) -> None:
        """Leave the loop to scipy, which may itself end earlier."""
        p = self.objective

        def settle(z: NDArray[np.float64]) -> None:
            moved = float(np.abs(z - p.model.z).sum())
            p.model.z[:] = z
            p.refresh()
            if ended(moved + self.weigh_orders()):
                raise StopIteration  # how scipy's `minimize` is told to end

        minimize(
            p.smooth, p.model.z.copy(), jac=True, method="L-BFGS-B", callback=settle,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 1e-12},
        )  # fmt: skip
