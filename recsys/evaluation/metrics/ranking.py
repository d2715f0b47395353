"""Metrics of rankings: one value per user, ties resolved by exact expectation.

Every metric takes scores (users, items) or ranked ids (users, N), and the train and test
rows of the same users. Candidates are the items outside a user's train row; positives are
its test items. Where scores tie, the value is the expectation over all orders of the tied
items, so that a constant scorer gets what chance gets, whatever the items' order.
A user without positives (or, for AUC, without negatives) has the value NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import METRICS, Metric, Normalize, RankingMetric, check_ranked
from recsys.evaluation.metrics.expectation import (
    ANY_HIT,
    DISCOUNTED_HITS,
    HITS,
    PAIRS,
    PRECISION_AT_HITS,
    RECIPROCAL_RANK,
    expected_gains,
)
from recsys.utils.validation import as_array, check_choice, check_integer, clean_matrix

Measure = Callable[..., NDArray[np.float64]]


def ranking_values(
    parsed: Sequence[tuple[Metric, int, str]],
    scores: NDArray[np.floating],
    train: sp.csr_matrix,
    test: sp.csr_matrix,
) -> NDArray[np.float64]:
    """Return several metrics in one pass over the scores: (users, metrics) float64.

    `parsed` are as `parse_metric` returns them, `scores`, `train` and `test` as in `expected_gains`.
    """
    for metric, _, name in parsed:
        if not isinstance(metric, RankingMetric):
            raise InputError(f"metric {name!r} is a metric of lists, not of rankings")
    metrics: list[Any] = [metric for metric, _, _ in parsed]
    gains = np.array([metric.gain for metric in metrics], dtype=np.int64)
    cuts = np.array([k for _, k, _ in parsed], dtype=np.int64)
    out, positives = expected_gains(gains, cuts, scores, train, test)
    positives = np.maximum(positives, 1)  # without one the gain is NaN already
    for column, metric in enumerate(metrics):
        out[:, column] = metric.normalize(out[:, column], int(cuts[column]), positives)
    return out


def ranking_metric(
    name: str,
    definition: str,
    gain: int,
    normalize: Normalize = lambda total, k, positives: total,
    *,
    cutoff: bool = True,
) -> Measure:
    """Register a metric: its gain, divided by what depends on k and the positives.

    Return the function that measures it alone.
    """
    metric = RankingMetric(name, definition, cutoff=cutoff, gain=gain, normalize=normalize)
    METRICS.add(name)(metric)

    def measure(
        ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
    ) -> NDArray[np.float64]:
        check_integer("k", k, 1)
        train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
        scores = _as_scores(ranking, test.shape)
        return ranking_values([(metric, k, name)], scores, train, test)[:, 0]

    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = f"""Return the metric {name} of each user: {definition}.

    Parameters
    ----------
    ranking : (users, items) float scores, or (users, N) int ranked ids
        Missing ids tie below the listed ones.
    train, test : (users, items) CSR
        Rows of the same users.
    k : int ≥ 1
        Length of the list, for metrics with a cutoff.

    Returns
    -------
    (users,) float64
    """
    return measure


def _over_ideal(total: NDArray, k: int, positives: NDArray) -> NDArray:
    gains = np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))
    return total / gains[np.minimum(k, positives) - 1]


auc = ranking_metric(
    "auc",
    "share of (positive, negative) pairs ranked right, ties one half; train items in neither set",
    PAIRS,
    cutoff=False,
)
ndcg = ranking_metric(
    "ndcg",
    "DCG over the ideal DCG at min(k, positives), gain 1, discount log2(rank + 1)",
    DISCOUNTED_HITS,
    _over_ideal,
)
_map = ranking_metric(
    "map",
    "average precision at k, divided by min(k, positives)",
    PRECISION_AT_HITS,
    lambda total, k, positives: total / np.minimum(k, positives),
)
_map_full = ranking_metric(
    "map-full",
    "average precision at k, divided by all positives (the thesis' (3.5), trec_eval)",
    PRECISION_AT_HITS,
    lambda total, k, positives: total / positives,
)
precision = ranking_metric(
    "precision",
    "positives among the first k, divided by k",
    HITS,
    lambda total, k, positives: total / k,
)
recall = ranking_metric(
    "recall",
    "positives among the first k, divided by all positives",
    HITS,
    lambda total, k, positives: total / positives,
)
hit_rate = ranking_metric("hit", "1 if a positive is among the first k", ANY_HIT)
mrr = ranking_metric("mrr", "one over the rank of the first positive within k, else 0", RECIPROCAL_RANK)


def average_precision(
    ranking: ArrayLike,
    train: sp.csr_matrix,
    test: sp.csr_matrix,
    k: int = 10,
    normalizer: str = "positives",
) -> NDArray[np.float64]:
    """Return AP@k of each user, over the positives (3.5), or over min(k, positives) for "min"."""
    check_choice("normalizer", normalizer, ("positives", "min"))
    measure = _map if normalizer == "min" else _map_full
    return measure(ranking, train, test, k)


def _as_scores(ranking: ArrayLike, shape: tuple[int, int]) -> NDArray[np.floating]:
    """Turn ranked ids into scores; an id not listed ties with all others below the list."""
    array = np.atleast_2d(as_array("a ranking", ranking))
    if array.dtype.kind == "f":
        return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
    ids = check_ranked(array, shape[1])
    if len(ids) != shape[0]:
        raise InputError(f"lists: {len(ids)}, users: {shape[0]}; pass one list per user")
    rows, places = np.nonzero(ids >= 0)
    out = np.zeros(shape, dtype=np.float32)
    out[rows, ids[rows, places]] = ids.shape[1] - places
    return out
