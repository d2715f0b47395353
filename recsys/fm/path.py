"""The regularization path of a sparse factorization machine, from no interaction to many.

A model without products is stationary at every regularization strength, as the gradient of each product
is multiplied by the other factors, which are 0. A path with warm starts would stay there, and one that
starts anew from random factors depends on their size and the order of the columns. Here a component of
zeros is initialised with the combination of features that lowers the objective most, at the best size. A
solution is kept for the next regularization strength, and replaced only by a random start that ends
lower.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_X_y

from recsys.errors import InputError, counted
from recsys.fm._estimator import clean_rows
from recsys.fm.combinations import pairs_together, strongest
from recsys.fm.estimators import FactorizationMachineClassifier, FactorizationMachineRegressor
from recsys.fm.interaction_gradients import Slopes, interaction_slopes
from recsys.fm.path_points import (
    Combination,
    Losses,
    PathPoint,
    RegularizationPath,
    StrengthBracket,
    extended_bic,
)
from recsys.fm.refit import ProductModel, fit_products
from recsys.multilinear.arrays import ALIKE
from recsys.multilinear.losses import LOSSES, Loss, mean_loss, slopes_of
from recsys.utils.features import native
from recsys.utils.progress import within
from recsys.utils.two_classes import two_classes
from recsys.utils.validation import check_integer, check_real

__all__ = ["NothingToSelect", "PathRows", "quiet", "regularization_path"]

COUPLED, ABSOLUTE = ("ti", "cs"), ("l1", "l21")
GROWTH_ROUNDS = 3  # fits at one `gamma` in which components may become non-zero
NOT_LOWER = 1e-6  # share by which a random start must end lower
SEEDS = 1000  # combinations among which those to begin with are chosen
SIZES = np.geomspace(1e-3, 1.0, 60)  # of a factor, as a share of the best without a penalty
BLOCK = 100_000  # pairs at a time
MOST = 10**9  # interactions of higher order that are listed: all


def regularization_path(
    estimator: Any, X: ArrayLike, y: ArrayLike, *, held_out: tuple[Any, Any] | None = None,
    gammas: ArrayLike | None = None, n_gammas: int = 20, ratio: float = 1e-3, refit: bool = True,
    max_refit: int = 2000, most: int | None = None, restarts: int = 1,
) -> RegularizationPath:  # fmt: skip
    """Fit a sparse factorization machine at falling regularization strengths, each from the one before.

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
        Regularization strengths; by default `n_gammas` of them, the first of which leaves nothing: the
        end of `RegularizationPath.bracket`, then log-spaced from its begin (where that is 0, its end)
        down to `ratio` times it.
    n_gammas : int ≥ 2
    ratio : float in (0, 1)
    refit : bool
        Whether to fit each point's interactions again without the sparse penalty, each with a weight of
        its own (`recsys.fm.refit`), under a ridge penalty of the estimator's `alpha`.
    max_refit : int ≥ 1
        With more interactions, or more than half as many as rows, a point is not fitted again.
    most : int ≥ 0, optional
        The path ends with the first point that has more interactions.
    restarts : int ≥ 0
        Random starts at each `gamma`. The lowest objective is taken; of equal ones, that of the path.

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
    check_integer("restarts", restarts, 0)
    if most is not None:
        check_integer("most", most, 0)
    rows = PathRows(estimator, X, y)
    bracket = rows.bracket()
    if gammas is None:
        begin = bracket.low if bracket.low > 0.0 else bracket.high
        grid = np.geomspace(begin, begin * ratio, n_gammas)
        grid[0] = bracket.high
    else:
        try:
            grid = np.asarray(gammas, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise InputError(f"gammas must be numbers above 0, not {gammas!r}") from None
        if len(grid) == 0:
            raise InputError("gammas holds none: give some, or leave it out")
        for one in grid:
            check_real("each of gammas", float(one), 0.0, open_low=True)
        grid = np.unique(grid)[::-1]
    if held_out is not None and not (isinstance(held_out, (tuple, list)) and len(held_out) == 2):
        raise InputError("held_out must be a pair of rows and their targets: (X, y)")
    held = None if held_out is None else rows.of(*held_out)
    points: list[PathPoint] = []
    with within("beginning", 0, len(grid), 0.0):
        run = _PathRun(rows, held, max_refit if refit else None, restarts)
    for k, gamma in enumerate(grid):
        with within(f"regularization strength {gamma:.3g}, {k + 1} of {len(grid)}", k, len(grid)):
            points.append(run.step(float(gamma)))
        if most is not None and points[-1].n_interactions > most:
            break
    return RegularizationPath(
        rows.estimator.penalty, rows.loss.name, rows.orders, len(rows.y),
        0 if held is None else len(held.y), rows.candidates(), bracket, tuple(points),
        run.linear_losses(),
    )  # fmt: skip


class NothingToSelect(InputError):
    """No product of two features could explain what the linear model leaves."""


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
        if not isinstance(estimator.penalty, str) or estimator.penalty not in (*COUPLED, *ABSOLUTE):
            raise InputError(
                f"penalty {estimator.penalty!r} leaves out no interaction exactly: use "
                f"{', '.join(map(repr, (*COUPLED, *ABSOLUTE)))}"
            )
        for name in ("fit_signs", "fit_component_weights"):
            if getattr(estimator, name):
                raise InputError(f"a path's components all have the weight 1: set {name}=False")
        if estimator.validation_fraction > 0.0:
            raise InputError("a path keeps no rows out: set validation_fraction=0, and give held_out")
        estimator._check_parameters()
        self.estimator = estimator
        if not isinstance(estimator.loss, str):
            raise InputError(f"a path has no custom loss ({estimator.loss!r}): use one by its name")
        self.loss: Loss = LOSSES.get(estimator.loss)
        if self.loss.pairwise:
            raise InputError(
                f"a path has no loss over pairs of rows ({estimator.loss!r}): use 'logistic'"
            )
        self.orders = tuple(estimator._orders())
        self.is_classifier = isinstance(estimator, ClassifierMixin)
        checked, target = check_X_y(
            native(X), native(y), accept_sparse="csr", dtype=np.float64, y_numeric=not self.is_classifier
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
        """Return the scores of a fitted estimator for these rows."""
        return np.asarray(
            model.decision_function(self.X) if self.is_classifier else model.predict(self.X)
        )

    def loss_of(self, scores: NDArray[np.float64]) -> float:
        """Return the mean loss."""
        return float(mean_loss(self.loss.code, scores, self.y, ALIKE))

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
            order: float(len(self.together[0]) if order == 2 else comb(d, order))
            for order in self.orders
        }

    def bracket(self) -> StrengthBracket:
        """Return bounds on the regularization strength at which the first interaction appears.

        Let g_S be the gradients of the mean loss at the linear model, L its objective, G_m the largest
        |g_S| of order m. The loss is convex in the weights W_S of the products: it falls by at most
        Σ|g_S W_S|.

        "ti" and "cs" are at least Σ|W_S|: from γ = max G_m on nothing is better than W = 0. With pairs,
        and β > 0, one pair with small factors is better as soon as γ < G_2 − β, so that the bracket is
        tight.

        "l1" and "l21", of total m, allow Σ_S|W_S| ≤ m^t/t! at order t, while all that can be gained is L
        (no loss is below 0): from γ = L/m on, Σ_t G_t·m^t/t! = L, nothing is better. `low` is the
        largest γ at which a single combination with equal factors is better than none, by the loss'
        quadratic bound. But as these penalties cost of the first order what is gained of the second, W =
        0 stays a local minimum at every γ > 0: whether a fit leaves it depends on the size of its start.
        """
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
            raise NothingToSelect(
                "the linear model leaves nothing that a product of two features could explain"
            )
        if self.coupled:
            high = max(largest.values())
        else:
            high = objective / _total(largest, objective)
        return StrengthBracket(min(low, high), high)

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
    """Return the largest `gamma` at which one combination of equal factors lowers the objective."""
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
    return low  # the smaller total is the larger `gamma`


class _Seed(NamedTuple):
    """A combination to begin a component with, and by how much the bound on the objective falls."""

    gain: float
    order: int
    features: Combination
    slope: float
    curvature: float
    size: float


class _PathRun:
    """A path on its way: the estimator with the last point's parameters."""

    def __init__(
        self, rows: PathRows, held: PathRows | None, max_refit: int | None, restarts: int
    ) -> None:
        self.rows, self.held, self.max_refit, self.restarts = rows, held, max_refit, restarts
        self.rng = check_random_state(rows.estimator.random_state)
        self.fits = 0  # made at this `gamma`
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
        """Continue with a smaller `gamma`."""
        self.model.set_params(gamma=gamma)
        self.fits = 0
        self._fit()
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
        for _ in range(self.restarts):
            self._start_anew(gamma)
        return self._point(gamma)

    def _start_anew(self, gamma: float) -> None:
        """Fit from a random start, and take it if it ends lower."""
        other = clone(self.rows.estimator)
        other.set_params(gamma=gamma, warm_start=False, random_state=self.rng.randint(2**31 - 1))
        with self._fitting(), quiet():
            other.fit(self.rows.X, self.rows.labels)
        if other.history_[-1]["objective"] >= self._objective() * (1.0 - NOT_LOWER):
            return
        mine = self.model
        mine.w_, mine.intercept_, mine.P_ = other.w_, other.intercept_, other.P_
        mine.stopped_, mine.history_ = other.stopped_, other.history_

    def _fit(self) -> None:
        self.model.history_ = []
        with self._fitting(), quiet():
            self.model.fit(self.rows.X, self.rows.labels)

    def _fitting(self) -> Any:
        """Report a fit as one of all that one `gamma` may take."""
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

    def _point(self, gamma: float) -> PathPoint:
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
        if self.max_refit is not None and len(weights) <= min(self.max_refit, len(self.rows.y) // 2):
            refitted = self._refitted(tuple(sorted(weights)))
            again = self._losses(refitted)
            counts = {order: sum(len(one) == order for one in weights) for order in self.rows.orders}
            ebic = extended_bic(
                self.rows.loss.name, again.train, len(self.rows.y), counts, self.rows.candidates()
            )
        return PathPoint(
            gamma, self._objective(), len(used), len(weights), losses, again, ebic,
            model.stopped_ != "max_iter", float(model.intercept_), np.array(model.w_), used,
            tuple(P[0][used] for P in model.P_), weights, refitted,
        )  # fmt: skip

    def _refitted(self, interactions: tuple[Combination, ...]) -> ProductModel:
        if interactions not in self.kept:
            made = self.rows.estimator
            self.kept = {  # the last one: neighbours on the path often have the same
                interactions: fit_products(
                    self.rows.X, self.rows.y, interactions, self.rows.loss, float(made.alpha),
                    made.fit_linear, made.fit_intercept,
                )
            }  # fmt: skip
        return self.kept[interactions]

    def _losses(self, model: ProductModel) -> Losses:
        parts = (self.rows, self.held)
        found = [None if part is None else part.loss_of(model.predict(part.X)) for part in parts]
        return Losses(*found)  # type: ignore[arg-type]
