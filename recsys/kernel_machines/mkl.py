"""Learned combinations of kernels: Average, EasyMKL, R-MKL, and GRAM's radius-margin ratio.

Each learns weights μ ≥ 0 that sum to 1 and hands Σ μ_r K_r to a hard-margin KOMD. The
squared ratio R²/ρ² bounds the leave-one-out error. Source: Polato's thesis, 4.7 and 9.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.kernel_machines.grams import Grams, resolve
from recsys.kernel_machines.selection import SOLVER_TOLERANCE, floor, ratio_of, separation
from recsys.kernels import make_kernel
from recsys.kernels.expressiveness import margin_program, radius_program
from recsys.utils.features import checked_rows
from recsys.utils.two_classes import TwoClassMixin, two_classes
from recsys.utils.validation import check_integer, check_real

# Soft margins are as small as 4/rows, of which this is still a small share.
SOFT_TOLERANCE = 1e-9
# The share of what the gradient promises that a step must gain (Armijo 1966). With any gain allowed, a
# step that is twice the right one is kept for ever: it goes from one side of the minimum to the other.
SUFFICIENT = 0.25


@dataclass(eq=False, repr=False)
class _Combination(TwoClassMixin, BaseEstimator):
    """Base of the estimators: a hard-margin machine on a weighted sum of kernels.

    Parameters
    ----------
    kernels : list of kernels, "precomputed", or None
        Names, Kernels, Expressions or callables; mC of every degree by default. Kernels of this library
        treat values above 0 as 1 and other values as 0.
    normalize : bool
        Whether to scale each kernel to unit diagonal.
    identity : bool
        Whether to add the identity as a kernel, so that the data are separable (9.18).

    Attributes
    ----------
    weights_ : (kernels,) float64
        Weights; that of the identity is last.
    margin_, radius_, ratio_ : float
        ρ, R and R²/(rows·ρ²) on the training rows; the ratio is infinite if the combination does not
        separate the classes.
    """

    kernels: Any = None
    normalize: bool = True
    identity: bool = True

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit on (rows, features), or (kernels, rows, rows) if kernels is "precomputed"."""
        self._check_parameters()
        grams, codes = self._training_grams(X, y)
        self.weights_ = self._learn(grams, codes)
        K = grams.combine(self.weights_)
        solved, ball = separation(K, codes), _radius(K)
        self.margin_ = float(np.sqrt(max(solved.squared, 0.0)))
        self.radius_ = float(np.sqrt(max(ball.squared, 0.0)))
        self.ratio_ = ratio_of(K, solved, ball)
        sign = np.where(codes == 1, 1.0, -1.0)
        self.dual_ = sign * solved.weights
        self.intercept_ = float(0.5 * (solved.weights @ (K @ self.dual_)))
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the score, above 0 for the second class, of (rows, features).

        If precomputed of (kernels, rows, training rows).
        """
        check_is_fitted(self)
        if self._precomputed:
            given = [np.asarray(K, dtype=np.float64) for K in X]  # type: ignore[union-attr]
            rows = len(self.dual_)
            fitting = all(K.ndim == 2 and K.shape[1] == rows for K in given)
            if len(given) != self.n_kernels_ or not fitting:
                raise InputError(
                    f"X must contain {self.n_kernels_} matrices with one column per training row"
                )
            parts = given
        else:
            X = checked_rows(self, X, dtype="numeric", accept_sparse="csr", reset=False)
            parts = [k(X, self.X_fit_, normalize=self.normalize) for k in self._resolved]
        out = np.zeros(parts[0].shape[0])
        for weight, part in zip(self.weights_, parts, strict=False):  # the identity is 0 on new rows
            if weight > 0:
                out += weight * (part @ self.dual_)
        return out - self.intercept_

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""

    def _learn(self, grams: Grams, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        raise NotImplementedError

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _training_grams(self, X: Any, y: Any) -> tuple[Grams, NDArray[np.int64]]:
        """Return the Gram matrices and the rows' classes, 0 or 1."""
        makers: list[Callable[[], NDArray[np.float64]]]
        if self._precomputed:
            matrices = [np.asarray(K, dtype=np.float64) for K in X]
            rows = len(matrices[0]) if matrices else 0
            if rows == 0 or any(K.shape != (rows, rows) or not np.isfinite(K).all() for K in matrices):
                raise InputError("precomputed kernels must be finite square matrices of one size")
            y = np.asarray(y)
            makers = [partial(np.asarray, K) for K in matrices]
        else:
            X, y = checked_rows(self, X, y, dtype="numeric", accept_sparse="csr")
            rows, self.X_fit_ = X.shape[0], X
            self._resolved = [resolve(kernel) for kernel in self._kernel_list(X)]
            makers = [partial(k, X, normalize=self.normalize) for k in self._resolved]
        self.classes_ = two_classes(y)
        if len(y) != rows:
            raise InputError(f"y has {len(y)} entries for {rows} rows")
        self.n_kernels_ = len(makers)
        if self.identity:
            makers.append(lambda: np.eye(rows))
        return Grams(makers, rows), (y == self.classes_[1]).astype(np.int64)

    def _kernel_list(self, X: Any) -> list[Any]:
        """Return the kernels given, or mC of every degree up to the most ones of a row."""
        if self.kernels is not None:
            if isinstance(self.kernels, str) or len(self.kernels) == 0:
                raise InputError('kernels is a list of kernels, or "precomputed"')
            return list(self.kernels)
        ones = (X > 0).sum(axis=1) if not sp.issparse(X) else np.diff((X > 0).tocsr().indptr)
        most = max(1, int(np.max(ones)))
        return [make_kernel("mc", degree=d) for d in range(1, most + 1)]


