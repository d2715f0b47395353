"""Learned combinations of kernels: Average, EasyMKL, R-MKL, and GRAM's radius-margin ratio.

Each learns weights μ ≥ 0 that sum to 1 and hands Σ μ_r K_r to a hard-margin KOMD. The
squared ratio R²/ρ² bounds the leave-one-out error. Source: Polato's thesis, 4.7 and 9.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.kernel_machines.komd import kernel_function, margin_weights
from recsys.kernels import make_kernel
from recsys.kernels.expressiveness import Program, margin_program, radius_program
from recsys.utils.estimators import TwoClassMixin, checked_rows, two_classes
from recsys.utils.resources import check_memory
from recsys.utils.validation import check_integer, check_real

SOLVER_TOLERANCE = 1e-7
# Soft margins are as small as 4/rows, of which this is still a small share.
SOFT_TOLERANCE = 1e-9
# The share of what the gradient promises that a step must gain (Armijo 1966): any gain would keep a step
# that goes from one side of the minimum to the other.
SUFFICIENT = 0.25

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class _Combination(TwoClassMixin, BaseEstimator):
    """Base of the estimators: a hard-margin machine on a weighted sum of kernels.

    Parameters
    ----------
    kernels : list of kernels, "precomputed", or None
        As in `KOMD`; mC of every degree by default.
    normalize : bool
        Scale each kernel to unit diagonal.
    identity : bool
        Add the identity as a kernel, so that the data are separable (9.18).

    Attributes
    ----------
    weights_ : (kernels,) float64
        Weights; that of the identity is last.
    margin_, radius_, ratio_ : float
        ρ, R and R²/(rows·ρ²) on the training rows; infinite if the classes are not separated.
    """

    kernels: Any = None
    normalize: bool = True
    identity: bool = True

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit on (rows, features), or (kernels, rows, rows) if kernels is "precomputed"."""
        self._check_parameters()
        grams, sign = self._training_grams(X, y)
        self.weights_ = self._learn(grams, sign)
        K = combined(self.weights_, grams)
        self.ratio_, margin, ball = ratio_and_programs(K, sign)
        self.margin_, self.radius_ = (float(np.sqrt(max(p.squared, 0.0))) for p in (margin, ball))
        self.dual_ = sign * margin.weights
        self.intercept_ = float(0.5 * (margin.weights @ (K @ self.dual_)))
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return scores, above 0 for the second class; precomputed: (kernels, rows, training rows)."""
        check_is_fitted(self)
        if self._precomputed:
            parts = [np.asarray(K, dtype=np.float64) for K in X]  # type: ignore[union-attr]
            if len(parts) != self.n_kernels_ or any(K.shape[1:] != self.dual_.shape for K in parts):
                raise InputError(
                    f"X must contain {self.n_kernels_} matrices with one column per training row"
                )
        else:
            X = checked_rows(self, X, dtype="numeric", accept_sparse="csr", reset=False)
            parts = [k(X, self.X_fit_, normalize=self.normalize) for k in self._functions]
        scores = np.array([part @ self.dual_ for part in parts])  # of the identity 0 on new rows
        return self.weights_[: len(parts)] @ scores - self.intercept_

    def _check_parameters(self) -> None:
        pass

    def _learn(self, grams: Array, sign: Array) -> Array:
        raise NotImplementedError

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _training_grams(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Return the Gram matrices, (kernels, rows, rows), and the signs of the rows' classes."""
        if self._precomputed:
            given, y = [np.asarray(K, dtype=np.float64) for K in X], np.asarray(y)
            rows = len(given[0]) if given else 0
            if rows == 0 or any(K.shape != (rows, rows) or not np.isfinite(K).all() for K in given):
                raise InputError("precomputed kernels must be finite square matrices of one size")
            self.n_kernels_ = len(given)
        else:
            X, y = checked_rows(self, X, y, dtype="numeric", accept_sparse="csr")
            rows, self.X_fit_ = X.shape[0], X
            kernels = self.kernels
            if kernels is None:  # mC of every degree up to the most ones of a row
                most = max(1, int(np.max(np.asarray((X > 0).sum(axis=1)))))
                kernels = [make_kernel("mc", degree=d) for d in range(1, most + 1)]
            elif isinstance(kernels, str) or len(kernels) == 0:
                raise InputError('kernels is a list of kernels, or "precomputed"')
            self._functions = [kernel_function(kernel) for kernel in kernels]
            self.n_kernels_ = len(self._functions)
        self.classes_ = two_classes(y)
        if len(y) != rows:
            raise InputError(f"y has {len(y)} entries for {rows} rows")
        count = self.n_kernels_ + self.identity
        what = f"{count} Gram matrices of {rows:,} rows"
        check_memory(8 * count * rows * rows, what, "use fewer rows or kernels")
        grams = np.empty((count, rows, rows))
        for k in range(self.n_kernels_):
            grams[k] = given[k] if self._precomputed else self._functions[k](X, normalize=self.normalize)
        if self.identity:
            grams[-1] = np.eye(rows)
        return grams, np.where(y == self.classes_[1], 1.0, -1.0)


