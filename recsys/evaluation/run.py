"""Evaluation: models × folds → a report, with one way of aggregating.

Each fold gives one value per user; a metric's value is the mean over folds of the mean
over users, as the papers print it. Users without a value are counted, never averaged in.
"""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from recsys.data import Fold, Interactions, Protocol, find_protocol
from recsys.data.features import SideInformation
from recsys.data.splits import PUBLISHED, folds_of, interactions_of, protocol_for
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.evaluation.measuring import Measured, ParsedMetric, measure
from recsys.evaluation.models import ITERATIONS, NamedModel, named_models
from recsys.evaluation.report import MetricValue, Report, Result
from recsys.evaluation.significance import compare_all, holm
from recsys.utils.progress import Listener, bar, listening, within
from recsys.utils.progress import report as report_step
from recsys.utils.tasks import Dropped, attempt, check_some_left, count_jobs, picklable, run_tasks
from recsys.utils.validation import check_flag, check_integer, check_real, texts_of

# Processor seconds of a fold of 100,000 interactions, roughly: what is begun first, and the time left.
SECONDS = {
    "auto": 7.0,
    "pair-dnn": 20.0,
    "honfm": 20.0,
    "pairnet": 4.0,
    "hofm": 5.0,
    "all-subsets": 5.0,
    "blend": 5.0,
    "fm": 3.0,
    "sparse-fm": 3.0,
    "bilinear": 3.0,
    "popularity": 0.05,
}
USUAL_SECONDS = 0.5
WORTH_PROCESSES = 10.0  # processor seconds: starting processes takes some of them


