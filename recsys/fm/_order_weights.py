"""The weights of the orders of a shared P, learned on the simplex (HOFM-shared-simplex)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.fm._block import fill_tables
from recsys.fm._objects import slopes_of
from recsys.fm._problem import Problem
from recsys.fm._rows import ANOVA
from recsys.optim.prox import project_simplex

STEPS = 20


def theta_step(problem: Problem) -> float:
    """Descend on θ ≥ 0, Σθ = 1 by projected gradients on the quadratic bound; returns the change."""
    model = problem.model
    P, theta = model.tables()[0][0], model.theta[0]
    parts = order_parts(problem.X, P, len(theta))
    n = len(problem.y)
    bound = problem.curvature * float(np.linalg.norm(parts.T @ parts, 2)) / n
    if bound <= 0.0:
        return 0.0
    before = theta.copy()
    for _ in range(STEPS):
        slopes = slopes_of(problem.loss, problem.pred, problem.y)
        new = project_simplex(theta - parts.T @ slopes / n / bound)
        problem.pred += parts @ (new - theta)
        theta[:] = new
    return float(np.abs(theta - before).sum())


def order_parts(X: sp.csr_matrix, P: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return Σ_s A^t(p_s, x) for each row and t = 1…degree, (rows, degree)."""
    tables = np.empty((X.shape[0], P.shape[1], degree))
    fill_tables(ANOVA, X.indptr, X.indices, X.data, P, tables)
    return np.ascontiguousarray(tables.sum(axis=1))
