"""Evaluation: models × folds → a report, with one way of aggregating.

Each fold gives one value per user; a metric's figure is the mean over folds of the mean
over users, as the papers print it. Users without a value are counted, never averaged in.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import compiling
from recsys.data import Fold, Interactions, find_protocol, split
from recsys.data.side_information import SideInformation
from recsys.errors import InputError
from recsys.evaluation import metrics as M
from recsys.evaluation.conventions import conventions
from recsys.evaluation.evaluated import Lists, evaluated
from recsys.evaluation.models import Make, Models, named_models, takes
from recsys.evaluation.report import Figure, Report, Result
from recsys.evaluation.significance import Comparison, compare_all, holm
from recsys.utils.progress import Listener, listening, report, within
from recsys.utils.topn import LOWEST
from recsys.utils.validation import check_integer

BLOCK_BYTES = 64_000_000
Progress = Listener
Asked = tuple[M.Metric, int, str]


def evaluate(
    data: Interactions,
    models: Models,
    *,
    protocol: str = "half-profile",
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10", "map@10"),
    seed: int = 0,
    only_folds: int | None = None,
    keep_lists: int | None = None,
    progress: Progress | None = None,
    make: Make | None = None,
) -> Report:
    """Fit every model on every fold and measure it; `recsys.evaluate` does, and takes names, too.

    Parameters
    ----------
    data : Interactions
    models : sequence, mapping of label to model, or one model
        As `named_models` takes them: rankers, models of implicit, objects with `fit` and `recommend` or
        `scores`, pairs (label, model). Each fold fits a fresh copy, with the side information that
        there is and the model uses; times only where the protocol predicts the future, and of
        training rows only.
    protocol, folds, seed
        As in `recsys.data.split`.
    metrics : sequence of str
        `NAME[@k]`.
    only_folds : int, optional
        Measure the first so many folds only, as a validation does that cannot afford all.
    keep_lists : int ≥ 1, optional
        Keep each user's first so many items, for `Report.run`, `Report.qrels` and `Report.write_trec`.
    progress : callable, optional
        Called as progress(text, done, total).
    make : callable, optional
        What makes a model of a name.

    Raises
    ------
    InputError
        If nothing can be measured: no models, unknown metric, no user with a test item.
    """
    parsed = parsed_metrics(metrics, data)
    names = [name for _, _, name in parsed]
    named = named_models(models, make)
    if keep_lists is not None:
        keep_lists = check_integer("keep_lists", keep_lists, 1)
    divisions = divided(data, protocol, folds, seed, only_folds)
    way, side = find_protocol(protocol), SideInformation(data, protocol)
    results = [Result(one.label, one.params) for one in named]
    values: list[dict[str, list[NDArray[np.float64]]]] = [{n: [] for n in names} for _ in named]
    lists: list[list[Lists]] = [[] for _ in named]
    total, done = len(named) * len(divisions), 0
    for label, _, model in named:
        with listening(progress), within(f"{label}, compiling", done, total, part=0.0):
            _warm_up(copy.deepcopy(model), divisions[0], parsed, side, data.item_features)
    for number, fold in enumerate(divisions, 1):
        for position, (label, _, model) in enumerate(named):
            with listening(progress), within(f"{label}, fold {number}", done, total):
                per_metric, kept = measure(
                    copy.deepcopy(model),
                    fold,
                    parsed,
                    results[position],
                    side,
                    table=data.item_features,
                    keep=keep_lists,
                )
            for name in names:
                values[position][name].append(per_metric[name])
            lists[position] += [kept] if kept else []
            done += 1
    if progress is not None:
        progress("done", total, total)
    for result, folded, kept_ones in zip(results, values, lists, strict=True):
        for name in names:
            result.metrics[name] = figure_of(folded[name])
            result.per_user[name] = np.concatenate(folded[name])
        if kept_ones:
            result.lists = Lists(
                np.concatenate([one.ids for one in kept_ones]),
                np.concatenate([one.scores for one in kept_ones]),
            )
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
        comparisons=_comparisons(results, parsed, seed),
        notes=list(data.notes),
        cold=sum(fold.cold for fold in divisions),
        conventions=conventions(way, data, divisions),
        grouped=way.grouped,
        evaluated=evaluated(data, divisions, keep_tested=keep_lists is not None),
        whole=frozenset(name for metric, _, name in parsed if not metric.per_user),
        better={name: metric.better for metric, _, name in parsed},
    )


def divided(
    data: Interactions, protocol: str, folds: int | None, seed: int, only_folds: int | None
) -> list[Fold]:
    """Return the folds that are asked for.

    Raises
    ------
    InputError
        If none is, or no user has an item to predict.
    """
    if only_folds is not None:
        check_integer("only_folds", only_folds, 1)
    found = list(islice(split(data, protocol, folds=folds, seed=seed), only_folds))
    if not any(len(fold.users) for fold in found):
        cold = any(fold.cold for fold in found)
        why = "who has one has none before it" if cold else "every profile is too short"
        raise InputError(f"{data.name} leaves no user with an item to predict under {protocol}: {why}")
    return found


def parsed_metrics(metrics: str | Sequence[str], data: Interactions) -> list[Asked]:
    """Return what is asked for, each once, before anything is fitted.

    Raises
    ------
    InputError
        If the data are none, there is no such metric, it is asked for twice, or the items do not have
        what it is about.
    """
    if not isinstance(data, Interactions):
        raise InputError(
            f"data must be Interactions, not {type(data).__name__}: make them of a table by "
            "Interactions.from_frame(table, user=…, item=…)"
        )
    texts = [metrics] if isinstance(metrics, str) else list(metrics)
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


def _warm_up(
    model: Any,
    fold: Fold,
    parsed: list[Asked],
    side: SideInformation,
    table: pd.DataFrame | None,
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
    try:
        measure(model, small, parsed, Result("", {}), side, few, table=table)
        for count in (1, 2):  # serial kernels, and parallel ones for short rows
            _scores(model, users[:count], train[users[:count]], train.shape[1])
    except Exception:  # more factors than twelve items, say: the folds will tell
        return


def measure(
    model: Any,
    fold: Fold,
    parsed: list[Asked],
    result: Result,
    side: SideInformation,
    only: NDArray[np.int64] | None = None,
    *,
    table: pd.DataFrame | None = None,
    keep: int | None = None,
    seen: sp.csr_matrix | None = None,
) -> tuple[dict[str, NDArray[np.float64]], Lists | None]:
    """Fit a model on a fold and measure it.

    Parameters
    ----------
    model : Model
        Unfitted; it is fitted in place.
    fold : Fold
    parsed : list of (Metric, k, name)
    result : Result
        Its seconds and memory are added to.
    side : SideInformation
    only : (n,) int, optional
        The only items that the fold has left.
    table : DataFrame, optional
        Features of the items, for metrics about them.
    keep : int, optional
        How many items of each list are kept.
    seen : (users, items) CSR, optional
        What models are given, if that is less than what they cannot be asked for: `fold.train`.

    Returns
    -------
    values : dict of str to (evaluated users,) float64
    lists : Lists, or None where none are kept
    """
    items = fold.train.shape[1]
    given = fold.train if seen is None else seen
    known = side.of(model, given, only)
    if takes(model.fit, "show_progress"):
        known["show_progress"] = False
    with compiling() as compiled:
        start = time.perf_counter()
        model.fit(given, **known)
        result.fit_seconds += time.perf_counter() - start - compiled.seconds
    result.compile_seconds += compiled.seconds
    result.peak_mb = max(result.peak_mb, _resident_mb())
    if table is not None and only is not None:
        table = table.iloc[only]
    context = M.ListContext(fold.train, fold.test, fold.users, table)
    measured = M.Measurement(parsed, context, keep or 0)
    block = max(1, BLOCK_BYTES // (4 * items))
    for begin in range(0, len(fold.users), block):
        chosen = fold.users[begin : begin + block]
        report("measuring", 1, 1)
        with compiling() as compiled:
            start = time.perf_counter()
            scores = _scores(model, chosen, given[chosen], items)
            result.score_seconds += time.perf_counter() - start - compiled.seconds
        result.compile_seconds += compiled.seconds
        measured.add(scores, fold.train[chosen], fold.test[chosen])
    result.peak_mb = max(result.peak_mb, _resident_mb())
    return measured.values(), Lists(*measured.lists(keep)) if keep else None


def _scores(
    model: Any, users: NDArray[np.int64], train: sp.csr_matrix, items: int
) -> NDArray[np.floating]:
    """Return scores of all items, from `scores` or (any implicit model) a full `recommend`.

    Raises
    ------
    InputError
        If they are of another shape than asked for, or an id is none.
    """
    kind, asked = type(model).__name__, (len(users), items)
    if hasattr(model, "scores"):
        scores = np.asarray(model.scores(users, train))
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


def figure_of(folds: list[NDArray[np.float64]]) -> Figure:
    """Average the one way there is: over users within a fold, then over folds."""
    means = [float(np.nanmean(values)) for values in folds if np.isfinite(values).any()]
    every = np.concatenate(folds)
    users = int(np.isfinite(every).sum())
    std = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
    mean = float(np.mean(means)) if means else float("nan")
    return Figure(mean, std, means, users, len(every) - users)


def _comparisons(results: list[Result], parsed: list[Asked], seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    found: list[Comparison] = []
    for metric, _, name in parsed:
        if not metric.per_user:
            continue
        for i, j, comparison in compare_all([result.per_user[name] for result in results], seed):
            found.append(comparison)
            pair = {"metric": name, "first": results[i].model, "second": results[j].model}
            rows.append(pair | {"better": metric.better})
    corrected = holm([comparison.p_value for comparison in found])
    return [
        row | asdict(replace(comparison, p_holm=p)) | {"told_apart": comparison.told_apart}
        for row, comparison, p in zip(rows, found, corrected, strict=True)
    ]
