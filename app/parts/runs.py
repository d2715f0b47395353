"""Evaluations that were run: kept by memory for all sessions, and told so that each can be repeated."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pandas as pd
import streamlit as st

from app import state
from app.catalogues import Catalogue
from app.jobs import ENTRY
from app.store import Store
from recsys.data.columns import Columns, Spelling
from recsys.data.reading import NONE
from recsys.doctor import versions
from recsys.evaluation import Report
from recsys.utils.export import csv_text, json_text

MOST_BYTES = 400_000_000  # of all reports that are kept
MOST_NAME = 80  # characters


@dataclass(frozen=True)
class Source:
    """Where the interactions come from, as the command line names it.

    Attributes
    ----------
    dataset : str
        Its name; "" for a file.
    file : str
        Name of an uploaded file; "" for a dataset.
    user, item, rating, time : str
        Columns of the file; "" where there is none.
    least : float or None
        The rating below which rows do not count.
    items : str
        Name of an uploaded table of items; "" where there is none.
    left_out : int
        Rows of the file that could not be read: a command needs the cleaned file.
    weight : str
        Column of counts or amounts; "" where there is none.
    form : tuple of (str, str or bool)
        What the visitor said of how the file is read, by the words of `recsys.data.reading.read`.
    """

    dataset: str = "sample"
    file: str = ""
    user: str = ""
    item: str = ""
    rating: str = ""
    time: str = ""
    items: str = ""
    least: float | None = None
    left_out: int = 0
    weight: str = ""
    form: tuple[tuple[str, str | bool], ...] = ()

    def options(self) -> list[str]:
        """Return the options of a command that reads the same."""
        if not self.file:
            out = ["--dataset", self.dataset]
        else:
            out = ["--interactions", self.file]
            for column in ("user", "item", "rating", "time", "weight"):
                name = getattr(self, column) or (NONE if column in ("rating", "time") else "")
                out += [f"--{column}-col", name] if name else []
            if self.left_out:  # the cleaned table is UTF-8 with commas and a header
                out.append("--header")
            spelling = Spelling("terminal")
            for word, value in () if self.left_out else self.form:
                if isinstance(value, bool):
                    out.append(spelling.choice(word, value))
                else:
                    out += [spelling.of(word), value]
            out += ["--items", self.items] if self.items else []
        return out if self.least is None else [*out, "--min-rating", f"{self.least!r}"]


def source_of(catalogue: Catalogue) -> Source:
    """Return where the data come from, as the command line names it."""
    name = str(catalogue.key[1])
    if catalogue.key[0] == "dataset":
        return Source(dataset=name, least=catalogue.least)
    columns, table = catalogue.data.columns or Columns("", ""), state.tables().find(name)
    return Source(
        "", catalogue.data.name, columns.user, columns.item, columns.rating or "", columns.time or "",
        table.items if table else "", catalogue.least, table.left_out if table else 0,
        columns.weight or "", table.form if table else (),
    )  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Everything that an evaluation depends on.

    Attributes
    ----------
    source : Source
    data : str
        Identifies the data: a digest of an upload, say.
    models, metrics : tuple of str
        As they are written on a command line.
    protocol : str
    folds : int or None
        None where the protocol has one division.
    seed : int
    """

    source: Source
    data: str
    models: tuple[str, ...]
    metrics: tuple[str, ...]
    protocol: str
    folds: int | None
    seed: int

    @cached_property
    def id(self) -> str:
        """Twelve characters that only these settings have: the same run is not kept twice."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def command(self) -> str:
        """Return the command that prints the same values."""
        words = ["recsys", "evaluate", *self.source.options()]
        for model in self.models:
            words += ["--model", model]
        for metric in self.metrics:
            words += ["--metric", metric]
        words += ["--protocol", self.protocol, "--seed", str(self.seed)]
        if self.folds is not None:
            words += ["--folds", str(self.folds)]
        return shlex.join(words)

    def name(self) -> str:
        """Return what a run is called until the visitor names it."""
        where = self.source.file or self.source.dataset
        models = ", ".join(self.models)
        shown = models if len(models) <= MOST_NAME else f"{models[: MOST_NAME - 1]}…"
        return f"{where} · {self.protocol} · seed {self.seed} · {shown}"


@dataclass(frozen=True)
class Run:
    """A report with its settings, when it was made and with what.

    Attributes
    ----------
    settings : Settings
    report : Report
    when : str
        ISO, UTC.
    versions : dict of str to str
    """

    settings: Settings
    report: Report
    when: str
    versions: Mapping[str, str] = field(default_factory=dict)
    _groups: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def now(cls, settings: Settings, report: Report) -> Run:
        """Return a run that has just ended."""
        return cls(settings, report, datetime.now(UTC).isoformat(timespec="seconds"), versions())

    @cached_property
    def intervals(self) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
        """The 95% intervals of all means, which take a while to draw."""
        return self.report.intervals()

    def by(self, attribute: str) -> pd.DataFrame:
        """Return metric values of groups of users, drawn once."""
        if attribute not in self._groups:
            self._groups[attribute] = self.report.by(attribute)
        return self._groups[attribute]

    @property
    def size(self) -> int:
        """Bytes of its arrays."""
        tables = (self.report.values, self.report.rows)
        return sum(int(table.memory_usage(deep=True).sum()) for table in tables) + ENTRY

    def how(self) -> str:
        """Return how to get it again: the command, what it needs, and versions."""
        lines = [self.settings.command()]
        if self.settings.source.left_out:
            lines.append("# on the cleaned table that the page Data has to download")
        told = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return "\n".join([*lines, f"# made {self.when} with {told}"])

    def as_dict(self, name: str) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": name, "made": self.when, "settings": asdict(self.settings),
            "command": self.settings.command(), "versions": dict(self.versions),
            "report": self.report.as_dict(),
        }  # fmt: skip


@st.cache_resource(show_spinner=False)
def runs() -> Store[Run]:
    """Return the runs of all sessions of this process, by their settings' id."""
    return Store(MOST_BYTES)


def json_of(named: Iterable[tuple[str, Run]]) -> str:
    """Return runs as JSON."""
    return json_text({"runs": [run.as_dict(name) for name, run in named]})


def csv_of(named: Iterable[tuple[str, Run]]) -> str:
    """Return runs as CSV: a row a run, model and metric, with the interval and all settings."""
    columns = (
        "run", "dataset", "users", "items", "interactions", "protocol", "folds", "seed", "model",
        "metric", "mean", "std", "low", "high", "users with a value", "fit_seconds", "score_seconds",
        "compile_seconds", "made", "recsys", "command",
    )  # fmt: skip
    rows = []
    for name, run in named:
        report, (low, high) = run.report, run.intervals
        for r in report.results:
            for metric, figure in r.metrics.items():
                key = (r.model, metric)
                rows.append([
                    name, report.dataset, report.users, report.items, report.interactions,
                    report.protocol, report.folds, report.seed, r.model, metric, figure.mean,
                    figure.std if report.folds > 1 else "", low[key], high[key], figure.users,
                    r.fit_seconds, r.score_seconds, r.compile_seconds, run.when,
                    run.versions.get("recsys", ""), run.settings.command(),
                ])  # fmt: skip
    return csv_text(columns, rows)
