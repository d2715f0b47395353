"""One model on one fold: fitting, scoring, and a value a user; and the one way of averaging them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import compiled_at_once, compiling
from recsys.data import Fold, Interactions, split
from recsys.data.side_information import SideInformation
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.evaluation.evaluated import Lists
from recsys.evaluation.models import takes
from recsys.evaluation.report import MetricValue
from recsys.utils.progress import report
from recsys.utils.sparse import binary
from recsys.utils.topn import LOWEST
from recsys.utils.validation import check_integer, texts_of

BLOCK_BYTES = 64_000_000
LARGE = 1_000_000  # users times items from which NumPy is not the faster one for long
ParsedMetric = tuple[M.Metric, int, str]


class Measured(NamedTuple):
    """A model on a fold: a value per user of each metric, and the seconds and memory of its process."""

    values: dict[str, NDArray[np.float64]]
    lists: Lists | None
    fit_seconds: float
    score_seconds: float
    compile_seconds: float
    peak_mb: float


def interactions_of(data: Any) -> Interactions:
    """Return interactions as they are, and a table or file as `Interactions.from_frame` reads it."""
    return data if isinstance(data, Interactions) else Interactions.from_frame(data)


def divided(
    data: Interactions, protocol: str, folds: int | None, seed: int, only_folds: int | None
) -> list[Fold]:
    """Return the folds that are asked for, and refuse them where no user has an item to predict."""
    if only_folds is not None:
        check_integer("only_folds", only_folds, 1, 2**31 - 1)
    found = list(islice(split(data, protocol, folds=folds, seed=seed), only_folds))
    if data.weight is not None:  # models may learn from weights; what is predicted is binary
        found = [replace(fold, test=binary(fold.test, fold.test.dtype)) for fold in found]
    if not any(len(fold.users) for fold in found):
        cold = any(fold.cold for fold in found)
        none = "no user with a test interaction has a training interaction"
        why = none if cold else "every profile is too short"
        raise InputError(f"{data.name} leaves no user with an item to predict under {protocol}: {why}")
    return found


def parsed_metrics(metrics: str | Sequence[str], data: Interactions) -> list[ParsedMetric]:
    """Return the requested metrics, each once, before anything is fitted."""
    texts = texts_of("metrics", metrics)
    parsed = [M.parse_metric(text) for text in texts]
    names = [name for _, _, name in parsed]
    if not names:
        raise InputError("name at least one metric")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"metric {twice[0]!r} is asked for twice")
    for metric, _, _ in parsed:
        if metric.takes_feature:
            M.feature_column(data.item_features, metric.feature)
    return parsed


def warm_up(
    model: Any,
    fold: Fold,
    parsed: list[ParsedMetric],
    side: SideInformation,
    table: pd.DataFrame | None,
) -> None:
    """Compile what the model and the metrics run, on a few items of every user, untimed.

    All users are kept because a kernel's degree may be as large as their number. What is small enough
    for NumPy is not compiled.
    """
    few = np.argsort(-np.bincount(fold.train.indices, minlength=fold.train.shape[1]), kind="stable")[:12]
    train, test = fold.train[:, few], fold.test[:, few]
    if train.nnz == 0:
        return
    users = np.arange(min(200, train.shape[0]))
    fitted = None if fold.fitted is None else fold.fitted[:, few]
    small = replace(fold, train=train, test=test, fitted=fitted, users=users, train_only=0)
    large = fold.train.shape[0] * fold.train.shape[1] > LARGE
    with suppress(Exception), compiled_at_once(large):  # more factors than twelve items, say: folds tell
        measure(model, small, parsed, side, few, table=table)
        for count in (1, 2):  # serial kernels, and parallel ones for short rows
            _scores(model, users[:count], train[users[:count]], train.shape[1])


def measure(
    model: Any,
    fold: Fold,
    parsed: list[ParsedMetric],
    side: SideInformation,
    only: NDArray[np.int64] | None = None,
    *,
    table: pd.DataFrame | None = None,
    keep: int | None = None,
    seen: sp.csr_matrix | None = None,
    left_out: Callable[[NDArray[np.int64]], sp.csr_matrix] | None = None,
) -> Measured:
    """Fit a model, in place, on a fold, and measure it.

    `only` are the items that the fold has left, `table` are features of the items, for metrics about
    them, `keep` is how many items of each list are kept. `seen`, (users, items), are the interactions
    that models are given, where they are fewer than `fold.train`, whose items are not ranked in any
    case. `left_out` goes from users to the items that are not ranked for them, (users, items); their
    rows of `fold.train` when not given.
    """
    items = fold.train.shape[1]
    given = fold.train if seen is None else seen
    fitted = given if fold.fitted is None or seen is not None else fold.fitted
    known = side.of(model, fitted, only)
    # Rows that were not fitted are no rows whose times a model knows.
    timed = side.of(model, given, only).get("times") if fitted is not given else None
    if takes(model.fit, "show_progress"):
        known["show_progress"] = False
    with compiling() as compiled:
        start = time.perf_counter()
        model.fit(fitted, **known)
        fit_seconds = time.perf_counter() - start - compiled.seconds
    score_seconds, compile_seconds, peak_mb = 0.0, compiled.seconds, _resident_mb()
    if table is not None and only is not None:
        table = table.iloc[only]
    context = M.ListContext(fold.train, fold.test, fold.users, table)
    measured = M.Measurement(parsed, context, keep or 0)
    block = max(1, BLOCK_BYTES // ((4 if left_out is None else 16) * items))
    for begin in range(0, len(fold.users), block):
        chosen = fold.users[begin : begin + block]
        report("measuring", 1, 1)
        with compiling() as compiled:
            start = time.perf_counter()
            times = None if timed is None else timed[chosen]
            scores = _scores(model, chosen, given[chosen], items, times)
            score_seconds += time.perf_counter() - start - compiled.seconds
        compile_seconds += compiled.seconds
        excluded = fold.train[chosen] if left_out is None else left_out(chosen)
        measured.add(scores, excluded, fold.test[chosen])
    peak_mb = max(peak_mb, _resident_mb())
    lists = Lists(*measured.lists(keep)) if keep else None
    return Measured(measured.values(), lists, fit_seconds, score_seconds, compile_seconds, peak_mb)


def _scores(
    model: Any,
    users: NDArray[np.int64],
    train: sp.csr_matrix,
    items: int,
    times: sp.csr_matrix | None = None,
) -> NDArray[np.floating]:
    """Return scores of all items, from `scores` or (any implicit model) a full `recommend`.

    `times` are those of rows that were not fitted. Refused are another shape than asked for, and ids
    that are none.
    """
    kind, asked = type(model).__name__, (len(users), items)
    if hasattr(model, "scores"):
        given = {"times": times} if times is not None and takes(model.scores, "times") else {}
        scores = np.asarray(model.scores(users, train, **given))
        if scores.shape != asked or scores.dtype.kind not in "fiu":
            raise InputError(
                f"{kind}.scores must return numbers of shape {asked}, not {scores.shape} {scores.dtype}"
            )
        return scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)
    found = model.recommend(users, train, N=items, filter_already_liked_items=False)
    ids, best = (np.asarray(part) for part in found)
    if ids.ndim != 2 or ids.shape != best.shape or len(ids) != len(users) or ids.dtype.kind not in "iu":
        raise InputError(
            f"{kind}.recommend must return ids and scores, a row a user, not {ids.shape} "
            f"{ids.dtype} and {best.shape} for {len(users)} users"
        )
    if ids.size and ids.max() >= items:
        raise InputError(f"{kind}.recommend returned item {ids.max()} of {items}")
    out = np.full(asked, LOWEST)
    rows, cols = np.nonzero(ids >= 0)
    out[rows, ids[rows, cols]] = best[rows, cols]
    return out


def _resident_mb() -> float:
    import psutil

    return psutil.Process().memory_info().rss / 1e6


def metric_value(folds: list[NDArray[np.float64]]) -> MetricValue:
    """Average the one way there is: over users within a fold, then over folds."""
    means = [float(np.nanmean(values)) for values in folds if np.isfinite(values).any()]
    every = np.concatenate(folds)
    users = int(np.isfinite(every).sum())
    std = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    mean = float(np.mean(means)) if means else float("nan")
    return MetricValue(mean, std, means, users, len(every) - users)
