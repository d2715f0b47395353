"""Bayesian factorization machines: averages over draws, with intervals, and nothing to tune."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri_exp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.fm.base import clean_rows, weighed_rows
from recsys.fm.objective import Model
from recsys.fm.penalties import L2
from recsys.fm.solvers.base import Shrinkage
from recsys.fm.solvers.pairs import pair_epoch, pairs_of_rows
from recsys.multilinear.forms import ANOVA, Form
from recsys.multilinear.losses import LOSSES, Target
from recsys.multilinear.pairs import PairTerm
from recsys.utils.estimators import SparseRowsMixin, TwoClassMixin, checked_rows, two_classes
from recsys.utils.progress import report
from recsys.utils.resources import check_memory
from recsys.utils.validation import check_integer, check_real

WORSE = 1.2  # times the squared error of no model, from which a fit is warned of
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
HALVINGS = 60  # of the range in which an end of an interval lies
REFRESHED = 10  # draws between predictions from the parameters
Vector = NDArray[np.float64]
# Of the normal-gamma prior over each group's mean and precision, and of the noise's: libFM's.
SHAPE, RATE, PRIOR_ROWS = 1.0, 1.0, 1.0


@dataclass(eq=False, repr=False)
class BayesianFactorizationMachine(SparseRowsMixin, BaseEstimator):
    """Base of both Bayesian estimators.

    Parameters
    ----------
    degree : int ≥ 2
        Highest order; each order from 2 on has its own matrix.
    n_components : int ≥ 1
        Rank k.
    n_draws : int ≥ 1
        Number of sweeps over all parameters.
    burn_in : int ≥ 0, below n_draws
        Number of first draws to discard.
    split : int ≥ 1, optional
        Number of columns of the left part, for rows of two repeated parts such as users and items.
    fit_linear, fit_intercept : bool
    init_scale : float > 0
        Standard deviation of the first P.
    num_threads : int ≥ 0
        0 for all; the draws do not depend on it.
    random_state : int, RandomState or None
    callback : callable, optional
        Called as callback(draw, error on the training rows); a true return value ends the chain after
        the burn-in.

    Attributes
    ----------
    draws_ : (draws kept, parameters) float64
        Bias, w, then P of each order from 2 on, (features, components).
    precisions_ : (draws kept,) float64
        Precision of the noise; 1 for classes.
    history_ : list of dict
        For each draw the "error" on the training rows (root mean squared error, or mean negative
        log-likelihood for classes) and the "precision".
    w_ : (features,) float64
    intercept_ : float
        Means over the draws.

    Notes
    -----
    Source: Freudenthaler, Schmidt-Thieme, Rendle, Bayesian Factorization Machines (2011); Rendle,
    Scaling Factorization Machines to Relational Data (2013). Priors follow libFM for a standardized y:
    parameters are normal with a mean from N(0, 1/λ) and a precision from Γ(½, ½) for each part and
    component; the precision of the noise is from Γ(½, ½). Scale features to a variance of about 1.
    """

    degree: int = 2
    n_components: int = 8
    n_draws: int = 100
    burn_in: int = 10
    split: int | None = None
    fit_linear: bool = True
    fit_intercept: bool = True
    init_scale: float = 0.1
    num_threads: int = 0
    random_state: Any = 0
    callback: Callable[[int, float], Any] | None = None

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn that there are parameters."""
        return hasattr(self, "draws_")

    def _check_parameters(self) -> None:
        check_integer("degree", self.degree, 2, 20)
        check_integer("n_components", self.n_components, 1)
        check_integer("n_draws", self.n_draws, 1)
        check_integer("burn_in", self.burn_in, 0, self.n_draws - 1)
        check_integer("num_threads", self.num_threads, 0)
        check_real("init_scale", self.init_scale, 0.0, open_low=True)
        if self.split is not None:
            check_integer("split", self.split, 1)

    def _sample(
        self, X: sp.csr_matrix, y: Vector, classes: bool, scale: float = 1.0, weights: Any = None
    ) -> None:
        forms = [Form(ANOVA, order, 1) for order in range(2, self.degree + 1)]
        model = Model.zeros(forms, X.shape[1], self.n_components, self.fit_linear)
        kept, size = self.n_draws - self.burn_in, len(model.z)
        what = f"{kept:,} draws of {size:,} parameters"
        check_memory(8 * size * kept, what, "lower n_draws or n_components, or raise burn_in")
        split = X.shape[1] if self.split is None else self.split
        if split > X.shape[1]:
            raise InputError(f"split is {split}, and the rows have {X.shape[1]} columns")
        seed = check_random_state(self.random_state).randint(2**31, size=4)
        sampler = Sampler(
            model,
            X,
            y,
            split,
            np.random.default_rng(seed),
            classes=classes,
            intercept=self.fit_intercept,
            init_scale=float(self.init_scale),
            row_weights=weights,
            threads=self.num_threads or None,
        )
        draws, precisions, done = np.empty((kept, size)), np.empty(kept), 0
        total = np.zeros(len(y))
        self.history_: list[dict[str, float]] = []
        for k in range(self.n_draws):
            report(f"draw {k + 1}", k, self.n_draws)
            sampler.draw()
            error = scale * sampler.error()
            self.history_.append({"error": error, "precision": sampler.precision / scale**2})
            if k >= self.burn_in:
                draws[done], precisions[done] = model.z, sampler.precision
                total += sampler.fitted
                done += 1
            if self.callback is not None and self.callback(k + 1, error) and done:
                break
        self._model, self.draws_, self.precisions_ = model, draws[:done], precisions[:done]
        left = (y - total / done) ** 2
        if not classes and sampler.mean(left) > WORSE * sampler.mean(y**2) > 0.0:
            warnings.warn(
                "the mean of the draws fits the training rows worse than no model: scale the features, "
                "or raise n_draws and burn_in",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._average()

    def _average(self) -> None:
        mean = self.draws_.mean(axis=0)
        self.intercept_, self.w_ = float(mean[0]), mean[1 : 1 + self._model.features]

    def _each(self, X: ArrayLike) -> Iterator[Vector]:
        """Yield each draw's predictions, (rows,)."""
        check_is_fitted(self)
        rows = clean_rows(checked_rows(self, X, accept_sparse="csr", dtype=np.float64, reset=False))
        for z in self.draws_:
            yield self._model.predict(rows, z, self.num_threads or None)

    def _of_draws(self, X: ArrayLike) -> Vector:
        """Return each draw's predictions, (draws, rows)."""
        return np.array(list(self._each(X)))


@dataclass(eq=False, repr=False)
class BayesianFactorizationMachineRegressor(RegressorMixin, BayesianFactorizationMachine):
    """A Bayesian factorization machine for regression: means and intervals over draws.

    Other parameters: as in `BayesianFactorizationMachine`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 4))
    >>> y = 2.0 * X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(300)
    >>> model = BayesianFactorizationMachineRegressor(n_components=2).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.8)
    True
    >>> low, high = model.predict_interval(X[200:], 0.9).T
    >>> bool(0.8 < np.mean((low < y[200:]) & (y[200:] < high)) < 1.0)
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Draw from the posterior.

        `sample_weight` ≥ 0 are factors of the precision of a row's noise: 2 counts a row twice. The sum
        of the weights is the number of observations.
        """
        self._check_parameters()
        X, y = checked_rows(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        X, y, weights = weighed_rows(X, y, sample_weight)
        rows, y = clean_rows(X), np.asarray(y, dtype=np.float64)
        # The priors are for numbers around 0 that vary by about 1.
        with np.errstate(over="ignore"):
            centre = float(np.average(y, weights=weights)) if self.fit_intercept else 0.0
            scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weights)))
        if not np.isfinite(scale):
            raise InputError("y is too large to be squared: scale it")
        if scale <= ROUNDING * abs(centre):  # one number in all rows, but for rounding
            scale, y = abs(centre) or 1.0, np.full(len(y), centre)
        self._sample(rows, (y - centre) / scale, False, scale, weights)
        features, k = rows.shape[1], self.n_components
        powers = [np.full(features * k, 1.0 / order) for order in range(2, self.degree + 1)]
        self.draws_ *= scale ** np.concatenate([np.ones(1 + features), *powers])  # A^m has degree m
        self.draws_[:, 0] += centre
        self.precisions_ /= scale**2
        self._average()
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the mean over draws, (rows,), and if asked for the predictive standard deviation."""
        if not return_std:
            return sum(self._each(X)) / len(self.draws_)
        found = self._of_draws(X)
        return found.mean(axis=0), np.sqrt(found.var(axis=0) + np.mean(1.0 / self.precisions_))

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> Vector:
        """Return the predictive interval of each row with probability `level`, (rows, 2).

        Both tails of the mixture of normal distributions over the draws have equal probability.
        """
        level = check_real("level", level, 0.0, 1.0, open_low=True, open_high=True)
        found, spread = self._of_draws(X), 1.0 / np.sqrt(self.precisions_)[:, None]
        tail = 0.5 * (1.0 - level)
        return np.column_stack([_quantile(found, spread, share) for share in (tail, 1.0 - tail)])


def _quantile(found: Vector, spread: Vector, share: float) -> Vector:
    """Return where a mixture of normal distributions, one a draw, has so much of it below, (rows,)."""
    far = 40.0 * float(spread.max())
    low, high = found.min(axis=0) - far, found.max(axis=0) + far
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = ndtr((middle - found) / spread).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


class Sampler:
    """A chain over the parameters of a factorization machine: each is drawn given all others.

    A prediction is linear in each parameter, so with normal priors and normal noise each has a normal
    distribution given the rest: the step of a descent on pairs, with noise. The model's vector is the
    last draw; y are numbers, or ±1 for classes, which have probit regression.
    """

    def __init__(
        self,
        model: Model,
        X: sp.csr_matrix,
        y: Vector,
        split: int,
        rng: np.random.Generator,
        *,
        classes: bool = False,
        intercept: bool = True,
        init_scale: float = 0.1,
        row_weights: Vector | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.X, self.y, self.rng = model, X, y, rng
        self.classes, self.intercept, self.threads = classes, intercept, threads
        self.row_weights = np.ones(len(y)) if row_weights is None else row_weights
        self.rows = float(self.row_weights.sum())
        self.ends = np.arange(split), np.arange(split, X.shape[1])
        self.pairs = pairs_of_rows(X, self.ends)
        for P in model.tables():
            P[:] = init_scale * rng.standard_normal(P.shape)
        self.target, self.precision, self.draws = y, 1.0, 0
        self.fitted = model.predict(X, threads=threads)

    def mean(self, values: Vector) -> float:
        """Return the weighted mean of a number of each row."""
        return float(self.row_weights @ values / self.rows)

    def error(self) -> float:
        """Return the root mean squared error; of classes the mean −log-likelihood."""
        if self.classes:
            return -float(log_ndtr(self.y * self.fitted).mean())
        return float(np.sqrt(self.mean((self.target - self.fitted) ** 2)))

    def draw(self) -> None:
        """Draw everything once."""
        model = self.model
        if self.classes:
            self._draw_latent()
        else:
            squares = self.rows * self.mean((self.target - self.fitted) ** 2)
            self.precision = self._gamma(0.5 * (SHAPE + self.rows), 0.5 * (RATE + squares))
        if self.intercept:
            spread = 1.0 / np.sqrt(self.precision * self.rows)
            change = self.mean(self.target - self.fitted) + spread * self.rng.standard_normal()
            self.fitted += change
            model.z[0] += change
        if model.linear:
            self._draw_term(1, model.w[:, None])
        for form, P in zip(model.forms, model.tables(), strict=True):
            self._draw_term(form.order, P[0])
        self.draws += 1
        if self.draws % REFRESHED == 0:  # rounding does not pile up
            self.fitted = model.predict(self.X, threads=self.threads)

    def _draw_latent(self) -> None:
        """Draw what lies behind the classes: normal around the prediction, on the class' side of 0."""
        u = np.log(1.0 - self.rng.random(len(self.y)))
        # y·latent is above 0: y·prediction − Φ⁻¹(u·Φ(y·prediction)), in logarithms for the tails
        self.target = self.fitted - self.y * ndtri_exp(u + log_ndtr(self.y * self.fitted))

    def _draw_term(self, m: int, P: Vector) -> None:
        loss = LOSSES.get("squared")
        target = Target(self.target, self.fitted, loss.code, loss.curvature, self.row_weights)
        scale = self.precision * len(self.y)  # of the sum over rows beside a mean

        def prior(_: int, factors: Vector) -> tuple[Any, Any, Any]:
            means, precisions, noise = [], [], []
            for p in factors:
                # From w = 0 the precision would follow w, and w it, over dozens of draws.
                mean, precision = self._draw_prior(p) if m > 1 or self.draws else (0.0, 1.0)
                means.append(mean)
                precisions.append(precision / scale)
                noise.append(self.rng.standard_normal(len(p)) / np.sqrt(scale))
            return np.array(precisions), np.array(means), np.array(noise)

        left, right = self.ends
        term = PairTerm(np.ones(m + 1), P[left], P[right], np.ones(P.shape[1]))
        none = Shrinkage(0.0, L2, 0.0)
        pair_epoch(self.pairs, [term], target, [none], threads=self.threads, prior=prior)
        P[left], P[right] = term.left, term.right

    def _draw_prior(self, p: Vector) -> tuple[float, float]:
        """Return a mean and a precision of what these parameters come from, drawn given them."""
        n, total = len(p), float(p.sum())
        weight = n + PRIOR_ROWS
        spread = float(p @ p) - total * total / weight
        precision = self._gamma(0.5 * (SHAPE + n), 0.5 * (RATE + spread))
        mean = total / weight + self.rng.standard_normal() / np.sqrt(weight * precision)
        return mean, precision

    def _gamma(self, shape: float, rate: float) -> float:
        return float(self.rng.gamma(shape, 1.0 / rate))


@dataclass(eq=False, repr=False)
class BayesianFactorizationMachineClassifier(TwoClassMixin, BayesianFactorizationMachine):
    """A Bayesian factorization machine for two classes: probit regression, averaged over draws.

    Other parameters: as in `BayesianFactorizationMachine`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((400, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = BayesianFactorizationMachineClassifier(n_components=2).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.8)
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Draw from the posterior, given two classes."""
        self._check_parameters()
        X, y = checked_rows(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_ = two_classes(y)
        self._sample(clean_rows(X), 2.0 * (np.asarray(y) == self.classes_[1]) - 1.0, True)
        return self

    def predict_proba(self, X: ArrayLike) -> Vector:
        """Return the probability of each class, (rows, 2): the mean over draws."""
        p = np.asarray(sum(ndtr(one) for one in self._each(X)) / len(self.draws_))
        return np.column_stack([1.0 - p, p])

    def decision_function(self, X: ArrayLike) -> Vector:
        """Return the log-odds of the second class, (rows,)."""
        found = self._of_draws(X)
        up, down = (np.logaddexp.reduce(log_ndtr(sign * found), axis=0) for sign in (1.0, -1.0))
        return up - down
