"""Metrics of rankings: one value per user, ties resolved by exact expectation.

Every metric takes scores (users, items) or ranked ids (users, N), and the train and test
rows of the same users. Candidates are the items outside a user's train row; positives are
its test items. Where scores tie, the value is the expectation over all orders of the tied
items, so that a constant scorer gets what chance gets, whatever the items' order.
A user without positives (or, for AUC, without negatives) has the value NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import (
    METRICS,
    Metric,
    RankingMetric,
    check_ranked,
    ranking_metric,
)
from recsys.evaluation.metrics.expectation import (
    ANY_HIT,
    DISCOUNTED_HITS,
    HITS,
    PAIRS,
    PRECISION_AT_HITS,
    RECIPROCAL_RANK,
    expected_gains,
)
from recsys.utils.features import as_array
from recsys.utils.validation import check_choice, check_integer, clean_matrix


def _over_ideal(total: NDArray, k: int, positives: NDArray) -> NDArray:
    gains = np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))
    return total / gains[np.minimum(k, positives) - 1]


@ranking_metric(
    "auc",
    "share of (positive, negative) pairs ranked right, ties one half; train items in neither set",
    PAIRS,
    lambda total, k, positives: total,
    cutoff=False,
)
def auc(ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix) -> NDArray[np.float64]:
    """Return the exact AUC of each user; tied pairs count one half.

    Parameters
    ----------
    ranking : (users, items) float scores, or (users, N) int ranked ids
        Missing ids tie below the listed ones.
    train, test : (users, items) CSR
        Rows of the same users.

    Returns
    -------
    (users,) float64

    Notes
    -----
    Source: Polato's thesis, (3.4).

    Examples
    --------
    >>> train, test = sp.csr_matrix([[1, 0, 0, 0]]), sp.csr_matrix([[0, 1, 0, 0]])
    >>> auc([[0.9, 0.2, 0.1, 0.4]], train, test)
    array([0.5])
    """
    return _per_user("auc", ranking, train, test, 1)


@ranking_metric(
    "map",
    "average precision at k, divided by min(k, positives)",
    PRECISION_AT_HITS,
    lambda total, k, positives: total / np.minimum(k, positives),
)
@ranking_metric(
    "map-full",
    "average precision at k, divided by all positives (the thesis' (3.5), trec_eval)",
    PRECISION_AT_HITS,
    lambda total, k, positives: total / positives,
)
def average_precision(
    ranking: ArrayLike,
    train: sp.csr_matrix,
    test: sp.csr_matrix,
    k: int = 10,
    normalizer: str = "positives",
) -> NDArray[np.float64]:
    """Return AP@k of each user, over the positives (3.5), or over min(k, positives) for "min"."""
    check_choice("normalizer", normalizer, ("positives", "min"))
    name = "map-full" if normalizer == "positives" else "map"
    return _per_user(name, ranking, train, test, k)


@ranking_metric(
    "ndcg",
    "DCG over the ideal DCG at min(k, positives), gain 1, discount log2(rank + 1)",
    DISCOUNTED_HITS,
    _over_ideal,
)
def ndcg(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return nDCG@k of each user with the ideal DCG at min(k, positives); arguments as in `auc`."""
    return _per_user("ndcg", ranking, train, test, k)


@ranking_metric(
    "precision",
    "positives among the first k, divided by k",
    HITS,
    lambda total, k, positives: total / k,
)
def precision(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return the positives among the first k, divided by k; arguments as in `auc`."""
    return _per_user("precision", ranking, train, test, k)


@ranking_metric(
    "recall",
    "positives among the first k, divided by all positives",
    HITS,
    lambda total, k, positives: total / positives,
)
def recall(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return the positives among the first k, divided by all; arguments as in `auc`."""
    return _per_user("recall", ranking, train, test, k)


@ranking_metric(
    "hit", "1 if a positive is among the first k", ANY_HIT, lambda total, k, positives: total
)
def hit_rate(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return 1 if a positive is among the first k, else 0; arguments as in `auc`."""
    return _per_user("hit", ranking, train, test, k)


@ranking_metric(
    "mrr",
    "one over the rank of the first positive within k, else 0",
    RECIPROCAL_RANK,
    lambda total, k, positives: total,
)
def mrr(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return one over the rank of the first positive within k, else 0; arguments as in `auc`."""
    return _per_user("mrr", ranking, train, test, k)


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


def _per_user(
    name: str, ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int
) -> NDArray[np.float64]:
    check_integer("k", k, 1)
    train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
    scores = _as_scores(ranking, test.shape)
    return ranking_values([(METRICS.get(name), k, name)], scores, train, test)[:, 0]


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