@dataclass(eq=False, repr=False)
class AverageMKL(_Combination):
    """The mean of the kernels: a strong baseline.

    Other parameters: as in `_Combination`.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import AverageMKL
    >>> model = AverageMKL(["linear", "mdnf"]).fit(table.X, table.y)
    >>> model.weights_.round(2)
    array([0.33, 0.33, 0.33])
    """

    def _learn(self, grams: Grams, codes: NDArray[np.int64]) -> NDArray[np.float64]:
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

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import EasyMKL
    >>> model = EasyMKL(["linear", "mdnf"], regularization=0.0).fit(table.X, table.y)
    >>> model.weights_.round(2)
    array([0.05, 0.64, 0.31])
    """

    regularization: float = 0.1

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0, 1.0)

    def _learn(self, grams: Grams, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        sign = np.where(codes == 1, 1.0, -1.0)
        lam = float(self.regularization)
        if lam == 1.0:
            gamma = np.where(sign > 0, 1 / (sign > 0).sum(), 1 / (sign < 0).sum())
        else:
            # The mean keeps the solver's scale; its ridge is that of the sum, divided likewise.
            K = grams.combine(np.full(len(grams), 1.0 / len(grams)))
            ridge = lam / (1 - lam) / len(grams)
            gamma = margin_program(K, codes, ridge=ridge, tol=SOLVER_TOLERANCE).weights
        return _shares(grams.quadratic(sign * gamma)[0])


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
        Number of steps.
    stopped_ : "tolerance", "step" or "max_iter"
        Reason for the end; "step" if no step lowers the ratio enough, or if the ratio is infinite.
    """

    learning_rate: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)
        check_real("tol", self.tol, 0.0, open_low=True)
        check_integer("max_iter", self.max_iter, 1)

    def _descend(
        self, parts: Any, count: int, least: float, done: Callable[[float], bool]
    ) -> tuple[NDArray[np.float64], list[float]]:
        """Minimize ⟨μ,a⟩/⟨μ,b⟩ with a and b from parts(μ); ⟨μ,b⟩ ≤ least counts as 0.

        Returns μ and the values after each accepted step, the first for equal weights. It ends
        when done, which hears what share of the value each step has gained, says so.
        """
        beta, step = np.zeros(count), float(self.learning_rate)
        mu = _softmax(beta)
        a, b = parts(mu)
        ratio = _ratio(mu, a, b, least)
        ratios = [ratio]
        self.stopped_ = "max_iter"
        self.n_iter_ = 0
        self.gap_ = _gap(ratio, a, b)
        if ratio == np.inf:  # what all kernels together do not separate, none does
            self.stopped_ = "step"
            return mu, ratios
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            top, bottom = mu @ a, mu @ b
            # (9.15) without its factor μ_r, which stalls small weights: the natural gradient of a
            # softmax. It is taken relative to the ratio, so that one first η fits all data.
            slope = (a * bottom - b * top) / max(bottom, 1e-300) ** 2 / max(ratio, 1e-300)
            trial = beta - step * slope
            next_mu = _softmax(trial)
            next_a, next_b = parts(next_mu)
            next_ratio = _ratio(next_mu, next_a, next_b, least)
            promised = step * float(mu @ (slope - mu @ slope) ** 2)  # to first order, as a share
            if not next_ratio < ratio * (1.0 - SUFFICIENT * promised):
                step /= 2
                if step < 1e-6 * self.learning_rate:
                    self.stopped_ = "step"
                    break
                continue
            gain = (ratio - next_ratio) / ratio
            beta, mu, a, b, ratio = trial, next_mu, next_a, next_b, next_ratio
            ratios.append(ratio)
            step *= 2
            self.gap_ = _gap(ratio, a, b)
            if done(gain):
                self.stopped_ = "tolerance"
                break
        return mu, ratios


