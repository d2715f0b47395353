"""What the estimators share: parameters, checks, the record of a fit, prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from recsys.errors import InputError
from recsys.fm import _batch, _solvers
from recsys.fm._losses import LOSSES, PAIRWISE, PENALTIES
from recsys.fm._problem import Model, Problem, Shape
from recsys.fm._record import Record
from recsys.fm._rows import ALL_SUBSETS, ANOVA, MIXED, PRODUCT
from recsys.utils.validation import check_choice, check_integer, check_real

SOLVERS: dict[str, type[_solvers.Solver]] = {
    "cd": _solvers.CoordinateDescent, "block": _solvers.BlockDescent,
    "relational": _solvers.RelationalDescent, "sgd": _solvers.Stochastic, "adagrad": _solvers.AdaGrad,
    "fista": _batch.Fista, "nmapgd": _batch.NonMonotone, "katyusha": _batch.Katyusha,
    "lbfgs": _batch.Lbfgs, "subgradient": _batch.SubGradient,
}  # fmt: skip


@dataclass(eq=False, repr=False)
class FactorMachine(BaseEstimator):
    """What the estimators of this package share.

    They minimise mean loss + ½α‖w‖² + ½β‖P‖² + γΩ(P).

    Parameters
    ----------
    n_components : int ≥ 1
        Rank k.
    loss : str
        "squared" or "huber"; for classes "logistic", "squared_hinge", "squared", or, over pairs of a
        row of each class, "bpr" (logistic) and "auc" (squared hinge), solvers "sgd" and "adagrad".
    penalty : "l2", "l1", "ti", "l21", "cs" or "omega"
        Ω: nothing; ‖P‖₁; Σ_s K_A^m(|p_s|, 1); Σ_j ‖p_j‖; K_A^m over ‖p_j‖; Σ_{i<j} |⟨p_i, p_j⟩|. The
        all-subsets model has Π(1 + ·) in place of K_A^m.
    solver : str
        "cd", one parameter at a time; "block", a feature's whole row; "relational", "cd" on rows that
        are pairs of objects which repeat (users and items), many times faster; "sgd" and "adagrad",
        mini-batches; "fista", "nmapgd", "katyusha", "lbfgs", "subgradient", whole gradients.
    alpha, beta, gamma : float ≥ 0
        The loss is a mean over rows, so a feature in a share f of the rows, of value 1, has β against a
        curvature of f times its mean squared slope: the default halves what is learned of a feature that
        one row in a thousand has.
    fit_linear, fit_intercept : bool
    max_iter : int ≥ 1
        Epochs.
    tol : float ≥ 0
        Stop when an epoch lowers the objective by less than this share of it; stochastic solvers first
        halve their step, down to a hundredth. With 0 just `max_iter` epochs are made, as far as they
        help, and nothing is warned of.
    learning_rate : float > 0
        Of "sgd" (over √epoch) and "adagrad".
    batch_size : int ≥ 1
        Of "sgd", "adagrad" and "katyusha".
    validation_fraction : float in [0, 1)
        Share of the rows kept out to stop early, the same of each class: the best epoch's parameters are
        kept.
    patience : int ≥ 1
        Epochs without a better validation loss after which to stop.
    warm_start : bool
        Go on from the last fit on as many features.
    init_scale : float > 0
        Standard deviation of the first P.
    num_threads : int ≥ 0
        0 is all; passes too small to be worth a second thread have one, and the result does not depend
        on it.
    random_state : int, RandomState or None
    callback : callable, optional
        Called as callback(epoch, objective); what is true ends the fit.

    Attributes
    ----------
    w_ : (features,) float64
    intercept_ : float
    P_ : list of (factors, features, n_components) float64
        One an order; one factor but for polynomial networks, with the rows of columns of ones, if any.
    theta_ : (terms, orders) float64
        Weights of the orders of a shared P; 1 elsewhere.
    history_ : list of dict
        "objective", "violation" (sum of absolute changes), "seconds", and "validation" (loss) if there
        is any, first at the start.
    n_iter_ : int
    stopped_ : "tolerance", "validation", "callback", "max_iter" or "stalled"
        The last two come with a ConvergenceWarning ("max_iter" only where tol > 0): "stalled" is an end
        at an objective above that of a model of zeros.

    Notes
    -----
    Columns that no row of the fit has get zeros, by any solver. The descents visit rare columns first.
    There are no weights of rows: each pass sums over objects or rows what a weight would have to be
    carried through; rows given twice weigh twice.
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
    validation_fraction: float = 0.0
    patience: int = 5
    warm_start: bool = False
    init_scale: float = 0.05
    num_threads: int = 0
    random_state: Any = 0
    callback: Callable[[int, float], Any] | None = None

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there are parameters."""
        return hasattr(self, "P_")

    def _shapes(self) -> list[Shape]:
        raise NotImplementedError

    def _losses(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, self._losses())
        check_choice("penalty", self.penalty, tuple(PENALTIES))
        check_choice("solver", self.solver, tuple(SOLVERS))
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
        shapes = self._shapes()
        refusal = _refusal(self.solver, self.loss, self.penalty, shapes)
        if refusal:
            able = [name for name in SOLVERS if not _refusal(name, self.loss, self.penalty, shapes)]
            raise InputError(
                f"solver {self.solver!r} cannot serve {refusal}"
                + (f": use solver={' or '.join(map(repr, able))}" if able else "; no solver can")
            )

    def _start(self, features: int, rng: np.random.RandomState) -> Model:
        """Return the model to fit: the last one under warm_start, else a random one."""
        model = Model.zeros(self._shapes(), features, self.n_components, self.fit_linear)
        if self.warm_start and hasattr(self, "P_") and self.w_.shape == (features,):
            self._pour(model)
            return model
        self.history_: list[dict[str, float]] = []
        for P in model.tables():
            P[:] = self.init_scale * rng.standard_normal(P.shape)
        if model.shapes[0].kind == MIXED and self._learns_theta():
            model.theta[:] = 1.0 / model.theta.shape[1]
        return model

    def _learns_theta(self) -> bool:
        return False

    def _pour(self, model: Model) -> None:
        """Write the fitted attributes into a model's vector."""
        model.z[0] = self.intercept_
        model.w[:] = self.w_
        for P, known in zip(model.tables(), self.P_, strict=True):
            P[:] = known
        model.theta[:] = self.theta_

    def _keep(self, model: Model) -> None:
        self.w_, self.intercept_ = model.w.copy(), float(model.z[0])
        self.P_ = [P.copy() for P in model.tables()]
        self.theta_ = model.theta

    def _problem(
        self, model: Model, X: sp.csr_matrix, y: NDArray[np.float64], rng: np.random.RandomState
    ) -> Problem:
        pairwise = self.loss in PAIRWISE
        code = PAIRWISE[self.loss] if pairwise else LOSSES[self.loss]
        return Problem(
            model, X, y, code, pairwise, self.penalty, float(self.alpha), float(self.beta),
            float(self.gamma), self.fit_intercept and not pairwise, rng, self.num_threads or None,
        )  # fmt: skip

    def _fit(self, X: sp.csr_matrix, y: NDArray[np.float64]) -> None:
        rng = check_random_state(self.random_state)
        again = self.warm_start and hasattr(self, "P_") and self.w_.shape == (X.shape[1],)
        model = self._start(X.shape[1], rng)
        held: Problem | None = None
        self._check_pairs(y)
        if self.validation_fraction > 0.0:
            out, rest = self._kept_out(y, rng)
            held = self._problem(model, X[out], y[out], rng)
            X, y = X[rest], y[rest]
        self._wake(model, X, rng, again)
        problem = self._problem(model, X, y, rng)
        options = _solvers.Options(float(self.learning_rate), self.batch_size, self.num_threads or None)
        solver = SOLVERS[self.solver](problem, options)
        record = Record(self, solver, problem, held)
        solver.run(record, self.max_iter)
        record.finish()
        self._keep(model)
        self._remember(solver, rng)
        record.warn()

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
            elif self.loss in PAIRWISE:
                raise InputError(
                    f"validation_fraction needs two rows of each class under loss {self.loss!r}, and "
                    f"class {self._class_of(y[mine[0]])} has {len(mine)}: give more rows, or set it to 0"
                )
        if not held.any():
            raise InputError(f"validation_fraction leaves none of {len(y)} rows to train on")
        return order[held[order]], order[~held[order]]

    def _class_of(self, y: float) -> Any:
        return self.classes_[int(y > 0)]  # type: ignore[attr-defined]

    def _check_pairs(self, y: NDArray[np.float64]) -> None:
        """Refuse rows of one class where the loss compares rows of two."""
        if self.loss in PAIRWISE and len(np.unique(y)) < 2:
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

    def _remember(self, solver: _solvers.Solver, rng: np.random.RandomState) -> None:
        """Keep what the next call of `partial_fit` goes on from."""
        self._rng = rng
        self._state = None
        if isinstance(solver, _solvers.Stochastic):
            self._state = (solver.state, solver.clock)

    def _steps(self) -> bool:
        if not issubclass(SOLVERS.get(self.solver, _solvers.Solver), _solvers.Stochastic):
            raise InputError(f"partial_fit needs solver='sgd' or 'adagrad', not {self.solver!r}")
        return True

    def _partial_fit(self, X: sp.csr_matrix, y: NDArray[np.float64]) -> None:
        if self.validation_fraction > 0.0:
            raise InputError(
                "partial_fit keeps no rows out: set validation_fraction=0, and measure on your own rows"
            )
        self._check_pairs(y)
        again = hasattr(self, "P_")
        # one generator from the first call on: drawn anew, every call would draw the very same rows
        rng = self._rng if again else check_random_state(self.random_state)
        if again:
            model = Model.zeros(self._shapes(), X.shape[1], self.n_components, self.fit_linear)
            self._pour(model)
        else:
            model = self._start(X.shape[1], rng)
        self._wake(model, X, rng, again)
        options = _solvers.Options(float(self.learning_rate), self.batch_size, self.num_threads or None)
        problem = self._problem(model, X, y, rng)
        solver = SOLVERS[self.solver](problem, options)
        assert isinstance(solver, _solvers.Stochastic)
        passes: int = getattr(self, "n_iter_", 0)
        known = self._state if again else None
        if known is not None and len(known[0]) == len(solver.state):
            (solver.state, solver.clock), solver.passes = known, passes
        self.n_iter_ = passes + 1
        moved = solver.epoch()
        objective = problem.objective()
        if not np.isfinite(objective):
            raise solver.diverged(objective, self.n_iter_)
        self.history_.append({"objective": objective, "violation": moved, "seconds": np.nan})
        self._keep(model)
        self._remember(solver, rng)

    def _predict(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = self._augmented(clean_rows(X))
        model = Model.zeros(self._shapes(), rows.shape[1], self.n_components, self.fit_linear)
        self._pour(model)
        return model.predict(rows, threads=self.num_threads or None)

    def _augmented(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X


def _refusal(solver: str, loss: str, penalty: str, shapes: list[Shape]) -> str:
    """Return what a solver cannot serve, or nothing."""
    able = SOLVERS[solver]
    if loss in PAIRWISE and not able.pairwise:
        return f"loss {loss!r}, which compares rows"
    if penalty not in able.penalties:
        return f"penalty {penalty!r}"
    for shape in shapes:
        if shape.kind not in able.kinds:
            return _solvers.NAMES[shape.kind]
        deep = shape.kind == ALL_SUBSETS or (shape.kind in (ANOVA, MIXED) and shape.order > 2)
        if penalty in ("ti", "cs") and deep and able.orders is not None:
            return f"penalty {penalty!r} above order {able.orders}"
        if penalty == "omega" and (shape.kind == ALL_SUBSETS or shape.kind == PRODUCT or deep):
            return "penalty 'omega' beyond pairs of features"
    return ""


class Regressor(RegressorMixin, FactorMachine):
    """Regression."""

    def _losses(self) -> tuple[str, ...]:
        return ("squared", "huber")

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,) float

        Raises
        ------
        InputError, FitError
            For parameters out of range or a solver that cannot serve the rest; if it diverges.
        """
        self._fit(*self._rows(X, y, True))
        return self

    @available_if(lambda self: self._steps())
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Make one stochastic pass over these rows, from where the last call ended.

        Parameters and errors are those of `fit`.
        """
        self._partial_fit(*self._rows(X, y, not hasattr(self, "P_")))
        return self

    def _rows(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[sp.csr_matrix, Any]:
        self._check_parameters()
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, reset=reset
        )
        return self._augmented(clean_rows(X)), np.asarray(y, dtype=np.float64)

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
        return ("logistic", "squared_hinge", "squared", *PAIRWISE)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit.

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
        self._fit(*self._rows(X, y, None, True))
        return self

    @available_if(lambda self: self._steps())
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Any:
        """Make one stochastic pass over these rows, from where the last call ended.

        Parameters and errors are those of `fit`; `classes`, (2,), may be given at the first call.
        """
        first = not hasattr(self, "P_")
        self._partial_fit(*self._rows(X, y, classes if first else self.classes_, first))
        return self

    def _rows(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, reset: bool
    ) -> tuple[sp.csr_matrix, Any]:
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=reset)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise InputError(f"Unknown label type: {kind}. y must hold two classes")
        known = np.unique(np.asarray(y) if classes is None else classes)
        if len(known) > 2:
            raise InputError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        if len(known) < 2:
            raise InputError("y must hold two classes, and has 1 class")
        if not np.isin(y, known).all():
            raise InputError(f"y holds classes other than {known.tolist()}")
        self.classes_ = known
        return self._augmented(clean_rows(X)), 2.0 * (np.asarray(y) == known[1]) - 1.0

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return scores, (rows,): above 0 for the second class."""
        return self._predict(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def _logistic(self) -> bool:
        if self.loss != "logistic":
            raise InputError(f"probabilities need loss='logistic', not {self.loss!r}")
        return True

    @available_if(_logistic)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, 2); for the logistic loss only."""
        p = expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn: two classes, sparse rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def clean_rows(X: Any) -> sp.csr_matrix:
    """Return a canonical copy: no duplicates, no stored zeros, sorted."""
    rows = sp.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
