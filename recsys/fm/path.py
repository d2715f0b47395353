"""The regularisation path of a sparse factorization machine: strength by strength, from nothing to much.

A model without products is stationary at every strength, as each product's gradient is multiplied by the
other factors, which are 0. So a path that starts there would stay there, and one that starts anew from
random factors depends on their size and the order of the columns. Here a component that is all zeros is
given the combination of features with which the objective falls most, at the size where it does; what
has been found stays for the next strength, and is given up only for a random start that ends lower.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_X_y

from recsys.errors import InputError, counted
from recsys.fm._estimator import clean_rows, two_classes
from recsys.fm.combinations import pairs_together, strongest
from recsys.fm.estimators import FactorizationMachineClassifier, FactorizationMachineRegressor
from recsys.fm.interaction_gradients import Slopes, interaction_slopes
from recsys.fm.objective import Model
from recsys.fm.refit import ProductModel, fit_products
from recsys.multilinear.forms import ANOVA, Form
from recsys.multilinear.losses import LOSSES, Loss, mean_loss, slopes_of
from recsys.utils.progress import within
from recsys.utils.validation import check_choice, check_integer, check_real

__all__ = [
    "Combination", "Losses", "PathPoint", "PathRows", "RegularizationPath", "StrengthBracket",
    "extended_bic", "quiet", "regularization_path", "strength_bracket",
]  # fmt: skip

COUPLED, ABSOLUTE = ("ti", "cs"), ("l1", "l21")
GROWTH_ROUNDS = 3  # fits at one strength in which components may come up
NOT_LOWER = 1e-6  # share by which a random start must end lower
SEEDS = 1000  # combinations among which those to begin with are chosen
SIZES = np.geomspace(1e-3, 1.0, 60)  # of a factor, as a share of the best without a penalty
BLOCK = 100_000  # pairs at a time
MOST = 10**9  # interactions of higher order that are listed: all
CHOICES = ("held_out", "refit", "ebic")
Combination = tuple[int, ...]


class StrengthBracket(NamedTuple):
    """Between which strengths the first interaction appears.

    Attributes
    ----------
    low : float
        Below it a model with one interaction is better than any without.
    high : float
        From it on no model is better than the one without interactions.

    Examples
    --------
    >>> StrengthBracket(low=0.5, high=1.0).high
    1.0
    """

    low: float
    high: float


class Losses(NamedTuple):
    """Mean losses of a model on the rows of the fit, and on those held out (None without any)."""

    train: float
    held_out: float | None


@dataclass(frozen=True)
class PathPoint:
    """One strength.

    Attributes
    ----------
    gamma, objective : float
    n_features : int
        With a factor other than 0.
    n_interactions : int
        Combinations that some row has, with a weight.
    losses : Losses
        Of the penalised model.
    refit : Losses or None
        Of the model with the same interactions and no sparse penalty; None if there are too many.
    ebic : float or None
    grown : int
        Components that were begun here.
    fresh : bool
        Whether a random start ended lower than the one from the point before, and was taken.
    converged : bool
    intercept : float
    linear : (features,) float64
    used : (n_features,) int64
    tables : tuple of (n_features, components) float64
        Rows of P of the used features, one table an order.
    weights : dict of tuple of int to float
        Interactions with their weights.
    refitted : ProductModel or None

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions
    >>> data = planted_interactions(200, groups=1, per_group=3, noise_features=5)
    >>> model = FactorizationMachineRegressor(penalty="ti", beta=1e-5, solver="cd")
    >>> path = regularization_path(model, data.X, data.y, n_gammas=2, ratio=0.1)
    >>> path.points[1].n_interactions, path.points[0].support
    (3, ())
    """

    gamma: float
    objective: float
    n_features: int
    n_interactions: int
    losses: Losses
    refit: Losses | None
    ebic: float | None
    grown: int
    fresh: bool
    converged: bool
    intercept: float
    linear: NDArray[np.float64]
    used: NDArray[np.int64]
    tables: tuple[NDArray[np.float64], ...]
    weights: dict[Combination, float]
    refitted: ProductModel | None

    @property
    def support(self) -> tuple[Combination, ...]:
        """The interactions, the largest weight first."""
        return tuple(sorted(self.weights, key=lambda one: (-abs(self.weights[one]), one)))


@dataclass(frozen=True)
class RegularizationPath:
    """A path, from no interaction on.

    Attributes
    ----------
    penalty, loss : str
    orders : tuple of int
        Of the interactions.
    n_rows, n_held_out : int
    candidates : dict of int to float
        Combinations of each order that there are: of two those that rows have, of more all.
    bracket : StrengthBracket
    points : tuple of PathPoint
        By falling strength.
    linear : Losses
        Of the model without interactions.
    full : Losses or None
        Of the model that was asked to be put beside.

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions
    >>> data = planted_interactions(200, groups=1, per_group=3, noise_features=5)
    >>> model = FactorizationMachineRegressor(penalty="ti", beta=1e-5, solver="cd")
    >>> path = regularization_path(model, data.X, data.y, n_gammas=2, ratio=0.1)
    >>> path.best("ebic")
    1
    """

    penalty: str
    loss: str
    orders: tuple[int, ...]
    n_rows: int
    n_held_out: int
    candidates: dict[int, float]
    bracket: StrengthBracket
    points: tuple[PathPoint, ...]
    linear: Losses
    full: Losses | None

    def best(self, by: str = "refit") -> int:
        """Return the place of the point that does best; of equals the sparsest.

        Parameters
        ----------
        by : "held_out", "refit" or "ebic"
            Least held-out loss of the penalised model; of the refitted one; least EBIC.

        Raises
        ------
        InputError
            If no point has that figure.
        """
        check_choice("by", by, CHOICES)
        figures = [_figure(point, by) for point in self.points]
        known = [value for value in figures if value is not None]
        if not known:
            raise InputError(
                f"no point of the path has what {by!r} compares: "
                + (
                    "the EBIC needs refit=True and a loss that is a likelihood, squared or logistic"
                    if by == "ebic"
                    else "give held-out rows" + (" and refit=True" if by == "refit" else "")
                )
            )
        return figures.index(min(known))

    def predict(self, place: int, X: ArrayLike, refitted: bool = False) -> NDArray[np.float64]:
        """Return what a point's model, penalised or refitted, predicts; for classes, scores.

        Raises
        ------
        InputError
            If the point was not fitted again, or the columns are not those of the fit.
        """
        point = self.points[place]
        rows = clean_rows(check_array(X, accept_sparse="csr", dtype=np.float64))
        if rows.shape[1] != len(point.linear):
            raise InputError(f"X has {counted(rows.shape[1], 'column')}, the fit {len(point.linear):,}")
        if refitted:
            if point.refitted is None:
                raise InputError(f"point {place} was not fitted again: raise max_refit, set refit=True")
            return point.refitted.predict(rows)
        forms = [Form(ANOVA, order, 1) for order in self.orders]
        model = Model.zeros(forms, rows.shape[1], point.tables[0].shape[1], True)
        model.z[0], model.w[:] = point.intercept, point.linear
        for P, table in zip(model.tables(), point.tables, strict=True):
            P[0][point.used] = table
        return model.predict(rows)

    def frame(self) -> Any:
        """Return a DataFrame with a row for each strength."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "gamma": point.gamma, "objective": point.objective, "features": point.n_features,
                    "interactions": point.n_interactions, "train": point.losses.train,
                    "held_out": point.losses.held_out,
                    "refit_train": point.refit.train if point.refit else None,
                    "refit_held_out": point.refit.held_out if point.refit else None,
                    "ebic": point.ebic, "grown": point.grown, "fresh": point.fresh,
                    "converged": point.converged,
                }
                for point in self.points
            ]
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Return figures and interactions as lists and numbers, as JSON takes them."""
        points = [
            {
                **row,
                "interactions": [
                    {
                        "features": list(one),
                        "weight": point.weights[one],
                        "refit": _weight_of(point.refitted, one),
                    }
                    for one in point.support
                ],
            }
            for row, point in zip(
                self.frame().astype(object).where(self.frame().notna(), None).to_dict("records"),
                self.points, strict=True,
            )
        ]  # fmt: skip
        return {
            "penalty": self.penalty, "loss": self.loss, "orders": list(self.orders),
            "rows": self.n_rows, "held_out_rows": self.n_held_out,
            "candidates": {str(order): count for order, count in self.candidates.items()},
            "low": self.bracket.low, "high": self.bracket.high, "linear": self.linear._asdict(),
            "full": self.full._asdict() if self.full else None, "points": points,
        }  # fmt: skip

    def __str__(self) -> str:
        """Return a table of the points."""
        lines = [
            f"Path over {self.penalty}, {self.loss} loss, {counted(self.n_rows, 'row')}: nothing from "
            f"gamma = {self.bracket.high:.3g} on, something below {self.bracket.low:.3g}",
            f"{'gamma':>10} {'features':>9} {'interactions':>13} {'train':>9} {'held out':>9} "
            f"{'refitted':>9} {'EBIC':>11}",
        ]
        for point in self.points:
            held = (point.losses.held_out, point.refit.held_out if point.refit else None)
            lines.append(
                f"{point.gamma:>10.3g} {point.n_features:>9,} {point.n_interactions:>13,} "
                f"{point.losses.train:>9.4f} {_told(held[0], 9, 4)} {_told(held[1], 9, 4)} "
                f"{_told(point.ebic, 11, 1)}"
            )
        lines.append(f"without interactions: {self.linear.train:.4f}{_told(self.linear.held_out, 8, 4)}")
        return "\n".join(lines)


def _told(value: float | None, width: int, digits: int) -> str:
    return " " * (width - 1) + "-" if value is None else f"{value:>{width}.{digits}f}"


def _figure(point: PathPoint, by: str) -> float | None:
    if by == "held_out":
        return point.losses.held_out
    if by == "refit":
        return point.refit.held_out if point.refit else None
    return point.ebic


def _weight_of(model: ProductModel | None, one: Combination) -> float | None:
    return None if model is None else float(model.weights[model.interactions.index(one)])


def extended_bic(
    loss: str, mean: float, rows: int, found: dict[int, int], candidates: dict[int, float],
    weight: float = 1.0,
) -> float | None:  # fmt: skip
    """Return the extended BIC of a refitted model, up to a constant of the data.

    −2·log-likelihood + k·log n + 2ξ·Σ_m log C(p_m, k_m), with k_m of p_m candidate interactions of
    order m in the model and k = Σ k_m; of the squared loss the variance of the noise is estimated.

    Parameters
    ----------
    loss : str
    mean : float
        Mean loss on the rows of the fit.
    rows : int
    found, candidates : dict of int to number
        k_m and p_m.
    weight : float in [0, 1]
        ξ; 0 is the BIC.

    Returns
    -------
    float or None
        None if the loss is no likelihood, or nothing is left of it.

    Notes
    -----
    Source: Chen & Chen 2008. Degrees of freedom: one for each interaction, as the refitted model has a
    weight of its own for each. It is a heuristic: Chen & Chen compare all models, and not the few of a
    path that was fitted to the same rows; a component of g features brings up to g(g − 1)/2 interactions
    with g numbers, so that counting them all favours few; and products that are sums of others (of the
    values of one column) count in full.

    Examples
    --------
    >>> round(extended_bic("logistic", 0.5, 100, {2: 1}, {2: 10.0}), 2)
    109.21
    """
    if loss == "squared":
        if mean <= 0.0:
            return None
        deviance = rows * np.log(2.0 * mean)
    elif loss == "logistic":
        deviance = 2.0 * rows * mean
    else:
        return None
    size = sum(found.values())
    among = sum(_log_choose(candidates[order], count) for order, count in found.items())
    return float(deviance + size * np.log(rows) + 2.0 * weight * among)


def _log_choose(n: float, k: int) -> float:
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(max(n - k, 0.0) + 1.0))


def strength_bracket(estimator: Any, X: ArrayLike, y: ArrayLike) -> StrengthBracket:
    """Bracket the strength of the penalty from which on there is no interaction.

    Parameters
    ----------
    estimator : FactorizationMachineRegressor or FactorizationMachineClassifier
        With penalty "ti", "cs", "l1" or "l21"; its `gamma` does not matter.
    X, y : as in fit

    Raises
    ------
    InputError
        If the estimator has no such penalty or the loss has none left to explain.

    Notes
    -----
    Let g_S be the slopes of the mean loss at the linear model, L its objective, G_m the largest |g_S| of
    order m. The loss is convex in the weights W_S of the products: it falls by at most Σ|g_S W_S|.

    "ti" and "cs" are at least Σ|W_S|: from γ = max G_m on nothing is better than W = 0. With pairs, and
    β > 0, one pair with small factors is better as soon as γ < G_2 − β, so that the bracket is tight.

    "l1" and "l21", of total m, allow Σ_S|W_S| ≤ m^t/t! at order t, while all that can be gained is L (no
    loss is below 0): from γ = L/m on, Σ_t G_t·m^t/t! = L, nothing is better. `low` is the largest γ at
    which a single combination with equal factors is better than none, by the loss' quadratic bound. But
    as these penalties cost of the first order what is gained of the second, W = 0 stays a local minimum
    at every γ > 0: whether a fit leaves it depends on the size of its start.
    """
    problem = PathRows(estimator, X, y)
    return problem.bracket()


def regularization_path(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, held_out: tuple[Any, Any] | None = None,
    gammas: ArrayLike | None = None, n_gammas: int = 20, ratio: float = 1e-3, refit: bool = True,
    refit_alpha: float | None = None, max_refit: int = 2000, ebic_weight: float = 1.0,
    most: int | None = None, restarts: int = 1, full: Any | None = None,
) -> RegularizationPath:  # fmt: skip
    """Fit a sparse factorization machine at falling strengths, each from the one before.

    Parameters
    ----------
    estimator : FactorizationMachineRegressor or FactorizationMachineClassifier
        Not fitted, and not changed; penalty "ti", "cs", "l1" or "l21". Its `gamma` does not matter, and
        its `init_scale` and `random_state` for `restarts` alone.
    X : (rows, features) array or sparse matrix
    y : (rows,)
    held_out : (X, y), optional
        Rows to measure on.
    gammas : (n,) float > 0, optional
        Strengths; by default `n_gammas` of them, the first of which leaves nothing: the end of
        `strength_bracket`, then log-spaced from its begin down to `ratio` times it.
    n_gammas : int ≥ 2
    ratio : float in (0, 1)
    refit : bool
        Whether to fit each point's interactions again without the sparse penalty, each with a weight of
        its own (`recsys.fm.refit`).
    refit_alpha : float ≥ 0, optional
        The ridge penalty of these weights; the estimator's `alpha` by default.
    max_refit : int ≥ 1
        With more interactions, or more than half as many as rows, a point is not fitted again.
    ebic_weight : float in [0, 1]
        ξ of the extended BIC.
    most : int ≥ 0, optional
        The path ends with the first point that has more interactions.
    restarts : int ≥ 0
        Random starts at each strength; the lowest objective is taken, of equals what the path has.
    full : estimator, optional
        Not fitted; its losses are put beside, of a factorization machine without a sparse penalty, say.

    Raises
    ------
    InputError
        If the estimator is no factorization machine with such a penalty and a table for each order, a
        number is out of range, or nothing is left that the linear model does not explain.

    Notes
    -----
    Warm starts as in Friedman et al. 2010; components come up as this module's docstring says, and one
    that was begun in vain is taken back. The problem is not convex: a path is one way through it,
    `several_starts` shows others.

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions
    >>> data = planted_interactions(200, groups=1, per_group=3, noise_features=5)
    >>> model = FactorizationMachineRegressor(penalty="ti", beta=1e-5, solver="cd")
    >>> path = regularization_path(model, data.X, data.y, n_gammas=5)
    >>> [point.n_interactions for point in path.points][:2]
    [0, 3]
    >>> path.points[path.best("ebic")].support
    ((0, 2), (1, 2), (0, 1))
    """
    check_integer("n_gammas", n_gammas, 2)
    check_integer("max_refit", max_refit, 1)
    check_real("ratio", ratio, 0.0, 1.0, open_low=True, open_high=True)
    check_real("ebic_weight", ebic_weight, 0.0, 1.0)
    if refit_alpha is not None:
        check_real("refit_alpha", refit_alpha, 0.0)
    check_integer("restarts", restarts, 0)
    if most is not None:
        check_integer("most", most, 0)
    rows = PathRows(estimator, X, y)
    bracket = rows.bracket()
    if gammas is None:
        grid = np.geomspace(bracket.low, bracket.low * ratio, n_gammas)
        grid[0] = bracket.high
    else:
        grid = np.asarray(gammas, dtype=np.float64).ravel()
        if len(grid) == 0:
            raise InputError("gammas holds none: give some, or leave it out")
        for one in grid:
            check_real("each of gammas", float(one), 0.0, open_low=True)
        grid = np.unique(grid)[::-1]
    held = None if held_out is None else rows.of(*held_out)
    alpha = float(rows.estimator.alpha if refit_alpha is None else refit_alpha)
    beside = None
    points: list[PathPoint] = []
    total = len(grid) + (full is not None)
    with within("beginning", 0, total, 0.0):
        course = _Course(rows, held, alpha if refit else None, max_refit, ebic_weight, restarts)
    for k, gamma in enumerate(grid):
        with within(f"strength {gamma:.3g}, {k + 1} of {len(grid)}", k, total):
            points.append(course.step(float(gamma)))
        if most is not None and points[-1].n_interactions > most:
            break
    if full is not None:
        with within("the model beside", len(grid), total), quiet():
            model = clone(full).fit(rows.X, rows.labels)
            beside = Losses(*(None if p is None else p.loss_of(p.scores(model)) for p in (rows, held)))  # type: ignore[arg-type]
    return RegularizationPath(
        rows.estimator.penalty, rows.loss.name, rows.orders, len(rows.y),
        0 if held is None else len(held.y), rows.candidates(), bracket, tuple(points),
        course.linear_losses(), beside,
    )  # fmt: skip


class quiet(warnings.catch_warnings):
    """Without warnings of fits that are cut short: points say it."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore", ConvergenceWarning)
        return entered


