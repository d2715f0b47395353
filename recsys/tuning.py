"""Tuning: declared search spaces, Optuna, and a validation split of the training rows alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.data import Interactions, find_protocol, split
from recsys.data.splits import interactions_of, protocol_for
from recsys.errors import FitError, InputError
from recsys.evaluation import evaluate
from recsys.evaluation.metrics import parse_metric
from recsys.rankers.registry import RANKERS, list_rankers, make_ranker
from recsys.registry import format_spec, parse_spec
from recsys.utils.distribution import install_hint
from recsys.utils.tasks import Dropped, attempt, count_jobs, run_tasks
from recsys.utils.validation import check_choice, check_integer

__all__ = ["Tuned", "tunable", "tune"]


class Tuned(NamedTuple):
    """The best parameters, as text for --model, their metric value, and all trials."""

    spec: str
    params: dict[str, Any]
    value: float
    trials: list[tuple[dict[str, Any], float]]


def tunable() -> tuple[str, ...]:
    """Return the names of the rankers with a search space."""
    return tuple(name for name in list_rankers() if RANKERS.get(name).search_space)


def tune(
    data: Any,
    model: str,
    trials: int = 20,
    *,
    metric: str = "ndcg@10",
    protocol: str | None = None,
    seed: int = 0,
    storage: str | Path | None = None,
    n_jobs: int = 1,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Tuned:
    """Search the parameters of a ranker.

    Validation repeats the protocol inside the training matrix of the first fold and never reads its test
    rows: leave-one-out validates on the item before each user's last item, temporal on the last window
    before the first test. For published splits, validation uses a random fifth of each user's training
    items, or the last item if the test half is later.

    Parameters
    ----------
    data : Interactions, (users, items) matrix, table or path
    model : str
        A ranker with a search space, one of `tunable()`; parameters in `name:key=value,…` are fixed.
    trials : int ≥ 1
        Total number of trials; a resumed study runs only the missing ones.
    metric : str
        A metric, or several joined by +, which are summed.
    protocol, seed
        As of `recsys.evaluate`.
    storage : path or str, optional
        A file of the study, or the URL of an Optuna database (sqlite:///study.db), to resume or share
        the study.
    n_jobs : int
        Number of parallel trials, one process each; −1 for all processors.
    progress : callable, optional
        Called as progress(text, done, total).
    """
    check_integer("trials", trials, 1)
    name, fixed = parse_spec(model)
    check_choice("model", name, tunable())
    metrics = metric.split("+")
    for text in metrics:
        if parse_metric(text)[0].better != "more":
            raise InputError(f"metric {text!r} cannot be maximized; use another metric, such as ndcg@10")
    data = interactions_of(data)
    protocol = protocol_for(protocol, None, data)
    inner = training_part(data, protocol, seed)
    named = find_protocol(find_protocol(protocol).validation(data))
    in_time = named.predicts_future(inner)
    folds = None if named.grouped else 1

    def value(params: dict[str, Any]) -> float:
        options: dict[str, Any] = {"protocol": named.name, "metrics": metrics, "seed": seed}
        options |= {"folds": folds, "only_folds": 1, "n_jobs": 1}
        report = evaluate(inner, {name: make_ranker(name, **params)}, **options)
        total = sum(result.mean for result in report.results[0].metrics.values())
        if not np.isfinite(total):
            raise InputError("no user has a metric value")
        return float(total)

    def measured(trial: tuple[int, dict[str, Any]]) -> tuple[int, float | Dropped]:
        return trial[0], attempt(lambda: value(trial[1]))

    study = _study(f"{data.name}/{protocol}/{seed}/{metric}/{model}", storage)
    from optuna.trial import TrialState  # late: it is optional

    jobs, failed = count_jobs(n_jobs), list[Dropped]()
    while (left := trials - len(_complete(study)) - len(failed)) > 0:
        batch: list[Any] = []
        if progress is not None:
            progress(f"{name}, trial {trials - left + 1}", trials - left, trials)
        for _ in range(min(jobs, left)):
            study.sampler = _sampler(seed, len(study.trials))
            batch.append(study.ask())
            batch[-1].set_user_attr("params", _suggested(batch[-1], name, fixed, in_time))
        units = enumerate(trial.user_attrs["params"] for trial in batch)
        for number, result in run_tasks(measured, units, jobs):
            if isinstance(result, Dropped):
                failed.append(result)
                study.tell(batch[number], state=TrialState.FAIL)
            else:
                study.tell(batch[number], result)
    if progress is not None:
        progress("done", trials, trials)
    complete = [(dict(trial.user_attrs["params"]), float(trial.value)) for trial in _complete(study)]
    if not complete:
        text = f"no trial of {name} could be evaluated on {data.name}: "
        text += "; ".join(dict.fromkeys(one.reason for one in failed))
        raise InputError(text) if all(one.wrong_input for one in failed) else FitError(text)
    params, best = max(complete, key=lambda pair: pair[1])
    return Tuned(format_spec(name, params), params, best, complete)


def training_part(data: Interactions, protocol: str, seed: int) -> Interactions:
    """Return the training half of a protocol's first fold as interactions."""
    train = next(iter(split(data, protocol, seed=seed))).train.tocoo()
    pairs = train.row.astype(np.int64) * data.n_items + train.col
    keep = np.isin(np.asarray(data.users, dtype=np.int64) * data.n_items + data.items, pairs)
    names = ("users", "items", "rating", "time", "weight")
    columns: dict[str, Any] = {name: getattr(data, name) for name in names}
    columns = {name: None if column is None else column[keep] for name, column in columns.items()}
    return replace(data, held_out=None, **columns)


def _study(name: str, storage: str | Path | None) -> Any:
    """Return a study in memory, in a journal file, or in a database."""
    try:
        import optuna
    except ImportError as error:
        raise InputError(f"tuning needs Optuna: {install_hint('tune')}") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        kept: Any = storage
        if storage is not None and "://" not in str(storage):
            from optuna.storages.journal import JournalFileBackend

            kept = optuna.storages.JournalStorage(JournalFileBackend(str(Path(storage).absolute())))
        return optuna.create_study(
            study_name=name, storage=kept, load_if_exists=True, direction="maximize"
        )
    except Exception as error:  # whatever a driver, or a file that is no study, gives
        raise InputError(f"the study cannot be opened: {error}") from error


def _sampler(seed: int, number: int) -> Any:
    """Return TPE for one trial, so that a resumed study makes the same suggestions."""
    import optuna

    own = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=own, constant_liar=True)


def _complete(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.value is not None]


def _suggested(trial: Any, name: str, fixed: dict[str, Any], in_time: bool) -> dict[str, Any]:
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