@dataclass(eq=False, repr=False)
class GRAM(_Descent):
    """GRAM: gradient descent on the exact radius-margin ratio R²/ρ² of the combination.

    Weights are a softmax of β. A step that lowers the ratio by less than a quarter of the prediction of
    its gradient is rejected and halved; otherwise the next step is twice as long.

    Parameters
    ----------
    tol : float > 0
        Stop after three steps in a row that lower the ratio by less than this share.

    Other parameters: as in `_Descent`.

    Attributes
    ----------
    ratios_ : list of float
        R²/(rows·ρ²) after each accepted step, beginning with equal weights.
    gap_ : float
        Certified bound on the share by which the ratio exceeds its minimum over all weights.

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

    def _learn(self, grams: Grams, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        own = grams.diagonals()
        sign = np.where(codes == 1, 1.0, -1.0)

        def parts(mu: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            K = grams.combine(mu)
            alpha = _radius(K).weights
            gamma = margin_program(K, codes, tol=SOLVER_TOLERANCE).weights
            inner, squares = grams.quadratic(alpha, sign * gamma)
            return own @ alpha - inner, squares

        least = floor(grams.combine(np.full(len(grams), 1.0 / len(grams))))
        gains: list[float] = []

        def done(gain: float) -> bool:
            gains.append(gain)
            return len(gains) >= 3 and max(gains[-3:]) < self.tol

        mu, ratios = self._descend(parts, len(grams), least, done)
        self.ratios_ = [ratio / len(codes) for ratio in ratios]
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
    gap_ : float
        Certified bound on the share by which J exceeds its minimum.

    Notes
    -----
    Source: Do, Kalousis, Woznica and Hilario 2009.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import RMKL
    >>> model = RMKL(["linear", "mdnf"]).fit(table.X, table.y)
    >>> model.weights_.round(2)
    array([0., 1., 0.])
    """

    tol: float = 1e-5
    C: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("C", self.C, 0.0, open_low=True)

    def _learn(self, grams: Grams, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        sign = np.where(codes == 1, 1.0, -1.0)
        # The ball around separate points has R² < max κ(x,x): none is 0 but for constant kernels.
        radii = np.array([max(_radius(np.array(gram)).squared, 0.0) for gram in grams])

        def parts(mu: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            ridge = float(mu @ radii) / self.C
            gamma = margin_program(grams.combine(mu), codes, ridge=ridge, tol=SOFT_TOLERANCE).weights
            b = grams.quadratic(sign * gamma)[0] + radii / self.C * (gamma @ gamma)
            return np.full(len(mu), 2.0), b

        mu, self.objectives_ = self._descend(parts, len(grams), 0.0, lambda _: self.gap_ <= self.tol)
        return mu


def _radius(K: NDArray[np.float64]) -> Any:
    return radius_program(K, tol=SOLVER_TOLERANCE)


def _softmax(beta: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(beta - beta.max())
    return e / e.sum()


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.maximum(values, 0.0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1.0 / len(values))


def _gap(ratio: float, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return 1 − min(a/b)/ratio, a bound: a and b are gradients of a convex and a concave function.

    At any other weights ν the value is at least ⟨ν,a⟩/⟨ν,b⟩, and that at least the least a/b.
    """
    least = float(np.min(a / np.maximum(b, 1e-300)))
    return max(1.0 - least / ratio, 0.0) if ratio < np.inf else 1.0


def _ratio(
    mu: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64], least: float
) -> float:
    bottom = mu @ b
    return float(mu @ a / bottom) if bottom > least else float("inf")
