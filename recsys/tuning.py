"""Tuning: declared search spaces, Optuna, and a validation split of the training rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.data import Interactions, find_protocol, split
from recsys.errors import InputError
from recsys.evaluation import evaluate
from recsys.evaluation.metrics import parse_metric
from recsys.rankers.registry import RANKERS, list_rankers, make_ranker
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_choice, check_integer

__all__ = ["Tuned", "tunable", "tune"]


class Tuned(NamedTuple):
    """The best parameters, as text for --model, their figure, and every trial's."""

    spec: str
    params: dict[str, Any]
    value: float
    trials: list[tuple[dict[str, Any], float]]


def tunable() -> tuple[str, ...]:
    """Return the names of the rankers that declare a search space."""
    return tuple(name for name in list_rankers() if RANKERS.get(name).search_space)


def tune(
    data: Interactions, model: str, trials: int = 20, *, metric: str = "ndcg@10",
    protocol: str = "half-profile", seed: int = 0, storage: str | Path | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
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
        In total; a study that is gone on with makes only those that are missing.
    metric : str
        Several joined by + are summed.
    protocol : str
    seed : int ≥ 0
    storage : path, optional
        A file that keeps the study, to go on with after an interruption.
    progress : callable, optional
        Called as progress(text, done, total).

    Raises
    ------
    InputError
        For a ranker without a space, a metric of which more is not better, or when Optuna is not
        installed.
    """
    check_integer("trials", trials, 1)
    name, fixed = parse_spec(model)
    check_choice("model", name, tunable())
    for text in metric.split("+"):
        if parse_metric(text)[0].better != "more":
            raise InputError(
                f"metric {text!r}: more of it is not better, and a search raises a figure; name "
                "another, such as ndcg@10"
            )
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs Optuna: pip install 'recsys[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    inner = training_part(data, protocol, seed)
    named = find_protocol(find_protocol(protocol).validation(data))
    in_time = named.predicts_future(inner)
    kept = None
    if storage is not None:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        kept = JournalStorage(JournalFileBackend(str(storage)))
    study = optuna.create_study(
        study_name=f"{data.name}/{protocol}/{seed}/{metric}/{model}", storage=kept, load_if_exists=True,
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed),
    )  # fmt: skip

    refused: list[str] = []

    def objective(trial: Any) -> float:
        params = _suggested(trial, name, fixed, in_time)
        try:
            ranker = make_ranker(name, **params)
            report = evaluate(
                inner, {name: ranker}, protocol=named.name, metrics=metric.split("+"), seed=seed,
                folds=None if named.grouped else 1, only_folds=1,
            )  # fmt: skip
        except InputError as error:
            refused.append(str(error))
            raise
        trial.set_user_attr("params", params)
        return float(sum(figure.mean for figure in report.results[0].metrics.values()))

    done = len(_finished(study))
    while done < trials:
        if progress:
            progress(f"{name}, trial {done + 1}", done, trials)
        study.optimize(objective, n_trials=1, catch=(InputError,))
        done += 1
    if progress:
        progress("done", trials, trials)
    found = [(dict(trial.user_attrs["params"]), float(trial.value)) for trial in _finished(study)]
    if not found:
        why = f": {refused[-1]}" if refused else ""
        raise InputError(f"no trial of {name} could be evaluated on {data.name}{why}")
    params, value = max(found, key=lambda pair: pair[1])
    text = ",".join(f"{key}={value}" for key, value in params.items())
    return Tuned(f"{name}:{text}" if text else name, params, value, found)


def _finished(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.value is not None]


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
    """Return what the first fold of a protocol trains on, as interactions of their own."""
    fold = next(iter(split(data, protocol, seed=seed)))
    train = fold.train.tocoo()
    wanted = train.row.astype(np.int64) * data.n_items + train.col
    have = np.asarray(data.users, dtype=np.int64) * data.n_items + np.asarray(data.items)
    keep = np.isin(have, wanted)
    columns: dict[str, Any] = {"users": data.users[keep], "items": data.items[keep], "held_out": None}
    if data.rating is not None:
        columns["rating"] = data.rating[keep]
    if data.time is not None:
        columns["time"] = data.time[keep]
    return replace(data, **columns)
