"""Metrics of lists: coverage, popularity, diversity and unexpectedness of their items.

Each takes ranked ids, (users, k) with −1 for padding, and a `ListContext`. Those of single users return
(users,) float64, NaN where a list has no value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import ListContext, list_metric

ROWS = 512  # users at a time: a list's summed item vectors have an entry for each user


@list_metric("coverage", "share of the catalog that occurs in any user's first k", per_user=False)
def coverage(ids: ArrayLike, context: ListContext) -> float:
    """Return the share of the catalog that occurs in the lists."""
    ranked = context.ids(ids)
    return float(len(np.unique(ranked[ranked >= 0])) / context.train.shape[1])


@list_metric(
    "gini",
    "Gini index of how often each item of the catalog occurs in the first k of all users: 0 if all "
    "occur equally often, near 1 if one has every position",
    per_user=False,
    better="less",
)
def gini(ids: ArrayLike, context: ListContext) -> float:
    """Return the Gini index of the frequencies of items in the lists; NaN if lists are empty.

    Σ_i (2i − n − 1) c_(i) / (n Σ_i c_i) over the counts c of all n items in ascending order.
    """
    ranked, items = context.ids(ids), context.train.shape[1]
    counts = np.sort(np.bincount(ranked[ranked >= 0], minlength=items))
    total = int(counts.sum())
    if total == 0:
        return float("nan")
    places = 2 * np.arange(1, items + 1) - items - 1
    return float(places @ counts / (items * total))


@list_metric(
    "novelty",
    "mean −log2(train popularity / users) of the first k; a cold item counts as half a user",
)
def novelty(ids: ArrayLike, context: ListContext) -> NDArray[np.float64]:
    """Return each user's mean self-information −log2(p) of the listed items."""
    share = np.maximum(context.popularity, 0.5) / context.train.shape[0]
    return _mean(context, ids, -np.log2(share))


@list_metric(
    "arp",
    "average recommendation popularity: mean number of users who have the first k in training",
    better="",
)
def average_popularity(ids: ArrayLike, context: ListContext) -> NDArray[np.float64]:
    """Return the mean number of training users of the listed items (Yin et al. 2012)."""
    return _mean(context, ids, context.popularity)


@list_metric(
    "diversity",
    "intra-list diversity: 1 minus the mean cosine of all pairs among the first k, with items as "
    "vectors of training users; no value for a list of fewer than two items",
)
def diversity(ids: ArrayLike, context: ListContext) -> NDArray[np.float64]:
    """Return 1 − the mean cosine of the pairs of listed items (Ziegler et al. 2005)."""
    listed, unit = context.listed(context.ids(ids)), context.unit_items
    norms = np.asarray(unit.multiply(unit).sum(axis=1)).ravel()  # 1, or 0 for a cold item
    size = np.diff(listed.indptr)
    alike = np.empty(len(size))
    for start in range(0, len(size), ROWS):
        rows = listed[start : start + ROWS]
        sums = rows @ unit
        alike[start : start + ROWS] = (_sum(sums.multiply(sums)) - rows @ norms) / 2
    pairs = size * (size - 1) / 2
    return 1.0 - np.divide(alike, pairs, out=np.full(len(size), np.nan), where=pairs > 0)


@list_metric(
    "serendipity",
    "mean over the first k of relevance × unexpectedness: 1 for a test item, times 1 minus its "
    "mean cosine with the user's training items, with items as vectors of training users",
)
def serendipity(ids: ArrayLike, context: ListContext) -> NDArray[np.float64]:
    """Return the share of relevant and unexpected items in the lists (Zhang et al. 2012)."""
    if context.test is None:
        raise InputError("serendipity needs test items: pass a test matrix to ListContext")
    listed, unit = context.listed(context.ids(ids)), context.unit_items
    profiles, tested = context.rows(context.train), context.rows(context.test)
    size = np.diff(listed.indptr)
    gained = np.zeros(len(size))
    for start in range(0, len(size), ROWS):
        rows = slice(start, start + ROWS)
        own = profiles[rows]
        mean = sp.csr_matrix(sp.diags(1.0 / np.maximum(np.diff(own.indptr), 1)) @ own @ unit)
        hits = listed[rows].multiply(tested[rows]).tocoo()
        cosine = _sum(mean[hits.row].multiply(unit[hits.col]))
        gained[rows] = np.bincount(hits.row, 1.0 - cosine, minlength=own.shape[0])
    mean_gain = np.divide(gained, size, out=np.zeros(len(size)), where=size > 0)
    return np.where(np.diff(tested.indptr) > 0, mean_gain, np.nan)


def _mean(context: ListContext, ids: ArrayLike, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the items' weights in each list."""
    listed = context.listed(context.ids(ids))
    size = np.diff(listed.indptr)
    return np.divide(listed @ weights, size, out=np.full(len(size), np.nan), where=size > 0)


def _sum(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
