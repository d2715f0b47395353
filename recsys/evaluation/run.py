"""Evaluation: models × folds → a report, with one way of aggregating.

Each fold gives one value per user; a metric's figure is the mean over folds of the mean
over users, as the papers print it. Users without a value are counted, never averaged in.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data import Fold, Interactions, find_protocol
from recsys.data.side_information import SideInformation
from recsys.engines import Engine, opened
from recsys.engines.local import LocalEngine
from recsys.evaluation.conventions import conventions
from recsys.evaluation.evaluated import Lists, evaluated
from recsys.evaluation.measuring import Asked, divided, figure_of, measure, parsed_metrics, warm_up
from recsys.evaluation.models import Make, Models, NamedModel, named_models
from recsys.evaluation.report import Report, Result
from recsys.evaluation.shared_data import share
from recsys.evaluation.significance import Comparison, compare_all, holm
from recsys.evaluation.units import (
    Division,
    Measured,
    Unit,
    measured,
    scratch_folder,
    sendable,
    threads_of,
    uses,
)
from recsys.utils.progress import Listener, listening, within
from recsys.utils.validation import check_integer

Progress = Listener


def evaluate(
    data: Interactions,
    models: Models,
    *,
    protocol: str = "half-profile",
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    keep_lists: int | None = None,
    progress: Progress | None = None,
    make: Make | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    threads: int | None = None,
    scratch: str | Path | None = None,
) -> Report:
    """Fit every model on every fold and measure it; `recsys.evaluate` does, and takes names, too.

    Parameters
    ----------
    data : Interactions
    models : sequence, mapping of label to model, or one model
        As `named_models` takes them: rankers, models of implicit, objects with `fit` and `recommend` or
        `scores`, pairs (label, model). Each fold fits a fresh copy, with the side information that
        there is and the model uses; times only where the protocol predicts the future, and of
        training rows only.
    protocol, folds, seed
        As in `recsys.data.split`.
    metrics : sequence of str
        `NAME[@k]`.
    only_folds : int, optional
        Measure the first so many folds only, as a validation does that cannot afford all.
    keep_lists : int ≥ 1, optional
        Keep each user's first so many items, for `Report.run`, `Report.qrels` and `Report.write_trec`.
    progress : callable, optional
        Called as progress(text, done, total).
    make : callable, optional
        What makes a model of a name.
    engine, workers
        As in `recsys.engines.engine`: where each model is fitted on each fold. All figures are what they
        are in this process with as many threads; seconds and memory are the workers' own.
    threads : int ≥ 1, optional
        Of each worker, 1 when not given; of this process, all.
    scratch : path, optional
        A folder that all workers see, for the file that they read the data from; removed in the end.
        The system's folder for temporary files when not given.

    Raises
    ------
    InputError
        If nothing can be measured: no models, unknown metric, no user with a test item; if the engine
        or a worker cannot do it.
    """
    parsed = parsed_metrics(metrics, data)
    names = [name for _, _, name in parsed]
    named = named_models(models, make)
    if keep_lists is not None:
        keep_lists = check_integer("keep_lists", keep_lists, 1)
    divisions = divided(data, protocol, folds, seed, only_folds)
    way, side = find_protocol(protocol), SideInformation(data, protocol)
    results = [Result(one.label, one.params) for one in named]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{n: [] for n in names} for _ in named]
    lists: list[list[Lists]] = [[] for _ in named]
    with opened(engine, workers) as runner:
        threads = threads_of(runner, threads)
        job = _Job(data, named, divisions, parsed, protocol, folds, seed, keep_lists, progress, threads)
        here = isinstance(runner, LocalEngine)
        found = job.here(runner, side) if here else job.by(runner, scratch)
        for (position, _), one in zip(job.units(), found, strict=True):
            result = results[position]
            result.fit_seconds += one.fit_seconds
            result.score_seconds += one.score_seconds
            result.compile_seconds += one.compile_seconds
            result.peak_mb = max(result.peak_mb, one.peak_mb)
            for name in names:
                values[position][name].append(one.values[name])
            lists[position] += [one.lists] if one.lists else []
        where = ("local", 0) if here else (runner.name, runner.workers)
    if progress is not None:
        progress("done", job.total, job.total)
    for result, folded, kept_ones in zip(results, values, lists, strict=True):
        for name in names:
            result.metrics[name] = figure_of(folded[name])
            result.per_user[name] = np.concatenate(folded[name])
        if kept_ones:
            result.lists = Lists(
                np.concatenate([one.ids for one in kept_ones]),
                np.concatenate([one.scores for one in kept_ones]),
            )
    return Report(
        dataset=data.name,
        protocol=protocol,
        folds=len(divisions),
        seed=seed,
        users=data.n_users,
        items=data.n_items,
        interactions=len(data.users),
        train_only=sum(fold.train_only for fold in divisions),
        definitions={name: metric.definition for metric, _, name in parsed},
        results=results,
        comparisons=_comparisons(results, parsed, seed),
        notes=list(data.notes),
        cold=sum(fold.cold for fold in divisions),
        conventions=conventions(way, data, divisions),
        grouped=way.grouped,
        evaluated=evaluated(data, divisions, keep_tested=keep_lists is not None),
        whole=frozenset(name for metric, _, name in parsed if not metric.per_user),
        better={name: metric.better for metric, _, name in parsed},
        engine=where[0],
        workers=where[1],
    )


@dataclass(frozen=True)
class _Job:
    """Every model on every fold: here, or by the workers of an engine."""

    data: Interactions
    named: list[NamedModel]
    divisions: list[Fold]
    parsed: list[Asked]
    protocol: str
    folds: int | None
    seed: int
    keep: int | None
    progress: Progress | None
    threads: int | None

    @property
    def total(self) -> int:
        return len(self.named) * len(self.divisions)

    def units(self) -> list[tuple[int, int]]:
        """Return position of the model and number of the fold, fold by fold."""
        return [(k, number) for number in range(len(self.divisions)) for k in range(len(self.named))]

    def here(self, runner: Engine, side: SideInformation) -> Iterator[Measured]:
        """Yield what comes of each unit in this process, which hears what the model reports."""
        table = self.data.item_features
        for label, _, model in self.named:
            with listening(self.progress), within(f"{label}, compiling", 0, self.total, part=0.0):
                warm_up(copy.deepcopy(model), self.divisions[0], self.parsed, side, table)

        def one(unit: tuple[int, tuple[int, int]]) -> Measured:
            done, (position, number) = unit
            label, _, model = self.named[position]
            result = Result("", {})
            with listening(self.progress), within(f"{label}, fold {number + 1}", done, self.total):
                values, kept = measure(
                    copy.deepcopy(model), self.divisions[number], self.parsed, result, side,
                    table=table, keep=self.keep,
                )  # fmt: skip
            return Measured(
                values, kept, result.fit_seconds, result.score_seconds, result.compile_seconds,
                result.peak_mb,
            )  # fmt: skip

        yield from runner.map(one, list(enumerate(self.units())), threads=self.threads)

    def by(self, runner: Engine, scratch: str | Path | None) -> Iterator[Measured]:
        """Yield what comes of each unit from workers, which read the data from a file."""
        models = [sendable(label, model) for label, _, model in self.named]
        metrics, mark = tuple(name for _, _, name in self.parsed), secrets.token_hex(8)
        with scratch_folder(scratch) as folder:
            shared = share(self.data, folder / "data", uses(models), self.parsed)
            units = [
                Unit(
                    Division(shared, self.protocol, self.folds, self.seed, number), models[position],
                    metrics, self.keep, f"{mark} {position}",
                )
                for position, number in self.units()
            ]  # fmt: skip
            for done, one in enumerate(runner.map(measured, units, threads=self.threads)):
                if self.progress is not None:
                    position, number = self.units()[done]
                    told = f"{self.named[position].label}, fold {number + 1}"
                    self.progress(told, done + 1, self.total)
                yield one


def _comparisons(results: list[Result], parsed: list[Asked], seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    found: list[Comparison] = []
    for metric, _, name in parsed:
        if not metric.per_user:
            continue
        for i, j, comparison in compare_all([result.per_user[name] for result in results], seed):
            found.append(comparison)
            pair = {"metric": name, "first": results[i].model, "second": results[j].model}
            rows.append(pair | {"better": metric.better})
    corrected = holm([comparison.p_value for comparison in found])
    return [
        row | asdict(replace(comparison, p_holm=p)) | {"told_apart": comparison.told_apart}
        for row, comparison, p in zip(rows, found, corrected, strict=True)
    ]
