"""Learned combinations of kernels: Average, EasyMKL, R-MKL, and GRAM's radius-margin ratio.

Each learns weights μ ≥ 0 that sum to 1 and hands Σ μ_r K_r to a hard-margin KOMD. The
squared ratio R²/ρ² bounds the leave-one-out error. Source: Polato's thesis, 4.7 and 9.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from recsys.checks import check_integer, check_real
from recsys.errors import InputError
from recsys.kernels import make_kernel
from recsys.kernels.spectral import margin_program, radius_program
from recsys.machines._grams import Bank, resolve, two_classes

SOLVER_TOLERANCE = 1e-7


class _Combination(ClassifierMixin, BaseEstimator):
    """What the machines share: kernels to Gram matrices, weights to a hard-margin machine."""

    kernels: Any
    normalize: bool
    identity: bool

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Learn the weights and the machine.

        Parameters
        ----------
        X : (rows, features), or (kernels, rows, rows) if kernels is "precomputed"
        y : (rows,)
            Two classes.

        Raises
        ------
        InputError
            If a parameter is out of range, or y does not hold two classes.
        """
        self._check_parameters()
        rows, grams = self._training_grams(X, y)
        codes = self._codes
        if self.identity:
            grams.append(lambda: np.eye(rows))
        whole = self._precomputed and isinstance(X, np.ndarray) and not self.identity
        source: Any = X if whole else (make() for make in grams)
        bank = Bank(source, len(grams), rows)
        try:
            self.weights_ = self._learn(bank, codes)
            K = bank.combine(self.weights_)
        finally:
            bank.close()
        solved, ball = _margin(K, codes), _radius(K)
        self.margin_ = float(np.sqrt(max(solved.squared, 0.0)))
        self.radius_ = float(np.sqrt(max(ball.squared, 0.0)))
        self.ratio_ = float(ball.squared / solved.squared / rows) if solved.squared > 0 else float("inf")
        sign = np.where(codes == 1, 1.0, -1.0)
        self.dual_ = sign * solved.weights
        self.intercept_ = float(0.5 * (solved.weights @ (K @ self.dual_)))
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the combined machine's score: above 0 for the second class.

        Parameters
        ----------
        X : (rows, features), or (kernels, rows, training rows) if precomputed
        """
        check_is_fitted(self)
        if self._precomputed:
            given = [np.asarray(K, dtype=np.float64) for K in X]  # type: ignore[union-attr]
            rows = len(self.dual_)
            fitting = all(K.ndim == 2 and K.shape[1] == rows for K in given)
            if len(given) != self.n_kernels_ or not fitting:
                raise InputError(f"X must hold {self.n_kernels_} matrices with a column a training row")
            parts = given
        else:
            X = validate_data(self, X, dtype="numeric", accept_sparse="csr", reset=False)
            parts = [k(X, self.X_fit_, normalize=self.normalize) for k in self._resolved]
        out = np.zeros(parts[0].shape[0])
        for weight, part in zip(self.weights_, parts, strict=False):  # the identity is 0 on new rows
            if weight > 0:
                out += weight * (part @ self.dual_)
        return out - self.intercept_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""

    def _learn(self, bank: Bank, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        raise NotImplementedError

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _training_grams(self, X: Any, y: Any) -> tuple[int, list[Any]]:
        if self._precomputed:
            given = [np.asarray(K, dtype=np.float64) for K in X]
            rows = len(given[0]) if given else 0
            if rows == 0 or any(K.shape != (rows, rows) or not np.isfinite(K).all() for K in given):
                raise InputError("precomputed kernels are finite square matrices of one size")
            self._set_classes(np.asarray(y), rows)
            self.n_kernels_ = len(given)
            return rows, [lambda K=K: K for K in given]
        X, y = validate_data(self, X, y, dtype="numeric", accept_sparse="csr")
        self._set_classes(y, X.shape[0])
        self.X_fit_ = X
        self._resolved = [resolve(kernel) for kernel in self._kernel_list(X)]
        self.n_kernels_ = len(self._resolved)
        return X.shape[0], [lambda k=k: k(X, normalize=self.normalize) for k in self._resolved]

    def _kernel_list(self, X: Any) -> list[Any]:
        """Return the kernels given, or mC of every degree up to the most ones of a row."""
        if self.kernels is not None:
            if isinstance(self.kernels, str) or len(self.kernels) == 0:
                raise InputError('kernels is a list of kernels, or "precomputed"')
            return list(self.kernels)
        ones = (X > 0).sum(axis=1) if not sp.issparse(X) else np.diff((X > 0).tocsr().indptr)
        most = max(1, int(np.max(ones)))
        return [make_kernel("mc", degree=d) for d in range(1, most + 1)]

    def _set_classes(self, y: Any, rows: int) -> None:
        self.classes_, self._codes = two_classes(y)
        if len(self._codes) != rows:
            raise InputError(f"y has {len(self._codes)} entries for {rows} rows")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn: two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


class AverageMKL(_Combination):
    """The mean of the kernels: the baseline that is hard to beat.

    Parameters
    ----------
    kernels : list of kernels, "precomputed", or None
        Names, Kernels, Expressions or callables; mC of every degree when not given.
    normalize : bool
        Scale each to unit diagonal.
    identity : bool
        Add the identity as one more kernel, so that the data are separable (9.18).

    Attributes
    ----------
    weights_ : (kernels,) float64
        That of the identity last.
    margin_, radius_, ratio_ : float
        ρ, R and R²/(rows·ρ²) on the training rows.
    """

    def __init__(self, kernels: Any = None, normalize: bool = True, identity: bool = True) -> None:
        self.kernels = kernels
        self.normalize = normalize
        self.identity = identity

    def _learn(self, bank: Bank, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(bank), 1.0 / len(bank))


class EasyMKL(_Combination):
    """EasyMKL: weights proportional to each kernel's margin at the average's solution.

    Parameters
    ----------
    kernels, normalize, identity
        As in `AverageMKL`.
    regularization : float in 0…1
        λ of the machine on the average.

    Attributes
    ----------
    weights_, margin_, radius_, ratio_
        As in `AverageMKL`.

    Notes
    -----
    Source: Aiolli and Donini 2015.
    """

    def __init__(
        self,
        kernels: Any = None,
        normalize: bool = True,
        identity: bool = True,
        regularization: float = 0.1,
    ) -> None:
        self.kernels = kernels
        self.normalize = normalize
        self.identity = identity
        self.regularization = regularization

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, 0.0, 1.0)

    def _learn(self, bank: Bank, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        sign = np.where(codes == 1, 1.0, -1.0)
        lam = float(self.regularization)
        if lam == 1.0:
            gamma = np.where(sign > 0, 1 / (sign > 0).sum(), 1 / (sign < 0).sum())
        else:
            K = bank.combine(np.full(len(bank), 1.0 / len(bank)))
            gamma = margin_program(K, codes, ridge=lam / (1 - lam), tol=SOLVER_TOLERANCE).weights
        return _shares(bank.quadratic(sign * gamma)[0])


class GRAM(_Combination):
    """GRAM: gradient descent on the exact radius-margin ratio R²/ρ² of the combination.

    Weights are a softmax of β. A step that does not lower the ratio is taken back and halved;
    one that does lets the next be twice as long.

    Parameters
    ----------
    kernels, normalize, identity
        As in `AverageMKL`.
    learning_rate : float > 0
        First η.
    tol : float > 0
        Stop when three steps in a row lower the ratio by less than this share of it.
    max_iter : int ≥ 1

    Attributes
    ----------
    weights_, margin_, radius_, ratio_
        As in `AverageMKL`.
    ratios_ : list of float
        R²/(rows·ρ²) after each accepted step, the first for equal weights.
    n_iter_ : int
        Steps tried.
    stopped_ : "tolerance", "step" or "max_iter"
        Why it ended; "step" when no step, however short, lowered the ratio.

    Notes
    -----
    Source: Polato's thesis, Algorithm 9.1, whose line 12 should descend; 9.2.2 for kernels
    that are not normalised.
    """

    def __init__(
        self, kernels: Any = None, normalize: bool = True, identity: bool = True,
        learning_rate: float = 1.0, tol: float = 1e-6, max_iter: int = 1000,
    ) -> None:  # fmt: skip
        self.kernels = kernels
        self.normalize = normalize
        self.identity = identity
        self.learning_rate = learning_rate
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)
        check_real("tol", self.tol, 0.0, open_low=True)
        check_integer("max_iter", self.max_iter, 1)

    def _learn(self, bank: Bank, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        own = bank.diagonals()

        def parts(mu: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            K = bank.combine(mu)
            alpha, solved = _radius(K).weights, _margin(K, codes)
            sign = np.where(codes == 1, 1.0, -1.0)
            inner, squares = bank.quadratic(alpha, sign * solved.weights)
            return own @ alpha - inner, squares

        return self._descend(parts, len(bank), len(codes))

    def _descend(self, parts: Any, count: int, rows: int) -> NDArray[np.float64]:
        """Minimise ⟨μ,a⟩/⟨μ,b⟩ with a and b from parts(μ)."""
        beta, step = np.zeros(count), float(self.learning_rate)
        mu = _softmax(beta)
        a, b = parts(mu)
        ratio = _ratio(mu, a, b)
        self.ratios_ = [ratio / rows]
        self.stopped_ = "max_iter"
        self.n_iter_ = idle = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            top, bottom = mu @ a, mu @ b
            # (9.15) without its factor μ_r, which stalls small weights: the natural gradient of a
            # softmax. It is taken relative to the ratio, so that one first η fits all data.
            slope = (a * bottom - b * top) / max(bottom, 1e-300) ** 2 / max(ratio, 1e-300)
            trial = beta - step * slope
            next_mu = _softmax(trial)
            next_a, next_b = parts(next_mu)
            next_ratio = _ratio(next_mu, next_a, next_b)
            if next_ratio >= ratio:
                step /= 2
                if step < 1e-6 * self.learning_rate:
                    self.stopped_ = "step"
                    break
                continue
            gain = (ratio - next_ratio) / ratio
            beta, mu, a, b, ratio = trial, next_mu, next_a, next_b, next_ratio
            self.ratios_.append(ratio / rows)
            step *= 2
            idle = idle + 1 if gain < self.tol else 0
            if idle == 3:
                self.stopped_ = "tolerance"
                break
        return mu


class RMKL(GRAM):
    """R-MKL: the same descent on the ratio with R² replaced by its bound Σ μ_r R_r².

    Parameters
    ----------
    kernels, normalize, identity, learning_rate, tol, max_iter
        As in `GRAM`.

    Attributes
    ----------
    weights_, margin_, radius_, ratio_, ratios_, n_iter_, stopped_
        As in `GRAM`; ratios_ are of the bound.

    Notes
    -----
    Source: Do et al. 2009, for the hard margin.
    """

    def _learn(self, bank: Bank, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        sign = np.where(codes == 1, 1.0, -1.0)
        a = np.array([_radius(np.array(gram)).squared for gram in bank])

        def parts(mu: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            return a, bank.quadratic(sign * _margin(bank.combine(mu), codes).weights)[0]

        return self._descend(parts, len(bank), len(codes))


def _margin(K: NDArray[np.float64], codes: NDArray[np.int64]) -> Any:
    return margin_program(K, codes, tol=SOLVER_TOLERANCE)


def _radius(K: NDArray[np.float64]) -> Any:
    return radius_program(K, tol=SOLVER_TOLERANCE)


def _softmax(beta: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(beta - beta.max())
    return e / e.sum()


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.maximum(values, 0.0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1.0 / len(values))


def _ratio(mu: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    bottom = mu @ b
    return float(mu @ a / bottom) if bottom > 0 else float("inf")
