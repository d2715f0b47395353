"""One compiled pass over scores: expected gains at k of each user, over all orders of tied items.

A metric is a gain divided by something that depends on k and the number of positives alone; the
gains are here, the metrics in `ranking`.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.errors import InputError
from recsys.utils.topn import offer, put_in_order
from recsys.utils.validation import clean_matrix

# What is added up over the first k places of a list. Numba freezes module constants.
PAIRS = 0  # pairs of a positive and a negative ranked right, as a share of all: AUC, which has no k
HITS = 1  # 1 a positive
DISCOUNTED_HITS = 2  # 1 / log2(rank + 1) a positive
PRECISION_AT_HITS = 3  # the precision at its rank, a positive
ANY_HIT = 4  # 1 if there is a positive
RECIPROCAL_RANK = 5  # 1 / rank of the first positive

# What an item is to a user.
NEITHER = 0
TRAIN = 1
POSITIVE = 2


def expected_gains(
    gains: NDArray[np.int64],
    cuts: NDArray[np.int64],
    scores: NDArray[np.floating],
    train: sp.csr_matrix,
    test: sp.csr_matrix,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return several gains in one pass over the scores, and how many positives each user has.

    `gains` are constants of this module, and `cuts` the k of each; rows of train and test are of the
    same users. A gain, (users, gains), is NaN for a user without positives or, for PAIRS, without
    negatives.
    """
    train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
    if train.shape != test.shape or scores.shape != test.shape:
        raise InputError(
            "scores, train and test must have one shape, "
            f"not {scores.shape}, {train.shape}, {test.shape}"
        )
    if not np.isfinite(scores).all():
        raise InputError("scores contain NaN or infinity")
    out, found = np.full((len(scores), len(gains)), np.nan), np.zeros(len(scores), dtype=np.int64)
    rows = (train.indptr, train.indices, test.indptr, test.indices)
    in_threads(None, _gains, gains, cuts, scores, *rows, out, found)
    return out, found


# ---- kernels


@jit
def _gains(first, stride, gains, cuts, scores, train_ptr, train_idx, test_ptr, test_idx, out, found):
    m = scores.shape[1]
    deepest = 0
    for c in range(len(gains)):
        if gains[c] != PAIRS:
            deepest = max(deepest, cuts[c])
    state = np.zeros(m, dtype=np.uint8)
    kept, item = np.empty(m, dtype=scores.dtype), np.empty(m, dtype=np.int32)
    starts, hits = np.empty(m + 1, dtype=np.int64), np.empty(m + 1, dtype=np.int64)
    for u in range(first, len(scores), stride):
        for p in range(test_ptr[u], test_ptr[u + 1]):
            state[test_idx[p]] = POSITIVE
        for p in range(train_ptr[u], train_ptr[u + 1]):
            state[train_idx[p]] = TRAIN
        positives = excluded = np.int64(0)
        for j in range(m):
            positives += state[j] == POSITIVE
            excluded += state[j] == TRAIN
        found[u] = positives
        if positives > 0:
            for c in range(len(gains)):
                if gains[c] == PAIRS:
                    out[u, c] = _auc(
                        scores[u], state, kept[:positives], item[:positives], m - excluded - positives
                    )
            if deepest > 0:
                k = min(deepest, m - excluded)
                groups = _tie_groups(scores[u], state, kept[:k], item[:k], starts, hits)
                for c in range(len(gains)):
                    if gains[c] != PAIRS:
                        out[u, c] = _at(gains[c], cuts[c], starts, hits, groups)
        for p in range(test_ptr[u], test_ptr[u + 1]):
            state[test_idx[p]] = NEITHER
        for p in range(train_ptr[u], train_ptr[u + 1]):
            state[train_idx[p]] = NEITHER


@jit
def _tie_groups(s, state, top, item, starts, hits):
    """Write where each group of equal scores begins, and the positives before it; return the groups.

    Groups are those that the first len(top) positions reach, `top` and `item` room for their scores.
    """
    size = np.int64(0)
    for j in range(len(s)):
        if state[j] != TRAIN and (size < len(top) or s[j] > top[0]):
            size = offer(top, item, size, s[j], j)
    put_in_order(top, item, size)
    groups = place = found = 0
    while top[place] > top[size - 1]:
        if place == 0 or top[place] != top[place - 1]:
            starts[groups], hits[groups] = place, found
            groups += 1
        found += state[item[place]] == POSITIVE
        place += 1
    starts[groups], hits[groups] = place, found
    for j in range(len(s)):  # the last group goes on beyond
        if state[j] != TRAIN and s[j] == top[size - 1]:
            place += 1
            found += state[j] == POSITIVE
    starts[groups + 1], hits[groups + 1] = place, found
    return groups + 1


@jit
def _auc(s, state, good, item, negatives):
    """Return the share of pairs ranked right, of a positive and a negative; `good` holds the former."""
    if negatives == 0:
        return np.nan
    positives, size = len(good), np.int64(0)
    for j in range(len(s)):
        if state[j] == POSITIVE:
            size = offer(good, item, size, s[j], j)
    put_in_order(good, item, size)
    wins = 0.0
    for j in range(len(s)):
        if state[j] == NEITHER:
            above, low, high = 0, 0, positives
            while low < high:  # how many positives are above
                middle = (low + high) >> 1
                if good[middle] > s[j]:
                    low = middle + 1
                else:
                    high = middle
            above, high = low, positives
            while low < high:  # above or equal
                middle = (low + high) >> 1
                if good[middle] >= s[j]:
                    low = middle + 1
                else:
                    high = middle
            wins += above + 0.5 * (low - above)
    return wins / (positives * negatives)


@jit
def _at(gain, k, starts, hits, groups):
    """Return the expectation of a gain at k over the orders within each group of equal scores.

    A group of n items, r of them positive, begins at rank `start` with `before` positives
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
        if gain == HITS:
            total += inside * r / n
        elif gain == DISCOUNTED_HITS:
            for place in range(start, start + inside):
                total += r / n / np.log2(place + 2.0)
        elif gain == PRECISION_AT_HITS:
            for j in range(1, inside + 1):
                ahead = before + 1.0 + ((j - 1) * (r - 1) / (n - 1.0) if n > 1 else 0.0)
                total += r / n * ahead / (start + j)
        elif gain == ANY_HIT or gain == RECIPROCAL_RANK:  # walk to the first positive
            still = 1.0
            for j in range(1, inside + 1):
                left = n - j + 1
                odds = min(1.0, r / left)
                if gain == RECIPROCAL_RANK:
                    total += none * still * odds / (start + j)
                still *= 1.0 - odds
            none *= still
            if none == 0.0:
                break
        else:
            return np.nan
    return 1.0 - none if gain == ANY_HIT else total
