"""Tuning: declared search spaces, Optuna, and a validation split that never sees the test half."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.data import Interactions, split
from recsys.errors import InputError
from recsys.evaluation import evaluate
from recsys.rankers.serialization import make_ranker
from recsys.rankers.side_information import prepare
from recsys.utils.spec import parse_spec
from recsys.utils.validation import check_choice, check_integer

__all__ = ["SPACES", "Tuned", "tune"]

# (kind, low, high) or a tuple of choices; "log" is a real number on a logarithmic scale.
SPACES: dict[str, dict[str, Any]] = {
    "msdw": {
        "alpha": ("real", 0.0, 0.6), "locality": ("real", 0.5, 3.0), "votes": ("real", 0.0, 1.0),
        "sharpening": (0.0, 0.5, 1.0),
    },
    "slim": {"l1": ("log", 0.1, 30.0), "l2": ("log", 1.0, 1000.0)},
    "ease": {"regularization": ("log", 10.0, 5000.0)},
    "als": {
        "factors": (16, 32, 64, 128), "regularization": ("log", 0.1, 100.0), "alpha": ("log", 0.5, 40.0),
    },
    "bpr": {
        "factors": (16, 32, 64, 128), "regularization": ("log", 1e-4, 0.1),
        "learning_rate": ("log", 0.005, 0.2),
    },
    "lmf": {"factors": (8, 16, 32), "regularization": ("log", 0.01, 10.0)},
    "cf-omd": {"regularization": ("log", 1e-3, 10.0), "negative_regularization": ("log", 1.0, 1e5)},
    "ecf-omd": {"regularization": ("log", 1e-3, 10.0)},
    "cf-komd": {
        "kernel": ("linear", "hp", "tanimoto", "mc", "md"), "degree": (2, 3, 5, 10, 30, 100, 300),
        "regularization": ("log", 1e-3, 10.0), "unrated": ("kernel", "mean"),
    },
    "cf-gram": {"regularization": ("log", 1e-3, 10.0)},
    "fm": {
        "factors": (8, 16, 32), "regularization": ("log", 1e-6, 1e-3), "negatives": (1, 3, 5),
        "iterations": (15, 30, 60),
    },
    "hofm": {"factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3), "degree": (2, 3)},
    "pairnet": {"factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3), "degree": (2, 3)},
    "bilinear": {
        "factors": (8, 16, 32, 64), "regularization": ("log", 1e-6, 1e-3), "negatives": (1, 3, 5),
        "iterations": (15, 30, 60),
    },
    "all-subsets": {
        "factors": (4, 8, 16), "regularization": ("log", 1e-6, 1e-3), "loss": ("logistic", "bpr", "auc"),
    },
    "random-features": {"features": (256, 512, 1024), "regularization": ("log", 0.01, 100.0)},
}  # fmt: skip
DEGREES = ("mc", "md")  # the kernels whose degree is searched


class Tuned(NamedTuple):
    """The best parameters, as text for --model, their figure, and every trial's."""

    spec: str
    params: dict[str, Any]
    value: float
    trials: list[tuple[dict[str, Any], float]]


def tune(
    data: Interactions, model: str, trials: int = 20, *, metric: str = "ndcg@10",
    protocol: str = "half-profile", seed: int = 0, storage: str | Path | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Tuned:  # fmt: skip
    """Search a ranker's declared space.

    Validation repeats the protocol inside the first fold's training matrix: its test rows are never
    read. With the half-profile protocols use the result with the same protocol and seed.

    Parameters
    ----------
    data : Interactions
    model : str
        A ranker with a search space, a key of `SPACES`; parameters given with it,
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
        For a ranker without a space, or when Optuna is not installed.
    """
    check_integer("trials", trials, 1)
    name, fixed = parse_spec(model)
    check_choice("model", name, tuple(SPACES))
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs Optuna: pip install 'recsys[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    inner = training_part(data, protocol, seed)
    kept = None
    if storage is not None:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        kept = JournalStorage(JournalFileBackend(str(storage)))
    study = optuna.create_study(
        study_name=f"{data.name}/{protocol}/{seed}/{metric}/{model}", storage=kept, load_if_exists=True,
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed),
    )  # fmt: skip

    def objective(trial: Any) -> float:
        params = _suggested(trial, name, fixed)
        ranker = prepare(make_ranker(name, **params), inner, protocol)
        report = evaluate(
            inner, [(name, params, ranker)], protocol=protocol, metrics=metric.split("+"), seed=seed,
            only_folds=1,
        )  # fmt: skip
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
        raise InputError(f"no trial of {name} could be evaluated on {data.name}")
    params, value = max(found, key=lambda pair: pair[1])
    text = ",".join(f"{key}={value}" for key, value in params.items())
    return Tuned(f"{name}:{text}" if text else name, params, value, found)


def _finished(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.value is not None]


def _suggested(trial: Any, name: str, fixed: dict[str, Any]) -> dict[str, Any]:
    params = dict(fixed)
    for key, space in SPACES[name].items():
        if key in fixed or (key == "degree" and name == "cf-komd" and params["kernel"] not in DEGREES):
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
    columns: dict[str, Any] = {"users": data.users[keep], "items": data.items[keep]}
    if data.rating is not None:
        columns["rating"] = data.rating[keep]
    if data.time is not None:
        columns["time"] = data.time[keep]
    return replace(data, **columns)