class PathRows:
    """Rows as a path sees them: canonical, with targets of −1 and 1 for classes."""

    def __init__(
        self, estimator: Any, X: ArrayLike, y: ArrayLike, classes: NDArray[Any] | None = None
    ) -> None:
        if not isinstance(
            estimator, (FactorizationMachineRegressor, FactorizationMachineClassifier)
        ) or estimator.fit_lower not in ("explicit", None):
            raise InputError(
                "a path is of a FactorizationMachineRegressor or -Classifier with fit_lower='explicit' "
                f"or None, not of {type(estimator).__name__}"
                + (f" with {estimator.fit_lower!r}" if hasattr(estimator, "fit_lower") else "")
            )
        if estimator.penalty not in (*COUPLED, *ABSOLUTE):
            raise InputError(
                f"penalty {estimator.penalty!r} leaves out no interaction exactly: use "
                f"{', '.join(map(repr, (*COUPLED, *ABSOLUTE)))}"
            )
        if estimator.validation_fraction > 0.0:
            raise InputError("a path keeps no rows out: set validation_fraction=0, and give held_out")
        estimator._check_parameters()
        self.estimator = estimator
        self.loss: Loss = LOSSES.get(estimator.loss)
        if self.loss.pairwise:
            raise InputError(
                f"a path has no loss over pairs of rows ({estimator.loss!r}): use 'logistic'"
            )
        self.orders = tuple(estimator._orders())
        self.is_classifier = isinstance(estimator, ClassifierMixin)
        checked, target = check_X_y(
            X, y, accept_sparse="csr", dtype=np.float64, y_numeric=not self.is_classifier
        )
        self.X = clean_rows(checked)
        self.labels, self.classes = target, classes
        if self.is_classifier:
            self.classes = two_classes(target, classes)
            self.y = 2.0 * (target == self.classes[1]) - 1.0
        else:
            self.y = np.asarray(target, dtype=np.float64)
        self._linear: ProductModel | None = None
        self._together: tuple[NDArray[np.int64], ...] | None = None

    def of(self, X: ArrayLike, y: ArrayLike) -> PathRows:
        """Return other rows of the same columns and classes."""
        found = PathRows(self.estimator, X, y, self.classes)
        if found.X.shape[1] != self.X.shape[1]:
            raise InputError(
                f"held_out has {counted(found.X.shape[1], 'column')}, and X {self.X.shape[1]:,}"
            )
        return found

    def scores(self, model: Any) -> NDArray[np.float64]:
        """Return what a fitted estimator says of these rows."""
        return np.asarray(
            model.decision_function(self.X) if self.is_classifier else model.predict(self.X)
        )

    def loss_of(self, scores: NDArray[np.float64]) -> float:
        """Return the mean loss."""
        return float(mean_loss(self.loss.code, scores, self.y))

    @property
    def linear(self) -> ProductModel:
        """The model without interactions."""
        if self._linear is None:
            made = self.estimator
            self._linear = fit_products(
                self.X, self.y, (), self.loss, float(made.alpha), made.fit_linear, made.fit_intercept
            )
        return self._linear

    @property
    def together(self) -> tuple[NDArray[np.int64], ...]:
        """The pairs that rows have."""
        if self._together is None:
            self._together = pairs_together(self.X)
        return self._together

    def candidates(self) -> dict[int, float]:
        """Return how many interactions of each order there are."""
        d = self.X.shape[1]
        return {
            order: float(len(self.together[0])) if order == 2 else float(np.exp(_log_choose(d, order)))
            for order in self.orders
        }

    def bracket(self) -> StrengthBracket:
        """Return between which strengths the first interaction appears."""
        beta, model = float(self.estimator.beta), self.linear
        scores = model.predict(self.X)
        slopes = slopes_of(self.loss.code, scores, self.y)
        objective = self.loss_of(scores) + 0.5 * float(self.estimator.alpha) * float(
            model.linear @ model.linear
        )
        largest, low = {}, 0.0
        for order in self.orders:
            top = 0.0

            def worth(bound: float) -> bool:
                return bound > top  # noqa: B023 - called while the loop is at this order

            for part in interaction_slopes(self.X, slopes, order, self.loss.curvature, worth):
                g = np.abs(part.slope)
                top = max(top, float(g.max()))
                low = max(low, _entry(g, part.curvature, order, beta, self.coupled))
            largest[order] = top
        tiny = 1e-10 * (abs(objective) + 1e-300)
        if max(largest.values()) <= tiny or objective <= tiny:
            raise InputError(
                "the linear model leaves nothing that a product of two features could explain"
            )
        if self.coupled:
            high = max(largest.values())
        else:
            high = objective / _total(largest, objective)
        return StrengthBracket(min(low, high) if low > 0.0 else high, high)

    def weights_of(self, tables: Sequence[NDArray[np.float64]]) -> dict[Combination, float]:
        """Return the interactions that rows have, with the weights that these P give them."""
        out: dict[Combination, float] = {}
        for order, (P,) in zip(self.orders, tables, strict=True):
            if not P.any():
                continue
            if order == 2:
                i, j, _ = self.together
                used = P.any(axis=1)
                mine = np.flatnonzero(used[i] & used[j])
                for at in range(0, len(mine), BLOCK):
                    a, b = i[mine[at : at + BLOCK]], j[mine[at : at + BLOCK]]
                    w = (P[a] * P[b]).sum(axis=1)
                    out |= {(int(a[k]), int(b[k])): float(w[k]) for k in np.flatnonzero(w)}
            else:
                best = strongest(P, self.X, order, MOST).best
                out |= {one.features: one.weight for one in best}
        return out

    @property
    def coupled(self) -> bool:
        """Whether the penalty is of products of factors, and not of factors."""
        return self.estimator.penalty in COUPLED


