"""The result of an evaluation: metric values of models, and a report in sentences, tables and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError, counted
from recsys.evaluation import trec
from recsys.evaluation.bootstrap import mean_intervals
from recsys.evaluation.drawing import draw_means
from recsys.evaluation.evaluated import Evaluated, Lists
from recsys.evaluation.groups import Groups, group_values
from recsys.evaluation.metrics import TIES
from recsys.evaluation.page import report_page
from recsys.evaluation.rows import table_of
from recsys.evaluation.significance import decision, verdict
from recsys.registry import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MEASURED = ("fit_seconds", "score_seconds", "compile_seconds", "peak_mb")  # of a result
Intervals = dict[tuple[str, str], float]


@dataclass(frozen=True)
class MetricValue:
    """One metric of one model.

    Attributes
    ----------
    mean, std : float
        Over folds (std with n − 1; 0 for one fold).
    folds : list of float
        Mean over users of each fold.
    users : int
        Users with a value, over all folds.
    left_out : int
        Users evaluated without a value.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> figure = report.results[0].metrics["auc"]
    >>> len(figure.folds), figure.users
    (2, 400)
    """

    mean: float
    std: float
    folds: list[float]
    users: int
    left_out: int


@dataclass
class Result:
    """The metric values of one model.

    Attributes
    ----------
    model : str
        The label it was asked for by.
    params : dict
    metrics : dict of str to MetricValue
    fit_seconds, score_seconds : float
        Summed over folds, without compilation.
    compile_seconds : float
        What compiling took besides, inside these fits and scoring passes; most is done before.
    peak_mb : float
        Largest resident memory of the process seen after a fit or a scoring pass.
    per_user : dict of str to (evaluated users over folds,) float64
    lists : Lists, optional
        What it recommends first, if that was asked for.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> report.results[0].model, report.results[0].per_user["auc"].shape
    ('ease', (400,))
    """

    model: str
    params: dict[str, Any]
    metrics: dict[str, MetricValue] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    compile_seconds: float = 0.0
    peak_mb: float = 0.0
    per_user: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    lists: Lists | None = None


@dataclass(repr=False)
class Report:
    """The result of `evaluate`.

    Attributes
    ----------
    dataset, protocol : str
    folds, seed, users, items, interactions : int
    train_only : int
        Users meant to be evaluated that have nothing to predict, over all folds.
    definitions : dict of str to str
    results : list of Result
    comparisons : list of dict
        Pairs of models per metric, with interval and p-values.
    notes : list of str
    cold : int
        Users with something to predict and nothing in training, left out, over all folds.
    conventions : list of str
        For protocols in time: what was ranked, what training held, how ties in time were broken.
    grouped : bool
        Whether each user is in one fold only.
    evaluated : Evaluated
        Who was evaluated, in the order of `Result.per_user`.
    per_fold : frozenset of str
        Metrics with one value a fold, which have no interval over users.
    better : dict of str to "more", "less" or ""
        Whether higher or lower values of a metric are better; "" for neither.
    engine : str
        Where models were fitted: "local", this process or others of this machine, "dask", "ray".
    workers : int
        How many processes did it; 0 for this one.
    failed : dict of str to str
        Why a model could not be evaluated, by its label; it has no result.
    ranked : list of str
        Which items were ranked and what was left out, where that is not all outside the training rows.

    Examples
    --------
    >>> from recsys import EASE, evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
    >>> report.users, report.folds, report.sentences()[-1]
    (400, 2, 'Ties: expectation over all orders of tied items.')
    >>> list(report.frame())
    ['model', 'metric', 'mean', 'std', 'low', 'high', 'users']
    """

    dataset: str
    protocol: str
    folds: int
    seed: int
    users: int
    items: int
    interactions: int
    train_only: int
    definitions: dict[str, str]
    results: list[Result]
    comparisons: list[dict[str, Any]]
    notes: list[str]
    cold: int = 0
    conventions: list[str] = field(default_factory=list)
    grouped: bool = True
    evaluated: Evaluated | None = None
    per_fold: frozenset[str] = frozenset()
    better: dict[str, str] = field(default_factory=dict)
    engine: str = "local"
    workers: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    ranked: list[str] = field(default_factory=list)

    def about(self) -> str:
        """Return the sizes, the protocol, the folds and the seed in a sentence."""
        return (
            f"{counted(self.users, 'user')}, {counted(self.items, 'item')}, "
            f"{counted(self.interactions, 'interaction')}; {self.protocol}, "
            f"{counted(self.folds, 'fold')}, seed {self.seed}"
        )

    def sentences(self) -> list[str]:
        """Return notes on the metric values: counts, tests, definitions."""
        lines = [f"{model} could not be evaluated: {why}" for model, why in self.failed.items()]
        lines += [*self.ranked, *self.conventions]
        for number, what in (
            (self.train_only, "had nothing to predict"),
            (self.cold, "had something to predict and nothing in training"),
        ):
            if number:
                are = "is" if number == 1 else "are"
                each = "" if self.grouped or self.folds == 1 else ", counted once a fold,"
                lines.append(f"{counted(number, 'user')}{each} {what} and {are} left out.")
        lines += self.verdicts()
        if len(self.results) > 2 and (told := self.decision()):  # of two the verdicts say all
            lines.append(told)
        if self.folds > 1:
            lines.append("±: standard deviation over folds.")
        compiled = sum(r.compile_seconds for r in self.results)
        besides = f", which took {compiled:.1f} s besides" if compiled >= 0.05 else ""
        lines.append(f"Seconds of fitting and scoring are without compilation{besides}.")
        if self.workers:
            lines.append(
                f"They are the workers' own, on {counted(self.workers, 'worker')} ({self.engine}): "
                "several pass at once, and others on the machine slow them down."
            )
        lines += [f"{name}: {text}" for name, text in self.definitions.items()]
        return [*lines, f"Ties: {TIES}."]

    def best(self) -> dict[str, float]:
        """Return the best mean of each metric that has a direction."""
        out = {}
        for name in self.definitions:
            means = [r.metrics[name].mean for r in self.results if np.isfinite(r.metrics[name].mean)]
            better = self.better.get(name, "more")
            if means and better:
                out[name] = min(means) if better == "less" else max(means)
        return out

    def verdicts(self) -> list[str]:
        """Return for each metric whether its best model is better than the next."""
        lines = []
        for name in self.definitions:
            sign = 1 if self.better.get(name) == "less" else -1
            ranked = sorted(self.results, key=lambda r: sign * r.metrics[name].mean)
            lines += [
                verdict(c)
                for c in self.comparisons
                if c["metric"] == name and {c["first"], c["second"]} == {r.model for r in ranked[:2]}
            ]
        return lines

    def decision(self) -> str:
        """Return which model to use and why, in one sentence; "" where no two were compared."""
        told = decision(self.comparisons)
        tested = self.users if self.evaluated is None else len(np.unique(self.evaluated.users))
        return told and f"{told}; {counted(tested, 'tested user')}, {counted(self.folds, 'fold')}."

    def intervals(self) -> tuple[Intervals, Intervals]:
        """Return the 95% percentile-bootstrap intervals of the means, users resampled.

        Returns
        -------
        low, high : dict of (model, metric) to float
            NaN for a metric with one value a fold.
        """
        names = [name for name in self.definitions if name not in self.per_fold]
        keys = [(r.model, name) for r in self.results for name in self.definitions]
        low, high = dict.fromkeys(keys, float("nan")), dict.fromkeys(keys, float("nan"))
        measured = [(r.model, name) for r in self.results for name in names]
        if self.evaluated is not None and measured:
            values = np.array([r.per_user[name] for r in self.results for name in names]).T
            found = mean_intervals(values, self.evaluated.users, self.evaluated.folds, self.seed)
            for out, ends in zip((low, high), found, strict=True):
                out.update(zip(measured, ends.tolist(), strict=True))
        return low, high

    def frame(self, kind: str = "pandas") -> Any:
        """Return the metric values as a frame, one row a model and metric.

        Parameters
        ----------
        kind : "pandas", "polars" or "pyarrow"

        Returns
        -------
        frame
            `model`, `metric`, `mean` and `std` over folds (NaN for a single fold), `low` and `high` of
            the mean's 95% bootstrap interval over users, `users` with a value.

        Raises
        ------
        InputError
            For another kind, or one that is not installed.
        """
        return table_of(self._rows(), kind)

    def by(self, attribute: str) -> Groups:
        """Return the metric values of groups of the evaluated users, with intervals.

        Parameters
        ----------
        attribute : str
            "profile length": how many items a user has in training; "popularity": how many users have
            what was tested of a user, on average; or a column of the users' table. Numbers
            are parted at their quartiles.

        Raises
        ------
        InputError
            If there is no such attribute, or no metric with a value for each user was measured.

        Examples
        --------
        >>> from recsys import EASE, evaluate, load_dataset
        >>> report = evaluate(load_dataset("sample"), EASE(), metrics=["auc"], folds=2)
        >>> list(report.by("popularity").frame())
        ['group', 'users', 'model', 'metric', 'mean', 'low', 'high']
        """
        names = [name for name in self.definitions if name not in self.per_fold]
        if not names:
            told = ", ".join(self.definitions)
            raise InputError(
                f"{told} has one value for all users: measure auc or ndcg@10, say, for groups"
            )
        return group_values(self._evaluated(), attribute, self.results, names, self.seed)

    def plot(self) -> Drawing:
        """Return a plot of all means with their intervals, one panel a metric.

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        title = f"{self.dataset}, {self.protocol}, {counted(self.folds, 'fold')}"
        return draw_means(self._rows(), title, self.best())

    def html(self) -> str:
        """Return an HTML fragment: metric values with intervals, verdicts, and definitions."""
        return report_page(self)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        models = ", ".join(r.model for r in self.results)
        return f"<Report: {models} on {self.dataset!r}, {self.protocol}, {counted(self.folds, 'fold')}>"

    def __str__(self) -> str:
        """Return the means with their 95% intervals as a table, and the decision."""
        table = (
            self.frame()
            .drop(columns="std")
            .to_string(index=False, float_format="{:.4f}".format, na_rep="–")
        )
        return "\n".join(filter(None, [repr(self)[1:-1], table, self.decision()]))

    def run(self, model: str | None = None) -> trec.Run:
        """Return the lists of a model as {user: {item: score}}, for ranx and ir_measures.

        Ids are text. Where users are in several folds, each fold's are users of their own
        ("42/fold2"). Equal scores keep their order here, but other tools order them in their own way.

        Parameters
        ----------
        model : str, optional
            Its label; not needed for one model.

        Raises
        ------
        InputError
            If there is no such model, or no lists were kept (`evaluate(..., keep_lists=100)`).
        """
        return trec.run_of(self._evaluated(), self.result(model).lists)

    def qrels(self) -> trec.Qrels:
        """Return the test interactions as {user: {item: 1}}, with the users of `run`.

        Raises
        ------
        InputError
            If it was not kept (`evaluate(..., keep_lists=100)`).
        """
        return trec.qrels_of(self._evaluated())

    def write_trec(self, folder: str | Path) -> list[Path]:
        """Write qrels.txt (user 0 item 1) and a .run file a model (user Q0 item rank score model).

        Parameters
        ----------
        folder : path
            Made where it does not exist.

        Returns
        -------
        list of Path
            The files, qrels.txt first.

        Raises
        ------
        InputError
            As `run` and `qrels`, if an id has a blank, or a file cannot be written.
        """
        runs = {r.model: self.run(r.model) for r in self.results}
        return trec.write(folder, self.qrels(), runs)

    def result(self, model: str | None = None) -> Result:
        """Return the result of a model by its label; of the only one, if none is named.

        Raises
        ------
        InputError
        """
        labels = [r.model for r in self.results]
        if model is None and len(labels) == 1:
            return self.results[0]
        if model not in labels:
            told = "name one of the models" if model is None else f"no model {model!r}"
            raise InputError(f"{told}: {did_you_mean(str(model), labels)}")
        return self.results[labels.index(model)]

    def _evaluated(self) -> Evaluated:
        if self.evaluated is None:
            raise InputError("this report does not say who was evaluated")
        return self.evaluated

    def _rows(self) -> list[dict[str, Any]]:
        low, high = self.intervals()
        return [
            {
                "model": r.model, "metric": name, "mean": figure.mean,
                "std": figure.std if self.folds > 1 else float("nan"),
                "low": low[r.model, name], "high": high[r.model, name], "users": figure.users,
            }
            for r in self.results
            for name, figure in ((name, r.metrics[name]) for name in self.definitions)
        ]  # fmt: skip

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows for a CSV file: one row a model, with what its values depend on.

        After each metric comes its standard deviation over folds, empty for a single fold.
        """
        names = list(self.definitions)
        columns = ["dataset", "users", "items", "interactions", "protocol", "folds", "seed", "model"]
        columns += [text for name in names for text in (name, f"{name} ±")]
        columns += ["fit_seconds", "score_seconds", "compile_seconds", "notes"]
        rows: list[list[Any]] = []
        for r in self.results:
            about = [self.dataset, self.users, self.items, self.interactions, self.protocol]
            cells: list[Any] = [*about, self.folds, self.seed, r.model]
            for name in names:
                figure = r.metrics[name]
                cells += [figure.mean, figure.std if self.folds > 1 else ""]
            cells += [
                r.fit_seconds,
                r.score_seconds,
                r.compile_seconds,
                "; ".join([*self.notes, *self.ranked]),
            ]
            rows.append(cells)
        return columns, rows

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, intervals among them, without the values per user."""
        low, high = self.intervals()
        left_out = ("results", "evaluated", "per_fold")
        out = {key: value for key, value in vars(self).items() if key not in left_out}
        out["ties"] = TIES
        out["results"] = [
            {
                "model": r.model,
                "params": r.params,
                "metrics": {
                    name: asdict(figure) | {"low": low[r.model, name], "high": high[r.model, name]}
                    for name, figure in r.metrics.items()
                },
                **{name: getattr(r, name) for name in MEASURED},
            }
            for r in self.results
        ]
        return out