@dataclass(eq=False, repr=False)
class AverageMKL(_Combination):
    """The mean of the kernels: a strong baseline.

    Other parameters: as in `_Combination`.
    """

    def _learn(self, grams: Array, sign: Array) -> Array:
        return np.full(len(grams), 1.0 / len(grams))


@dataclass(eq=False, repr=False)
class EasyMKL(_Combination):
    """EasyMKL: weights proportional to the contribution of each kernel to the margin of their sum.

    γ minimizes (1 − λ) γᵀY(Σ_r K_r)Yγ + λ‖γ‖² over weights γ ≥ 0 that sum to 1 in each class;
    μ_r is γᵀYK_rYγ, scaled to sum 1. The sum is not a mean: the more kernels, the weaker λ.

    Parameters
    ----------
    regularization : float in 0…1
        λ of the machine on the sum.

    Other parameters: as in `_Combination`.

    Notes
    -----
    Source: Aiolli and Donini 2015.
    """

    regularization: float = 0.1

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0, 1.0)

    def _learn(self, grams: Array, sign: Array) -> Array:
        gamma, _ = margin_weights(grams.sum(axis=0), sign, self.regularization, SOLVER_TOLERANCE)
        shares = np.maximum(forms(grams, sign * gamma)[0], 0.0)
        total = shares.sum()
        return shares / total if total > 0 else np.full(len(grams), 1.0 / len(grams))


@dataclass(eq=False, repr=False)
class _Descent(_Combination):
    """Base of the estimators that learn weights, a softmax of β, by gradient descent.

    Parameters
    ----------
    learning_rate : float > 0
        First η.
    max_iter : int ≥ 1
        Largest number of steps, including rejected ones.

    Attributes
    ----------
    n_iter_ : int
    stopped_ : "tolerance", "step" or "max_iter"
        Reason for the end; "step" if no step lowers the ratio enough, or if the ratio is infinite.
    gap_ : float
        Certified bound on the share by which the value exceeds its minimum over all weights.
    """

    learning_rate: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)
        check_real("tol", self.tol, 0.0, open_low=True)
        check_integer("max_iter", self.max_iter, 1)

    def _ends(self, gains: list[float]) -> bool:
        """Return whether to end, given the share of the ratio that each accepted step gained."""
        raise NotImplementedError

    def _descend(self, count: int, least: float, parts: Any) -> tuple[Array, list[float]]:
        """Minimize ⟨μ,a⟩/⟨μ,b⟩, (a, b) = parts(μ), where ⟨μ,b⟩ > least; return μ and the ratios."""

        def at(beta: Array) -> tuple[Array, Array, Array, float]:
            mu = np.exp(beta - beta.max())
            mu /= mu.sum()
            a, b = parts(mu)
            return mu, a, b, float(mu @ a / (mu @ b)) if mu @ b > least else np.inf

        beta, step = np.zeros(count), float(self.learning_rate)
        mu, a, b, ratio = at(beta)
        ratios, gains = [ratio], []
        self.n_iter_, self.gap_ = 0, _gap(ratio, a, b)
        self.stopped_ = "max_iter" if ratio < np.inf else "step"  # what all do not separate, none does
        while self.n_iter_ < self.max_iter and ratio < np.inf:
            self.n_iter_ += 1
            top, bottom = float(mu @ a), max(float(mu @ b), 1e-300)
            # (9.15) without its factor μ_r, which stalls small weights, and relative to the ratio.
            slope = (a * bottom - b * top) / bottom**2 / max(ratio, 1e-300)
            trial = at(beta - step * slope)
            promised = step * float(mu @ (slope - mu @ slope) ** 2)  # to first order, as a share
            if not trial[-1] < ratio * (1.0 - SUFFICIENT * promised):
                step /= 2
                if step < 1e-6 * self.learning_rate:
                    self.stopped_ = "step"
                    break
                continue
            gains.append((ratio - trial[-1]) / ratio)
            beta = beta - step * slope
            mu, a, b, ratio = trial
            ratios.append(ratio)
            step *= 2
            self.gap_ = _gap(ratio, a, b)
            if self._ends(gains):
                self.stopped_ = "tolerance"
                break
        return mu, ratios


@dataclass(eq=False, repr=False)
class GRAM(_Descent):
    """GRAM: gradient descent on the exact radius-margin ratio R²/ρ² of the combination.

    A step that lowers the ratio by less than a quarter of the prediction of its gradient is rejected and
    halved; otherwise the next step is twice as long.

    Parameters
    ----------
    tol : float > 0
        Stop after three steps in a row that lower the ratio by less than this share.

    Other parameters: as in `_Descent`.

    Attributes
    ----------
    ratios_ : list of float
        R²/(rows·ρ²) after each accepted step, beginning with equal weights.

    Notes
    -----
    Source: Polato's thesis, Algorithm 9.1 with a descent in line 12; 9.2.2 for kernels that are not
    normalized.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import GRAM
    >>> model = GRAM(["linear", "mdnf"]).fit(table.X, table.y)
    >>> model.weights_.round(2)
    array([0., 1., 0.])
    """

    def _ends(self, gains: list[float]) -> bool:
        return len(gains) >= 3 and max(gains[-3:]) < self.tol

    def _learn(self, grams: Array, sign: Array) -> Array:
        own = np.diagonal(grams, axis1=1, axis2=2)

        def parts(mu: Array) -> tuple[Array, Array]:
            K = combined(mu, grams)
            alpha = radius_program(K, tol=SOLVER_TOLERANCE).weights
            gamma = margin_program(K, sign, tol=SOLVER_TOLERANCE).weights
            inner, squares = forms(grams, alpha, sign * gamma)
            return own @ alpha - inner, squares

        mu, ratios = self._descend(len(grams), least_margin(grams.mean(axis=0)), parts)
        self.ratios_ = [ratio / len(sign) for ratio in ratios]
        return mu


