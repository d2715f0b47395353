"""The weights λ of the components, learned where P cannot take up their size.

ŷ = b + ⟨w, x⟩ + Σ_s λ_s K(p_s, x). Where K is of one order, a component of any size is λ_s = ±1 and a
longer p_s. Of several orders that share a P, and of all subsets, it is not: λ is a parameter, under
½β‖λ‖².

Source: Blondel et al. 2016 (ICML) and Atarashi et al. 2019, (5), have λ; its penalty and the step, which
is the exact minimum of the quadratic bound in all λ of a term, are own work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys.fm.custom import loss_argument
from recsys.fm.objective import Objective
from recsys.multilinear.arrays import Compressed
from recsys.multilinear.forms import ALL_SUBSETS, MIXED, Form, fill_components
from recsys.multilinear.losses import slopes_of
from recsys.utils.linalg import symmetric_eigen

__all__ = ["component_values", "size_matters", "weights_step"]

STEPS = 3  # on the bound, which is the objective itself under the squared loss
RANK = 1e-12  # eigenvalues below this share of the largest one are directions that change nothing


def size_matters(form: Form) -> bool:
    """Return whether P cannot take up the size of a component's weight."""
    return form.kind in (ALL_SUBSETS, MIXED)


def component_values(objective: Objective, n: int) -> NDArray[np.float64]:
    """Return K(p_s, x) of each row and component of a term whose size matters, (rows, k)."""
    model = objective.model
    form, P, X = model.forms[n], model.tables()[n][0], objective.X
    tables = np.empty((X.shape[0], model.components, form.order if form.kind == MIXED else 1))
    fill_components(form.kind, Compressed.of(X), P, tables)
    return tables @ model.theta[n, : tables.shape[2]] if form.kind == MIXED else tables[:, :, 0]


def weights_step(objective: Objective) -> float:
    """Take the steps on λ of each term; predictions change in place. Returns the sum of changes."""
    model, beta = objective.model, objective.regularization.beta
    moved = 0.0
    for n in range(len(model.forms)):
        values, weights = component_values(objective, n), model.weights[n]
        pairs = objective.pairs
        compared = values if pairs is None else values[pairs[0]] - values[pairs[1]]
        rows, weighted = len(compared), compared
        if pairs is None and objective.row_weights is not None:
            weighted = compared * objective.row_weights[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            bound = objective.loss.curvature / rows * (weighted.T @ compared)
        if not np.isfinite(bound).all():  # a fit that runs away: its objective tells
            return moved
        sizes, along = symmetric_eigen(bound + beta * np.eye(len(bound)))
        inverse = np.where(sizes > RANK * max(sizes[-1], 0.0), 1.0 / np.maximum(sizes, 1e-300), 0.0)
        for _ in range(STEPS if objective.loss.name != "squared" else 1):
            pred, y = objective.pred, objective.y
            if pairs is not None:
                pred, y = pred[pairs[0]] - pred[pairs[1]], np.ones(rows)
            slope = (
                weighted.T @ objective.compiled(slopes_of)(loss_argument(objective.loss), pred, y) / rows
                + beta * weights
            )
            change = -along @ (inverse * (along.T @ slope))
            if not np.isfinite(change).all():
                return moved
            weights += change
            np.add(objective.pred, values @ change, out=objective.pred)
            moved += float(np.abs(change).sum())
    return moved
