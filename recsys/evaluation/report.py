"""The result of an evaluation: values by model, fold, user and metric, with tables and sentences."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import tables
from recsys.errors import InputError
from recsys.evaluation.metrics import TIES
from recsys.evaluation.significance import decision, mean_intervals, verdict
from recsys.registry import did_you_mean
from recsys.utils.distribution import install_hint
from recsys.utils.topn import LOWEST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Intervals = dict[tuple[str, str], tuple[float, float]]  # low and high, by model and metric
MOST = 12  # values of an attribute that are groups of their own
QUARTILES = 4
NOT_ATTRIBUTES = ("user", "fold")


@dataclass(frozen=True)
class MetricValue:
    """One metric of one model."""

    mean: float  # over folds
    std: float  # over folds, with n − 1; 0 for one fold
    folds: list[float]  # mean over users of each fold
    users: int  # over all folds, with a value
    left_out: int  # without a value

    @classmethod
    def of(cls, folds: list[NDArray[np.float64]]) -> MetricValue:
        """Average the values of users within each fold, and then over folds."""
        means = [float(np.nanmean(values)) for values in folds if np.isfinite(values).any()]
        every = np.concatenate(folds)
        users = int(np.isfinite(every).sum())
        std = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
        return cls(float(np.mean(means or np.nan)), std, means, users, len(every) - users)


@dataclass
class Result:
    """The metric values of one model.

    Seconds are sums over folds; those of fits and scores are without compilation.
    """

    model: str  # the label
    params: dict[str, Any]
    metrics: dict[str, MetricValue] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    compile_seconds: float = 0.0
    peak_mb: float = 0.0  # largest resident memory of the process after a fit or a scoring pass


@dataclass(repr=False)
class Report:
    """The result of `evaluate`.

    Attributes
    ----------
    dataset, protocol : str
    folds, seed, users, items, interactions : int
    results : list of Result
    comparisons : list of dict
        Pairs of models for each metric, with intervals and p-values.
    definitions, better : dict of str to str
        Definition of each metric; whether "more" or "less" is better, "" for neither.
    notes : list of str
        Notes on the data, the protocol and users left out.
    failed : dict of str to str
        Errors of models without a result, by label.
    rows : DataFrame
        One row per fold and evaluated user: `user` (the id), `fold` (from 1), `profile length` (training
        items), `popularity` (mean number of training users of the tested items), and user attributes.
        The index is the user's number.
    values : DataFrame
        Values for `rows`, in columns (model, metric). Metrics with one value per fold repeat it.
    per_fold : frozenset of str
        Metrics with one value per fold; they have no interval over users.
    lists : dict of str to (ids, scores)
        The first k items by model, (rows, k), with `keep_lists`; `tested` are the test rows and
        `item_ids` the ids.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> report.users, report.folds, report.results[0].metrics["auc"].users
    (400, 2, 400)
    >>> list(report.frame())
    ['model', 'metric', 'mean', 'std', 'low', 'high', 'users']
    >>> list(report.by("popularity"))
    ['group', 'model', 'metric', 'mean', 'low', 'high', 'users']
    """

    dataset: str
    protocol: str
    folds: int
    seed: int
    users: int
    items: int
    interactions: int
    results: list[Result]
    comparisons: list[dict[str, Any]]
    definitions: dict[str, str]
    better: dict[str, str]
    notes: list[str]
    failed: dict[str, str]
    rows: pd.DataFrame
    values: pd.DataFrame
    per_fold: frozenset[str] = frozenset()
    lists: dict[str, tuple[NDArray[np.int32], NDArray[np.float32]]] = field(default_factory=dict)
    tested: sp.csr_matrix | None = None
    item_ids: NDArray[np.object_] | None = None

    def result(self, model: str | None = None) -> Result:
        """Return the result of a model by its label, or the only result."""
        labels = [r.model for r in self.results]
        if model is None and len(labels) == 1:
            return self.results[0]
        if model not in labels:
            told = "name one of the models" if model is None else f"no model {model!r}"
            raise InputError(f"{told}: {did_you_mean(str(model), labels)}")
        return self.results[labels.index(model)]

    def frame(self, kind: str = "pandas") -> Any:
        """Return a table with one row per model and metric, as "pandas", "polars" or "pyarrow".

        `mean` and `std` are over folds (`std` is NaN for one fold). `low` and `high` are the 95%
        bootstrap interval of the mean over users (NaN for metrics with one value per fold). `users` is
        the number of users with a value.
        """
        ends = self._intervals()
        rows = []
        for r in self.results:
            for name, value in r.metrics.items():
                std = value.std if self.folds > 1 else float("nan")
                rows.append((r.model, name, value.mean, std, *ends[r.model, name], value.users))
        names = ("model", "metric", "mean", "std", "low", "high", "users")
        return tables.make(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), kind)

    def user_values(self) -> pd.DataFrame:
        """Return one row per model, fold, user and metric, with the columns of `rows`."""
        parts = [
            self.rows.assign(model=model, metric=metric, value=self.values[model, metric].to_numpy())
            for model, metric in self._columns
        ]
        return pd.concat(parts, ignore_index=True)

    def by(self, attribute: str) -> pd.DataFrame:
        """Return means and intervals of groups of the evaluated users.

        The attribute is "profile length", "popularity", or a column of the user table. Columns of more
        than 12 numbers are grouped by quartiles, other columns by value; rare values form one group.
        """
        known = [str(name) for name in self.rows.columns if name not in NOT_ATTRIBUTES]
        if attribute not in known:
            raise InputError(f"no users' attribute {attribute!r}: {did_you_mean(attribute, known)}")
        keys = [key for key in self._columns if key[1] not in self.per_fold]
        if not keys:
            names = ", ".join(self.definitions)
            raise InputError(
                f"{names}: only one value for all users; use a metric per user, such as auc"
            )
        groups = _grouped(self.rows[attribute])
        out = []
        for group in groups.cat.categories:
            inside = (groups == group).to_numpy()
            values, users = self.values.loc[inside, keys], self.rows.index[inside].to_numpy()
            ends = mean_intervals(values.to_numpy(), users, np.zeros(len(users), np.int64), self.seed)
            counts = values.notna().sum()
            for key, mean, low, high, count in zip(keys, values.mean(), *ends, counts, strict=True):
                out.append((group, *key, mean, low, high, int(count)))
        return pd.DataFrame(out, columns=["group", "model", "metric", "mean", "low", "high", "users"])

    @property
    def _columns(self) -> list[tuple[str, str]]:
        return [(r.model, name) for r in self.results for name in self.definitions]

    def _intervals(self) -> Intervals:
        """Return the 95% intervals of the means; NaN for metrics with one value per fold."""
        users, folds = self.rows.index.to_numpy(), self.rows["fold"].to_numpy()
        keys = [key for key in self._columns if key[1] not in self.per_fold]
        low, high = mean_intervals(self.values[keys].to_numpy(), users, folds, self.seed)
        ends = dict.fromkeys(self._columns, (float("nan"), float("nan")))
        return ends | dict(zip(keys, zip(low.tolist(), high.tolist(), strict=True), strict=True))

    def best(self) -> dict[str, float]:
        """Return the best mean of each metric that has a direction."""
        out = {}
        for name, better in self.better.items():
            means = [r.metrics[name].mean for r in self.results if np.isfinite(r.metrics[name].mean)]
            if means and better:
                out[name] = min(means) if better == "less" else max(means)
        return out

    def verdicts(self) -> list[str]:
        """Return for each metric whether the best model is better than the second."""
        lines = []
        for name in self.definitions:
            sign = 1 if self.better[name] == "less" else -1
            ranked = sorted(self.results, key=lambda r: sign * r.metrics[name].mean)
            first_two = {r.model for r in ranked[:2]}
            for c in self.comparisons:
                if c["metric"] == name and {c["first"], c["second"]} == first_two:
                    lines.append(verdict(c))
        return lines

    def decision(self) -> str:
        """Return a sentence that recommends a model; "" without comparisons."""
        tested = self.rows["user"].nunique()
        said = decision(self.comparisons)
        return said and f"{said} (tested users: {tested:,}, folds: {self.folds})."

    def about(self) -> str:
        """Return the sizes, the protocol, the folds and the seed."""
        return (
            f"users: {self.users:,}, items: {self.items:,}, interactions: {self.interactions:,}; "
            f"{self.protocol}, folds: {self.folds}, seed: {self.seed}"
        )

    def sentences(self) -> list[str]:
        """Return notes on the metric values: failures, tests, definitions."""
        lines = [f"{model} could not be evaluated: {why}" for model, why in self.failed.items()]
        lines += [*self.notes, *self.verdicts()]
        if len(self.results) > 2 and (said := self.decision()):  # of two the verdicts say all
            lines.append(said)
        if self.folds > 1:
            lines.append("±: standard deviation over folds.")
        lines += [f"{name}: {text}" for name, text in self.definitions.items()]
        return [*lines, f"Ties: {TIES}."]

    def run(self, model: str | None = None) -> dict[str, dict[str, float]]:
        """Return the lists of a model as {user: {item: score}}, for ranx and ir_measures.

        Ids are text. If users are in several folds, each fold has separate users ("42/fold2"). Requires
        `evaluate(..., keep_lists=100)`.
        """
        label = self.result(model).model
        if label not in self.lists:
            raise InputError("no lists were kept: pass keep_lists=100 to evaluate")
        items, (ids, scores) = _texts("item", self.item_ids), self.lists[label]
        listed = (ids >= 0) & (scores > LOWEST)
        return {
            user: {items[j]: s for j, s in zip(ids[row][keep], scores[row][keep].tolist(), strict=True)}
            for row, (user, keep) in enumerate(zip(self._queries(), listed, strict=True))
        }

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return the test interactions as {user: {item: 1}}, with the users of `run`."""
        if self.tested is None:
            raise InputError("no lists were kept: pass keep_lists=100 to evaluate")
        items, test = _texts("item", self.item_ids), self.tested
        return {
            user: {items[j]: 1 for j in test.indices[test.indptr[row] : test.indptr[row + 1]]}
            for row, user in enumerate(self._queries())
        }

    def _queries(self) -> list[str]:
        users = self.rows["user"]
        _texts("user", users.unique())
        if users.is_unique:
            return [str(user) for user in users]
        return [f"{user}/fold{fold}" for user, fold in zip(users, self.rows["fold"], strict=True)]

    def plot(self) -> Figure:
        """Return a matplotlib figure of all means with 95% intervals, one panel per metric."""
        if importlib.util.find_spec("matplotlib") is None:
            raise InputError(f"plot() needs matplotlib: {install_hint('plot')}")
        from matplotlib import pyplot

        frame, names = self.frame(), list(self.definitions)
        labels = [r.model[:40].replace("$", r"\$") for r in self.results]
        size = (3.5 * len(names) + 2, 0.4 * len(labels) + 1.5)
        figure, panels = pyplot.subplots(
            1, len(names), squeeze=False, sharey=True, figsize=size, layout="constrained"
        )
        for panel, name in zip(panels[0], names, strict=True):
            rows = frame[frame["metric"] == name]
            places = np.arange(len(rows))
            panel.hlines(places, rows["low"], rows["high"])
            panel.plot(rows["mean"], places, "o")
            panel.set_yticks(places, labels)
            panel.set_title(name)
        panels[0, 0].invert_yaxis()
        figure.suptitle(f"{self.dataset}, {self.protocol}; 95% intervals over users".replace("$", r"\$"))
        pyplot.close(figure)  # a notebook shows what is returned, once
        return figure

    def as_dict(self) -> dict[str, Any]:
        """Return values and intervals for JSON, without values per user."""
        results, ends = [asdict(r) for r in self.results], self._intervals()
        for result in results:
            for name, value in result["metrics"].items():
                value["low"], value["high"] = ends[result["model"], name]
        head = ("dataset", "protocol", "folds", "seed", "users", "items", "interactions", "results")
        rest = ("comparisons", "definitions", "better", "notes", "failed")
        return {key: getattr(self, key) for key in (*head, *rest)} | {"results": results}

    def __repr__(self) -> str:
        models = ", ".join(r.model for r in self.results)
        return f"<Report: {models} on {self.dataset!r}, {self.protocol}, folds: {self.folds}>"

    def __str__(self) -> str:
        """Return the means with their 95% intervals as a table, and the decision."""
        table = self.frame().drop(columns="std")
        text = table.to_string(index=False, float_format="{:.4f}".format, na_rep="–")
        return "\n".join(filter(None, [repr(self)[1:-1], text, self.decision()]))

    def _repr_html_(self) -> str:
        table = self.frame().to_html(index=False, float_format="{:.4f}".format, na_rep="–")
        head = f"<p><strong>{escape(self.dataset)}</strong>: {escape(self.about())}</p>"
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.sentences())
        return f"{head}{table}<p>{escape(self.decision())}</p><ul>{lines}</ul>"


