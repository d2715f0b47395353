"""KOMD: the classifier that optimizes the margin distribution on a kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.kernels import Kernel, make_kernel
from recsys.kernels.dot_product import (
    HomogeneousPolynomialKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)
from recsys.kernels.expressiveness import margin_program
from recsys.utils.estimators import TwoClassMixin, checked_rows, two_classes
from recsys.utils.validation import check_real

# Kernels that take numbers as they are; on zeros and ones the library's own are the same, in range.
OF_NUMBERS: dict[type, Callable[..., Any]] = {
    LinearKernel: lambda kernel, X, Z: linear_kernel(X, Z),
    HomogeneousPolynomialKernel: lambda kernel, X, Z: linear_kernel(X, Z) ** kernel.degree,
    PolynomialKernel: lambda kernel, X, Z: polynomial_kernel(
        X, Z, degree=kernel.degree, gamma=kernel.alpha, coef0=kernel.coef
    ),
    RBFKernel: lambda kernel, X, Z: rbf_kernel(X, Z, gamma=kernel.gamma),
}


def kernel_function(kernel: Any, params: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Return a callable (X, Z, normalize) for a name, a Kernel or a function of two matrices."""
    if isinstance(kernel, str):
        kernel = make_kernel(kernel, **(params or {}))
    if isinstance(kernel, type) or not callable(kernel):
        raise InputError(
            f"a kernel must be a name, a Kernel or a function of two matrices, not {kernel!r}"
        )
    return partial(gram_of_rows if isinstance(kernel, Kernel) else gram_of_numbers, kernel)


def gram_of_rows(kernel: Kernel, X: Any, Z: Any = None, normalize: bool = False) -> NDArray[np.float64]:
    """Return a Gram matrix of rows of numbers; a Boolean kernel takes them as bits, with a warning."""
    if all(_is_binary(rows) for rows in (X, Z) if rows is not None):
        return kernel(X, Z, normalize=normalize)
    if function := OF_NUMBERS.get(type(kernel)):
        return gram_of_numbers(partial(function, kernel), X, Z, normalize)
    warnings.warn(
        f"{kernel} takes values above 0 as 1 and others as 0: encode numbers as zeros and ones",
        UserWarning,
        stacklevel=4,
    )
    return kernel(X, Z, normalize=normalize)


def _is_binary(rows: Any) -> bool:
    values = rows.data if sp.issparse(rows) else np.asarray(rows)
    return bool(((values == 0) | (values == 1)).all())


def gram_of_numbers(
    function: Callable[..., Any], X: Any, Z: Any = None, normalize: bool = False
) -> NDArray[np.float64]:
    """Return the Gram matrix by a function of two matrices, as scikit-learn's SVC takes it."""

    def matrix(A: Any, B: Any) -> NDArray[np.float64]:
        K, shape = np.asarray(function(A, B), dtype=np.float64), (A.shape[0], B.shape[0])
        if K.shape != shape or not np.isfinite(K).all():
            raise InputError(f"kernel {function} must return finite values of shape {shape}")
        return K

    def roots(A: Any) -> NDArray[np.float64]:
        return np.sqrt([matrix(A[i : i + 1], A[i : i + 1])[0, 0] for i in range(A.shape[0])])

    K = matrix(X, X if Z is None else Z)
    if not normalize:
        return K
    left = np.sqrt(K.diagonal()) if Z is None else roots(X)
    scale = np.outer(left, left if Z is None else roots(Z))
    out = np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)
    if Z is None:
        np.fill_diagonal(out, 1.0)
    return out


@dataclass(eq=False, repr=False)
class KOMD(TwoClassMixin, BaseEstimator):
    """Kernel optimization of the margin distribution, for two classes.

    min (1 − λ) γᵀYKYγ + λ‖γ‖² over weights γ ≥ 0 that sum to 1 in each class: λ = 0 is the
    hard-margin SVM, λ = 1 compares the classes' centroids.

    Parameters
    ----------
    regularization : float in 0…1
        λ.
    kernel : "precomputed", str, Kernel, Expression or callable
        A name in `recsys.kernels.list_kernels()`, a kernel, or a function of two matrices. `linear`,
        `hp`, `polynomial` and `rbf` take numbers as they are; the other kernels of this library take
        values above 0 as 1 and others as 0, with a warning where there are others than these two.
    kernel_params : dict, optional
        Parameters of a kernel name.
    normalize : bool
        Scale the kernel to unit diagonal; not for precomputed kernels.
    tol : float > 0
        Residual of the optimality conditions, relative to the kernel's mean diagonal.

    Attributes
    ----------
    classes_ : (2,)
    dual_ : (rows,) float64
        γ, signed by class.
    intercept_ : float
    margin_ : float
        ‖w‖; for λ = 0 the distance between the hulls.
    gap_ : float
        Certified bound on the objective's distance from its optimum.

    Notes
    -----
    Source: Polato's thesis, 4.3.3.

    Examples
    --------
    >>> from recsys.datasets import load_table
    >>> table = load_table("monks-1")
    >>> from recsys.kernel_machines import KOMD
    >>> model = KOMD(regularization=0.0, kernel="mdnf-sum", kernel_params={"d": 3, "c": 2})
    >>> float(model.fit(table.X, table.y).score(table.X, table.y))
    1.0
    """

    regularization: float = 0.1
    kernel: Any = "linear"
    kernel_params: dict | None = None
    normalize: bool = True
    tol: float = 1e-8

    def fit(self, X: ArrayLike, y: ArrayLike) -> KOMD:
        """Fit on vectors, or on a square Gram matrix if the kernel is precomputed."""
        lam = check_real("regularization", self.regularization, 0.0, 1.0)
        check_real("tol", self.tol, 0.0, open_low=True)
        X, y = checked_rows(self, X, y, dtype="numeric", accept_sparse="csr")
        self.classes_ = two_classes(y)
        K, sign = self._gram(X, None), np.where(y == self.classes_[1], 1.0, -1.0)
        if K.shape[0] != K.shape[1]:
            raise InputError(f"a precomputed kernel must be square to fit, not {K.shape}")
        gamma, self.gap_ = margin_weights(K, sign, lam, self.tol)
        self.dual_ = sign * gamma
        image = K @ self.dual_
        self.intercept_ = float(0.5 * (gamma @ image))
        self.margin_ = float(np.sqrt(max(float(self.dual_ @ image), 0.0)))
        self.X_fit_ = None if self._precomputed else X
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return ⟨w, φ(x)⟩ − b: above 0 for the second class."""
        check_is_fitted(self)
        X = checked_rows(self, X, dtype="numeric", accept_sparse="csr", reset=False)
        return self._gram(X, self.X_fit_) @ self.dual_ - self.intercept_

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _gram(self, X: Any, Z: Any) -> NDArray[np.float64]:
        if self._precomputed:
            return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        return kernel_function(self.kernel, self.kernel_params)(X, Z, normalize=self.normalize)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn: two classes, pairwise where precomputed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags


def margin_weights(
    K: NDArray[np.float64], sign: NDArray[np.float64], lam: float, tol: float
) -> tuple[NDArray[np.float64], float]:
    """Return the weights γ of a machine on K, and the certified gap of its program."""
    if lam == 1.0:
        return np.where(sign > 0, 1 / (sign > 0).sum(), 1 / (sign < 0).sum()), 0.0
    solved = margin_program(K, sign, ridge=lam / (1.0 - lam), tol=tol)
    return solved.weights, solved.gap
