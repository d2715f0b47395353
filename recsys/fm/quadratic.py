"""Sparse and low-rank quadratic regression: one convex problem over the weights of all pairs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from recsys.utils.docstrings import documented
from recsys.utils.validation import check_integer, check_real

__all__ = ["SparseLowRankQuadratic"]


@documented
@dataclass(eq=False, repr=False)
class SparseLowRankQuadratic(RegressorMixin, BaseEstimator):
    """Minimise ½·mean (ŷ − y)² + trace·‖W‖_* + gamma·‖W‖₁ for ŷ = b + Σ_{i<j} W_ij x_i x_j.

    W is symmetric and holds the weights of all pairs: O(features²) memory and an O(features³) step, so
    it is a yardstick for small problems.

    Parameters
    ----------
    trace, gamma : float ≥ 0
    max_iter : int ≥ 1
    tol : float ≥ 0
        Stop when W changes by less than this share of its norm.
    fit_intercept : bool
    callback : callable, optional
        Called as callback(iteration, objective); what is true ends the fit.

    Attributes
    ----------
    W_ : (features, features) float64
        Symmetric; W_[i, j] is the weight of x_i x_j.
    intercept_ : float
    history_ : list of dict
        "objective" and "seconds".

    Notes
    -----
    Incremental proximal gradient: after the gradient step the trace norm's operator, then the ℓ1 norm's.
    Source: Richard et al. 2012, in Atarashi et al. 2021, (58) and (59).

    Examples
    --------
    >>> from recsys.fm import planted_interactions, recovery
    >>> data = planted_interactions(500, groups=1, per_group=3, noise_features=2)
    >>> model = SparseLowRankQuadratic(gamma=0.1, max_iter=1000).fit(data.X, data.y)
    >>> recovery(data.W, model.W_).f1
    1.0
    """

    trace: float = 0.01
    gamma: float = 0.01
    max_iter: int = 200
    tol: float = 1e-6
    fit_intercept: bool = True
    callback: Callable[[int, float], Any] | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> SparseLowRankQuadratic:
        """Fit.

        Parameters
        ----------
        X : (rows, features)
        y : (rows,)

        Raises
        ------
        InputError
            For parameters out of range.
        """
        check_integer("max_iter", self.max_iter, 1)
        for name in ("trace", "gamma", "tol"):
            check_real(name, getattr(self, name), 0.0)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        X, y = np.asarray(X), np.asarray(y, dtype=np.float64)
        n, d = X.shape
        # ½·xᵀWx without the diagonal; its gradient's Lipschitz bound from the rows' norms
        squares = (X * X).sum(axis=1)
        step = 1.0 / max(float(np.mean(squares**2)), 1e-12)
        W = np.zeros((d, d))
        self.intercept_ = float(y.mean()) if self.fit_intercept else 0.0
        self.history_: list[dict[str, float]] = []
        started = time.perf_counter()
        for iteration in range(1, self.max_iter + 1):
            residual = self._values(X, W) + self.intercept_ - y
            gradient = (X * residual[:, None]).T @ X / (2.0 * n)
            np.fill_diagonal(gradient, 0.0)
            values, vectors = np.linalg.eigh(W - step * gradient)
            values = np.sign(values) * np.maximum(np.abs(values) - step * self.trace, 0.0)
            new = (vectors * values) @ vectors.T
            new = np.sign(new) * np.maximum(np.abs(new) - 0.5 * step * self.gamma, 0.0)
            change = float(np.linalg.norm(new - W))
            W = new
            if self.fit_intercept:
                self.intercept_ = float(np.mean(y - self._values(X, W)))
            residual = self._values(X, W) + self.intercept_ - y
            off = float(np.abs(W).sum() - np.abs(np.diag(W)).sum())
            trace = float(np.abs(np.linalg.eigvalsh(W)).sum())  # of W as it is after the ℓ1 step
            objective = (
                0.5 * float(residual @ residual) / n + self.trace * trace
                + 0.5 * self.gamma * off
            )  # fmt: skip
            self.history_.append({"objective": objective, "seconds": time.perf_counter() - started})
            self.n_iter_ = iteration
            if self.callback is not None and self.callback(iteration, objective):
                break
            if change <= self.tol * max(float(np.linalg.norm(W)), 1e-12):
                break
        self.W_ = 0.5 * (W + W.T)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return predictions, (rows,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._values(np.asarray(X), self.W_) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that there is no linear term, and so a poor score on a linear task."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    @staticmethod
    def _values(X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
        return 0.5 * (((X @ W) * X).sum(axis=1) - (X * X) @ np.diag(W))
