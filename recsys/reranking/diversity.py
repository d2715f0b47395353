"""What a list is like beside accurate: its diversity, its long tail, and a re-ranking for both."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.utils.validation import check_integer, check_real


def list_diversity(similarity: ArrayLike) -> float:
    """Return 1 − the mean similarity of the pairs of a list; NaN for fewer than two items.

    Parameters
    ----------
    similarity : (items, items) float
        Of the list's items, 1 on the diagonal.

    Notes
    -----
    Source: Ziegler et al. 2005, intra-list similarity.
    """
    S = np.asarray(similarity, dtype=np.float64)
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise InputError(f"similarity is a square matrix, not of shape {S.shape}")
    n = len(S)
    return float(1.0 - (S.sum() - np.trace(S)) / (n * (n - 1))) if n > 1 else float("nan")


def tail_items(popularity: ArrayLike, head: float = 0.8) -> NDArray[np.bool_]:
    """Return which items are of the long tail: not among the most popular that hold `head` of all likes.

    Parameters
    ----------
    popularity : (items,) float
    head : float in 0…1
    """
    counts = np.asarray(popularity, dtype=np.float64)
    check_real("head", head, 0.0, 1.0)
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    tail = np.ones(len(counts), dtype=bool)
    tail[order[before < head * counts.sum()]] = False
    return tail


def mmr(scores: ArrayLike, similarity: ArrayLike, N: int, diversity: float) -> NDArray[np.int64]:
    """Return the positions of N items by maximal marginal relevance.

    Each is the one with the largest (1 − diversity)·score − diversity·(largest similarity to
    those taken before), scores scaled to 0…1.

    Parameters
    ----------
    scores : (items,) float
    similarity : (items, items) float
    N : int ≥ 1
    diversity : float in 0…1
        0 keeps the order of the scores.

    Raises
    ------
    InputError
        If shapes disagree or a parameter is out of range.

    Notes
    -----
    Source: Carbonell and Goldstein 1998.
    """
    relevance = np.asarray(scores, dtype=np.float64)
    S = np.asarray(similarity, dtype=np.float64)
    check_integer("N", N, 1)
    check_real("diversity", diversity, 0.0, 1.0)
    if S.shape != (len(relevance), len(relevance)):
        raise InputError(f"similarity has shape {S.shape} for {len(relevance)} items")
    if len(relevance) == 0:
        return np.zeros(0, dtype=np.int64)
    span = float(relevance.max() - relevance.min())
    relevance = (relevance - relevance.min()) / (span if span > 0 else 1.0)
    nearest = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    taken = []
    for _ in range(min(N, len(relevance))):
        value = np.where(left, (1 - diversity) * relevance - diversity * nearest, -np.inf)
        best = int(np.argmax(value))
        taken.append(best)
        left[best] = False
        nearest = np.maximum(nearest, S[best]) if len(taken) > 1 else S[best].copy()
    return np.array(taken, dtype=np.int64)
