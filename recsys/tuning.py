"""Tuning: declared search spaces, Optuna, and a validation split of the training rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.data import Interactions, find_protocol, split
from recsys.data.splits import protocol_for
from recsys.engines import Engine, opened
from recsys.engines.local import LocalEngine
from recsys.errors import FitError, InputError
from recsys.evaluation import evaluate
from recsys.evaluation.measuring import divided, metric_value, parsed_metrics
from recsys.evaluation.metrics import parse_metric
from recsys.evaluation.shared_data import Shared, share
from recsys.evaluation.units import Division, Unit, measured, scratch_folder, threads_of
from recsys.rankers.registry import RANKERS, list_rankers, make_ranker
from recsys.utils.attempts import Dropped
from recsys.utils.shared_study import missing, one_trial, open_study, whole_name
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_choice, check_integer

__all__ = ["Tuned", "tunable", "tune"]


class Tuned(NamedTuple):
    """The best parameters, as text for --model, their metric value, and those of every trial."""

    spec: str
    params: dict[str, Any]
    value: float
    trials: list[tuple[dict[str, Any], float]]


def tunable() -> tuple[str, ...]:
    """Return the names of the rankers that declare a search space."""
    return tuple(name for name in list_rankers() if RANKERS.get(name).search_space)


def tune(
    data: Interactions, model: str, trials: int = 20, *, metric: str = "ndcg@10",
    protocol: str | None = None, seed: int = 0, storage: str | Path | None = None,
    progress: Callable[[str, int, int], Any] | None = None, engine: str | Engine = "local",
    workers: int | None = None, threads: int | None = None, scratch: str | Path | None = None,
) -> Tuned:  # fmt: skip
    """Search a ranker's declared space.

    Validation repeats the protocol inside the first fold's training matrix: its test rows are never
    read. So with leave-one-out the item before each user's last is found, with next-5 the five before
    the last five, and with temporal and rolling the last window before the first test. With the
    half-profile protocols use the result with the same protocol and seed. With published a fifth of
    each user's training items validates, at random (each user's last one, where the test half is later
    than what trains).

    Parameters
    ----------
    data : Interactions
    model : str
        A ranker with a search space, one of `tunable()`; parameters given with it,
        `name:key=value,…`, are held fixed.
    trials : int ≥ 1
        In total: a study that is resumed makes only those that are missing. Several calls at once that
        name one `storage` share them, and may make one more each.
    metric : str
        Several joined by + are summed.
    protocol : str, optional
        As of `recsys.evaluate`.
    seed : int ≥ 0
    storage : path or str, optional
        A file that keeps the study, or the URL of a data base that Optuna takes (sqlite:///study.db), to
        go on with after an interruption.
    progress : callable, optional
        Called as progress(text, done, total).
    engine, workers
        As in `recsys.engines.engine`: where trials are made. Of several workers the first ten
        trials are the same as of one; what is searched after that depends on which are finished when
        the next one begins.
    threads : int ≥ 1, optional
        Of each worker, 1 when not given; of this process, all.
    scratch : path, optional
        A folder that all workers see, for the file that they read the data from, and for the study if it
        is not kept; the system's folder for temporary files when not given.

    Raises
    ------
    InputError
        For a ranker without a space, a metric of which more is not better, or when Optuna is not
        installed, the study cannot be opened, or the engine is not there; if every trial was refused
        because of what was asked for.
    FitError
        If no trial could be evaluated for another reason. A trial that fails is left out otherwise.
    """
    check_integer("trials", trials, 1)
    name, fixed = parse_spec(model)
    check_choice("model", name, tunable())
    for text in metric.split("+"):
        if parse_metric(text)[0].better != "more":
            raise InputError(
                f"metric {text!r}: more of it is not better, and a search maximises; name "
                "another, such as ndcg@10"
            )
    protocol = protocol_for(protocol, None, data)
    inner = training_part(data, protocol, seed)
    named = find_protocol(find_protocol(protocol).validation(data))
    search = _Search(
        study=f"{data.name}/{protocol}/{seed}/{metric}/{model}",
        storage=None if storage is None else whole_name(storage), model=name, fixed=fixed,
        metrics=tuple(metric.split("+")), protocol=named.name, folds=None if named.grouped else 1,
        seed=seed, in_time=named.predicts_future(inner), trials=trials,
    )  # fmt: skip
    with opened(engine, workers) as runner, _handed(search, inner, runner, scratch) as search:
        study = open_study(search.study, search.storage, seed)
        search = search._replace(first=len(study.trials))
        refused = _make(search, study, runner, inner, threads_of(runner, threads), progress)
        finished = _finished(study)
    found = [(dict(trial.user_attrs["params"]), float(trial.value)) for trial in finished]
    if not found:
        why = "; ".join(dict.fromkeys(one.reason for one in reversed(refused)))
        text = f"no trial of {name} could be evaluated on {data.name}{': ' if why else ''}{why}"
        raise InputError(text) if all(one.wrong_input for one in refused) else FitError(text)
    params, value = max(found, key=lambda pair: pair[1])
    text = ",".join(f"{key}={value}" for key, value in params.items())
    return Tuned(f"{name}:{text}" if text else name, params, value, found)


class _Search(NamedTuple):
    """The definition of a search, as workers get it."""

    study: str
    storage: str | None
    model: str
    fixed: dict[str, Any]
    metrics: tuple[str, ...]
    protocol: str
    folds: int | None
    seed: int
    in_time: bool
    trials: int
    first: int = 0  # number of the first trial of this call
    shared: Shared | None = None  # where workers read the training rows


@contextmanager
def _handed(
    search: _Search, inner: Interactions, runner: Engine, scratch: str | Path | None
) -> Iterator[_Search]:
    """Hold what workers read: the training rows, and a study if none is kept."""
    if isinstance(runner, LocalEngine):
        yield search
        return
    divided(inner, search.protocol, search.folds, search.seed, 1)
    parsed = parsed_metrics(search.metrics, inner)
    with scratch_folder(scratch) as folder:
        shared = share(inner, folder / "data", frozenset(RANKERS.get(search.model).uses), parsed)
        yield search._replace(shared=shared, storage=search.storage or str(folder / "study.log"))


def _make(
    search: _Search, study: Any, runner: Engine, inner: Interactions, threads: int | None, progress: Any
) -> list[Dropped]:
    """Make the trials that are missing; return why trials were refused."""

    def here(search: _Search) -> Dropped | None:
        return one_trial(
            study, search.trials, search.first, lambda trial: _value(trial, search, in_memory)
        )

    def in_memory(ranker: Any) -> float:
        report = evaluate(
            inner, {search.model: ranker}, protocol=search.protocol, metrics=list(search.metrics),
            seed=search.seed, folds=search.folds, only_folds=1,
        )  # fmt: skip
        return float(sum(figure.mean for figure in report.results[0].metrics.values()))

    def tell() -> None:
        done = search.trials - missing(study, search.trials, search.first)
        if progress and done < search.trials:
            progress(f"{search.model}, trial {done + 1}", done, search.trials)

    task = here if search.shared is None else _there
    refused: list[Dropped] = []
    tell()
    while more := missing(study, search.trials, search.first):
        for why in runner.map(task, [search] * more, threads=threads):
            refused += [why] if why else []
            tell()
    if progress:
        progress("done", search.trials, search.trials)
    return refused


def _there(search: _Search) -> Dropped | None:
    """Make one trial in a worker."""
    shared = search.shared
    assert shared is not None
    division = Division(shared, search.protocol, search.folds, search.seed, 0)

    def from_file(ranker: Any) -> float:
        unit = Unit(division, ranker, search.metrics, None, shared.sha256)
        values = measured(unit).values
        return float(sum(metric_value([values[name]]).mean for name in values))

    study = _opened(search.study, str(search.storage), search.seed)
    return one_trial(study, search.trials, search.first, lambda trial: _value(trial, search, from_file))


@lru_cache(maxsize=1)
def _opened(name: str, storage: str, seed: int) -> Any:
    """Open a study once in a process: what was read of it stays known."""
    return open_study(name, storage, seed)


def _value(trial: Any, search: _Search, figure: Callable[[Any], float]) -> float:
    """Return the metric value of what a trial suggests."""
    params = _suggested(trial, search.model, search.fixed, search.in_time)
    value = figure(make_ranker(search.model, **params))
    trial.set_user_attr("params", params)
    return value


def _finished(study: Any) -> list[Any]:
    """Return the trials with a value."""
    found = [trial for trial in study.trials if trial.values]
    for trial in found:
        params = trial.user_attrs.get("params")
        if not isinstance(params, dict) or not all(
            isinstance(value, (str, int, float, bool)) or value is None for value in params.values()
        ):
            raise InputError(
                f"trial {trial.number} of the study does not say what its parameters are: it was not "
                "made by this search; name another study"
            )
    return found


def _suggested(trial: Any, name: str, fixed: dict[str, Any], in_time: bool = True) -> dict[str, Any]:
    params = dict(fixed)
    cls = RANKERS.get(name)
    for key, space in cls.search_space.items():
        if space[-1] == "times":
            if not in_time:  # where it changes nothing any value would come out as well chosen
                continue
            space = space[:-1]
        other, values = cls.searched_where.get(key, (None, ()))
        if key in fixed or (other and params.get(other, getattr(cls, other)) not in values):
            continue
        if space[0] in ("real", "log"):
            value = trial.suggest_float(key, space[1], space[2], log=space[0] == "log")
            params[key] = float(f"{value:.4g}")
        else:
            params[key] = trial.suggest_categorical(key, list(space))
    return params


def training_part(data: Interactions, protocol: str, seed: int) -> Interactions:
    """Return the training half of a protocol's first fold, as interactions of their own."""
    fold = next(iter(split(data, protocol, seed=seed)))
    train = (fold.train if fold.fitted is None else fold.fitted).tocoo()
    wanted = train.row.astype(np.int64) * data.n_items + train.col
    have = np.asarray(data.users, dtype=np.int64) * data.n_items + np.asarray(data.items)
    keep = np.isin(have, wanted)
    columns: dict[str, Any] = {"users": data.users[keep], "items": data.items[keep]}
    columns |= {"held_out": None, "repeat_time": None}
    for name in ("rating", "time", "weight"):
        column = getattr(data, name)
        columns[name] = None if column is None else column[keep]
    return replace(data, **columns)
