"""What an evaluation found: figures, results of models, and a report in words, tables and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import counted
from recsys.evaluation.metrics import TIES
from recsys.evaluation.significance import verdict


@dataclass(frozen=True)
class Figure:
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
    >>> from recsys import EASE
    >>> from recsys.datasets import load_dataset
    >>> from recsys.evaluation import evaluate
    >>> report = evaluate(load_dataset("sample"), [("ease", {}, EASE())], metrics=["auc"], folds=2)
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
    """One model's figures.

    Attributes
    ----------
    model : str
        The label it was asked for by.
    params : dict
    metrics : dict of str to Figure
    fit_seconds, score_seconds : float
        Summed over folds, without compilation.
    compile_seconds : float
        What compiling took besides, inside these fits and scoring passes; most is done before.
    peak_mb : float
        Largest resident memory of the process seen after a fit or a scoring pass.
    per_user : dict of str to (evaluated users over folds,) float64

    Examples
    --------
    >>> from recsys import EASE
    >>> from recsys.datasets import load_dataset
    >>> from recsys.evaluation import evaluate
    >>> report = evaluate(load_dataset("sample"), [("ease", {}, EASE())], metrics=["auc"], folds=2)
    >>> report.results[0].model, report.results[0].per_user["auc"].shape
    ('ease', (400,))
    """

    model: str
    params: dict[str, Any]
    metrics: dict[str, Figure] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    compile_seconds: float = 0.0
    peak_mb: float = 0.0
    per_user: dict[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass
class Report:
    """What `evaluate` found.

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

    Examples
    --------
    >>> from recsys import EASE
    >>> from recsys.datasets import load_dataset
    >>> from recsys.evaluation import evaluate
    >>> report = evaluate(load_dataset("sample"), [("ease", {}, EASE())], metrics=["auc"], folds=2)
    >>> report.users, report.folds, report.sentences()[-1]
    (400, 2, 'Ties: expectation over all orders of tied items.')
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

    def sentences(self) -> list[str]:
        """Return what a reader of the figures should know: counts, tests, definitions."""
        lines = list(self.conventions)
        for number, what in (
            (self.train_only, "had nothing to predict"),
            (self.cold, "had something to predict and nothing in training"),
        ):
            if number:
                are = "is" if number == 1 else "are"
                each = "" if self.grouped or self.folds == 1 else ", counted once a fold,"
                lines.append(f"{counted(number, 'user')}{each} {what} and {are} left out.")
        lines += self.verdicts()
        if self.folds > 1:
            lines.append("±: standard deviation over folds.")
        compiled = sum(r.compile_seconds for r in self.results)
        besides = f", which took {compiled:.1f} s besides" if compiled >= 0.05 else ""
        lines.append(f"Seconds of fitting and scoring are without compilation{besides}.")
        lines += [f"{name}: {text}" for name, text in self.definitions.items()]
        return [*lines, f"Ties: {TIES}."]

    def verdicts(self) -> list[str]:
        """Return for each metric whether its best model leads the next, or is not told apart from it."""
        lines = []
        for name in self.definitions:
            ranked = sorted(self.results, key=lambda r: -r.metrics[name].mean)
            lines += [
                verdict(c)
                for c in self.comparisons
                if c["metric"] == name and {c["first"], c["second"]} == {r.model for r in ranked[:2]}
            ]
        return lines

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows for a CSV file: one row a model, with what the figures depend on.

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
            cells += [r.fit_seconds, r.score_seconds, r.compile_seconds, "; ".join(self.notes)]
            rows.append(cells)
        return columns, rows

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the values per user."""
        out = {key: value for key, value in vars(self).items() if key != "results"}
        out["ties"] = TIES
        out["results"] = [
            {
                "model": r.model,
                "params": r.params,
                "metrics": {name: asdict(figure) for name, figure in r.metrics.items()},
                "fit_seconds": r.fit_seconds,
                "score_seconds": r.score_seconds,
                "compile_seconds": r.compile_seconds,
                "peak_mb": r.peak_mb,
            }
            for r in self.results
        ]
        return out