def evaluate(
    data: Any,
    models: Any = ("auto", "popularity"),
    *,
    test: Any = None,
    protocol: str | None = None,
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    keep_lists: int | None = None,
    filter_liked: bool = True,
    n_jobs: int | None = None,
    budget: float | None = None,
    progress: Listener | bool | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Report:
    """Fit models on folds of the data, measure them on held-out interactions, and compare them.

    Parameters
    ----------
    data : Interactions, (users, items) matrix, table or path
        Tables and files are read by `Interactions.from_frame`.
    models : sequence, mapping of label to model, or one model
        Each a name with parameters ("auto", "cf-komd:kernel=mc,degree=2"), a ranker, a
        `Recommender`, a model of implicit, any object with `fit` and `recommend` or `scores`, a pair
        (label, model), or a mapping of label to model. Each fold fits a fresh copy.
    test : Interactions, table or path, optional
        Test interactions, matched by ids, as in `Interactions.with_test`. All other interactions are for
        training.
    protocol, folds, seed
        As in `recsys.data.split`. The default protocol is "half-profile", or "published" for data with a
        test half.
    metrics : str or sequence of str
        `NAME[@k]`, k = 10 by default; `list(recsys.evaluation.metrics.METRICS)` lists the names.
    only_folds : int, optional
        Number of folds to measure, from the first on; all by default.
    keep_lists : int ≥ 1, optional
        Length of the lists to keep, for `Report.run` and `Report.qrels`.
    filter_liked : bool
        Whether to leave out the user's training items from the ranking.
    n_jobs : int, optional
        Number of single-threaded processes for models and folds; by default one per processor, or none
        for little work. Metric values do not depend on it.
    budget : float, optional
        Seconds after which no further fit starts. The report has the folds that are finished for all its
        models.
    progress : callable or bool, optional
        Called as progress(text, done, total). True draws a bar in a terminal or a notebook.
    on_result : callable, optional
        Called with the `Result` of each model after all its folds.

    Returns
    -------
    Report
        `Report.failed` has the errors of models that fail beside others. Ctrl-C raises
        `EvaluationInterrupted`, whose `report` has the finished results.

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
    protocol_for(protocol, test)  # before data are read
    parsed, named = parsed_metrics(metrics), named_models(models)
    options: dict[str, Any] = {
        "keep": 0 if keep_lists is None else check_integer("keep_lists", keep_lists, 1),
        "filter_liked": check_flag("filter_liked", filter_liked),
    }
    if only_folds is not None:
        check_integer("only_folds", only_folds, 1, 2**31 - 1)
    if budget is not None:
        budget = check_real("budget", budget, 0.0, open_low=True)
    data = interactions_of(data)
    protocol = protocol_for(protocol, test, data)
    data = (data if test is None else data.with_test(test)).positive()
    parts = folds_of(data, protocol, folds, seed, only_folds)
    job = _Job(data, named, parts, parsed, SideInformation(data, protocol), options)
    interrupted = False
    with bar(progress is True) as drawn:
        listener = progress if callable(progress) else drawn
        try:
            job.run(n_jobs, budget, listener, on_result)
        except KeyboardInterrupt:  # finished results are kept, if there are any
            if not job.measured:
                raise
            interrupted = True
        else:
            listener("done", job.total, job.total)
    check_some_left("no model could be evaluated", [one.label for one in named], job.failed)
    if not job.measured:
        raise InputError(f"budget: no model was measured within {budget:g} seconds")
    chosen, numbers = job.common(all_folds=budget is None)
    used = [parts[number] for number in numbers]
    notes = [*data.notes, *_protocol_notes(find_protocol(protocol), data, used, options["filter_liked"])]
    others = [one.label for k, one in enumerate(named) if k not in chosen]
    missing = [label for label in others if label not in job.failed]
    said = [f"not measured: {', '.join(missing)}"] if missing else []
    if len(numbers) < len(parts):
        said.append(f"folds: {len(numbers)} of {len(parts)}")
    if interrupted or said:
        notes.append(f"{'interrupted' if interrupted else 'out of time'}: {'; '.join(said)}")
    rows = _rows(data, used, numbers)
    measured = {named[k].label: [job.measured[k][n] for n in numbers] for k in chosen}
    values = pd.DataFrame(
        {
            (label, name): np.concatenate([one.values[name] for one in of_folds])
            for label, of_folds in measured.items()
            for _, _, name in parsed
        }
    )
    report = Report(
        dataset=data.name,
        protocol=protocol,
        folds=len(numbers),
        seed=seed,
        users=data.n_users,
        items=data.n_items,
        interactions=len(data.users),
        results=[job.result(k, numbers) for k in chosen],
        comparisons=_comparisons(list(measured), parsed, values, rows.index, seed),
        definitions={name: metric.definition for metric, _, name in parsed},
        better={name: metric.better for metric, _, name in parsed},
        notes=notes,
        failed={label: one.reason for label, one in job.failed.items()},
        rows=rows,
        values=values,
        per_fold=frozenset(name for metric, _, name in parsed if not metric.per_user),
    )
    if keep_lists is not None:
        for label, of_folds in measured.items():
            ids, scores = ([one.ids for one in of_folds], [one.scores for one in of_folds])
            report.lists[label] = np.concatenate(ids), np.concatenate(scores)
        report.tested = sp.vstack([fold.test[fold.users] for fold in used], format="csr")
        report.item_ids = data.item_ids
    if interrupted:
        raise EvaluationInterrupted(report, notes[-1])
    return report


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C ended an evaluation.

    `report` has the models with all folds; without any, the folds that all started models have.
    """

    def __init__(self, report: Report, message: str) -> None:
        super().__init__(message)
        self.report = report


def parsed_metrics(metrics: str | Sequence[str]) -> list[ParsedMetric]:
    """Return the requested metrics, each once."""
    parsed = [M.parse_metric(text) for text in texts_of("metrics", metrics)]
    names = [name for _, _, name in parsed]
    if not names:
        raise InputError("pass at least one metric")
    if len(set(names)) < len(names):
        raise InputError(f"metric {max(names, key=names.count)!r} is repeated")
    return parsed


class _Task(NamedTuple):
    position: int  # of the model
    number: int  # of the fold
    work: Callable[[], Measured]
    alone: bool  # an error ends the evaluation
    deadline: float


class _OutOfTimeError(BaseException):
    """The budget is used up."""


def _measured(task: _Task) -> tuple[int, int, Measured | Dropped | None]:
    """Return the position, the fold and the measurement; None if the time is up."""
    outer = copy_context()

    def watch(*step: Any) -> None:
        if time.time() > task.deadline:
            raise _OutOfTimeError
        outer.run(report_step, *step)

    result: Measured | Dropped | None = None
    with suppress(_OutOfTimeError):
        watch("fitting", 0.0, 1)
        with listening(watch):
            result = task.work() if task.alone else attempt(task.work)
    return task.position, task.number, result


@dataclass
class _Job:
    """Every model on every fold, with the measurements so far."""

    data: Interactions
    named: list[NamedModel]
    folds: list[Fold]
    parsed: list[ParsedMetric]
    side: SideInformation
    options: dict[str, Any]  # of `measure`
    measured: dict[int, dict[int, Measured]] = field(default_factory=lambda: defaultdict(dict))
    failed: dict[str, Dropped] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total = len(self.named) * len(self.folds)
        self.scale = len(self.data.users) / 100_000
        self.seconds = [_seconds(one.model, self.scale) for one in self.named]

    def run(
        self,
        n_jobs: int | None,
        budget: float | None,
        listener: Listener,
        on_result: Callable[[Result], None] | None,
    ) -> None:
        """Measure model after model; with a budget fold after fold, the quick models first."""
        jobs = self._jobs(n_jobs)
        keys = [(k, n) for k in range(len(self.named)) for n in range(len(self.folds))]
        if budget is not None:
            keys.sort(key=lambda key: (key[1], self.seconds[key[0]]))
        elif jobs > 1:  # quick models first, then the longest, so that no process ends with it
            quick = min(self.seconds) + self.scale * USUAL_SECONDS
            keys.sort(key=lambda key: -self.seconds[key[0]] if self.seconds[key[0]] > quick else -np.inf)
        deadline = np.inf if budget is None else time.time() + budget
        share = self.total / (len(self.folds) * sum(self.seconds))
        done = 0.0

        def tasks() -> Iterator[_Task]:
            for k, n in keys:
                (label, _, model), fold = self.named[k], self.folds[n]
                if label not in self.failed:
                    model = copy.deepcopy(model) if jobs == 1 else model
                    side = self.side.of(model, fold.train)
                    work = partial(measure, model, fold, self.parsed, side, **self.options)
                    yield _Task(k, n, work, len(self.named) == 1, deadline)

        def here(task: _Task) -> Any:
            text = f"{self.named[task.position].label}, fold {task.number + 1}"
            part = share * self.seconds[task.position]
            with listening(listener), within(text, done, self.total, part):
                return _measured(task)

        results = run_tasks(here if jobs == 1 else _measured, tasks(), jobs)
        with closing(results):  # also where a listener stops it
            for k, n, result in results:
                done = min(float(self.total), done + share * self.seconds[k])
                label = self.named[k].label
                if jobs > 1:
                    listener(f"{label}, fold {n + 1}", done, self.total)
                if isinstance(result, Dropped):
                    self.failed.setdefault(label, result)
                    self.measured.pop(k, None)
                elif result is not None and label not in self.failed:
                    self.measured[k][n] = result
                    if on_result is not None and len(self.measured[k]) == len(self.folds):
                        on_result(self.result(k, range(len(self.folds))))

    def _jobs(self, n_jobs: int | None) -> int:
        if n_jobs is None:
            work = sum(self.seconds) * len(self.folds)
            if work < WORTH_PROCESSES or not all(picklable(one.model) for one in self.named):
                return 1
        return min(count_jobs(n_jobs), self.total)

    def common(self, all_folds: bool) -> tuple[list[int], list[int]]:
        """Return positions of models and numbers of folds that each of them has.

        With `all_folds` these are only the models with all folds, if there are any.
        """
        have = {k: set(of_folds) for k, of_folds in self.measured.items()}
        by_folds = sorted(have, key=lambda k: -len(have[k]))
        chosen, shared = [], have[by_folds[0]]
        least = len(shared) if all_folds and len(shared) == len(self.folds) else 1
        for k in by_folds:
            if len(shared & have[k]) >= least:
                chosen.append(k)
                shared = shared & have[k]
        return sorted(chosen), sorted(shared)

    def result(self, k: int, numbers: Sequence[int]) -> Result:
        """Return the result of a model on some folds."""
        found = [self.measured[k][n] for n in numbers]
        return Result(
            self.named[k].label,
            self.named[k].params,
            {name: MetricValue.of([one.values[name] for one in found]) for _, _, name in self.parsed},
            sum(one.fit_seconds for one in found),
            sum(one.score_seconds for one in found),
            sum(one.compile_seconds for one in found),
            max(one.peak_mb for one in found),
        )


def _seconds(model: Any, scale: float) -> float:
    """Return the processor seconds of a fold of scale × 100,000 interactions, roughly."""
    name = getattr(model, "name", "")
    seconds = scale * SECONDS.get(name, USUAL_SECONDS)
    if name in ITERATIONS:
        seconds *= model.iterations / ITERATIONS[name]
    return min(seconds, getattr(model, "budget", None) or np.inf)


def _rows(data: Interactions, folds: Sequence[Fold], numbers: Sequence[int]) -> pd.DataFrame:
    """Return the evaluated users, one row per fold and user, with their attributes."""
    users = np.concatenate([fold.users for fold in folds])
    popularity = []
    for fold in folds:
        counts = np.bincount(fold.train.indices, minlength=data.n_items).astype(np.float64)
        test = fold.test[fold.users]
        popularity.append(test @ counts / np.maximum(np.diff(test.indptr), 1))
    rows = pd.DataFrame(
        {
            "user": data.user_ids[users],
            "fold": np.repeat(np.array(numbers) + 1, [len(fold.users) for fold in folds]),
            "profile length": np.concatenate([np.diff(f.train.indptr)[f.users] for f in folds]),
            "popularity": np.concatenate(popularity),
        },
        index=users,
    )
    if data.user_features is not None:
        known = data.user_features.iloc[users].set_axis(users)
        rows = pd.concat([rows, known[[name for name in known if name not in rows]]], axis=1)
    return rows


def _protocol_notes(
    way: Protocol, data: Interactions, folds: Sequence[Fold], filter_liked: bool
) -> list[str]:
    """Return notes on training data, candidates and users left out."""
    notes = []
    if not filter_liked:
        notes.append("The users' own training items are ranked, too.")
    if way.name == PUBLISHED or way.predicts_future(data):
        notes.append(way.note)
    elif way.times:
        notes.append("There are no times: what is tested is drawn at random.")
    if data.held_out is not None and way.name != PUBLISHED:
        notes.append("The test half that the data come with is not used.")
    if notes:
        known = [np.isin(f.test[f.users].indices, f.train.indices) for f in folds]
        tests = sum(map(len, known))
        if unseen := tests - int(sum(map(np.sum, known))):
            notes.append(
                f"Items without training interactions are ranked, too; of {tests:,} test items "
                f"{unseen:,} are such."
            )
    for number, what in (
        (sum(fold.train_only for fold in folds), "nothing to predict"),
        (sum(fold.cold for fold in folds), "something to predict and nothing in training"),
    ):
        if number:
            notes.append(f"Left out, users with {what}: {number:,}.")
    return notes


def _comparisons(
    labels: list[str],
    parsed: list[ParsedMetric],
    values: pd.DataFrame,
    users: pd.Index,
    seed: int,
) -> list[dict[str, Any]]:
    pairs = [
        (name, metric.better, *pair)
        for metric, _, name in parsed
        if metric.per_user
        for pair in compare_all([values[one, name].to_numpy() for one in labels], seed, users.to_numpy())
    ]
    corrected = holm([comparison.p_value for *_, comparison in pairs])
    out = []
    for (name, better, i, j, comparison), p in zip(pairs, corrected, strict=True):
        one = replace(comparison, p_holm=p)
        head = {"metric": name, "first": labels[i], "second": labels[j], "better": better}
        out.append(head | asdict(one) | {"differs_clearly": one.differs_clearly})
    return out
