"""Points of a regularization path: losses before and after the refit, and the EBIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.utils.validation import check_array

from recsys.errors import InputError, counted
from recsys.fm._estimator import clean_rows
from recsys.fm.objective import Model
from recsys.fm.refit import ProductModel
from recsys.multilinear.forms import ANOVA, Form
from recsys.utils.features import native
from recsys.utils.validation import check_choice, check_integer

__all__ = [
    "CHOICES", "Combination", "Losses", "PathPoint", "RegularizationPath", "StrengthBracket",
    "extended_bic", "log_choose",
]  # fmt: skip

CHOICES = ("held_out", "refit", "ebic")
Combination = tuple[int, ...]


class StrengthBracket(NamedTuple):
    """Bounds on the regularization strength at which the first interaction appears.

    Attributes
    ----------
    low : float
        Below it a model with one interaction is better than any without; 0 where, with so large a β,
        none was found to be at any `gamma`.
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
    """The model at one regularization strength.

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
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions, regularization_path
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
        By falling `gamma`.
    linear : Losses
        Of the model without interactions.

    Examples
    --------
    >>> from recsys.fm import FactorizationMachineRegressor, planted_interactions, regularization_path
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

    def best(self, by: str = "refit") -> int:
        """Return the index of the best point; of equal ones, the sparsest.

        Parameters
        ----------
        by : "held_out", "refit" or "ebic"
            Least held-out loss of the penalised model; of the refitted one; least EBIC.

        Raises
        ------
        InputError
            If no point has that criterion.
        """
        check_choice("by", by, CHOICES)
        values = [_value(point, by) for point in self.points]
        known = [value for value in values if value is not None]
        if not known:
            raise InputError(
                f"no point of the path has what {by!r} compares: "
                + (
                    "the EBIC needs refit=True and a loss that is a likelihood, squared or logistic"
                    if by == "ebic"
                    else "give held-out rows" + (" and refit=True" if by == "refit" else "")
                )
            )
        return values.index(min(known))

    def predict(self, place: int, X: ArrayLike, refitted: bool = False) -> NDArray[np.float64]:
        """Return the predictions of a point's model, penalised or refitted; for classes, scores.

        Raises
        ------
        InputError
            If there is no such point, it was not fitted again, or the columns are not those of the
            fit.
        """
        point = self.points[check_integer("place", place, 0, len(self.points) - 1)]
        rows = clean_rows(check_array(native(X), accept_sparse="csr", dtype=np.float64))
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
        """Return a DataFrame with a row for each regularization strength."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "gamma": point.gamma, "objective": point.objective, "features": point.n_features,
                    "interactions": point.n_interactions, "train": point.losses.train,
                    "held_out": point.losses.held_out,
                    "refit_train": point.refit.train if point.refit else None,
                    "refit_held_out": point.refit.held_out if point.refit else None,
                    "ebic": point.ebic, "converged": point.converged,
                }
                for point in self.points
            ]
        )  # fmt: skip

    def __str__(self) -> str:
        """Return a table of the points."""
        lines = [
            f"Path over {self.penalty}, {self.loss} loss, {counted(self.n_rows, 'row')}: nothing from "
            f"gamma = {self.bracket.high:.3g} on"
            + (f", something below {self.bracket.low:.3g}" if self.bracket.low > 0.0 else ""),
            f"{'gamma':>10} {'features':>9} {'interactions':>13} {'train':>9} {'held out':>9} "
            f"{'refitted':>9} {'EBIC':>11}",
        ]
        for point in self.points:
            held = (point.losses.held_out, point.refit.held_out if point.refit else None)
            lines.append(
                f"{point.gamma:>10.3g} {point.n_features:>9,} {point.n_interactions:>13,} "
                f"{point.losses.train:>9.4f} {_cell(held[0], 9, 4)} {_cell(held[1], 9, 4)} "
                f"{_cell(point.ebic, 11, 1)}"
            )
        lines.append(f"without interactions: {self.linear.train:.4f}{_cell(self.linear.held_out, 8, 4)}")
        return "\n".join(lines)


def _cell(value: float | None, width: int, digits: int) -> str:
    return " " * (width - 1) + "-" if value is None else f"{value:>{width}.{digits}f}"


def _value(point: PathPoint, by: str) -> float | None:
    if by == "held_out":
        return point.losses.held_out
    if by == "refit":
        return point.refit.held_out if point.refit else None
    return point.ebic


def extended_bic(
    loss: str, mean: float, rows: int, found: dict[int, int], candidates: dict[int, float]
) -> float | None:
    """Return the extended BIC of a refitted model, up to a constant of the data.

    −2·log-likelihood + k·log n + 2·Σ_m log C(p_m, k_m), with k_m of p_m candidate interactions of order
    m in the model (`found`, `candidates`) and k = Σ k_m; of the squared loss the variance of the noise
    is estimated. `mean` is the mean loss on the rows of the fit. None if the loss is no likelihood, or
    nothing is left of it.

    Source: Chen & Chen 2008. Degrees of freedom: one for each interaction, as the refitted model has a
    weight of its own for each. It is a heuristic: Chen & Chen compare all models, and not the few of a
    path that was fitted to the same rows; a component of g features brings up to g(g − 1)/2 interactions
    with g numbers, so that counting them all favours few; and products that are sums of others (of the
    values of one column) count in full.

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
    among = sum(log_choose(candidates[order], count) for order, count in found.items())
    return float(deviance + size * np.log(rows) + 2.0 * among)


def log_choose(n: float, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(max(n - k, 0.0) + 1.0))
