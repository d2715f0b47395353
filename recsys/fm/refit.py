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
from scipy.special import expit

from recsys.multilinear.arrays import ALIKE
from recsys.multilinear.losses import HUBER, LOGISTIC, SQUARED_HINGE, Loss, mean_loss, slopes_of
from recsys.utils.linalg import solve_positive

__all__ = ["ProductModel", "fit_products", "product_columns"]

DENSE = 4000  # columns up to which their second derivatives are one dense matrix
MOST_NEWTON, MOST_STEPS = 50, 1000
ENOUGH = 1e-7  # of the first gradient
Combination = tuple[int, ...]


@dataclass(frozen=True)
class ProductModel:
    """ŷ = b + ⟨w, x⟩ + Σ_S v_S Π_{j∈S} x_j."""

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
    """Return a column for each interaction, the product of its features: (rows, interactions) CSR.

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
    """Minimise mean loss + ½α(‖w‖² + ‖v‖²); y is −1 and 1 for classes.

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
    n, squares = len(y), np.asarray(Z.multiply(Z).sum(axis=0)).ravel()
    # every direction gets about the same curvature: rare and frequent features move at one pace
    bound = loss.curvature * squares / n + alpha
    scale = np.where(bound > 0.0, 1.0 / np.sqrt(np.where(bound > 0.0, bound, 1.0)), 0.0)

    start = np.zeros(Z.shape[1] + 1)
    if intercept and loss.for_numbers:
        start[0] = float(np.median(y) if loss.name == "huber" else np.mean(y))
    fitting = _Fitting(Z, y, loss, alpha, intercept, scale)
    found = fitting.newton(start) if Z.shape[1] <= DENSE else fitting.lbfgs(start)
    if Z.shape[1] <= DENSE and not fitting.rests(found, start):
        # Newton's steps are of no use where nothing bends: Huber's loss, all rows far off
        found = fitting.lbfgs(found)
    weights = scale * found[1:]
    size = X.shape[1] if linear else 0
    own = weights[:size] if linear else np.zeros(X.shape[1])
    return ProductModel(float(found[0]), own, given, weights[size:])


class _Fitting:
    """The convex problem in variables of about equal curvature; the first is the bias."""

    def __init__(
        self, Z: sp.csr_matrix, y: NDArray[np.float64], loss: Loss, alpha: float, intercept: bool,
        scale: NDArray[np.float64],
    ) -> None:  # fmt: skip
        self.Z = sp.csr_matrix(Z.multiply(scale[None, :])) if Z.shape[1] else Z
        self.across = sp.csr_matrix(self.Z.T)
        self.y, self.loss, self.intercept = y, loss, intercept
        self.ridge = alpha * scale**2

    def value(self, v: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient."""
        pred = self.Z @ v[1:] + v[0]
        slopes = slopes_of(self.loss.code, pred, self.y) / len(self.y)
        out = np.empty_like(v)
        out[0] = slopes.sum() if self.intercept else 0.0
        out[1:] = self.across @ slopes + self.ridge * v[1:]
        loss = float(mean_loss(self.loss.code, pred, self.y, ALIKE))
        return loss + 0.5 * float(self.ridge @ v[1:] ** 2), out

    def rests(self, v: NDArray[np.float64], start: NDArray[np.float64]) -> bool:
        """Return whether the gradient is next to nothing, relative to that at the start."""
        slopes = [float(np.linalg.norm(self.value(at)[1])) for at in (v, start)]
        return slopes[0] <= ENOUGH * slopes[1]

    def newton(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take Newton's steps, each as long as the objective falls enough."""
        value, slope = self.value(v)
        first = float(np.linalg.norm(slope))
        for _ in range(MOST_NEWTON):
            if float(np.linalg.norm(slope)) <= ENOUGH * first:
                break
            step = self._direction(v, slope)
            along, length = float(slope @ step), 1.0
            while True:
                other, its_slope = self.value(v + length * step)
                if other <= value + 1e-4 * length * along or length < 1e-8:
                    break
                length *= 0.5
            if other >= value:
                break
            v, value, slope = v + length * step, other, its_slope
        return v

    def _direction(self, v: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return −H⁻¹g, with a little on the diagonal of H, where sums of products are products."""
        bends = self._bends(self.Z @ v[1:] + v[0]) / len(self.y)
        weighted = self.Z.copy()
        weighted.data = self.Z.data * np.repeat(bends, np.diff(self.Z.indptr))
        H = np.zeros((len(v), len(v)))
        H[1:, 1:] = (self.across @ weighted).toarray()
        H[0, 0], H[0, 1:] = (
            (bends.sum(), np.asarray(weighted.sum(axis=0))) if self.intercept else (1.0, 0.0)
        )
        H[1:, 0] = H[0, 1:]
        H[np.diag_indices(len(v))] += np.r_[0.0, self.ridge] + 1e-10
        return -np.asarray(solve_positive(H, slope))

    def _bends(self, pred: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ∂²ℓ/∂p² of each row, where it is none one of the two sides."""
        if self.loss.code == LOGISTIC:
            return np.asarray(expit(pred) * expit(-pred))
        if self.loss.code == SQUARED_HINGE:
            return np.where(self.y * pred < 1.0, 2.0, 0.0)
        if self.loss.code == HUBER:
            return np.where(np.abs(pred - self.y) <= 1.0, 1.0, 0.0)
        return np.ones(len(pred))

    def lbfgs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take quasi-Newton steps, for columns whose Hessian is too large to be solved."""
        first = float(np.linalg.norm(self.value(v)[1]))
        found = minimize(
            self.value, v, jac=True, method="L-BFGS-B",
            options={
                "maxiter": MOST_STEPS, "gtol": ENOUGH * max(first, 1e-300), "ftol": 1e-14, "maxcor": 20
            },
        )  # fmt: skip
        return np.asarray(found.x)
