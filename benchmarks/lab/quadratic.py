"""Sparse and low-rank quadratic regression (SLQR): the convex baseline of the sparse FM paper's figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

Matrix = NDArray[np.float64]
STEP = 1.5  # over the largest curvature; below 2 the splitting ends at the optimum
POWERS = 30  # steps of the power method, which finds the curvature from below


@dataclass(eq=False, repr=False)
class SparseLowRankQuadratic(RegressorMixin, BaseEstimator):
    """Minimize ½·mean (ŷ − y)² + trace·‖W‖_* + gamma·‖W‖₁ for ŷ = b + Σ_{i<j} W_ij x_i x_j.

    W is symmetric and holds the weights of all pairs: O(features²) memory and an O(features³) step, so
    it is a yardstick for small problems. It stops when W changes by less than the share `tol` of its
    norm, and so little parts both norms' W. `objectives_` has the objective of each iteration.

    The problem is that of Richard et al. 2012, in Atarashi et al. 2021, (58) and (59). Generalized
    forward-backward splitting (Raguet, Fadili and Peyré 2013) ends at its optimum, which one norm's
    operator after the other's does not. `W_` is what the ℓ1 norm's operator leaves, with its zeros.

    >>> from benchmarks.lab.quadratic import SparseLowRankQuadratic
    >>> from benchmarks.lab.planted import planted_interactions, recovery
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

    def fit(self, X: Matrix, y: Matrix) -> SparseLowRankQuadratic:
        step = STEP / max(_curvature(X), 1e-12)
        mean = np.zeros((X.shape[1], X.shape[1]))  # of what is before the two operators
        before = [mean.copy(), mean.copy()]
        self.intercept_ = float(y.mean()) if self.fit_intercept else 0.0
        self.objectives_: list[float] = []
        for _ in range(self.max_iter):
            residual = _values(X, mean) + self.intercept_ - y
            there = 2.0 * mean - step * _gradient(X, residual)
            low_rank = _low_rank(there - before[0], 2.0 * step * self.trace)
            W = _sparse(there - before[1], step * self.gamma)
            before[0] += low_rank - mean
            before[1] += W - mean
            new = 0.5 * (before[0] + before[1])
            change = float(np.linalg.norm(new - mean) + np.linalg.norm(W - low_rank))
            mean = new
            if self.fit_intercept:
                self.intercept_ = float(np.mean(y - _values(X, W)))
            residual = _values(X, W) + self.intercept_ - y
            off = np.abs(W).sum() - np.abs(np.diag(W)).sum()
            penalty = self.trace * np.abs(np.linalg.eigvalsh(W)).sum() + 0.5 * self.gamma * off
            self.objectives_.append(float(0.5 * np.mean(residual**2) + penalty))
            if change <= self.tol * max(float(np.linalg.norm(mean)), 1e-12):
                break
        self.W_ = 0.5 * (W + W.T)
        return self

    def predict(self, X: Matrix) -> Matrix:
        return _values(X, self.W_) + self.intercept_


def _values(X: Matrix, W: Matrix) -> Matrix:
    """Return ½·xᵀWx without the diagonal of each row, (rows,)."""
    return np.asarray(0.5 * (((X @ W) * X).sum(axis=1) - (X * X) @ np.diag(W)))


def _gradient(X: Matrix, residual: Matrix) -> Matrix:
    """Return the gradient of ½·mean residual² by W, (features, features)."""
    out = np.asarray((X * residual[:, None]).T @ X / (2.0 * len(X)))
    np.fill_diagonal(out, 0.0)
    return out


def _curvature(X: Matrix) -> float:
    """Return the largest curvature of ½·mean residual² by W, by the power method."""
    W = _gradient(X, np.ones(len(X)))
    largest = 0.0
    for _ in range(POWERS):
        size = float(np.linalg.norm(W))
        if size == 0.0:
            break
        W = _gradient(X, _values(X, W / size))
        largest = float(np.linalg.norm(W))
    return largest


def _low_rank(W: Matrix, cut: float) -> Matrix:
    """Apply the proximal operator of the trace norm."""
    values, vectors = np.linalg.eigh(W)
    return np.asarray((vectors * _cut(values, cut)) @ vectors.T)


def _sparse(W: Matrix, cut: float) -> Matrix:
    """Apply the proximal operator of the ℓ1 norm of what is off the diagonal."""
    out = _cut(W, cut)
    np.fill_diagonal(out, np.diag(W))
    return out


def _cut(values: Matrix, cut: float) -> Matrix:
    return np.sign(values) * np.maximum(np.abs(values) - cut, 0.0)
