"""The base of the estimators: parameters, checks, the fit loop, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.fm.custom import CustomLoss, as_loss
from recsys.fm.history import History
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import Penalty, as_penalty, penalties
from recsys.fm.signs import choose_signs
from recsys.fm.solvers import SOLVERS, Options, Solver, refusal, solver_names
from recsys.fm.solvers.component_weights import size_matters
from recsys.fm.stopping import StoppingRule
from recsys.multilinear.forms import MIXED, Form
from recsys.multilinear.losses import Loss, loss_names
from recsys.utils.features import check_sample_weight, checked_rows, relative_weights
from recsys.utils.progress import report
from recsys.utils.two_classes import TwoClassMixin, two_classes
from recsys.utils.validation import check_choice, check_integer, check_real

TOLERANCE, STALLED, MAX_ITER = "tolerance", "stalled", "max_iter"
CALLBACK, VALIDATION = "callback", "validation"


@dataclass(eq=False, repr=False)
class FactorMachine(BaseEstimator):
    """Base of the estimators of this package.

    They minimise mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P).

    Parameters
    ----------
    n_components : int ≥ 1
        Rank k.
    loss : str or CustomLoss
        "squared" or "huber"; for classes "logistic", "squared_hinge", "squared", or, over pairs of a
        row of each class, "bpr" (logistic) and "auc" (squared hinge), solvers "sgd", "adagrad", "psgd".
    penalty : "l2", "l1", "ti", "l21", "cs", "omega", "l1-power", "l21-power" or Penalty
        Ω: nothing; ‖P‖₁; Σ_s K_A^m(|p_s|, 1); Σ_j ‖p_j‖; K_A^m over ‖p_j‖; Σ_{i<j} |⟨p_i, p_j⟩|; and
        Σ_s ‖p_s‖₁^m / m! and (Σ_j ‖p_j‖)^m / m!, which bound TI and CS. The all-subsets model has
        Π(1 + ·) in place of K_A^m, and m = 2 in the powers.
    solver : str
        "cd", one parameter at a time; "block", a feature's whole row; "relational", "cd" on rows that
        are made of objects which repeat (users, items, contexts; any number of kinds), many times
        faster; "sgd" and "adagrad", mini-batches, with the penalty's proximal operator once in many of
        them; "psgd", mini-batches with the proximal operator after each; "fista", "nmapgd", "katyusha",
        "lbfgs", "subgradient", whole gradients.
    alpha, beta, gamma : float ≥ 0
        Regularization strengths of linear weights, factors and the penalty. The loss is a mean over
        rows: the rarer a feature, the more it is shrunk. The default halves what is learned of a feature
        that one row in a thousand has.
    fit_linear, fit_intercept : bool
    max_iter : int ≥ 1
        Epochs.
    tol : float ≥ 0
        Stop when an epoch lowers the objective by less than this share of it; stochastic solvers first
        halve their step, down to a hundredth. With 0 just `max_iter` epochs are made, as far as they
        help, and nothing is warned of.
    learning_rate : float > 0
        Of "sgd" (over √epoch), "adagrad" and "psgd" (falling with β and the batches).
    batch_size : int ≥ 1
        Of "sgd", "adagrad", "psgd" (the largest batch; batches are of one size) and "katyusha".
    line_search : bool
        Of "block": try longer steps than the bound of the curvature allows, at one evaluation each.
        "fista", "nmapgd", "katyusha" and "subgradient" always use a line search.
    validation_fraction : float in [0, 1)
        Share of the rows held out for early stopping, stratified by class. The parameters of the best
        epoch are kept.
    patience : int ≥ 1
        Number of epochs without a better validation loss after which the fit stops.
    warm_start : bool
        Continue from the last fit, if its numbers of features, orders and components are the same.
    init_scale : float > 0
        Standard deviation of the initial P.
    num_threads : int ≥ 0
        0 for all. Small passes use one thread. The result does not depend on the number.
    random_state : int, RandomState or None
    callback : callable, optional
        Called as callback(epoch, objective). A true result or an exception ends the fit. The estimator
        then has the parameters of this epoch, and may predict.
    fit_signs : bool
        Choose each component's sign by trial at the start; otherwise all are 1. Under an even order no
        p_s makes a component negative, so that several components would be needed in place of a negative
        one.
    fit_component_weights : bool
        Learn a weight λ_s of each component, under ½β‖λ‖², with a step after each epoch. It is of orders
        that share a P with given or learned θ, and of all subsets: of one order P takes up its size.

    Attributes
    ----------
    w_ : (features + ones,) float64
        Linear weights. `ones` is the number of columns of ones that `fit_lower="augment"` appends to X:
        of a factorization machine degree − 2 (degree − 1 without `fit_linear`), of a polynomial network
        1; otherwise 0. Their weights stand last and add a constant to each prediction.
    intercept_ : float
    P_ : list of (factors, features + ones, n_components) float64
        One array an order, of shape (1, …) except for polynomial networks.
    theta_ : (terms, orders) float64
        Weights of the orders of a shared P; 1 elsewhere.
    component_weights_ : (terms, n_components) float64
        λ of each term's components: 1, a sign under `fit_signs`, any number under
        `fit_component_weights`.
    history_ : list of dict
        "objective", "violation" (sum of absolute changes), "seconds", and "validation" (loss) if there
        is any, first at the start.
    n_iter_ : int
    stopped_ : "tolerance", "validation", "callback", "max_iter" or "stalled"
        The last two come with a ConvergenceWarning ("max_iter" only where tol > 0): "stalled" is an end
        at an objective above that of a model of zeros. One ten times that, and that of the start, is a
        FitError: the fit has diverged.

    Notes
    -----
    Columns that no row of the fit has get zeros, by any solver. The descents visit rare columns first.
    With `sample_weight` in `fit` the mean of the loss is a weighted one: a row of weight 2 counts as one
    given twice, one of weight 0 is left out, and weights that are all alike change nothing. Solvers that
    draw nothing take the steps that they take on repeated rows, but for rounding. "sgd", "adagrad",
    "psgd" and "katyusha" draw rows evenly and multiply a row's gradient by its weight. Losses over pairs
    draw both rows by their weights. Rows that `validation_fraction` holds out are drawn evenly, too.
    """

    n_components: int = 8
    loss: str | CustomLoss = "squared"
    penalty: str | Penalty = "l2"
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
    line_search: bool = False
    validation_fraction: float = 0.0
    patience: int = 5
    warm_start: bool = False
    init_scale: float = 0.05
    num_threads: int = 0
    random_state: Any = 0
    callback: Callable[[int, float], Any] | None = None
    fit_signs: bool = False
    fit_component_weights: bool = False

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there are parameters."""
        return hasattr(self, "P_")

    def _forms(self) -> list[Form]:
        raise NotImplementedError

    def _losses(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        self._check_loss()
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, tuple(penalty.name for penalty in penalties()))
        as_penalty(self.penalty).parameters  # noqa: B018  refuses what is no penalty and no number
        check_choice("solver", self.solver, solver_names())
        check_integer("n_components", self.n_components, 1)
        for name in ("max_iter", "batch_size", "patience"):
            check_integer(name, getattr(self, name), 1)
        check_integer("num_threads", self.num_threads, 0)
        for name in ("alpha", "beta", "gamma"):
            check_real(name, getattr(self, name), 0.0)
        check_real("tol", self.tol, 0.0)
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9)
        for name in ("init_scale", "learning_rate"):
            check_real(name, getattr(self, name), 0.0, open_low=True)
        if self.line_search and not SOLVERS.get(self.solver).searches:
            raise InputError(f"line_search is of solver='block', not {self.solver!r}: leave it False")
        rest = (self._loss(), as_penalty(self.penalty), self._forms())
        refused = refusal(self.solver, *rest)
        if refused:
            able = [name for name in solver_names() if not refusal(name, *rest)]
            raise InputError(
                f"solver {self.solver!r} cannot serve {refused}"
                + (f": use solver={' or '.join(map(repr, able))}" if able else "; no solver can")
            )
        if self.fit_component_weights and not all(map(size_matters, self._forms())):
            raise InputError(
                "fit_component_weights is of orders that share a P (fit_lower='simplex' or "
                "'inhomogeneous') and of all subsets; of one order P takes up a component's size, and "
                "fit_signs=True is what is left: set it to False"
            )

    def _check_loss(self) -> None:
        if not isinstance(self.loss, CustomLoss):
            check_choice("loss", self.loss, self._losses())
            return
        numbers = isinstance(self, RegressorMixin)
        if not (self.loss.for_numbers if numbers else self.loss.for_classes):
            raise InputError(f"loss {self.loss.name!r} is not for {'numbers' if numbers else 'classes'}")
        check_real(f"curvature of {self.loss.name}", self.loss.curvature, 0.0, open_low=True)
        self.loss.parameters  # noqa: B018  refuses what is no number

    def _loss(self) -> Loss | CustomLoss:
        return as_loss(self.loss)

    # ---- the model as a vector, and as attributes

    def _zeros(self, features: int) -> Model:
        return Model.zeros(self._forms(), features, self.n_components, self.fit_linear)

    def _goes_on(self, features: int) -> bool:
        """Return whether the fit starts from the last one's model."""
        if not self.warm_start or not hasattr(self, "P_") or self.w_.shape != (features,):
            return False
        return self._has_shape(self._zeros(features))

    def _has_shape(self, model: Model) -> bool:
        """Return whether the fitted attributes have the shape of a model."""
        tables = [P.shape for P in model.tables()]
        return [P.shape for P in self.P_] == tables and np.shape(self.theta_) == model.theta.shape

    def _start(self, features: int, rng: np.random.RandomState) -> Model:
        """Return a random model to fit."""
        model = self._zeros(features)
        for P in model.tables():
            P[:] = self.init_scale * rng.standard_normal(P.shape)
        if model.forms[0].kind == MIXED and self._learns_theta():
            model.theta[:] = 1.0 / model.theta.shape[1]
        return model

    def _learns_theta(self) -> bool:
        return False

    def _fitted(self, features: int) -> Model:
        """Return the model of the fitted attributes."""
        model = self._zeros(features)
        if not self._has_shape(model):
            raise InputError(
                "the parameters are of another model than the one that was fitted (n_components, degree "
                "or fit_lower was changed): set them back, or fit again"
            )
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
        self.theta_, self.component_weights_ = model.theta, model.weights

    # ---- fitting

    def _objective(
        self, model: Model, X: sp.csr_matrix, y: NDArray[np.float64], rng: np.random.RandomState,
        weights: NDArray[np.float64] | None = None,
    ) -> Objective:  # fmt: skip
        loss = self._loss()
        by = Regularization(
            as_penalty(self.penalty), float(self.alpha), float(self.beta), float(self.gamma)
        )
        return Objective(
            model, X, y, loss, by, self.fit_intercept and not loss.pairwise, rng,
            self.num_threads or None, self._learns_theta(), bool(self.fit_component_weights),
            relative_weights(weights),
        )  # fmt: skip

    def _solver(self, objective: Objective) -> Solver:
        options = Options(
            float(self.learning_rate), self.batch_size, self.num_threads or None, bool(self.line_search)
        )
        return SOLVERS.get(self.solver)(objective, options)

    def _fit(
        self, X: sp.csr_matrix, y: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> None:
        rng = check_random_state(self.random_state)
        again = self._goes_on(X.shape[1])
        model = self._fitted(X.shape[1]) if again else self._start(X.shape[1], rng)
        held_out: Objective | None = None
        self._check_pairs(y)
        if self.validation_fraction > 0.0:
            out, rest = self._kept_out(y, rng)
            some = None if weights is None else weights[out]
            held_out = self._objective(model, X[out], y[out], rng, some)
            X, y, weights = X[rest], y[rest], None if weights is None else weights[rest]
        self._wake(model, X, rng, again)
        objective = self._objective(model, X, y, rng, weights)
        if self.fit_signs and not again:
            choose_signs(objective)
        solver = self._solver(objective)
        history = History(objective, held_out, self.history_ if again else [])
        rule = StoppingRule(objective.value(), objective.trivial(), self.tol, solver.monotone)
        stopped = self._run(solver, history, rule)
        if held_out is not None:
            history.restore()
        self.history_: list[dict[str, float]] = history.entries
        self.n_iter_, self.stopped_ = history.epochs, stopped
        self._keep(model)
        self._remember(solver, rng)
        self._warn(rule)

    def _run(self, solver: Solver, history: History, rule: StoppingRule) -> str:
        """Run the solver to the end of the fit, epoch by epoch; returns what ended it."""
        history.record(rule.least, np.inf)
        stopped = MAX_ITER

        def ended(moved: float) -> bool:
            nonlocal stopped
            value = solver.objective.value()
            if not np.isfinite(value):
                raise solver.diverged(value, history.epochs + 1)
            history.record(value, moved)
            report(f"epoch {history.epochs} of at most {self.max_iter}", history.epochs, self.max_iter)
            if self._called_back(solver.objective.model, history.epochs, value):
                stopped = CALLBACK
            elif history.held_out is not None and history.epochs - history.best_epoch >= self.patience:
                stopped = VALIDATION
            elif rule.converged(value):
                if solver.slower():
                    rule.start_anew()
                else:
                    stopped = rule.name_of_end(value)
            return stopped != MAX_ITER

        solver.run(ended, self.max_iter)
        if stopped == MAX_ITER and history.epochs < self.max_iter:  # the solver found no better point
            stopped = rule.name_of_end(history.entries[-1]["objective"])
        last = history.entries[-1]["objective"]
        if stopped in (STALLED, MAX_ITER) and rule.diverged(last):
            raise solver.diverged(last, history.epochs)
        return stopped

    def _called_back(self, model: Model, epoch: int, value: float) -> bool:
        """Return whether the callback, to whom this estimator is one of this epoch, ends the fit."""
        if self.callback is None:
            return False
        self._keep(model)
        return bool(self.callback(epoch, value))

    def _warn(self, rule: StoppingRule) -> None:
        """Warn of a fit that is cut short or stuck, once the model, which may still serve, is kept."""
        if self.stopped_ == STALLED:
            message = (
                f"the fit stalled at an objective of {self.history_[-1]['objective']:.3g}, and a model "
                f"of zeros has {rule.trivial:.3g}: scale the features, lower init_scale (now "
                f"{self.init_scale:g}) or raise beta"
            )
        elif self.stopped_ == MAX_ITER and self.tol > 0.0:
            message = (
                f"max_iter={self.max_iter} epochs ended before one lowered the objective by less than "
                f"tol={self.tol:g}: raise max_iter or tol, or set tol=0 to ask for just so many epochs"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _kept_out(
        self, y: NDArray[np.float64], rng: np.random.RandomState
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows to validate on and those to train on: of each class the same share."""
        classes = [y > 0, y <= 0] if isinstance(self, ClassifierMixin) else [np.ones(len(y), dtype=bool)]
        held = np.zeros(len(y), dtype=bool)
        order = rng.permutation(len(y))
        for members in classes:
            mine = order[members[order]]
            if len(mine) >= 2:  # one row alone is trained on
                held[mine[: min(max(1, round(self.validation_fraction * len(mine))), len(mine) - 1)]] = (
                    True
                )
            elif self._loss().pairwise:
                raise InputError(
                    f"validation_fraction needs two rows of each class under loss {self.loss!r}, and "
                    f"class {self._class_of(y[mine[0]])} has {len(mine)}: give more rows, or set it to 0"
                )
        if not held.any():
            raise InputError(
                f"validation_fraction holds rows out where there are two, or two of one class, and "
                f"there are {len(y):,} in all: give more rows, or set it to 0"
            )
        return order[held[order]], order[~held[order]]

    def _class_of(self, y: float) -> Any:
        return self.classes_[int(y > 0)]  # type: ignore[attr-defined]

    def _check_pairs(self, y: NDArray[np.float64]) -> None:
        """Refuse rows of one class where the loss compares rows of two."""
        if self._loss().pairwise and len(np.unique(y)) < 2:
            raise InputError(
                f"loss {self.loss!r} compares a row of each class, and these {len(y)} rows are all of "
                f"class {self._class_of(y[0])}: give rows of both, or use loss='logistic'"
            )

    def _wake(self, model: Model, X: sp.csr_matrix, rng: np.random.RandomState, again: bool) -> None:
        """Leave zeros in the rows of columns that no row has had, and draw those that come up now."""
        here = np.bincount(X.indices, minlength=X.shape[1]) > 0
        if not again:
            for P in model.tables():
                P[:, ~here] = 0.0
            self._seen = here
            return
        new = here & ~self._seen
        if new.any():
            for P in model.tables():
                P[:, new] = self.init_scale * rng.standard_normal(P[:, new].shape)
        self._seen = self._seen | here

    def _remember(self, solver: Solver, rng: np.random.RandomState) -> None:
        """Keep the solver's state and the random state, from which the next `partial_fit` continues."""
        self._rng, self._state = rng, solver.get_state()

    def _steps(self) -> bool:
        if self.solver not in solver_names() or not SOLVERS.get(self.solver).resumes:
            able = " or ".join(repr(name) for name in solver_names() if SOLVERS.get(name).resumes)
            raise InputError(f"partial_fit needs solver={able}, not {self.solver!r}")
        return True

    def _partial_fit(self, X: sp.csr_matrix, y: NDArray[np.float64]) -> None:
        if self.validation_fraction > 0.0:
            raise InputError(
                "partial_fit keeps no rows out: set validation_fraction=0, and measure on your own rows"
            )
        if self.fit_component_weights:
            raise InputError(
                "partial_fit learns no weights of components, which a few rows do not determine: set "
                "fit_component_weights=False, or call fit"
            )
        self._check_pairs(y)
        again = hasattr(self, "P_")
        # one generator from the first call on: drawn anew, every call would draw the very same rows
        rng = self._rng if again else check_random_state(self.random_state)
        model = self._fitted(X.shape[1]) if again else self._start(X.shape[1], rng)
        self._wake(model, X, rng, again)
        objective = self._objective(model, X, y, rng)
        if self.fit_signs and not again:
            choose_signs(objective)
        solver = self._solver(objective)
        passes: int = self.n_iter_ if again else 0
        if again and self._state is not None:
            solver.set_state(self._state, passes)
        moved = solver.epoch()
        value = objective.value()
        if not np.isfinite(value):
            raise solver.diverged(value, passes + 1)
        entry = {"objective": value, "violation": moved, "seconds": np.nan}
        if not again:
            self.history_ = []
        self.history_.append(entry)
        self.n_iter_ = passes + 1
        self._keep(model)
        self._remember(solver, rng)

    def _predict(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = checked_rows(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = self._augmented(clean_rows(X))
        return self._fitted(rows.shape[1]).predict(rows, threads=self.num_threads or None)

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,)
            Numbers, or two classes.
        sample_weight : (rows,) float, optional
            Of the rows in the mean loss, of at least 0 and not all 0: 2 is as the row twice, 0 leaves it
            out. Only their ratios matter.

        Raises
        ------
        InputError, FitError
            For parameters out of range, a solver that cannot serve the rest, weights that are no such,
            or a classifier whose rows of a weight above 0 are not of two classes; if it diverges.
        """
        self._fit(*self._rows(X, y, True, sample_weight))
        return self

    def _rows(
        self, X: ArrayLike, y: ArrayLike, reset: bool, sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> tuple[sp.csr_matrix, NDArray[np.float64], NDArray[np.float64] | None]:  # fmt: skip
        self._check_parameters()
        X, y = checked_rows(
            self, X, y, accept_sparse="csr", dtype=np.float64,
            y_numeric=isinstance(self, RegressorMixin), reset=reset,
        )  # fmt: skip
        X, y, weights = weighed_rows(X, y, sample_weight)
        return self._augmented(clean_rows(X)), self._targets(np.asarray(y), classes), weights

    def _targets(self, y: NDArray[Any], classes: ArrayLike | None) -> NDArray[np.float64]:
        """Return what is fitted: numbers, or −1 and 1."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Regressor(RegressorMixin, FactorMachine):
    """Regression."""

    def _losses(self) -> tuple[str, ...]:
        return loss_names(numbers=True)

    def _targets(self, y: NDArray[Any], classes: ArrayLike | None) -> NDArray[np.float64]:
        return np.asarray(y, dtype=np.float64)

    @available_if(lambda self: self._steps())
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Make one stochastic pass over these rows, from where the last call ended.

        Parameters and errors are those of `fit`, without weights.
        """
        self._partial_fit(*self._rows(X, y, not hasattr(self, "P_"))[:2])
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return predictions, (rows,)."""
        return self._predict(X)


class Classifier(TwoClassMixin, FactorMachine):
    """Classification into two classes."""

    def _losses(self) -> tuple[str, ...]:
        return loss_names(classes=True)

    def _targets(self, y: NDArray[Any], classes: ArrayLike | None) -> NDArray[np.float64]:
        self.classes_ = two_classes(y, classes)
        return 2.0 * (y == self.classes_[1]) - 1.0

    @available_if(lambda self: self._steps())
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Any:
        """Make one stochastic pass over these rows, from where the last call ended.

        Parameters and errors are those of `fit`, without weights; `classes`, (2,), may be given at the
        first call.
        """
        first = not hasattr(self, "P_")
        known = classes if first else self.classes_
        self._partial_fit(*self._rows(X, y, first, classes=known)[:2])
        return self

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


def weighed_rows(
    X: Any, y: Any, sample_weight: ArrayLike | None
) -> tuple[Any, Any, NDArray[np.float64] | None]:
    """Return the rows of a weight above 0, their targets and weights; all of them without weights."""
    if sample_weight is None:
        return X, y, None
    weights = check_sample_weight(sample_weight, X.shape[0])
    kept = weights > 0.0
    return (X, y, weights) if kept.all() else (X[kept], np.asarray(y)[kept], weights[kept])


def clean_rows(X: Any) -> sp.csr_matrix:
    """Return a canonical copy: no duplicates, no stored zeros, sorted."""
    rows = sp.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
