"""Evaluation of models by their names: what `recsys.evaluation` measures, with rankers to name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recsys.data import Interactions
from recsys.evaluation import Report
from recsys.evaluation import evaluate as evaluate_models
from recsys.evaluation.models import Models
from recsys.evaluation.run import Progress
from recsys.rankers import make_ranker
from recsys.utils.spec import parse_spec

__all__ = ["evaluate"]


def evaluate(
    data: Interactions,
    models: Models = ("auto", "popularity"),
    *,
    protocol: str = "half-profile",
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    keep_lists: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Fit models on folds of the data, measure them on what was hidden, and compare them.

    Parameters
    ----------
    data : Interactions
    models : sequence, mapping of label to model, or one model
        Each a name with parameters ("auto", "cf-komd:kernel=mc,degree=2"), a ranker, a model of
        implicit, any object with `fit` and `recommend` or `scores`, a pair (label, model), or a
        mapping of label to model. Each fold fits a fresh copy.
    protocol, folds, seed
        As in `recsys.data.split`: "half-profile", "half-profile-time", "leave-one-out", "next-5",
        "holdout", "temporal", "rolling".
    metrics : str or sequence of str
        `NAME[@k]`, k = 10 by default; `list(recsys.evaluation.metrics.METRICS)` has the names.
    only_folds : int, optional
        Measure the first so many folds only.
    keep_lists : int ≥ 1, optional
        Keep each user's first so many items, for `Report.run`, `Report.qrels` and `Report.write_trec`.
    progress : callable, optional
        Called as progress(text, done, total).

    Returns
    -------
    Report
        With `frame()`, `plot()`, `html()`, `verdicts()` and `by(attribute)`.

    Raises
    ------
    InputError
        If nothing can be measured: no models, two of one label, an unknown name or metric, an object
        that is no model, no user with a test item.

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
    return evaluate_models(
        data,
        models,
        protocol=protocol,
        folds=folds,
        metrics=metrics,
        seed=seed,
        only_folds=only_folds,
        keep_lists=keep_lists,
        progress=progress,
        make=_ranker,
    )


def _ranker(text: str) -> Any:
    name, params = parse_spec(text)
    return make_ranker(name, **params)