@dataclass(eq=False, repr=False)
class RMKL(_Descent):
    """R-MKL: the soft-margin L2-SVM with the radius in its penalty, minimized over the weights.

    min over μ of J(μ) = max Σα_i − ½ αᵀY(Σ_r μ_r K_r + (Σ_r μ_r R_r²/C) I)Yα over α ≥ 0 with
    αᵀy = 0; R_r is the radius of the ball around the data under kernel r. J is convex. If the weights of
    both classes in α are scaled to sum to 1, J = 2/ρ² with ρ² = min γᵀY(…)Yγ.

    Parameters
    ----------
    tol : float > 0
        Stop when J is certified to be within this share of its minimum.
    C : float > 0
        Cost of slack, which divides the squared radius.

    Other parameters: as in `_Descent`.

    Attributes
    ----------
    objectives_ : list of float
        J after each accepted step, beginning with equal weights.

    Notes
    -----
    Source: Do, Kalousis, Woznica and Hilario 2009.
    """

    tol: float = 1e-5
    C: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("C", self.C, 0.0, open_low=True)

    def _ends(self, gains: list[float]) -> bool:
        return self.gap_ <= self.tol

    def _learn(self, grams: Array, sign: Array) -> Array:
        # The ball around separate points has R² < max κ(x,x): none is 0 but for constant kernels.
        radii = np.array([max(radius_program(K, tol=SOLVER_TOLERANCE).squared, 0.0) for K in grams])

        def parts(mu: Array) -> tuple[Array, Array]:
            ridge, K = float(mu @ radii) / self.C, combined(mu, grams)
            gamma = margin_program(K, sign, ridge=ridge, tol=SOFT_TOLERANCE).weights
            slack = radii / self.C * (gamma @ gamma)
            return np.full(len(mu), 2.0), forms(grams, sign * gamma)[0] + slack

        mu, self.objectives_ = self._descend(len(grams), 0.0, parts)
        return mu


def combined(weights: Array, grams: Array) -> Array:
    """Return Σ_r weights[r]·K_r."""
    return np.tensordot(weights, grams, axes=1)


def forms(grams: Array, *vectors: Array) -> Array:
    """Return vᵀK_r v of each vector and kernel, (vectors, kernels)."""
    V = np.column_stack(vectors)
    return np.einsum("iv,riv->vr", V, grams @ V)


def _gap(ratio: float, a: Array, b: Array) -> float:
    """Return 1 − min(a/b)/ratio: at any weights ν the value is at least ⟨ν,a⟩/⟨ν,b⟩ ≥ min(a/b)."""
    least = float(np.min(a / np.maximum(b, 1e-300)))
    return max(1.0 - least / ratio, 0.0) if ratio < np.inf else 1.0


def radius_margin_ratio(K: ArrayLike, y: ArrayLike, identity: float = 0.0) -> float:
    """Return R²/(rows·ρ²) of a Gram matrix, infinite for classes that K does not separate.

    Smaller values give lower error bounds.

    Parameters
    ----------
    K : (rows, rows) float
    y : (rows,)
        Two classes.
    identity : float in 0…1
        Share t of the identity in K ← (1 − t)·K + t·(mean diagonal)·I, which keeps the ratio finite.

    Notes
    -----
    Source: Polato's thesis, 8.4 and 9.3.2.
    """
    share = check_real("identity", identity, 0.0, 1.0)
    K = np.asarray(K, dtype=np.float64)
    G = (1.0 - share) * K
    G[np.diag_indices_from(G)] += share * float(np.mean(np.diag(K)))
    return ratio_and_programs(G, y)[0]


def ratio_and_programs(G: Array, y: ArrayLike) -> tuple[float, Program, Program]:
    """Return R²/(rows·ρ²) of G and the programs of ρ and R."""
    margin = margin_program(G, y, tol=SOLVER_TOLERANCE)
    if margin.squared <= 10.0 * margin.gap:  # rounding might pass for a margin
        margin = margin_program(G, y)
    ball = radius_program(G, tol=SOLVER_TOLERANCE)
    separated = margin.squared > least_margin(G)
    return ball.squared / margin.squared / len(G) if separated else float("inf"), margin, ball


def least_margin(G: Array) -> float:
    """Return the ρ² below which classes count as inseparable: a share of the mean diagonal."""
    return 1e-9 * max(float(np.mean(np.diag(G))), 1e-300)
