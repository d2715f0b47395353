"""Evaluation: models × folds → a report, with one way of aggregating.

Each fold gives one value per user; a metric's figure is the mean over folds of the mean
over users, as the papers print it. Users without a value are counted, never averaged in.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import compiling
from recsys.data import Interactions, find_protocol, split
from recsys.data.side_information import SideInformation
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.evaluation.conventions import conventions
from recsys.evaluation.report import Figure, Report, Result
from recsys.evaluation.significance import Comparison, compare_all, holm

BLOCK_BYTES = 64_000_000
Progress = Callable[[str, int, int], None]


class Model(Protocol):
    """What can be evaluated: implicit's `fit`, and `scores` or `recommend`."""

    def fit(self, user_items: Any, show_progress: bool = ..., callback: Any = ...) -> Any:
        """Fit on a (users, items) matrix."""


def evaluate(
    data: Interactions,
    models: Sequence[tuple[str, dict[str, Any], Model]],
    *,
    protocol: str = "half-profile",
    folds: int | None = None,
    metrics: Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Fit every model on every fold and measure it.

    Parameters
    ----------
    data : Interactions
    models : sequence of (label, parameters, unfitted model)
        Labels must differ. Each fold fits a fresh copy, with the side information that there is and
        the model uses; times only where the protocol predicts the future, and of training rows only.
    protocol, folds, seed
        As in `recsys.data.split`.
    metrics : sequence of str
        `NAME[@k]`.
    only_folds : int, optional
        Measure the first so many folds only, as a validation does that cannot afford all.
    progress : callable, optional
        Called as progress(text, done, total).

    Raises
    ------
    InputError
        If nothing can be measured: no models, unknown metric, no user with a test item.
    """
    parsed = [M.parse_metric(text) for text in metrics]
    names = [name for _, _, name in parsed]
    labels = [label for label, _, _ in models]
    for what, given in (("model", labels), ("metric", names)):
        if not given:
            raise InputError(f"name at least one {what}")
        twice = sorted({name for name in given if given.count(name) > 1})
        if twice:
            raise InputError(f"{what} {twice[0]!r} is asked for twice")
    divisions = list(islice(split(data, protocol, folds=folds, seed=seed), only_folds))
    if not any(len(fold.users) for fold in divisions):
        cold = any(fold.cold for fold in divisions)
        why = "who has one has none before it" if cold else "every profile is too short"
        raise InputError(f"{data.name} leaves no user with an item to predict under {protocol}: {why}")
    named, side = find_protocol(protocol), SideInformation(data, protocol)
    results = [Result(label, params) for label, params, _ in models]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{n: [] for n in names} for _ in models]
    total, done = len(models) * len(divisions), 0
    for label, _, model in models:
        if progress:
            progress(f"{label}, compiling", done, total)
        _warm_up(copy.deepcopy(model), divisions[0], parsed, side)
    for number, fold in enumerate(divisions, 1):
        for position, (label, _, model) in enumerate(models):
            if progress:
                progress(f"{label}, fold {number}", done, total)
            per_metric = _measure(copy.deepcopy(model), fold, parsed, results[position], side)
            for name in names:
                values[position][name].append(per_metric[name])
            done += 1
    if progress:
        progress("done", total, total)
    for result, folded in zip(results, values, strict=True):
        for name in names:
            result.metrics[name] = _figure(folded[name])
            result.per_user[name] = np.concatenate(folded[name])
    return Report(
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
        comparisons=_comparisons(results, [name for metric, _, name in parsed if metric.per_user], seed),
        notes=list(data.notes),
        cold=sum(fold.cold for fold in divisions),
        conventions=conventions(named, data, divisions),
        grouped=named.grouped,
    )


def _warm_up(
    model: Any, fold: Any, parsed: list[tuple[M.Metric, int, str]], side: SideInformation
) -> None:
    """Compile what the model and the metrics run, on a few items of every user, untimed.

    All users are kept because a kernel's degree may be as large as their number.
    """
    few = np.argsort(-np.bincount(fold.train.indices, minlength=fold.train.shape[1]), kind="stable")[:12]
    train, test = fold.train[:, few], fold.test[:, few]
    if train.nnz == 0:
        return
    users = np.arange(min(200, train.shape[0]))
    small = replace(fold, train=train, test=test, users=users, train_only=0)
    _measure(model, small, parsed, Result("", {}), side, few)
    for count in (1, 2):  # serial kernels, and parallel ones for short rows
        _scores(model, users[:count], train[users[:count]], train.shape[1])


def _measure(
    model: Any,
    fold: Any,
    parsed: list[tuple[M.Metric, int, str]],
    result: Result,
    side: SideInformation,
    only: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[np.float64]]:
    users, items = fold.train.shape
    known = side.of(model, fold.train, only)
    with compiling() as compiled:
        start = time.perf_counter()
        model.fit(fold.train, show_progress=False, **known)
        result.fit_seconds += time.perf_counter() - start - compiled.seconds
    result.compile_seconds += compiled.seconds
    result.peak_mb = max(result.peak_mb, _resident_mb())
    measured = M.Measurement(parsed, M.ListContext(fold.train, fold.test, fold.users))
    block = max(1, BLOCK_BYTES // (4 * items))
    for begin in range(0, len(fold.users), block):
        chosen = fold.users[begin : begin + block]
        train, test = fold.train[chosen], fold.test[chosen]
        with compiling() as compiled:
            start = time.perf_counter()
            scores = _scores(model, chosen, train, items)
            result.score_seconds += time.perf_counter() - start - compiled.seconds
        result.compile_seconds += compiled.seconds
        measured.add(scores, train, test)
    result.peak_mb = max(result.peak_mb, _resident_mb())
    return measured.values()


def _scores(
    model: Any, users: NDArray[np.int64], train: sp.csr_matrix, items: int
) -> NDArray[np.float32]:
    """Return scores of all items, from `scores` or (any implicit model) a full `recommend`."""
    if hasattr(model, "scores"):
        return model.scores(users, train)
    ids, best = model.recommend(users, train, N=items, filter_already_liked_items=False)
    out = np.full((len(users), items), np.float32(np.finfo(np.float32).min))
    rows, cols = np.nonzero(ids >= 0)
    out[rows, ids[rows, cols]] = best[rows, cols]
    return out


def _resident_mb() -> float:
    import psutil

    return psutil.Process().memory_info().rss / 1e6


def _figure(folds: list[NDArray[np.float64]]) -> Figure:
    """Average the one way there is: over users within a fold, then over folds."""
    means = [float(np.nanmean(values)) for values in folds if np.isfinite(values).any()]
    every = np.concatenate(folds)
    users = int(np.isfinite(every).sum())
    std = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    mean = float(np.mean(means)) if means else float("nan")
    return Figure(mean, std, means, users, len(every) - users)


def _comparisons(results: list[Result], names: list[str], seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    found: list[Comparison] = []
    for name in names:
        for i, j, comparison in compare_all([result.per_user[name] for result in results], seed):
            found.append(comparison)
            rows.append({"metric": name, "first": results[i].model, "second": results[j].model})
    corrected = holm([comparison.p_value for comparison in found])
    return [
        row | asdict(replace(comparison, p_holm=p)) | {"told_apart": comparison.told_apart}
        for row, comparison, p in zip(rows, found, corrected, strict=True)
    ]
