"""Bayesian factorization machines: averages over draws, with intervals, and nothing to tune."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from recsys.errors import InputError
from recsys.fm.base import clean_rows, weighed_rows
from recsys.fm.gibbs import Sampler
from recsys.fm.objective import Model
from recsys.fm.solvers.pairs import pairs_of_rows
from recsys.multilinear.forms import ANOVA, Form
from recsys.utils.features import checked_rows
from recsys.utils.memory import check_fits
from recsys.utils.progress import report
from recsys.utils.two_classes import TwoClassMixin, two_classes
from recsys.utils.validation import check_integer, check_real

__all__ = ["BayesianFactorizationMachineClassifier", "BayesianFactorizationMachineRegressor"]

WORSE = 1.2  # times the squared error of no model, from which a fit is warned of
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
HALVINGS = 60  # of the range in which an end of an interval lies


@dataclass(eq=False, repr=False)
class BayesianFactorizationMachine(BaseEstimator):
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
        Number of columns of the left part, for rows of two repeated parts such as users and items. The
        parameters of a part share a prior per order and component.
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
    component; the precision of the noise is from Γ(½, ½). Scale features to a variance of about 1. The
    `sample_weight` of the regressor multiplies the precision of a row's noise; the classifier does not
    support it.
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
        self,
        X: sp.csr_matrix,
        y: NDArray[np.float64],
        classes: bool,
        scale: float = 1.0,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        orders = range(2, self.degree + 1)
        size = 1 + X.shape[1] * (1 + len(orders) * self.n_components)
        kept = self.n_draws - self.burn_in
        check_fits(
            size * kept,
            f"{kept:,} draws of {size:,} parameters",
            "lower n_draws or n_components, or raise burn_in",
        )
        self._shape = (self.degree, self.n_components, self.fit_linear)
        split = X.shape[1] if self.split is None else self.split
        if split > X.shape[1]:
            raise InputError(f"split is {split}, and the rows have {X.shape[1]} columns")
        ends = np.arange(split), np.arange(split, X.shape[1])
        seed = check_random_state(self.random_state).randint(2**31, size=4)
        sampler = Sampler(
            pairs_of_rows(X, ends),
            ends,
            y,
            orders,
            self.n_components,
            X.shape[1],
            classes,
            self.fit_linear,
            self.fit_intercept,
            float(self.init_scale),
            np.random.default_rng(seed),
            self.num_threads or None,
            weights,
        )
        draws, precisions, done = np.empty((kept, size)), np.empty(kept), 0
        total = np.zeros(len(y))
        self.history_: list[dict[str, float]] = []
        for k in range(self.n_draws):
            report(f"draw {k + 1}", k, self.n_draws)
            found = sampler.draw()
            error = scale * sampler.loss()
            self.history_.append({"error": error, "precision": found.precision / scale**2})
            if k >= self.burn_in:
                draws[done], precisions[done] = found.z, found.precision
                total += sampler.fitted
                done += 1
            if self.callback is not None and self.callback(k + 1, error) and done:
                break
        self.draws_, self.precisions_ = draws[:done], precisions[:done]
        left = (y - total / done) ** 2
        if not classes and _mean(left, weights) > WORSE * _mean(y**2, weights) > 0.0:
            warnings.warn(
                "the mean of the draws fits the training rows worse than no model: scale the features, "
                "or raise n_draws and burn_in",
                ConvergenceWarning,
                stacklevel=3,
            )
        mean = self.draws_.mean(axis=0)
        self.intercept_, self.w_ = float(mean[0]), mean[1 : 1 + X.shape[1]]

    def _each(self, X: ArrayLike) -> Iterator[NDArray[np.float64]]:
        """Yield each draw's predictions, (rows,)."""
        check_is_fitted(self)
        rows = clean_rows(checked_rows(self, X, accept_sparse="csr", dtype=np.float64, reset=False))
        degree, components, linear = self._shape
        model = Model.zeros(
            [Form(ANOVA, order, 1) for order in range(2, degree + 1)], rows.shape[1], components, linear
        )
        for z in self.draws_:
            yield model.predict(rows, z, self.num_threads or None)

    def _of_draws(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return each draw's predictions, (draws, rows)."""
        return np.array(list(self._each(X)))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,) float
        sample_weight : (rows,) float, optional
            Non-negative factors of the precision of a row's noise: 2 counts a row twice, 0 ignores it.
            The sum of the weights is the number of observations.
        """
        self._check_parameters()
        X, y = checked_rows(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        X, y, weights = weighed_rows(X, y, sample_weight)
        rows, y = clean_rows(X), np.asarray(y, dtype=np.float64)
        # The priors are for numbers around 0 that vary by about 1.
        with np.errstate(over="ignore"):
            centre = _mean(y, weights) if self.fit_intercept else 0.0
            scale = float(np.sqrt(_mean((y - centre) ** 2, weights)))
        if not np.isfinite(scale):
            raise InputError("y is too large to be squared: scale it")
        if scale <= ROUNDING * abs(centre):  # one number in all rows, but for rounding
            scale, y = abs(centre) or 1.0, np.full(len(y), centre)
        self._sample(rows, (y - centre) / scale, False, scale, weights)
        self._rescale(rows.shape[1], centre, scale)
        return self

    def _rescale(self, features: int, centre: float, scale: float) -> None:
        """Turn draws for (y − centre)/scale into draws for y: A^m is homogeneous of degree m."""
        ends = 1 + features * (1 + self.n_components * np.arange(self.degree))
        self.draws_[:, : ends[0]] *= scale
        self.draws_[:, 0] += centre
        for order, start, end in zip(range(2, self.degree + 1), ends, ends[1:], strict=False):
            self.draws_[:, start:end] *= scale ** (1.0 / order)
        self.precisions_ /= scale**2
        self.intercept_, self.w_ = self.intercept_ * scale + centre, self.w_ * scale

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the mean over draws, (rows,), and optionally the predictive standard deviation.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        return_std : bool
            Whether to return the standard deviation of predictions and noise.

        Returns
        -------
        (rows,) float64, or a pair of these
        """
        if not return_std:
            return sum(self._each(X)) / len(self.draws_)
        found = self._of_draws(X)
        return found.mean(axis=0), np.sqrt(found.var(axis=0) + np.mean(1.0 / self.precisions_))

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> NDArray[np.float64]:
        """Return the predictive interval of each row with probability `level`.

        Both tails of the mixture of normal distributions over the draws have equal probability.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        level : float in (0, 1)

        Returns
        -------
        (rows, 2) float64
        """
        level = check_real("level", level, 0.0, 1.0, open_low=True, open_high=True)
        found, spread = self._of_draws(X), 1.0 / np.sqrt(self.precisions_)[:, None]
        tail = 0.5 * (1.0 - level)
        return np.column_stack([_quantile(found, spread, share) for share in (tail, 1.0 - tail)])


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def _quantile(
    found: NDArray[np.float64], spread: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return where a mixture of normal distributions, one a draw, has so much of it below, (rows,)."""
    far = 40.0 * float(spread.max())
    low, high = found.min(axis=0) - far, found.max(axis=0) + far
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = ndtr((middle - found) / spread).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


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
        """Draw from the posterior.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
        y : (rows,)
            Two classes.
        """
        self._check_parameters()
        X, y = checked_rows(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_ = two_classes(y)
        self._sample(clean_rows(X), 2.0 * (np.asarray(y) == self.classes_[1]) - 1.0, True)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, (rows, 2): the mean over draws."""
        p = np.asarray(sum(ndtr(one) for one in self._each(X)) / len(self.draws_))
        return np.column_stack([1.0 - p, p])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log-odds of the second class, (rows,)."""
        found = self._of_draws(X)
        up, down = (np.logaddexp.reduce(log_ndtr(sign * found), axis=0) for sign in (1.0, -1.0))
        return up - down
