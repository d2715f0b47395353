"""The findings of a study: interactions, selected features, the path, the learning curve, the scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from recsys.errors import counted
from recsys.fm.study_settings import ALL_SUBSETS, FM, HOFM, ORDERS, SPARSE_FM, StudySettings

__all__ = ["Epoch", "Grid", "Interaction", "Single", "Step", "Study"]

TITLES = {
    FM: "A factorization machine", HOFM: "A higher-order factorization machine",
    ALL_SUBSETS: "An all-subsets model", SPARSE_FM: "A sparse factorization machine",
}  # fmt: skip


@dataclass(frozen=True)
class Interaction:
    """Features whose product has a weight; `low` and `high` only where there were refits."""

    order: int
    features: tuple[int, ...]
    names: tuple[str, ...]
    weight: float
    rows: int
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """The names, as a product."""
        return " × ".join(self.names)


@dataclass(frozen=True)
class Single:
    """A feature by itself: its own weight, its rows, and whether some product uses it."""

    name: str
    field: str
    weight: float
    rows: int
    used: bool


@dataclass(frozen=True)
class Step:
    """A point of the path: a regularization strength, the features left, the validation metric."""

    strength: float
    features: int
    pairs: int
    value: float


@dataclass(frozen=True)
class Epoch:
    """An epoch of the fit: the objective, and the validation metric."""

    epoch: int
    objective: float
    value: float


@dataclass(frozen=True)
class Grid:
    """Weights of pairs as a square; None where no row has both."""

    names: tuple[str, ...]
    weights: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Study:
    """The findings of a study.

    Attributes
    ----------
    name, wanted : str
        Of the problem; what a weight above 0 speaks for.
    settings : StudySettings
        Resolved, with the fitted regularization strength.
    chosen : bool
        Whether the regularization strength was chosen on the path.
    solver : str
    metric : "AUC" or "RMSE"
    rows : (int, int, int)
        To fit, to choose, to measure.
    features, fields, pairs : int
        What there is: features that some row of the fit has, columns, pairs that some row of it has.
    used_features, used_pairs : int
        Those with a weight in a product.
    used_triples : int or None
        Of three features that at least `min_rows` rows have; None where the degree is 2.
    interactions : tuple of Interaction
        By order, then by size.
    singles : tuple of Single
        All features that rows of the fit have, the largest weight first.
    grid, field_grid : Grid
        Weights of the features of the largest interactions; the largest weight, by size, between two
        columns.
    path : tuple of Step
    curve : tuple of Epoch
    stopped : str
        What ended the fit.
    value, alone, base : float
        On the test rows: of the model, of a model of the same features without products, of one
        number for all.
    gain, gain_low, gain_high : float
        How much better the model is than without products, and the interval in which 95% of draws of
        these rows lie.
    notes : tuple of str

    Examples
    --------
    >>> import pandas as pd
    >>> from recsys.fm import StudySettings, study, table_problem
    >>> rows = [(a, b, a == b) for a in "xy" for b in "xy"] * 20
    >>> problem = table_problem(pd.DataFrame(rows, columns=["a", "b", "same"]), "same")
    >>> found = study(problem, StudySettings(path=False))
    >>> found.alone < 0.6 < found.value
    True
    """

    name: str
    wanted: str
    settings: StudySettings
    chosen: bool
    solver: str
    metric: str
    rows: tuple[int, int, int]
    features: int
    fields: int
    pairs: int
    used_features: int
    used_pairs: int
    used_triples: int | None
    interactions: tuple[Interaction, ...]
    singles: tuple[Single, ...]
    grid: Grid
    field_grid: Grid
    path: tuple[Step, ...]
    curve: tuple[Epoch, ...]
    stopped: str
    value: float
    alone: float
    base: float
    gain: float
    gain_low: float
    gain_high: float
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as lists and numbers."""
        return asdict(self)

    def of_order(self, order: int) -> tuple[Interaction, ...]:
        """Return the interactions of an order."""
        return tuple(one for one in self.interactions if one.order == order)

    def table(self) -> tuple[dict[str, type], list[tuple[Any, ...]]]:
        """Return the interactions as the columns and rows of a file."""
        between: dict[str, type] = {"low": float, "high": float} if self.settings.refits else {}
        columns: dict[str, type] = {
            "order": int, "weight": float, **between, "rows": int,
            **{f"feature_{k}": str for k in range(1, max(ORDERS) + 1)},
        }  # fmt: skip
        rows = []
        for one in self.interactions:
            ends = (one.low, one.high) if between else ()
            blank = ("",) * (max(ORDERS) - one.order)
            rows.append((one.order, one.weight, *ends, one.rows, *one.names, *blank))
        return columns, rows

    def sentences(self) -> list[str]:
        """Return in sentences what was selected and the metric values."""
        how = "chosen on the path" if self.chosen else "as given"
        kind = TITLES[self.settings.model]
        if self.settings.degree is not None:
            kind += f" of degree {self.settings.degree}"
        pairs = f"{self.used_pairs:,} of the {counted(self.pairs, 'pair')} that occur together"
        used = f"{self.used_features:,} of {counted(self.features, 'feature')}"
        lines = [
            f"{kind} for {self.wanted}, penalty {self.settings.penalty} with regularization "
            f"strength {self.settings.strength:g} ({how}), fitted to {counted(self.rows[0], 'row')}."
        ]
        if self.used_triples is None:
            lines.append(f"It uses {used} and {pairs}.")
        else:
            triples = counted(self.used_triples, "combination")
            lines.append(
                f"It uses {used}, {pairs}, and {triples} of three that "
                f"{counted(self.settings.min_rows, 'row')} or more have."
            )
        lines.append(
            f"On {counted(self.rows[2], 'test row')} its {self.metric} is "
            f"{self.value:.4g}; without interactions it is {self.alone:.4g}, and with nothing known "
            f"{self.base:.4g}."
        )
        interval = f"[{self.gain_low:+.3g}, {self.gain_high:+.3g}]"
        if self.gain_low > 0:
            lines.append(f"The interactions improve it by {self.gain:.3g} (95% interval {interval}).")
        elif self.gain_high < 0:
            lines.append(
                f"The interactions make it worse by {-self.gain:.3g} (95% interval {interval}): do not "
                "read much into them."
            )
        else:
            lines.append(
                "With and without interactions do not differ clearly (95% interval of the gain "
                f"{interval}): do not read much into them."
            )
        if self.settings.refits:
            lines.append(
                f"Low and high hold 90% of {counted(self.settings.refits, 'fit')} on rows drawn again; "
                "they are as shrunken by the penalty as the weights."
            )
        else:
            lines.append("These models have no intervals of their own; refits on rows drawn again do.")
        return lines
