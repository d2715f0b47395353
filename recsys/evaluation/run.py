"""Evaluation: models × folds → a report, with one way of aggregating.

Each fold gives one value per user; a metric's value is the mean over folds of the mean
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
from recsys.data.candidates import candidate_sets
from recsys.data.side_information import SideInformation
from recsys.data.splits import protocol_for
from recsys.engines import Engine, opened
from recsys.engines.local import LocalEngine
from recsys.errors import InputError
from recsys.evaluation.conventions import conventions
from recsys.evaluation.evaluated import Lists, evaluated
from recsys.evaluation.measuring import (
    Measured,
    ParsedMetric,
    divided,
    interactions_of,
    measure,
    metric_value,
    parsed_metrics,
    warm_up,
)
from recsys.evaluation.models import Models, NamedModel, named_models
from recsys.evaluation.ranked import Ranked, RankedFold, check_some_ranked, ranked_sentences
from recsys.evaluation.report import Report, Result
from recsys.evaluation.shared_data import share
from recsys.evaluation.significance import Comparison, compare_all, holm
from recsys.evaluation.units import (
    Division,
    Unit,
    measured,
    measured_or_dropped,
    scratch_folder,
    sendable,
    threads_of,
    uses,
)
from recsys.utils.attempts import Dropped, attempt, check_some_left
from recsys.utils.progress import QUIET, Listener, bar, listening, within
from recsys.utils.validation import check_flag, check_integer

Progress = Listener
NONE_LEFT = "no model could be evaluated"


def evaluate(
    data: Any,
    models: Models = ("auto", "popularity"),
    *,
    test: Any = None,
    protocol: str | None = None,
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    keep_lists: int | None = None,
    progress: Progress | bool | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    threads: int | None = None,
    scratch: str | Path | None = None,
    filter_liked: bool = True,
    candidates: Any = None,
    sampled_negatives: int | None = None,
) -> Report:
    """Fit models on folds of the data, measure them on what was hidden, and compare them.

    Parameters
    ----------
    data : Interactions, table or path
        A table or file is read as `Interactions.from_frame` does.
    models : sequence, mapping of label to model, or one model
        Each a name with parameters ("auto", "cf-komd:kernel=mc,degree=2"), a ranker, a
        `Recommender`, a model of implicit, any object with `fit` and `recommend` or `scores`, a pair
        (label, model), or a mapping of label to model. Each fold fits a fresh copy.
    test : Interactions, table or path, optional
        Test interactions, matched by ids, as in `Interactions.with_test`. All other interactions are for
        training, and all items that a user does not have in training are ranked.
    protocol : str, optional
        As in `recsys.data.split`: "half-profile", "half-profile-time", "leave-one-out", "next-5",
        "holdout", "temporal", "rolling", "published". When not given, "half-profile", or "published"
        with a `test` or with data that have a test half.
    folds, seed
        As in `recsys.data.split`.
    metrics : str or sequence of str
        `NAME[@k]`, k = 10 by default; `list(recsys.evaluation.metrics.METRICS)` has the names.
    only_folds : int, optional
        Number of folds to measure, from the first on; all by default.
    keep_lists : int ≥ 1, optional
        Length of the lists to keep, for `Report.run`, `Report.qrels` and `Report.write_trec`.
    progress : callable or bool, optional
        Called as progress(text, done, total). True draws a bar in a terminal or a notebook.
    engine : str or Engine
        Where models are fitted: "local", "local=N" (N processes of this machine), "dask" or "ray", alone
        or with "=ADDRESS" of a running cluster. Metric values are the same as in this process with the
        same number of threads; seconds and memory are the workers' own.
    workers : int ≥ 1, optional
        Number of processes to start; by default that of `engine`.
    threads : int ≥ 1, optional
        Threads of each worker, by default 1; of this process, by default all.
    scratch : path, optional
        A folder that all workers can read, for the file with the data, which is removed in the end. By
        default the system's folder for temporary files.
    filter_liked : bool
        Whether items that a user has in training are left out of the ranking. With False they are
        ranked, too, and pairs of `test` that are among the interactions stay in training besides being
        tested.
    candidates : mapping of user to items, table or path, optional
        The only items to rank for each user, matched by ids; a table or file has a row for each user and
        candidate. Users without candidates are left out, test items that are none are not counted, and
        the report says how many there are.
    sampled_negatives : int ≥ 1, optional
        Rank each user's test items among so many other items only, drawn with the seed, the same for all
        models. Metric values are biased (Krichene and Rendle 2020), and metrics are called so.

    Returns
    -------
    Report
        With `frame()`, `plot()`, `html()`, `verdicts()` and `by(attribute)`.

    Raises
    ------
    InputError
        If nothing can be measured: no models, two of one label, an unknown name or metric, an object
        that is no model, no user with a test item; if a protocol is named beside a test half; if the
        engine or a worker cannot do it; if both candidates and sampled negatives are asked for, or
        candidates cannot be read, or no test item is among them; if every one of several models refuses
        the data or its parameters.
    EvaluationInterrupted
        If Ctrl-C ended it after something was measured; its `report` has that.
    FitError
        If all of several models fail for other reasons. One that fails beside others is left out, and
        `Report.failed` says why; what a single model raises is raised.

    Examples
    --------
    >>> import recsys
    >>> data = recsys.load_dataset("sample")
    >>> report = recsys.evaluate(data, ["ease", ("few", recsys.EASE(1.0))], metrics="auc", folds=2)
    >>> frame = report.frame()
    >>> frame["model"].tolist(), frame["metric"].tolist()
    (['ease', 'few'], ['auc', 'auc'])
    >>> bool((frame["low"] < frame["mean"]).all() and (frame["mean"] < frame["high"]).all())
    True
    """
    if isinstance(progress, bool):
        asked = {key: value for key, value in locals().items() if key != "progress"}
        with bar(progress, QUIET) as drawn:
            return evaluate(**asked, progress=drawn)
    protocol_for(protocol, test)  # before data are read
    filter_liked = check_flag("filter_liked", filter_liked)
    data = interactions_of(data)
    protocol = protocol_for(protocol, test, data)
    if test is not None:
        data = data.with_test(test, repeats=not filter_liked)
    parsed = parsed_metrics(metrics, data)
    data = data.positive()
    names = [name for _, _, name in parsed]
    named = named_models(models)
    if keep_lists is not None:
        keep_lists = check_integer("keep_lists", keep_lists, 1)
    ranked, read = _ranked(data, filter_liked, candidates, sampled_negatives, seed)
    divided_ones = divided(data, protocol, folds, seed, only_folds)
    parts = [ranked.of(fold, number, data) for number, fold in enumerate(divided_ones)]
    check_some_ranked(parts, data)
    divisions = [part.fold for part in parts]
    way, side = find_protocol(protocol), SideInformation(data, protocol)
    results = [Result(one.label, one.params) for one in named]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{n: [] for n in names} for _ in named]
    lists: list[list[Lists]] = [[] for _ in named]
    failed: dict[str, Dropped] = {}
    stopped, where = False, ("local", 0)
    try:
        with opened(engine, workers) as runner:
            threads = threads_of(runner, threads)
            job = _Job(
                data, named, divisions, parsed, protocol, folds, seed, keep_lists, progress, threads,
                ranked, parts,
            )  # fmt: skip
            here = isinstance(runner, LocalEngine)
            where = ("local", 0) if here else (runner.name, runner.workers)
            found = job.here(runner, side) if here else job.by(runner, scratch)
            for (position, _), one in zip(job.units(here), found, strict=True):
                result = results[position]
                if isinstance(one, Dropped):
                    failed.setdefault(result.model, one)
                    continue
                result.fit_seconds += one.fit_seconds
                result.score_seconds += one.score_seconds
                result.compile_seconds += one.compile_seconds
                result.peak_mb = max(result.peak_mb, one.peak_mb)
                for name in names:
                    values[position][name].append(one.values[name])
                lists[position] += [one.lists] if one.lists else []
    except KeyboardInterrupt:  # what is measured is kept, if anything is
        if not any(folded[names[0]] for folded in values):
            raise
        stopped = True
    if progress is not None and not stopped:
        progress("done", job.total, job.total)
    reasons = {label: one.reason for label, one in failed.items()}
    check_some_left(NONE_LEFT, [one.label for one in named], failed)
    measured_ones = [k for k, result in enumerate(results) if result.model not in failed]
    notes = list(data.notes)
    if stopped:
        whole = len(divisions)
        done = {k: len(values[k][names[0]]) for k in measured_ones}
        # Models measured on all folds; if there are none, on those that all which were begun have.
        most = max(done.values()) == whole
        measured_ones = [k for k in measured_ones if done[k] and (done[k] == whole or not most)]
        missing = [one.label for k, one in enumerate(named) if k not in measured_ones]
        missing = [label for label in missing if label not in failed]
        divisions = divisions[: min(done[k] for k in measured_ones)]
        notes.append(_missing(missing, len(divisions), whole))
        for k in measured_ones:
            values[k] = {name: values[k][name][: len(divisions)] for name in names}
            lists[k] = lists[k][: len(divisions)]
    results = [results[k] for k in measured_ones]
    values, lists = [values[k] for k in measured_ones], [lists[k] for k in measured_ones]
    for result, folded, kept_ones in zip(results, values, lists, strict=True):
        for name in names:
            result.metrics[ranked.metric(name)] = metric_value(folded[name])
            result.per_user[ranked.metric(name)] = np.concatenate(folded[name])
        if kept_ones:
            result.lists = Lists(
                np.concatenate([one.ids for one in kept_ones]),
                np.concatenate([one.scores for one in kept_ones]),
            )
    parsed = [(metric, k, ranked.metric(name)) for metric, k, name in parsed]
    lines = ranked_sentences(ranked, parts[: len(divisions)], data, way.grouped, read)
    rows = evaluated(data, divisions, keep_tested=keep_lists is not None)
    report = Report(
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
        comparisons=_comparisons(results, parsed, seed, rows.users),
        notes=notes,
        cold=sum(fold.cold for fold in divisions),
        conventions=conventions(way, data, divisions, bool(lines)),
        grouped=way.grouped,
        evaluated=rows,
        per_fold=frozenset(name for metric, _, name in parsed if not metric.per_user),
        better={name: metric.better for metric, _, name in parsed},
        engine=where[0],
        workers=where[1],
        failed=reasons,
        ranked=lines,
    )
    if data.held_out is not None and not way.comes_with_data:
        report.conventions.append(
            f"The test half that the data come with is not used: {protocol} divides all interactions."
        )
    if stopped:
        raise EvaluationInterrupted(report, notes[-1])
    return report


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C ended an evaluation of which a part is done.

    Parameters
    ----------
    report : Report
        Of the models that were measured on all folds; where there are none, of those folds that all
        models have which were begun.
    message : str
        What is missing.

    Examples
    --------
    >>> import recsys
    >>> from recsys.evaluation import EvaluationInterrupted
    >>> data = recsys.load_dataset("sample")
    >>> def stop(step, done, total):
    ...     if step.startswith("ease, fold 1"):
    ...         raise KeyboardInterrupt
    >>> try:
    ...     recsys.evaluate(data, ["popularity", "ease"], metrics="auc", folds=2, progress=stop)
    ... except EvaluationInterrupted as stopped:
    ...     print(stopped, [one.model for one in stopped.report.results])
    interrupted: ease is not measured ['popularity']
    """

    def __init__(self, report: Report, message: str) -> None:
        super().__init__(message)
        self.report = report


