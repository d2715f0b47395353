"""Metric values of groups of users: by profile length, by what was tested of them, by who they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.evaluation.bootstrap import mean_intervals
from recsys.evaluation.drawing import draw_lines
from recsys.evaluation.evaluated import Evaluated
from recsys.evaluation.page import groups_page
from recsys.evaluation.rows import Rows
from recsys.registry import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROFILE_LENGTH = "profile length"
POPULARITY = "popularity"
BINS = 4  # groups of as many users each that numbers are parted into
MOST = 12  # values of an attribute shown on their own; rarer ones are put together
UNKNOWN, OTHERS = "unknown", "others"


@dataclass(frozen=True)
class Groups(Rows):
    """Metric values of each model on each group of users.

    Attributes
    ----------
    attribute : str
        What the users are grouped by.
    sizes : dict of str to int
        Evaluated users of each group, in the groups' order.
    rows : list of dict
        One a group, model and metric: `group`, `users` with a value, `model`, `metric`, `mean` over
        these users, `low` and `high`: its 95% bootstrap interval over users.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> groups = report.by("profile length")
    >>> list(groups.sizes), len(groups.rows)
    (['3–8', '9–12', '13–17', '18–58'], 4)
    """

    attribute: str
    sizes: dict[str, int]
    rows: list[dict[str, Any]]

    def plot(self) -> Figure:
        """Return a plot: one panel a metric, one line a model over the groups.

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        rows = [row | {self.attribute: row["group"]} for row in self.rows]
        labels = [f"{name}\n({size:,})" for name, size in self.sizes.items()]
        title = f"by {self.attribute} (in brackets: users)"
        return draw_lines(rows, self.attribute, title, list(self.sizes), labels)

    def html(self) -> str:
        """Return an HTML fragment: a row a group and model."""
        return groups_page(self)

    def _repr_html_(self) -> str:
        return self.html()


def group_values(
    who: Evaluated, attribute: str, results: list[Any], metrics: list[str], seed: int
) -> Groups:
    """Return metric values of groups of the evaluated users; a metric of the whole fold has none."""
    names, group = group_of(who, attribute)
    columns = [(r.model, name) for r in results for name in metrics]
    table = np.array([r.per_user[name] for r in results for name in metrics]).reshape(len(columns), -1).T
    rows = []
    for number, name in enumerate(names):
        chosen = np.flatnonzero(group == number)
        values = table[chosen]
        low, high = mean_intervals(
            values, who.users[chosen], np.zeros(len(chosen), dtype=np.int64), seed
        )
        for column, (model, metric) in enumerate(columns):
            found = values[np.isfinite(values[:, column]), column]
            rows.append(
                {
                    "group": name, "users": len(found), "model": model, "metric": metric,
                    "mean": float(found.mean()) if len(found) else float("nan"),
                    "low": float(low[column]), "high": float(high[column]),
                }
            )  # fmt: skip
    sizes = {name: int((group == number).sum()) for number, name in enumerate(names)}
    return Groups(attribute, sizes, rows)


def group_of(who: Evaluated, attribute: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the groups' names, and which of them each row is in."""
    if attribute == PROFILE_LENGTH:
        return _binned(who.profile.astype(np.float64))
    if attribute == POPULARITY:
        return _binned(who.popularity)
    table = who.user_features
    place = check_attribute(attribute, table)
    assert table is not None
    column = table.iloc[:, place].iloc[who.users]
    if not pd.api.types.is_bool_dtype(column):
        figures = pd.to_numeric(column, errors="coerce")  # files have numbers as text
        if figures.notna().sum() == column.notna().sum():
            column = figures
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric and column.nunique() > MOST:
        return _binned(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _named(column, numeric)


def check_attribute(attribute: str, table: pd.DataFrame | None) -> int:
    """Return the column of an attribute in a table of users; −1 for one that needs no table."""
    known = [] if table is None else [str(column) for column in table.columns]
    if attribute in known:
        return known.index(attribute)
    if attribute in (PROFILE_LENGTH, POPULARITY):
        return -1
    raise InputError(
        f"no users' attribute {attribute!r}: "
        + did_you_mean(attribute, [PROFILE_LENGTH, POPULARITY, *known])
        + ("" if known else "; attributes come with a table of users")
    )


def _named(column: pd.Series, numeric: bool) -> tuple[list[str], NDArray[np.int64]]:
    """Group by value: numbers in their order, else the most frequent first."""
    present = column.dropna()
    counts = present.value_counts(sort=True)
    values = sorted(counts.index) if numeric else list(counts.index)
    texts = [f"{value:g}" if numeric else str(value) for value in values]
    shown = list(dict.fromkeys(texts))
    shown = shown if len(shown) <= MOST else shown[: MOST - 1]
    number = {text: k for k, text in enumerate(shown)}
    place = {value: number.get(text, len(shown)) for value, text in zip(values, texts, strict=True)}
    group = np.array([-1 if pd.isna(value) else place[value] for value in column], dtype=np.int64)
    others = OTHERS if OTHERS not in shown else f"{OTHERS} (rare values)"
    names = [*shown, others] if (group == len(shown)).any() else shown
    return _with_unknown(names, group)


def _binned(values: NDArray[np.float64]) -> tuple[list[str], NDArray[np.int64]]:
    """Group numbers by quantiles, equal ones alike; groups are named by what is in them."""
    known = np.isfinite(values)
    if not known.any():
        return _with_unknown([], np.full(len(values), -1, dtype=np.int64))
    edges = np.quantile(values[known], np.arange(1, BINS) / BINS)
    found = np.searchsorted(np.unique(edges), values, side="left")
    present = np.unique(found[known])
    group = np.where(known, np.searchsorted(present, found), -1)
    names = []
    for number in range(len(present)):
        inside = values[group == number]
        low, high = _number(inside.min()), _number(inside.max())
        names.append(low if low == high else f"{low}–{high}")
    if len(set(names)) < len(names):  # numbers that differ beyond what is shown of them
        names = [f"{name} ({number + 1})" for number, name in enumerate(names)]
    return _with_unknown(names, group)


def _with_unknown(names: list[str], group: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    if not (group < 0).any():
        return names, group
    unknown = UNKNOWN if UNKNOWN not in names else f"{UNKNOWN} (no value)"
    return [*names, unknown], np.where(group < 0, len(names), group)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.4g}"
