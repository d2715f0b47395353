"""The weights of orders that share a P, θ on the simplex, and those of the components, λ.

Sources: Blondel et al. 2016, (17) for θ; Atarashi et al. 2019, (5) and (6) for λ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.fm.objective import Objective
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, Compressed, Form, fill_components
from recsys.multilinear.losses import Target, weighted_slopes
from recsys.utils.validation import real_array

STEPS = 20


def project_simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest point of the simplex {θ ≥ 0, Σθ = 1} to a finite v, of any size."""
    with np.errstate(over="ignore"):  # what is so far below the largest is 0
        v = v - v.max()  # a constant changes nothing, and 1 is lost beside 10¹⁶
        u = np.sort(v)[::-1]
        sums = (np.cumsum(u) - 1.0) / np.arange(1, len(u) + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)


def check_theta(theta: Any, degree: int, fit_lower: str | None) -> NDArray[np.float64]:
    """Return given weights of the orders, (degree,)."""
    if fit_lower != "inhomogeneous":
        raise InputError(f"theta is only for fit_lower='inhomogeneous', not {fit_lower!r}")
    try:
        values = real_array("theta", theta, finite=True)
    except InputError:
        values = np.empty(0)
    if values.shape != (degree,):
        raise InputError(f"theta must be {degree} numbers, one for each order from 1 to degree")
    return values


def theta_step(objective: Objective) -> float:
    """Descend on θ ≥ 0, Σθ = 1 by projected gradients on the quadratic bound; returns the change."""
    model = objective.model
    P, theta = model.tables()[0][0], model.theta[0]
    tables = np.empty((objective.X.shape[0], P.shape[1], len(theta)))
    fill_components(ANOVA, Compressed.of(objective.X), P, tables)
    parts = np.einsum("ist,s->it", tables, model.weights[0])  # Σ_s λ_s A^t(p_s, x)
    if objective.pairs is None:
        return descend_on_simplex(parts, theta, objective.target)
    (up, down), before = objective.pairs, theta.copy()
    moved = descend_on_simplex(parts[up] - parts[down], theta, objective.compared())
    objective.pred += parts @ (theta - before)
    return moved


def descend_on_simplex(parts: NDArray[np.float64], theta: NDArray[np.float64], target: Target) -> float:
    """Take the steps for predictions that are `parts` (rows, orders) times θ, beside others'.

    θ and the target's predictions change in place; returns the change of θ.
    """
    n = len(target.y)
    with np.errstate(over="ignore", invalid="ignore"):
        products = (parts * target.row_weights[:, None]).T @ parts
    if not np.isfinite(products).all():  # a fit that runs away: its objective tells
        return 0.0
    bound = target.curvature * float(np.linalg.norm(products, 2)) / n
    if bound <= 0.0:
        return 0.0
    before = theta.copy()
    for _ in range(STEPS):
        step = parts.T @ weighted_slopes(target) / n / bound
        if not np.isfinite(step).all():
            break
        new = project_simplex(theta - step)
        np.add(target.pred, parts @ (new - theta), out=target.pred)
        theta[:] = new
    return float(np.abs(theta - before).sum())


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


def lambda_step(objective: Objective) -> float:
    """Minimise the quadratic bound in each λ_s in turn, under ½β‖λ‖²; returns the sum of changes."""
    model, beta, pairs = objective.model, objective.regularization.beta, objective.pairs
    moved = 0.0
    for n in range(len(model.forms)):
        values, lambdas = component_values(objective, n), model.weights[n]
        compared = values if pairs is None else values[pairs[0]] - values[pairs[1]]
        for s in range(len(lambdas)):
            target = objective.compared()
            with np.errstate(over="ignore", invalid="ignore"):
                slope = float((weighted_slopes(target) * compared[:, s]).mean()) + beta * lambdas[s]
                squares = float((target.row_weights * compared[:, s] ** 2).mean())
                bound = target.curvature * squares + beta
            if not (np.isfinite(slope) and np.isfinite(bound) and bound > 0.0):
                continue
            change = -slope / bound
            lambdas[s] += change
            objective.pred += change * values[:, s]
            moved += abs(change)
    return moved
