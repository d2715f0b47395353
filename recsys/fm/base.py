"""The base of the estimators: parameters, checks, the fit loop, prediction."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from recsys.errors import FitError, InputError
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers import SOLVERS, Options, Solver, refusal
from recsys.fm.solvers.weights import size_matters
from recsys.multilinear.forms import MIXED, Form
from recsys.multilinear.losses import LOSSES, Loss, loss_names
from recsys.utils.estimators import (
    SparseRowsMixin,
    TwoClassMixin,
    check_sample_weight,
    checked_rows,
    relative_weights,
    two_classes,
)
from recsys.utils.progress import report
from recsys.utils.validation import check_choice, check_integer, check_real

LARGEST = float(np.finfo(np.float32).max)
FAR = 10.0  # times the objective of the start and of predictions of 0: the fit has diverged
PATIENCE = 5  # epochs without progress after which a solver that may rise has converged


@dataclass(eq=False, repr=False)
class FactorMachine(SparseRowsMixin, BaseEstimator):
    """Base of the estimators of this package.

    They minimize mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P).

    Parameters
    ----------
    n_components : int ≥ 1
        Rank k.
    loss : str
        "squared"; for classes "logistic", "squared_hinge", "squared", or, over pairs of a row of each
        class, "bpr" (logistic) and "auc" (squared hinge), with the solvers "adagrad" and "psgd".
    penalty : "l2", "l1", "ti", "l21", "cs", "omega", "l1-power" or "l21-power"
        Ω, in this order: 0; ‖P‖₁; Σ_s K_A^m(|p_s|, 1); Σ_j ‖p_j‖; K_A^m over ‖p_j‖; Σ_{i<j} |⟨p_i,
        p_j⟩|; Σ_s ‖p_s‖₁^m / m!; (Σ_j ‖p_j‖)^m / m!. The all-subsets model has Π(1 + ·) instead of
        K_A^m.
    solver : str
        "cd" updates one parameter at a time, "block" the whole row of a feature. "pairs" is "cd" for
        rows of two repeated parts, such as users and items (see `split`). "adagrad" and "psgd" use
        mini-batches; "fista", "nmapgd", "lbfgs" and "subgradient" use full gradients.
    alpha, beta, gamma : float ≥ 0
        Regularization strengths of linear weights, factors and the penalty, relative to the mean loss.
    fit_linear, fit_intercept : bool
    max_iter : int ≥ 1
        Epochs.
    tol : float ≥ 0
        Stop when an epoch lowers the objective by less than this share of it; 0 for exactly `max_iter`
        epochs.
    learning_rate : float > 0
        Of "adagrad" and "psgd".
    batch_size : int ≥ 1
        Of "adagrad" and "psgd".
    split : int ≥ 1, optional
        Number of columns of the left part of a row, for "pairs".
    warm_start : bool
        Whether to continue from the last fit, if it has the same numbers of features, orders and
        components.
    init_scale : float > 0
        Standard deviation of the initial P.
    init_lambda : "ones" or "random_signs"
        Initial weights λ of the components. With an even order and λ = 1, components cannot be negative.
    fit_lambda : bool
        Whether to learn λ with the penalty ½β‖λ‖², by a step after each epoch; for orders that share P,
        and for all subsets.
    num_threads : int ≥ 0
        0 for all. The result does not depend on the number.
    random_state : int, RandomState or None
    callback : callable, optional
        Called as callback(epoch, objective); a true return value ends the fit.

    Attributes
    ----------
    w_ : (features + ones,) float64
        Linear weights; columns of ones of `fit_lower="augment"` are last.
    intercept_ : float
    P_ : list of (factors, features + ones, n_components) float64
        One array per order, of shape (1, …) except for polynomial networks.
    theta_ : (terms, orders) float64
        Weights of the orders of a shared P, else 1.
    component_weights_ : (terms, n_components) float64
        λ of the components of each term.
    history_ : list of dict
        "objective", "violation" (sum of absolute changes) and "seconds" at the start and after each
        epoch.
    n_iter_ : int

    Notes
    -----
    Parameters of columns without entries are 0. A row with `sample_weight` 2 counts as two equal rows.
    """

    n_components: int = 8
    loss: str = "squared"
    penalty: str = "l2"
    solver: str = "cd"
    alpha: float = 1e-4
    beta: float = 1e-3
    gamma: float = 1e-4
    fit_linear: bool = True
    fit_intercept: bool = True
    max_iter: int = 100
    tol: float = 1e-5
    learning_rate: float = 0.1
    batch_size: int = 1
    split: int | None = None
    warm_start: bool = False
    init_scale: float = 0.05
    init_lambda: str = "ones"
    fit_lambda: bool = False
    num_threads: int = 0
    random_state: Any = 0
    callback: Callable[[int, float], Any] | None = None
    _losses: ClassVar[tuple[str, ...]]  # that the targets allow

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there are parameters."""
        return hasattr(self, "P_")

    def _forms(self) -> list[Form]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, self._losses)
        check_choice("penalty", self.penalty, tuple(PENALTIES))
        check_choice("solver", self.solver, tuple(SOLVERS))
        check_choice("init_lambda", self.init_lambda, ("ones", "random_signs"))
        for name in ("n_components", "max_iter", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        check_integer("num_threads", self.num_threads, 0)
        if self.split is not None:
            check_integer("split", self.split, 1)
        for name in ("alpha", "beta", "gamma", "tol"):
            check_real(name, getattr(self, name), 0.0)
        for name in ("init_scale", "learning_rate"):
            check_real(name, getattr(self, name), 0.0, open_low=True)
        rest = (self._loss(), PENALTIES[self.penalty], self._forms())
        refused = refusal(self.solver, *rest)
        if refused:
            able = [name for name in SOLVERS if not refusal(name, *rest)]
            raise InputError(
                f"solver {self.solver!r} does not support {refused}"
                + (f": use solver={' or '.join(map(repr, able))}" if able else "; no solver does")
            )
        if self.fit_lambda and not all(map(size_matters, self._forms())):
            raise InputError(
                "fit_lambda is for orders that share a P (fit_lower='simplex' or 'inhomogeneous') and "
                "for all subsets: set it to False"
            )

    def _loss(self) -> Loss:
        return LOSSES.get(self.loss)

    # ---- the model as a vector, and as attributes

    def _zeros(self, features: int) -> Model:
        return Model.zeros(self._forms(), features, self.n_components, self.fit_linear)

    def _has_shape(self, model: Model) -> bool:
        tables = [P.shape for P in model.tables()]
        return [P.shape for P in self.P_] == tables and np.shape(self.theta_) == model.theta.shape

    def _start(self, features: int, rng: np.random.RandomState) -> Model:
        model = self._zeros(features)
        for P in model.tables():
            P[:] = self.init_scale * rng.standard_normal(P.shape)
        if self.init_lambda == "random_signs":
            model.weights[:] = rng.choice([-1.0, 1.0], size=model.weights.shape)
        if model.forms[0].kind == MIXED and self._learns_theta():
            model.theta[:] = 1.0 / model.theta.shape[1]
        return model

    def _learns_theta(self) -> bool:
        return False

    def _fitted(self, features: int) -> Model:
        model = self._zeros(features)
        if not self._has_shape(model):
            raise InputError("n_components, degree or fit_lower was changed after the fit: fit again")
        model.z[0] = self.intercept_
        model.w[:] = self.w_
        for P, known in zip(model.tables(), self.P_, strict=True):
            P[:] = known
        model.theta[:] = self.theta_
        model.weights[:] = self.component_weights_
        return model

    def _keep(self, model: Model) -> None:
        self.w_, self.intercept_ = model.w.copy(), float(model.z[0])
        self.P_ = [P.copy() for P in model.tables()]
        self.theta_, self.component_weights_ = model.theta.copy(), model.weights.copy()

    # ---- fitting

    def _run(self, solver: Solver) -> None:
        """Make epochs until one lowers the objective too little."""
        objective = solver.objective
        first = least = objective.value()
        started = time.perf_counter()
        patience = 1 if solver.monotone else PATIENCE
        still = epoch = 0
        converged = False
        self.history_ = [{"objective": first, "violation": np.inf, "seconds": 0.0}]

        def ended(moved: float) -> bool:
            nonlocal least, still, epoch, converged
            value = objective.value()
            epoch += 1
            if not np.isfinite(value):
                raise self._diverged(value, epoch)
            seconds = time.perf_counter() - started
            self.history_.append({"objective": value, "violation": moved, "seconds": seconds})
            report(f"epoch {epoch} of at most {self.max_iter}", epoch, self.max_iter)
            if self.callback is not None:
                self._keep(objective.model)
                if self.callback(epoch, value):
                    converged = True
                    return True
            still = 0 if least - value > self.tol * abs(least) else still + 1
            least = min(least, value)
            if still < patience:
                return False
            if solver.slower():
                still = 0
                return False
            converged = True
            return True

        solver.run(ended, self.max_iter)
        self.n_iter_ = epoch
        last = self.history_[-1]["objective"]
        if last > FAR * max(first, objective.zero_loss()):
            raise self._diverged(last, epoch)
        if not converged and epoch == self.max_iter and self.tol > 0.0:
            message = (
                f"max_iter={self.max_iter} epochs ended before one lowered the objective by less than "
                f"tol={self.tol:g}: raise max_iter or tol, or set tol=0"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _diverged(self, objective: float, epoch: int) -> FitError:
        return FitError(
            f"the objective is {objective:.3g} after {epoch} epochs: scale the features, lower "
            f"learning_rate (now {self.learning_rate:g}) or raise beta (now {self.beta:g})"
        )

    def _predict(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = checked_rows(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = self._augmented(clean_rows(X))
        return self._fitted(rows.shape[1]).predict(rows, threads=self.num_threads or None)

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit on y of numbers or two classes; of the weights of rows only the ratios matter."""
        self._check_parameters()
        numbers = isinstance(self, RegressorMixin)
        X, y = checked_rows(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numbers)
        X, y, weights = weighed_rows(X, y, sample_weight)
        rows, loss = self._augmented(clean_rows(X)), self._loss()
        target = self._targets(np.asarray(y))
        if loss.pairwise and len(np.unique(target)) < 2:
            raise InputError(f"loss {self.loss!r} compares rows of two classes, but y has one class")
        rng, features = check_random_state(self.random_state), rows.shape[1]
        again = self.warm_start and hasattr(self, "P_") and self.w_.shape == (features,)
        if again and self._has_shape(self._zeros(features)):
            model = self._fitted(features)
        else:
            model = self._start(features, rng)
        absent = np.bincount(rows.indices, minlength=features) == 0
        for P in model.tables():
            P[:, absent] = 0.0
        by = Regularization(
            PENALTIES[self.penalty], float(self.alpha), float(self.beta), float(self.gamma)
        )
        moves, threads = self.fit_intercept and not loss.pairwise, self.num_threads or None
        learned = self._learns_theta(), bool(self.fit_lambda)
        objective = Objective(
            model, rows, target, loss, by, moves, rng, threads, *learned, relative_weights(weights)
        )
        options = Options(float(self.learning_rate), self.batch_size, threads, self.split)
        self._run(SOLVERS.get(self.solver)(objective, options))
        self._keep(model)
        return self

    def _targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the target: numbers, or −1 and 1."""
        raise NotImplementedError


class Regressor(RegressorMixin, FactorMachine):
    """Regression."""

    _losses = loss_names(numbers=True)

    def _targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(y, dtype=np.float64)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return predictions, (rows,)."""
        return self._predict(X)


class Classifier(TwoClassMixin, FactorMachine):
    """Classification into two classes."""

    _losses = loss_names(classes=True)

    def _targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        self.classes_ = two_classes(y)
        return 2.0 * (y == self.classes_[1]) - 1.0

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return scores, (rows,): above 0 for the second class."""
        return self._predict(X)

    def _logistic(self) -> bool:
        if self.loss != "logistic":
            raise InputError(f"probabilities need loss='logistic', not {self.loss!r}")
        return True

    @available_if(_logistic)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, 2); for the logistic loss only."""
        p = expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])


def weighed_rows(X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, Any, Any]:
    """Return the rows of a weight above 0, their targets and weights; all of them without weights."""
    if sample_weight is None:
        return X, y, None
    weights = check_sample_weight(sample_weight, X.shape[0])
    kept = weights > 0.0
    return (X, y, weights) if kept.all() else (X[kept], np.asarray(y)[kept], weights[kept])


def clean_rows(X: Any) -> sp.csr_matrix:
    """Return a canonical copy: no duplicates, no stored zeros, sorted, finite as float32."""
    rows = sp.csr_matrix(X, copy=True)
    if np.abs(rows.data).max(initial=0.0) > LARGEST:
        raise InputError("X contains values too large for float32: scale the features")
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
