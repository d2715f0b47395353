"""The weights of the orders of a shared P, learned on the simplex (HOFM-shared-simplex)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.fm.custom import loss_argument
from recsys.fm.objective import Objective
from recsys.multilinear.arrays import Compressed, Target
from recsys.multilinear.forms import ANOVA, fill_components
from recsys.multilinear.losses import slopes_of
from recsys.optim.prox import project_simplex
from recsys.utils.linalg import spectral_norm

__all__ = ["descend_on_simplex", "order_parts", "theta_step"]

STEPS = 20


def theta_step(objective: Objective) -> float:
    """Descend on θ ≥ 0, Σθ = 1 by projected gradients on the quadratic bound; returns the change.

    A loss over pairs of rows is one of the differences of their predictions.
    """
    model, slopes = objective.model, objective.compiled(slopes_of)
    P, theta = model.tables()[0][0], model.theta[0]
    parts = order_parts(objective.X, P, len(theta), model.weights[0])
    if objective.pairs is None:
        return descend_on_simplex(parts, theta, objective.target, slopes)
    (up, down), before = objective.pairs, theta.copy()
    difference = objective.pred[up] - objective.pred[down]
    target = Target(
        np.ones(len(up)), difference, loss_argument(objective.loss), objective.loss.curvature
    )
    moved = descend_on_simplex(parts[up] - parts[down], theta, target, slopes)
    objective.pred += parts @ (theta - before)
    return moved


def descend_on_simplex(
    parts: NDArray[np.float64], theta: NDArray[np.float64], target: Target,
    slopes_of: Callable[..., Any] = slopes_of,
) -> float:  # fmt: skip
    """Take the steps for predictions that are `parts` (rows, orders) times θ, beside others'.

    θ and the target's predictions change in place; returns the change of θ.
    """
    n = len(target.y)
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = parts * target.row_weights[:, None] if target.weighted else parts
        products = weighted.T @ parts
    if not np.isfinite(products).all():  # a fit that runs away: its objective tells
        return 0.0
    bound = target.curvature * spectral_norm(products) / n
    if bound <= 0.0:
        return 0.0
    before = theta.copy()
    for _ in range(STEPS):
        slopes = slopes_of(target.loss, target.pred, target.y)
        step = weighted.T @ slopes / n / bound
        if not np.isfinite(step).all():
            break
        new = project_simplex(theta - step)
        np.add(target.pred, parts @ (new - theta), out=target.pred)
        theta[:] = new
    return float(np.abs(theta - before).sum())


def order_parts(
    X: sp.csr_matrix, P: NDArray[np.float64], degree: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ_s λ_s A^t(p_s, x) for each row and t = 1…degree, (rows, degree)."""
    tables = np.empty((X.shape[0], P.shape[1], degree))
    fill_components(ANOVA, Compressed.of(X), P, tables)
    return np.ascontiguousarray(np.einsum("ist,s->it", tables, weights))