def _ranked(
    data: Interactions, filter_liked: bool, candidates: Any, sampled_negatives: int | None, seed: int
) -> tuple[Ranked, list[str]]:
    """Return which items are to be ranked, with sentences on reading the candidates."""
    if sampled_negatives is not None:
        if candidates is not None:
            raise InputError("sampled_negatives must not be given with candidates: pass one of them")
        sampled_negatives = check_integer("sampled_negatives", sampled_negatives, 1)
    if candidates is None:
        return Ranked(filter_liked, None, sampled_negatives, seed), []
    sets, notes = candidate_sets(data, candidates)
    return Ranked(filter_liked, sets), notes


def _missing(labels: list[str], folds: int, whole: int) -> str:
    """Return what an interrupted evaluation lacks, in a line."""
    parts = []
    if labels:
        parts.append(f"{', '.join(labels)} {'is' if len(labels) == 1 else 'are'} not measured")
    if folds < whole:
        parts.append(f"{folds} of {whole} folds are measured")
    return f"interrupted: {'; '.join(parts) or 'all models are measured'}"


@dataclass(frozen=True)
class _Job:
    """Every model on every fold: here, or by the workers of an engine."""

    data: Interactions
    named: list[NamedModel]
    divisions: list[Fold]
    parsed: list[ParsedMetric]
    protocol: str
    folds: int | None
    seed: int
    keep: int | None
    progress: Progress | None
    threads: int | None
    ranked: Ranked
    parts: list[RankedFold]

    @property
    def total(self) -> int:
        return len(self.named) * len(self.divisions)

    def units(self, here: bool) -> list[tuple[int, int]]:
        """Return position of the model and number of the fold.

        In this process model by model, so that the first ones are done after an interrupt; for
        workers fold by fold, as each of them holds one fold.
        """
        models, folds = range(len(self.named)), range(len(self.divisions))
        if here:
            return [(k, number) for k in models for number in folds]
        return [(k, number) for number in folds for k in models]

    @property
    def alone(self) -> bool:
        """Whether there is only one model; its error then ends the evaluation."""
        return len(self.named) == 1

    def here(self, runner: Engine, side: SideInformation) -> Iterator[Measured | Dropped]:
        """Yield the result of each task in this process; the model's progress is reported."""
        table = self.data.item_features
        failed: dict[int, Dropped] = {}

        def one(unit: tuple[int, tuple[int, int]]) -> Measured | Dropped:
            position = unit[1][0]
            if position in failed:
                return failed[position]
            with listening(self.progress):
                found = measured_once(unit) if self.alone else attempt(lambda: measured_once(unit))
            if isinstance(found, Dropped):
                failed[position] = found
            return found

        def measured_once(unit: tuple[int, tuple[int, int]]) -> Measured:
            done, (position, number) = unit
            label, _, model = self.named[position]
            if number == 0:
                with within(f"{label}, compiling", done, self.total, part=0.0):
                    warm_up(copy.deepcopy(model), self.divisions[0], self.parsed, side, table)
            part = self.parts[number]
            with within(f"{label}, fold {number + 1}", done, self.total):
                return measure(
                    copy.deepcopy(model), self.divisions[number], self.parsed, side, table=table,
                    keep=self.keep, left_out=part.left_out if part.changed else None,
                )  # fmt: skip

        yield from runner.map(one, list(enumerate(self.units(True))), threads=self.threads)

    def by(self, runner: Engine, scratch: str | Path | None) -> Iterator[Measured | Dropped]:
        """Yield the result of each task from workers, which read the data from a file."""
        models = [sendable(label, model) for label, _, model in self.named]
        metrics, mark = tuple(name for _, _, name in self.parsed), secrets.token_hex(8)
        with scratch_folder(scratch) as folder:
            shared = share(self.data, folder / "data", uses(models), self.parsed, self.ranked.candidates)
            ranked = replace(self.ranked, candidates=None)
            units = [
                Unit(
                    Division(shared, self.protocol, self.folds, self.seed, number, ranked),
                    models[position], metrics, self.keep, f"{mark} {position}",
                )
                for position, number in self.units(False)
            ]  # fmt: skip
            work = measured if self.alone else measured_or_dropped
            for done, one in enumerate(runner.map(work, units, threads=self.threads)):
                if self.progress is not None:
                    position, number = self.units(False)[done]
                    told = f"{self.named[position].label}, fold {number + 1}"
                    self.progress(told, done + 1, self.total)
                yield one


def _comparisons(
    results: list[Result], parsed: list[ParsedMetric], seed: int, users: NDArray[np.int64]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    found: list[Comparison] = []
    for metric, _, name in parsed:
        if not metric.per_user:
            continue
        values = [result.per_user[name] for result in results]
        for i, j, comparison in compare_all(values, seed, users):
            found.append(comparison)
            pair = {"metric": name, "first": results[i].model, "second": results[j].model}
            rows.append(pair | {"better": metric.better})
    corrected = holm([comparison.p_value for comparison in found])
    found = [replace(one, p_holm=p) for one, p in zip(found, corrected, strict=True)]
    return [
        row | asdict(one) | {"differs_clearly": one.differs_clearly}
        for row, one in zip(rows, found, strict=True)
    ]
