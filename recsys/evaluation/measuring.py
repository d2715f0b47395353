"""One model on one fold: it is fitted and scored, and each metric gets a value for each user."""

from __future__ import annotations

import inspect
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import compiling
from recsys.data import Fold
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.evaluation.metrics.base import ListMetric, RankingMetric
from recsys.utils.progress import report
from recsys.utils.topn import LOWEST, top_n

BLOCK_BYTES = 64_000_000
ParsedMetric = tuple[M.Metric, int, str]


class Measured(NamedTuple):
    """A model on a fold: its values of each metric, lists, seconds, and the memory of the process."""

    values: dict[str, NDArray[np.float64]]  # (evaluated users,) a metric; one of the fold is repeated
    ids: NDArray[np.int32]  # (evaluated users, k): best first, −1 is padding
    scores: NDArray[np.float32]
    fit_seconds: float
    score_seconds: float
    compile_seconds: float
    peak_mb: float


def measure(
    model: Any,
    fold: Fold,
    parsed: list[ParsedMetric],
    side: dict[str, Any] | None = None,
    *,
    keep: int = 0,
    filter_liked: bool = True,
) -> Measured:
    """Fit a model, in place, on a fold, and measure it.

    `side` are further arguments of `fit`: features and times. The first `keep` items of each list are
    returned. Without `filter_liked` the items of the training rows are ranked, too.
    """
    items, given = fold.train.shape[1], dict(side or {})
    try:
        show_progress = "show_progress" in inspect.signature(model.fit).parameters
    except (TypeError, ValueError):  # compiled code has no signature: implicit's is assumed
        show_progress = True
    if show_progress:
        given["show_progress"] = False
    fit_compiling: list[float] = []
    score_compiling: list[float] = []
    start = time.perf_counter()
    with compiling(fit_compiling.append):
        model.fit(fold.train, **given)
    fit_seconds = time.perf_counter() - start - sum(fit_compiling)
    score_seconds, peak_mb = 0.0, _resident_mb()
    rankings = [one for one in parsed if isinstance(one[0], RankingMetric)]
    lists = [(metric, k, name) for metric, k, name in parsed if isinstance(metric, ListMetric)]
    depth = min(items, max([keep, *(k for _, k, _ in lists)]))
    ids = np.empty((len(fold.users), depth), dtype=np.int32)
    best = np.empty(ids.shape, dtype=np.float32)
    table = np.empty((len(fold.users), len(rankings)))
    block = max(1, BLOCK_BYTES // (4 * items))
    for begin in range(0, len(fold.users), block):
        rows = slice(begin, begin + block)
        users = fold.users[rows]
        seen = fold.train[users]
        report("measuring", 1, 1)
        start = time.perf_counter()
        with compiling(score_compiling.append):
            scores = _scores(model, users, seen, items)
        score_seconds += time.perf_counter() - start
        if not np.isfinite(scores).all():
            raise InputError("scores contain NaN or infinity")
        excluded = seen if filter_liked else sp.csr_matrix(seen.shape, dtype=seen.dtype)
        if rankings:
            table[rows] = M.ranking_values(rankings, scores, excluded, fold.test[users])
        if depth:
            every = np.ones(items, dtype=np.uint8)
            ids[rows], best[rows] = top_n(scores, excluded, depth, True, every)
    peak_mb = max(peak_mb, _resident_mb())
    values = {name: table[:, column] for column, (_, _, name) in enumerate(rankings)}
    context = M.ListContext(fold.train, fold.test, fold.users)
    for metric, k, name in lists:
        value = metric.measure(ids[:, :k], context)
        values[name] = np.broadcast_to(np.asarray(value, dtype=np.float64), len(ids)).copy()
    compile_seconds = sum(fit_compiling + score_compiling)
    seconds = (fit_seconds, score_seconds - sum(score_compiling), compile_seconds)
    return Measured(values, ids[:, :keep], best[:, :keep], *seconds, peak_mb)


def _scores(
    model: Any, users: NDArray[np.int64], train: sp.csr_matrix, items: int
) -> NDArray[np.floating]:
    """Return scores of all items, from `scores` or (any implicit model) a full `recommend`."""
    kind, shape = type(model).__name__, (len(users), items)
    if hasattr(model, "scores"):
        scores = np.asarray(model.scores(users, train))
        if scores.shape != shape or scores.dtype.kind not in "fiu":
            raise InputError(
                f"{kind}.scores must return numbers of shape {shape}, not {scores.shape} {scores.dtype}"
            )
        return scores if scores.dtype in (np.float32, np.float64) else scores.astype(np.float64)
    found = model.recommend(users, train, N=items, filter_already_liked_items=False)
    ids, best = (np.asarray(part) for part in found)
    if ids.ndim != 2 or ids.shape != best.shape or len(ids) != len(users) or ids.dtype.kind not in "iu":
        raise InputError(
            f"{kind}.recommend must return ids and scores with one row per user, not "
            f"{ids.shape} {ids.dtype} and {best.shape} for {len(users)} users"
        )
    if ids.size and ids.max() >= items:
        raise InputError(f"{kind}.recommend returned item {ids.max()} of {items}")
    out = np.full(shape, LOWEST)
    rows, cols = np.nonzero(ids >= 0)
    out[rows, ids[rows, cols]] = best[rows, cols]
    return out


def _resident_mb() -> float:
    import psutil

    return psutil.Process().memory_info().rss / 1e6
