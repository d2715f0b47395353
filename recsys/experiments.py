"""Evaluation of models by their names: what `recsys.evaluation` measures, with rankers to name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recsys.data import Interactions
from recsys.data.splits import protocol_for
from recsys.engines import Engine
from recsys.evaluation import LearningCurve, Report
from recsys.evaluation import evaluate as evaluate_models
from recsys.evaluation import learning_curve as learning_curve_of_models
from recsys.evaluation.models import Models
from recsys.evaluation.run import Progress
from recsys.rankers import make_ranker
from recsys.recommender import Recommender
from recsys.utils.spec import parse_spec

__all__ = ["evaluate", "learning_curve"]


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
    progress: Progress | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    threads: int | None = None,
    scratch: str | Path | None = None,
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
        What is tested, matched by ids, as `Interactions.with_test` takes it; all else trains, and every
        item that a user has not in training is ranked.
    protocol : str, optional
        As in `recsys.data.split`: "half-profile", "half-profile-time", "leave-one-out", "next-5",
        "holdout", "temporal", "rolling", "published". When not given, "half-profile", or "published"
        with a `test`.
    folds, seed
        As in `recsys.data.split`.
    metrics : str or sequence of str
        `NAME[@k]`, k = 10 by default; `list(recsys.evaluation.metrics.METRICS)` has the names.
    only_folds : int, optional
        Measure the first so many folds only.
    keep_lists : int ≥ 1, optional
        Keep each user's first so many items, for `Report.run`, `Report.qrels` and `Report.write_trec`.
    progress : callable, optional
        Called as progress(text, done, total).
    engine : str or Engine
        Where each model is fitted on each fold: "local", "local=N" (N processes of this machine), "dask"
        or "ray", alone or with "=ADDRESS" of a cluster that runs. All figures are what they are in this
        process with as many threads; seconds and memory are the workers' own.
    workers : int ≥ 1, optional
        How many processes to start, by `engine` where it is given.
    threads : int ≥ 1, optional
        Of each worker, 1 when not given; of this process, all.
    scratch : path, optional
        A folder that all workers see, for the file that they read the data from, removed in the end; the
        system's folder for temporary files when not given.

    Returns
    -------
    Report
        With `frame()`, `plot()`, `html()`, `verdicts()` and `by(attribute)`.

    Raises
    ------
    InputError
        If nothing can be measured: no models, two of one label, an unknown name or metric, an object
        that is no model, no user with a test item; if a protocol is named beside a test half; if the
        engine is not there or a worker cannot do its part.

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
    protocol = protocol_for(protocol, test)
    found = _interactions(data)
    return evaluate_models(
        found if test is None else found.with_test(test),
        models,
        protocol=protocol,
        folds=folds,
        metrics=metrics,
        seed=seed,
        only_folds=only_folds,
        keep_lists=keep_lists,
        progress=progress,
        make=_model,
        engine=engine,
        workers=workers,
        threads=threads,
        scratch=scratch,
    )


def learning_curve(
    data: Any,
    models: Models = "auto",
    *,
    shares: Sequence[float] = (0.1, 0.25, 0.5, 1.0),
    of: str = "interactions",
    protocol: str = "half-profile",
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10"),
    seed: int = 0,
    only_folds: int | None = None,
    progress: Progress | None = None,
) -> LearningCurve:
    """Fit models on shares of the training data: `recsys.evaluation.learning_curve`, with names.

    Parameters
    ----------
    data, models, protocol, folds, metrics, seed, only_folds, progress
        As in `evaluate`.
    shares, of
        As in `recsys.evaluation.learning_curve`.

    Raises
    ------
    InputError
        As there.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> from recsys.experiments import learning_curve
    >>> curve = learning_curve(load_dataset("sample"), "ease", shares=(0.3, 1), metrics="auc", folds=2)
    >>> [row["model"] for row in curve.rows]
    ['ease', 'ease']
    """
    return learning_curve_of_models(
        _interactions(data),
        models,
        shares=shares,
        of=of,
        protocol=protocol,
        folds=folds,
        metrics=metrics,
        seed=seed,
        only_folds=only_folds,
        progress=progress,
        make=_model,
    )


def _interactions(data: Any) -> Interactions:
    return data if isinstance(data, Interactions) else Interactions.from_frame(data)


def _model(given: Any) -> Any:
    """Make a ranker of a specification, and take out the one that a recommender is made of."""
    if isinstance(given, Recommender):
        given = given.model
    if not isinstance(given, str):
        return given
    name, params = parse_spec(given)
    return make_ranker(name, **params)
