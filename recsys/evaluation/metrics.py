"""Ranking metrics: one value per user, ties resolved by exact expectation.

Every metric takes scores (users, items) or ranked ids (users, N), and the train and test
rows of the same users. Candidates are the items outside a user's train row; positives are
its test items. Where scores tie, the value is the expectation over all orders of the tied
items, so that a constant scorer gets what chance gets, whatever the items' order.
A user without positives (or, for AUC, without negatives) has the value NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit, parallel
from recsys.errors import InputError
from recsys.registry import Registry
from recsys.utils.validation import check_choice, check_integer, clean_matrix

METRICS: Registry[Metric] = Registry("metric")
TIES = "expectation over all orders of tied items"

AUC, PRECISION, RECALL, HIT, MRR, AP_MIN, AP_POSITIVES, NDCG = range(8)


@dataclass(frozen=True)
class Metric:
    """A metric by its command-line name.

    Attributes
    ----------
    name : str
    definition : str
        The sentence that goes into reports.
    code : int or None
        Branch of the compiled kernel; None for list metrics (coverage, novelty).
    cutoff : bool
        Whether it takes @k.
    """

    name: str
    definition: str
    code: int | None
    cutoff: bool = True


for _metric in (
    Metric(
        "auc",
        "share of (positive, negative) pairs ranked right, ties one half; train items in neither set",
        AUC,
        cutoff=False,
    ),
    Metric("ndcg", "DCG over the ideal DCG at min(k, positives), gain 1, discount log2(rank + 1)", NDCG),
    Metric("map", "average precision at k, divided by min(k, positives)", AP_MIN),
    Metric(
        "map-full",
        "average precision at k, divided by all positives (the thesis' (3.5), trec_eval)",
        AP_POSITIVES,
    ),
    Metric("precision", "positives among the first k, divided by k", PRECISION),
    Metric("recall", "positives among the first k, divided by all positives", RECALL),
    Metric("hit", "1 if a positive is among the first k", HIT),
    Metric("mrr", "one over the rank of the first positive within k, else 0", MRR),
    Metric(
        "coverage", "share of the catalogue that occurs in anybody's first k (ties by item index)", None
    ),
    Metric(
        "novelty",
        "mean −log2(train popularity / users) of the first k (ties by item index); an item "
        "nobody has counts as half a user's",
        None,
    ),
):
    METRICS.add(_metric.name)(_metric)


def auc(ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix) -> NDArray[np.float64]:
    """Return the exact AUC of each user: pairs of a positive and a negative, ties one half.

    Parameters
    ----------
    ranking : (users, items) float scores, or (users, N) int ranked ids
        Ids not listed tie below those listed.
    train, test : (users, items) CSR
        Rows of the same users.

    Returns
    -------
    (users,) float64

    Notes
    -----
    Source: Polato's thesis, (3.4).
    """
    return _per_user(AUC, ranking, train, test, 1)


def average_precision(
    ranking: ArrayLike,
    train: sp.csr_matrix,
    test: sp.csr_matrix,
    k: int = 10,
    normalizer: str = "positives",
) -> NDArray[np.float64]:
    """Return AP@k of each user; (3.5) divides by the positives, others by min(k, positives).

    Parameters
    ----------
    ranking, train, test
        As in `auc`.
    k : int ≥ 1
    normalizer : "positives" or "min"
    """
    check_choice("normalizer", normalizer, ("positives", "min"))
    return _per_user(AP_POSITIVES if normalizer == "positives" else AP_MIN, ranking, train, test, k)


def ndcg(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return nDCG@k of each user, the ideal taken at min(k, positives); arguments as in `auc`."""
    return _per_user(NDCG, ranking, train, test, k)


