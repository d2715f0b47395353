"""A model of features and of some of their products, with a weight of its own for each: what debiases.

A sparse penalty chooses and shrinks at once. Fitted again with just what was chosen, and without that
penalty, the weights are what the rows say. The problem is convex: no start, no order of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from recsys.multilinear.losses import Loss, mean_loss, slopes_of

__all__ = ["ProductModel", "fit_products", "product_columns"]

MOST_STEPS = 1000
Combination = tuple[int, ...]


@dataclass(frozen=True)
class ProductModel:
    """ŷ = b + ⟨w, x⟩ + Σ_S v_S Π_{j∈S} x_j.

    Attributes
    ----------
    intercept : float
    linear : (features,) float64
    interactions : tuple of tuple of int
    weights : (interactions,) float64
    """

    intercept: float
    linear: NDArray[np.float64]
    interactions: tuple[Combination, ...]
    weights: NDArray[np.float64]

    def predict(self, X: sp.csr_matrix) -> NDArray[np.float64]:
        """Return predictions, (rows,); for classes, scores."""
        out = self.intercept + X @ self.linear
        if self.interactions:
            out = out + product_columns(X, self.interactions) @ self.weights
        return np.asarray(out)


def product_columns(X: sp.csr_matrix, interactions: Sequence[Combination]) -> sp.csr_matrix:
    """Return a column for each interaction, the product of its features.

    Parameters
    ----------
    X : (rows, features) sparse
    interactions : sequence of tuple of int

    Returns
    -------
    (rows, interactions) float64 CSR

    Examples
    --------
    >>> product_columns(sp.csr_matrix([[2.0, 3.0, 0.0]]), [(0, 1), (1, 2)]).toarray().tolist()
    [[6.0, 0.0]]
    """
    columns = sp.csc_matrix(X, dtype=np.float64)
    orders = sorted({len(one) for one in interactions})
    parts, places = [], []
    for order in orders:
        mine = [k for k, one in enumerate(interactions) if len(one) == order]
        chosen = np.array([interactions[k] for k in mine])
        product = columns[:, chosen[:, 0]]
        for t in range(1, order):
            product = product.multiply(columns[:, chosen[:, t]])
        parts.append(sp.csc_matrix(product))
        places += mine
    if not parts:
        return sp.csr_matrix((X.shape[0], 0))
    return sp.csr_matrix(sp.hstack(parts, format="csc")[:, np.argsort(places)])


def fit_products(
    X: sp.csr_matrix,
    y: NDArray[np.float64],
    interactions: Sequence[Combination],
    loss: Loss,
    alpha: float,
    linear: bool = True,
    intercept: bool = True,
) -> ProductModel:
    """Minimise mean loss + ½α(‖w‖² + ‖v‖²).

    Parameters
    ----------
    X : (rows, features) CSR
    y : (rows,) float64
        −1 and 1 for classes.
    interactions : sequence of tuple of int
        None for the linear model.
    loss : Loss
    alpha : float ≥ 0
    linear, intercept : bool
        Whether features have weights by themselves; whether there is a bias.

    Examples
    --------
    >>> from recsys.multilinear.losses import LOSSES
    >>> X = sp.csr_matrix([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> model = fit_products(X, np.array([5.0, 1.0, 1.0, 0.0]), [(0, 1)], LOSSES.get("squared"), 0.0)
    >>> np.round(model.weights, 3).tolist()
    [3.0]
    """
    given = tuple(tuple(int(j) for j in one) for one in interactions)
    parts = [X] if linear else []
    parts += [product_columns(X, given)] if given else []
    Z = sp.csr_matrix(sp.hstack(parts, format="csr")) if parts else sp.csr_matrix((len(y), 0))
    across = sp.csr_matrix(Z.T)
    n, squares = len(y), np.asarray(Z.multiply(Z).sum(axis=0)).ravel()
    # every direction gets about the same curvature: rare and frequent features move at one pace
    bound = loss.curvature * squares / n + alpha
    scale = np.where(bound > 0.0, 1.0 / np.sqrt(np.where(bound > 0.0, bound, 1.0)), 0.0)

    def value(v: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w = scale * v[1:]
        pred = Z @ w + v[0]
        slopes = slopes_of(loss.code, pred, y) / n
        out = np.empty_like(v)
        out[0] = slopes.sum() if intercept else 0.0
        out[1:] = scale * (across @ slopes + alpha * w)
        return float(mean_loss(loss.code, pred, y)) + 0.5 * alpha * float(w @ w), out

    start = np.zeros(Z.shape[1] + 1)
    if intercept and loss.for_numbers:
        start[0] = float(np.median(y) if loss.name == "huber" else np.mean(y))
    spread = float(np.linalg.norm(value(start)[1]))
    found = minimize(
        value, start, jac=True, method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": 1e-7 * max(spread, 1e-300), "ftol": 1e-14, "maxcor": 20},
    )  # fmt: skip
    weights = scale * found.x[1:]
    size = X.shape[1] if linear else 0
    own = weights[:size] if linear else np.zeros(X.shape[1])
    return ProductModel(float(found.x[0]), own, given, weights[size:])
