"""One compiled pass over scores: expected gains at k of each user, over all orders of tied items.

A metric is a gain divided by something that depends on k and the number of positives alone; the
gains are here, the metrics in `ranking`.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel
from recsys.errors import InputError
from recsys.utils.validation import clean_matrix

# What is added up over the first k places of a list. Numba freezes module constants.
PAIRS = 0  # pairs of a positive and a negative ranked right, as a share of all: AUC, which has no k
HITS = 1  # 1 a positive
DISCOUNTED_HITS = 2  # 1 / log2(rank + 1) a positive
PRECISION_AT_HITS = 3  # the precision at its rank, a positive
ANY_HIT = 4  # 1 if there is a positive
RECIPROCAL_RANK = 5  # 1 / rank of the first positive
HITS_AT_POSITIVES = 6  # 1 a positive, k being the number of the user's positives

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

    Parameters
    ----------
    gains, cuts : (gains,) int64
        Constants of this module, and the k of each.
    scores : (users, items) float32 or float64
    train, test : (users, items) CSR
        Rows of the same users.

    Returns
    -------
    expected : (users, gains) float64
        NaN for a user without positives or, for PAIRS, without negatives.
    positives : (users,) int64

    Raises
    ------
    InputError
        If the shapes differ or scores are not finite.
    """
    train, test = clean_matrix(train, name="train"), clean_matrix(test, name="test")
    if train.shape != test.shape or scores.shape != test.shape:
        raise InputError(
            "scores, train and test must have one shape, "
            f"not {scores.shape}, {train.shape}, {test.shape}"
        )
    if not np.isfinite(scores).all():
        raise InputError("scores hold NaN or infinity: there is no order to evaluate")
    out, found = np.full((len(scores), len(gains)), np.nan), np.zeros(len(scores), dtype=np.int64)
    with parallel() as threads:
        _gains(
            threads, gains, cuts, scores, train.indptr, train.indices, test.indptr, test.indices, out,
            found,
        )  # fmt: skip
    return out, found


# ---- kernels


@jit(parallel=True)
def _gains(threads, gains, cuts, scores, train_ptr, train_idx, test_ptr, test_idx, out, found):
    m = scores.shape[1]
    deepest = 0
    own_depth = False
    for c in range(len(gains)):
        if gains[c] == HITS_AT_POSITIVES:
            own_depth = True
        elif gains[c] != PAIRS:
            deepest = max(deepest, cuts[c])
    for t in numba.prange(threads):
        state = np.zeros(m, dtype=np.uint8)
        for u in range(t, len(scores), threads):
            for p in range(test_ptr[u], test_ptr[u + 1]):
                state[test_idx[p]] = POSITIVE
            for p in range(train_ptr[u], train_ptr[u + 1]):
                state[train_idx[p]] = TRAIN
            positives = 0
            excluded = 0
            for j in range(m):
                positives += state[j] == POSITIVE
                excluded += state[j] == TRAIN
            found[u] = positives
            if positives > 0:
                depth = max(deepest, positives) if own_depth else deepest
                _one_user(gains, cuts, scores[u], state, positives, m - excluded, depth, out[u])
            for p in range(test_ptr[u], test_ptr[u + 1]):
                state[test_idx[p]] = NEITHER
            for p in range(train_ptr[u], train_ptr[u + 1]):
                state[train_idx[p]] = NEITHER


@jit
def _one_user(gains, cuts, s, state, positives, count, deepest, out):
    for c in range(len(gains)):
        if gains[c] == PAIRS:
            out[c] = _auc(s, state, positives, count)
    if deepest == 0:
        return
    k = min(deepest, count)
    # The k-th best score of the candidates: every tie group above the cut is then known.
    candidate = np.empty(count, dtype=s.dtype)
    n = 0
    for j in range(len(s)):
        if state[j] != TRAIN:
            candidate[n] = s[j]
            n += 1
    threshold = np.partition(candidate, count - k)[count - k]
    n = 0
    for j in range(len(s)):
        n += state[j] != TRAIN and s[j] >= threshold
    top, relevant = np.empty(n, dtype=s.dtype), np.empty(n, dtype=np.uint8)
    n = 0
    for j in range(len(s)):
        if state[j] != TRAIN and s[j] >= threshold:
            top[n], relevant[n] = -s[j], state[j] == POSITIVE
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
    for c in range(len(gains)):
        if gains[c] != PAIRS:
            k = positives if gains[c] == HITS_AT_POSITIVES else cuts[c]
            out[c] = _at(gains[c], k, starts, hits, groups)


@jit
def _auc(s, state, positives, count):
    if count == positives:
        return np.nan
    good = np.empty(positives, dtype=s.dtype)
    n = 0
    for j in range(len(s)):
        if state[j] == POSITIVE:
            good[n] = s[j]
            n += 1
    good.sort()
    wins = 0.0
    for j in range(len(s)):
        if state[j] == NEITHER:
            below = np.searchsorted(good, s[j], side="left")
            upto = np.searchsorted(good, s[j], side="right")
            wins += (positives - upto) + 0.5 * (upto - below)
    return wins / (positives * (count - positives))


@jit
def _at(gain, k, starts, hits, groups):
    """Return the expectation of a gain at k over the orders within each group of equal scores.

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
        if gain == HITS or gain == HITS_AT_POSITIVES:
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


@jit
def ideal_gains(k, positives):
    """Return for each number of positives the most that DISCOUNTED_HITS can be at k."""
    out = np.zeros(len(positives))
    for u in range(len(positives)):
        for place in range(min(k, positives[u])):
            out[u] += 1.0 / np.log2(place + 2.0)
    return out