def _grouped(column: pd.Series) -> pd.Series:
    """Return an attribute's values as categories: quartiles of numbers, frequent values of others."""
    known = column.dropna()
    numbers = pd.to_numeric(known, errors="coerce") if known.dtype != bool else known
    numeric = known.dtype != bool and bool(numbers.notna().all())
    if numeric and numbers.nunique() > MOST:
        bins = pd.qcut(numbers, QUARTILES, duplicates="drop")
        ends = numbers.groupby(bins, observed=True).agg(["min", "max"])
        names = [_range(low, high) for low, high in ends.to_numpy()]
        names = [name if names.count(name) == 1 else f"{name} ({k + 1})" for k, name in enumerate(names)]
        labels = bins.map(dict(zip(ends.index, names, strict=True))).astype(object)
    else:
        labels = numbers.map("{:g}".format) if numeric else known.map(str)
        names = list(labels.value_counts().index)
        if numeric:
            names.sort(key=float)
        if len(names) > MOST:
            names = names[: MOST - 1]
            labels = labels.where(labels.isin(names), "(others)")
            names.append("(others)")
    labels = labels.reindex(column.index).astype(object)
    if labels.isna().any():
        labels = labels.where(labels.notna(), "(unknown)")
        names.append("(unknown)")
    return labels.astype(pd.CategoricalDtype(names))


def _range(low: float, high: float) -> str:
    texts = [f"{end:,.0f}" if float(end).is_integer() else f"{end:.4g}" for end in (low, high)]
    return "–".join(dict.fromkeys(texts))


def _texts(what: str, ids: Any) -> list[str]:
    texts = [str(one) for one in ids]
    if len(set(texts)) < len(texts):
        raise InputError(f"two {what} ids are equal as text: use one type for all ids")
    return texts
