"""What the estimators share: data to columns, the epochs, convergence, prediction."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from recsys._jit import jit
from recsys.checks import check_choice, check_integer, check_real
from recsys.errors import FitError, InputError
from recsys.fm import _cd
from recsys.fm._anova import anova_tables
from recsys.fm._losses import BLOCKWISE, CURVATURE, LOSSES, PENALTIES, loss_value

SOLVERS = ("cd", "block")
REFRESH = 10  # epochs after which predictions are computed afresh


class Term(NamedTuple):
    """One multi-linear term: its kind, the width of its tables, and its parameters.

    `P` has shape (factors, features, components), and is updated in place.
    """

    kind: int
    width: int
    P: NDArray[np.float64]

    def predict(self, X: sp.csr_matrix) -> NDArray[np.float64]:
        """Return the term's predictions, (rows,)."""
        out = np.zeros(X.shape[0])
        order = self.width + 1 if self.kind == _cd.ANOVA else self.width
        table = np.empty((X.shape[0], order))
        for s in range(self.P.shape[2]):
            _cd.fill_component(self.kind, X.indptr, X.indices, X.data, self.P, s, table)
            out += table.prod(axis=1) if self.kind == _cd.PRODUCT else table[:, -1]
        return out


class FactorMachine(BaseEstimator):
    """What the estimators of this package share.

    They minimise mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P).

    Parameters
    ----------
    n_components : int ≥ 1
        Rank k.
    loss : str
        "squared" or "huber"; for classes "logistic", "squared_hinge" or "squared".
    penalty : "l2", "l1", "ti", "l21" or "cs"
        Ω: nothing; ‖P‖₁; Σ_s Σ_{i<j} |p_is||p_js|; Σ ‖p_i‖; Σ_{i<j} ‖p_i‖‖p_j‖.
    solver : "cd" or "block"
        One parameter at a time, or a feature's whole row; rows for "l21" and "cs".
    alpha, beta, gamma : float ≥ 0
    fit_linear, fit_intercept : bool
    max_iter : int ≥ 1
        Epochs.
    tol : float ≥ 0
        Stop when an epoch lowers the objective by less than this share of it.
    warm_start : bool
        Go on from the last fit on as many features.
    init_scale : float > 0
        Standard deviation of the first P.
    random_state : int, RandomState or None
    callback : callable, optional
        Called as callback(epoch, objective).

    Attributes
    ----------
    w_ : (features,) float64
    intercept_ : float
    P_ : list of (factors, features, n_components) float64
        One an order; one factor but for polynomial networks, with the rows of columns of ones, if any.
    history_ : list of dict
        "objective", "violation" (sum of absolute changes) and "seconds", first at the start.
    n_iter_ : int
    stopped_ : "tolerance" or "max_iter"
    """

    degree: int
    n_components: int
    loss: str
    penalty: str
    solver: str
    alpha: float
    beta: float
    gamma: float
    fit_linear: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    warm_start: bool
    init_scale: float
    random_state: Any
    callback: Callable[[int, float], Any] | None
    w_: NDArray[np.float64]
    P_: Any

    def _terms(self, P: list[NDArray[np.float64]]) -> list[Term]:
        raise NotImplementedError

    def _shapes(self, features: int) -> list[tuple[int, int, int]]:
        raise NotImplementedError

    def _losses(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, self._losses())
        check_choice("penalty", self.penalty, tuple(PENALTIES))
        check_choice("solver", self.solver, SOLVERS)
        if self.solver == "cd" and self.penalty in BLOCKWISE:
            raise InputError(
                f"solver 'cd' moves single parameters and cannot serve penalty {self.penalty!r}, which "
                "joins a feature's row: use solver='block'"
            )
        if self.solver == "block" and self.penalty in ("l1", "ti"):
            raise InputError(
                f"solver 'block' moves a feature's row at once and cannot serve penalty "
                f"{self.penalty!r}, which is per parameter: use solver='cd'"
            )
        check_integer("n_components", self.n_components, 1)
        check_integer("max_iter", self.max_iter, 1)
        for name in ("alpha", "beta", "gamma"):
            check_real(name, getattr(self, name), 0.0)
        check_real("tol", self.tol, 0.0)
        check_real("init_scale", self.init_scale, 0.0, open_low=True)

    def _fit(self, X: sp.csr_matrix, y: NDArray[np.float64]) -> None:
        n, d = X.shape
        rng = check_random_state(self.random_state)
        warm = self.warm_start and hasattr(self, "P_") and self.w_.shape == (d,)
        if not warm:
            self.w_, self.intercept_ = np.zeros(d), 0.0
            self.P_ = [self.init_scale * rng.standard_normal(shape) for shape in self._shapes(d)]
            self.history_: list[dict[str, float]] = []
        terms = self._terms(self.P_)
        columns = X.tocsc()
        columns.sort_indices()
        layout = (columns.indptr, columns.indices, columns.data)
        loss, bound = LOSSES[self.loss], float(CURVATURE[LOSSES[self.loss]])
        penalty = PENALTIES[self.penalty]
        self.n_iter_ = 0
        self.stopped_ = "max_iter"
        started = time.perf_counter()
        pred = self._forward(X, terms)
        last = self._objective(pred, y)
        self.history_.append({"objective": last, "violation": np.inf, "seconds": 0.0})
        for epoch in range(1, self.max_iter + 1):
            moved = 0.0
            if self.fit_intercept:
                before = self.intercept_
                self.intercept_ = float(_cd.bias_step(y, pred, before, loss, bound))
                moved += abs(self.intercept_ - before)
            if self.fit_linear:
                moved += _cd.linear_epoch(*layout, y, pred, self.w_, loss, bound, float(self.alpha))
            for term in terms:
                if self.solver == "block":
                    table = np.empty((n, self.n_components, term.width + 1))
                    anova_tables(X.indptr, X.indices, X.data, term.P[0], term.width + 1, table)
                    table = np.ascontiguousarray(table[:, :, : term.width])
                    moved += _cd.block_epoch(
                        *layout, y, pred, term.P[0], table, term.width, loss, bound,
                        float(self.beta), penalty, float(self.gamma),
                    )  # fmt: skip
                else:
                    moved += _cd.coordinate_epoch(
                        term.kind, X.indptr, X.indices, X.data, *layout, y, pred, term.P,
                        np.empty((n, term.width)), loss, bound, float(self.beta), penalty,
                        float(self.gamma),
                    )  # fmt: skip
            if epoch % REFRESH == 0:
                pred = self._forward(X, terms)  # rounding does not pile up
            objective = self._objective(pred, y)
            self.n_iter_ = epoch
            if not np.isfinite(objective):
                raise FitError(
                    f"the objective is {objective} after {epoch} epochs: scale the features, "
                    f"or raise beta (now {self.beta:g})"
                )
            self.history_.append(
                {"objective": objective, "violation": moved, "seconds": time.perf_counter() - started}
            )
            if self.callback is not None:
                self.callback(epoch, objective)
            if last - objective <= self.tol * max(abs(last), 1e-12):
                self.stopped_ = "tolerance"
                break
            last = objective

    def _forward(self, X: sp.csr_matrix, terms: list[Term]) -> NDArray[np.float64]:
        out = np.full(X.shape[0], float(self.intercept_))
        if self.fit_linear:
            out += X @ self.w_
        for term in terms:
            out += term.predict(X)
        return out

    def _objective(self, pred: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """Return mean loss + α/2·‖w‖² + β/2·‖P‖² + γ·Ω(P)."""
        value = float(mean_loss(LOSSES[self.loss], pred, y))
        value += 0.5 * self.alpha * float(self.w_ @ self.w_)
        for P in self.P_:
            value += 0.5 * self.beta * float((P * P).sum())
            value += self.gamma * sum(self._omega(factor) for factor in P)
        return value

    def _omega(self, P: NDArray[np.float64]) -> float:
        rows = np.sqrt((P * P).sum(axis=1))
        return {
            "l2": lambda: 0.0,
            "l1": lambda: float(np.abs(P).sum()),
            "ti": lambda: 0.5 * float((np.abs(P).sum(axis=0) ** 2).sum() - (P * P).sum()),
            "l21": lambda: float(rows.sum()),
            "cs": lambda: 0.5 * float(rows.sum() ** 2 - (P * P).sum()),
        }[self.penalty]()

    def _predict(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = self._augmented(sp.csr_matrix(X))
        return self._forward(rows, self._terms(self.P_))

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X


class Regressor(RegressorMixin, FactorMachine):
    """Regression."""

    def _losses(self) -> tuple[str, ...]:
        return ("squared", "huber")

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit by epochs of coordinate descent.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,) float

        Raises
        ------
        InputError, FitError
            For parameters out of range or a solver that cannot serve the penalty; if it diverges.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        goal: Any = np.asarray(y, dtype=np.float64)
        self._fit(self._augmented(_rows(X)), goal)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return predictions, (rows,)."""
        return self._predict(X)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Classifier(ClassifierMixin, FactorMachine):
    """Classification into two classes."""

    def _losses(self) -> tuple[str, ...]:
        return ("logistic", "squared_hinge", "squared")

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit by epochs of coordinate descent.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,)
            Two classes.

        Raises
        ------
        InputError, FitError
            As for regression, and if there are not two classes.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise InputError(f"Unknown label type: {kind}. y must hold two classes")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise InputError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        if len(self.classes_) < 2:
            raise InputError("y must hold two classes, and has 1 class")
        goal: Any = 2.0 * codes - 1.0
        self._fit(self._augmented(_rows(X)), goal)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return scores, (rows,): above 0 for the second class."""
        return self._predict(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, 2); for the logistic loss.

        Raises
        ------
        InputError
            Under another loss.
        """
        check_is_fitted(self)
        if self.loss != "logistic":
            raise InputError(f"probabilities need loss='logistic', not {self.loss!r}")
        p = expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn: two classes, sparse rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _rows(X: Any) -> sp.csr_matrix:
    rows = sp.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


# ---- kernels


@jit
def mean_loss(loss, pred, y):
    total = 0.0
    for i in range(len(y)):
        total += loss_value(loss, pred[i], y[i])
    return total / len(y)