def _entry(
    g: NDArray[np.float64], h: NDArray[np.float64], order: int, beta: float, coupled: bool
) -> float:
    """Return the largest strength at which one combination of equal factors lowers the objective."""
    if order == 2 and coupled:
        return float(g.max()) - beta
    with np.errstate(divide="ignore", invalid="ignore"):
        best = (np.where(h > 0.0, g / h, 0.0)) ** (1.0 / order)
    if order == 2:
        rest = np.maximum(g - beta, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.sqrt(np.where(h > 0.0, 2.0 / 3.0 * rest / h, 0.0))
        return float((rest * t / 3.0).max())
    t = np.maximum(best[:, None] * SIZES, 1e-300)
    cost = order / 2 * beta * t**2 + 0.5 * h[:, None] * t ** (2 * order) - g[:, None] * t**order
    return float((-cost / (t**order if coupled else order * t)).max())


def _total(largest: dict[int, float], objective: float) -> float:
    """Return the total m of the factors' sizes with which Σ_t G_t·m^t/t! = L, by bisection."""

    def gain(total: float) -> float:
        return sum(
            g * np.exp(t * np.log(total) - gammaln(t + 1.0)) for t, g in largest.items() if g > 0.0
        )

    low = high = 1.0
    while gain(low) > objective:
        low /= 2.0
    while gain(high) < objective:
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gain(middle) < objective else (low, middle)
    return low  # the smaller total is the larger strength


class _Seed(NamedTuple):
    """A combination to begin a component with, and by how much the bound on the objective falls."""

    gain: float
    order: int
    features: Combination
    slope: float
    curvature: float
    size: float


class _Course:
    """A path on its way: the estimator with the last point's parameters."""

    def __init__(
        self, rows: PathRows, held: PathRows | None, refit_alpha: float | None, max_refit: int,
        ebic_weight: float, restarts: int,
    ) -> None:  # fmt: skip
        self.rows, self.held, self.refit_alpha = rows, held, refit_alpha
        self.max_refit, self.ebic_weight, self.restarts = max_refit, ebic_weight, restarts
        self.rng = check_random_state(rows.estimator.random_state)
        self.fits = 0  # made at this strength
        self.kept: dict[tuple[Combination, ...], ProductModel] = {}
        model = clone(rows.estimator)
        with quiet():  # one epoch, for what a fit makes besides parameters
            model.set_params(max_iter=1, warm_start=True, random_state=0, callback=None)
            model.fit(rows.X, rows.labels)
        given = rows.estimator
        self.model = model.set_params(max_iter=given.max_iter, callback=given.callback)
        start = rows.linear
        model.w_, model.intercept_ = start.linear.copy(), start.intercept
        model.P_ = [np.zeros_like(P) for P in model.P_]

    def linear_losses(self) -> Losses:
        return self._losses(self.rows.linear)

    def step(self, gamma: float) -> PathPoint:
        """Go on to a lower strength."""
        self.model.set_params(gamma=gamma)
        self.fits = 0
        self._fit()
        grown = 0
        for _ in range(GROWTH_ROUNDS):
            seeds = self._seeds(gamma)
            if not seeds:
                break
            before = (self.model.w_, self.model.intercept_, self.model.P_, self.model.stopped_)
            objective = self._objective()
            self.model.P_ = self._with(seeds)
            self._fit()
            if self._objective() >= objective:
                self.model.w_, self.model.intercept_, self.model.P_, self.model.stopped_ = before
                self.model.history_ = [{"objective": objective}]
                break
            grown += len(seeds)
        fresh = any([self._start_anew(gamma) for _ in range(self.restarts)])
        return self._point(gamma, grown, fresh)

    def _start_anew(self, gamma: float) -> bool:
        """Fit from a random start, and return whether it ends lower and was taken."""
        other = clone(self.rows.estimator)
        other.set_params(gamma=gamma, warm_start=False, random_state=self.rng.randint(2**31 - 1))
        with self._fitting(), quiet():
            other.fit(self.rows.X, self.rows.labels)
        if other.history_[-1]["objective"] >= self._objective() * (1.0 - NOT_LOWER):
            return False
        mine = self.model
        mine.w_, mine.intercept_, mine.P_ = other.w_, other.intercept_, other.P_
        mine.stopped_, mine.history_ = other.stopped_, other.history_
        return True

    def _fit(self) -> None:
        self.model.history_ = []
        with self._fitting(), quiet():
            self.model.fit(self.rows.X, self.rows.labels)

    def _fitting(self) -> Any:
        """Report a fit as one of all that a strength may take."""
        self.fits += 1
        return within(f"fit {self.fits}", self.fits - 1, 1 + GROWTH_ROUNDS + self.restarts)

    def _objective(self) -> float:
        return float(self.model.history_[-1]["objective"])

    def _with(self, seeds: list[_Seed]) -> list[NDArray[np.float64]]:
        """Return the tables with these combinations in components that were zeros."""
        tables = [P.copy() for P in self.model.P_]
        for seed in seeds:
            P = tables[self.rows.orders.index(seed.order)][0]
            s = int(np.flatnonzero(~P.any(axis=0))[0])
            P[list(seed.features), s] = seed.size
            P[seed.features[0], s] *= -np.sign(seed.slope)
        return tables

    def _seeds(self, gamma: float) -> list[_Seed]:
        """Return disjoint combinations that lower the objective, one for a free component each."""
        rows, made = self.rows, self.rows.estimator
        out: list[_Seed] = []
        free = [int((~P[0].any(axis=0)).sum()) for P in self.model.P_]
        if not any(free):
            return []
        slopes = slopes_of(rows.loss.code, rows.scores(self.model), rows.y)
        for order, room in zip(rows.orders, free, strict=True):
            if room == 0:
                continue
            least = gamma if rows.coupled else 0.0
            least += float(made.beta) if order == 2 else 0.0
            found: list[_Seed] = []

            def worth(bound: float) -> bool:
                return bound > least  # noqa: B023 - called while the loop is at this order

            for part in interaction_slopes(rows.X, slopes, order, rows.loss.curvature, worth):
                keep = np.flatnonzero(np.abs(part.slope) > least)
                keep = keep[np.argsort(-np.abs(part.slope[keep]), kind="stable")[:SEEDS]]
                some = Slopes(part.features[keep], part.slope[keep], part.curvature[keep])
                found += self._sized(some, order, gamma, 1)
                found = sorted(found, key=lambda one: (-one.gain, one.features))[:SEEDS]
            out += self._disjoint(found, order, gamma, room)
        return out

    def _disjoint(self, found: list[_Seed], order: int, gamma: float, room: int) -> list[_Seed]:
        """Return the first ones that share no feature, of sizes that all of them may have at once."""
        picked: list[_Seed] = []
        taken: set[int] = set()
        for seed in found:
            if len(picked) < room and not taken & set(seed.features):
                picked.append(seed)
                taken |= set(seed.features)
        if len(picked) < 2:
            return picked
        among = Slopes(
            np.array([one.features for one in picked]), np.array([one.slope for one in picked]),
            np.array([one.curvature for one in picked]),
        )  # fmt: skip
        return list(self._sized(among, order, gamma, len(picked))) or picked[:1]

    def _sized(self, among: Slopes, order: int, gamma: float, together: int) -> Iterator[_Seed]:
        """Give combinations the size with which the bound is least; those that lower it are kept.

        So many come up together: the square of a sum of r terms is at most r times that of squares.
        """
        if len(among.slope) == 0:
            return
        beta = float(self.rows.estimator.beta)
        g, h = np.abs(among.slope), np.maximum(together * among.curvature, 1e-300)
        t = (g / h)[:, None] ** (1.0 / order) * SIZES
        value = gamma * self._paid(among.features, t, order) + order / 2 * beta * t**2
        value += 0.5 * h[:, None] * t ** (2 * order) - g[:, None] * t**order
        best = value.argmin(axis=1)
        for k, place in enumerate(best):
            if value[k, place] < 0.0:
                yield _Seed(
                    -float(value[k, place]), order, tuple(int(j) for j in among.features[k]),
                    float(among.slope[k]), float(among.curvature[k]), float(t[k, place]),
                )  # fmt: skip

    def _paid(
        self, features: NDArray[np.int64], t: NDArray[np.float64], order: int
    ) -> NDArray[np.float64]:
        """Return by how much Ω grows with factors of size t in a component of zeros.

        Of "cs" above order 2 what the other features add is left out: a bound from below, and a
        component that is begun in vain is taken back.
        """
        penalty = self.rows.estimator.penalty
        if penalty == "ti" or (penalty == "cs" and order > 2):
            return t**order
        if penalty == "l1":
            return order * t
        P = self.model.P_[self.rows.orders.index(order)][0]
        lengths = np.sqrt((P * P).sum(axis=1))
        now = lengths[features]  # these penalties see a feature by the length of its whole row
        then = np.sqrt(now[:, None, :] ** 2 + t[:, :, None] ** 2)
        grown = (then - now[:, None, :]).sum(axis=2)
        if penalty == "l21":
            return np.asarray(grown)
        others = lengths.sum() - now.sum(axis=1)
        return np.asarray(then.prod(axis=2) - now.prod(axis=1)[:, None] + others[:, None] * grown)

    # ---- what a point holds

    def _point(self, gamma: float, grown: int, fresh: bool) -> PathPoint:
        model = self.model
        weights = self.rows.weights_of(model.P_)
        used = np.flatnonzero(np.any([P[0].any(axis=1) for P in model.P_], axis=0))
        losses = Losses(
            *(
                None if part is None else part.loss_of(part.scores(model))
                for part in (self.rows, self.held)
            )  # type: ignore[arg-type]
        )
        refitted, again, ebic = None, None, None
        if self.refit_alpha is not None and len(weights) <= min(self.max_refit, len(self.rows.y) // 2):
            refitted = self._refitted(tuple(sorted(weights)))
            again = self._losses(refitted)
            counts = {order: sum(len(one) == order for one in weights) for order in self.rows.orders}
            ebic = extended_bic(
                self.rows.loss.name, again.train, len(self.rows.y), counts, self.rows.candidates(),
                self.ebic_weight,
            )  # fmt: skip
        return PathPoint(
            gamma, self._objective(), len(used), len(weights), losses, again, ebic, grown, fresh,
            model.stopped_ != "max_iter", float(model.intercept_), np.array(model.w_), used,
            tuple(P[0][used] for P in model.P_), weights, refitted,
        )  # fmt: skip

    def _refitted(self, interactions: tuple[Combination, ...]) -> ProductModel:
        if interactions not in self.kept:
            made = self.rows.estimator
            assert self.refit_alpha is not None
            self.kept = {  # the last one: neighbours on the path often have the same
                interactions: fit_products(
                    self.rows.X, self.rows.y, interactions, self.rows.loss, self.refit_alpha,
                    made.fit_linear, made.fit_intercept,
                )
            }  # fmt: skip
        return self.kept[interactions]

    def _losses(self, model: ProductModel) -> Losses:
        parts = (self.rows, self.held)
        found = [None if part is None else part.loss_of(model.predict(part.X)) for part in parts]
        return Losses(*found)  # type: ignore[arg-type]