def precision(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return the positives among the first k, divided by k; arguments as in `auc`."""
    return _per_user(PRECISION, ranking, train, test, k)


def recall(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return the positives among the first k, divided by all; arguments as in `auc`."""
    return _per_user(RECALL, ranking, train, test, k)


def hit_rate(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return 1 where a positive is among the first k; arguments as in `auc`."""
    return _per_user(HIT, ranking, train, test, k)


def mrr(
    ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10
) -> NDArray[np.float64]:
    """Return one over the rank of the first positive within k, else 0; arguments as in `auc`."""
    return _per_user(MRR, ranking, train, test, k)


def coverage(ids: ArrayLike, n_items: int) -> float:
    """Return the share of the catalogue that occurs in ranked ids (users, k), −1 being padding."""
    check_integer("n_items", n_items, 1)
    ranked = _ranked(ids, n_items)
    return float(len(np.unique(ranked[ranked >= 0])) / n_items)


def novelty(ids: ArrayLike, popularity: NDArray[np.float32], n_users: int) -> NDArray[np.float64]:
    """Return each user's mean self-information −log2(p) of the ranked ids, NaN for none."""
    check_integer("n_users", n_users, 1)
    ranked = _ranked(ids, len(popularity))
    share = np.maximum(popularity, 0.5) / n_users
    info = np.where(ranked >= 0, -np.log2(share[ranked]), np.nan)
    counts = (ranked >= 0).sum(axis=1)
    total = np.nansum(info, axis=1)
    return np.divide(total, counts, out=np.full(len(ranked), np.nan), where=counts > 0)


def _ranked(ids: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return ranked ids, (users, k), once each is an item or −1."""
    array = np.asarray(ids)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"ranked ids must be whole numbers, (users, k), not {array.shape} {array.dtype}"
        )
    array = array.astype(np.int64)
    if array.size and (array.min() < -1 or array.max() >= n_items):
        raise InputError(f"ranked ids must be within −1…{n_items - 1}")
    return array


def parse_metric(text: str) -> tuple[Metric, int, str]:
    """Return metric, k and full name of `NAME[@k]`, k = 10 by default.

    Raises
    ------
    InputError
        If the name is unknown or k no whole number of at least 1.
    """
    name, at, k = text.strip().partition("@")
    metric = METRICS.get(name)
    if not metric.cutoff:
        if at:
            raise InputError(f"metric {text!r}: {name} takes no @k")
        return metric, 0, name
    if at and not (k.isascii() and k.isdigit() and int(k) >= 1):
        raise InputError(
            f"metric {text!r}: after @ a whole number of at least 1 is needed, as in {name}@10"
        )
    cut = int(k) if at else 10
    return metric, cut, f"{name}@{cut}"


def _per_user(
    code: int, ranking: ArrayLike, train: sp.csr_matrix, test: sp.csr_matrix, k: int
) -> NDArray[np.float64]:
    check_integer("k", k, 1)
    train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
    return values(np.array([code]), np.array([k]), _as_scores(ranking, test.shape), train, test)[:, 0]


def values(
    codes: NDArray[np.int64],
    cuts: NDArray[np.int64],
    scores: NDArray[np.float32],
    train: sp.csr_matrix,
    test: sp.csr_matrix,
) -> NDArray[np.float64]:
    """Return several metrics in one pass over the scores: (users, metrics) float64."""
    train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
    if train.shape != test.shape or scores.shape != test.shape:
        raise InputError(
            "scores, train and test must have one shape, "
            f"not {scores.shape}, {train.shape}, {test.shape}"
        )
    if not np.isfinite(scores).all():
        raise InputError("scores hold NaN or infinity: there is no order to evaluate")
    out = np.full((len(scores), len(codes)), np.nan)
    with parallel() as threads:
        _values(
            threads, codes, cuts, scores, train.indptr, train.indices, test.indptr, test.indices, out
        )
    return out


def _as_scores(ranking: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Turn ranked ids into scores; an id not listed ties with all others below the list."""
    array = np.atleast_2d(np.asarray(ranking))
    if array.dtype.kind == "f":
        return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
    if array.dtype.kind not in "iu" or len(array) != shape[0]:
        raise InputError(
            f"a ranking needs scores or ids of {shape[0]} users, not {array.shape} {array.dtype}"
        )
    out = np.zeros(shape, dtype=np.float32)
    rows = np.arange(len(array))
    for place in range(array.shape[1]):
        ids = array[:, place]
        if (ids >= shape[1]).any() or (ids < -1).any():
            raise InputError(f"ranked ids must be within −1…{shape[1] - 1}")
        listed = ids >= 0
        if (out[rows[listed], ids[listed]] > 0).any():
            raise InputError("ranked ids repeat an item within a list")
        out[rows[listed], ids[listed]] = array.shape[1] - place
    return out


# ---- kernels


@jit(parallel=True)
def _values(threads, codes, cuts, scores, train_ptr, train_idx, test_ptr, test_idx, out):
    m = scores.shape[1]
    deepest = 0
    for c in range(len(codes)):
        if codes[c] != 0:
            deepest = max(deepest, cuts[c])
    for t in numba.prange(threads):
        state = np.zeros(m, dtype=np.uint8)  # 1 a train item, 2 a positive
        for u in range(t, len(scores), threads):
            for p in range(test_ptr[u], test_ptr[u + 1]):
                state[test_idx[p]] = 2
            for p in range(train_ptr[u], train_ptr[u + 1]):
                state[train_idx[p]] = 1
            positives = 0
            excluded = 0
            for j in range(m):
                positives += state[j] == 2
                excluded += state[j] == 1
            if positives > 0:
                _one_user(codes, cuts, scores[u], state, positives, m - excluded, deepest, out[u])
            for p in range(test_ptr[u], test_ptr[u + 1]):
                state[test_idx[p]] = 0
            for p in range(train_ptr[u], train_ptr[u + 1]):
                state[train_idx[p]] = 0


@jit
def _one_user(codes, cuts, s, state, positives, count, deepest, out):
    for c in range(len(codes)):
        if codes[c] == 0:
            out[c] = _auc(s, state, positives, count)
    if deepest == 0:
        return
    k = min(deepest, count)
    # The k-th best score of the candidates: every tie group above the cut is then known.
    candidate = np.empty(count, dtype=s.dtype)
    n = 0
    for j in range(len(s)):
        if state[j] != 1:
            candidate[n] = s[j]
            n += 1
    threshold = np.partition(candidate, count - k)[count - k]
    n = 0
    for j in range(len(s)):
        n += state[j] != 1 and s[j] >= threshold
    top, relevant = np.empty(n, dtype=s.dtype), np.empty(n, dtype=np.uint8)
    n = 0
    for j in range(len(s)):
        if state[j] != 1 and s[j] >= threshold:
            top[n], relevant[n] = -s[j], state[j] == 2
            n += 1
    order = np.argsort(top, kind="mergesort")
    starts = np.empty(n + 1, dtype=np.int64)  # where each group of equal scores begins
    hits = np.zeros(n + 1, dtype=np.int64)  # positives before it
    groups = 0
    found = 0
    for place in range(n):
        if place == 0 or top[order[place]] != top[order[place - 1]]:
            starts[groups], hits[groups] = place, found
            groups += 1
        found += relevant[order[place]]
    starts[groups], hits[groups] = n, found
    for c in range(len(codes)):
        if codes[c] != 0:
            out[c] = _at(codes[c], cuts[c], starts, hits, groups, positives)


@jit
def _auc(s, state, positives, count):
    if count == positives:
        return np.nan
    good = np.empty(positives, dtype=s.dtype)
    n = 0
    for j in range(len(s)):
        if state[j] == 2:
            good[n] = s[j]
            n += 1
    good.sort()
    wins = 0.0
    for j in range(len(s)):
        if state[j] == 0:
            below = np.searchsorted(good, s[j], side="left")
            upto = np.searchsorted(good, s[j], side="right")
            wins += (positives - upto) + 0.5 * (upto - below)
    return wins / (positives * (count - positives))


@jit
def _at(code, k, starts, hits, groups, positives):
    """Return the expectation of a metric at k over the orders within each group of equal scores.

    A group of n items, r of them positive, begins at place `start` with `before` positives
    ahead of it. Source: McSherry and Najork 2008, for AP; the rest by hypergeometric odds.
    """
    total = 0.0
    none = 1.0  # probability that no positive has come yet
    for g in range(groups):
        start, end = starts[g], starts[g + 1]
        if start >= k:
            break
        n, before, r = end - start, hits[g], hits[g + 1] - hits[g]
        inside = min(end, k) - start
        if r == 0:
            continue
        if code == 1 or code == 2:  # PRECISION, RECALL
            total += inside * r / n
        elif code == 7:  # NDCG
            for place in range(start, start + inside):
                total += r / n / np.log2(place + 2.0)
        elif code == 5 or code == 6:  # AP
            for j in range(1, inside + 1):
                ahead = before + 1.0 + ((j - 1) * (r - 1) / (n - 1.0) if n > 1 else 0.0)
                total += r / n * ahead / (start + j)
        else:  # HIT, MRR: walk to the first positive
            still = 1.0
            for j in range(1, inside + 1):
                left = n - j + 1
                odds = min(1.0, r / left)
                if code == 4:
                    total += none * still * odds / (start + j)
                still *= 1.0 - odds
            none *= still
            if none == 0.0:
                break
    if code == 1:
        return total / k
    if code == 2 or code == 6:
        return total / positives
    if code == 5:
        return total / min(k, positives)
    if code == 3:
        return 1.0 - none
    if code == 7:
        ideal = 0.0
        for place in range(min(k, positives)):
            ideal += 1.0 / np.log2(place + 2.0)
        return total / ideal
    return total
