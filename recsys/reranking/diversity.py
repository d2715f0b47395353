"""Qualities of a list besides accuracy: diversity, the long tail, and a re-ranking for variety."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.rankers.answers import Recommendations
from recsys.utils.validation import check_integer, check_real, take_columns

POOL = 100  # of the best, from which a varied list is taken


def overlap(item_users: Any, ids: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine of the users of each pair of items, 1 on the diagonal.

    Parameters
    ----------
    item_users : (users, items) CSC matrix, or CSR (slower)
    ids : (n,) int

    Returns
    -------
    (n, n) float64
        0 between a cold item and any other.

    Raises
    ------
    InputError
        If the matrix or an id cannot be used.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> overlap(sp.csc_matrix([[1.0, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]), [0, 1]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    some = take_columns(item_users, ids)
    shared = np.asarray((some.T @ some).todense())
    size = np.sqrt(shared.diagonal())
    size[size == 0] = 1.0
    out = shared / np.outer(size, size)
    np.fill_diagonal(out, 1.0)
    return out


def diversify(
    found: Recommendations, N: int, diversity: float, item_users: Any = None
) -> Recommendations:
    """Return N of a list by maximal marginal relevance, similar being who has the same users.

    Parameters
    ----------
    found : Recommendations
        Of one user, best first. The N are taken from its first hundred, or N if that is more.
    N : int ≥ 1
    diversity : float in 0…1
        0 keeps the order.
    item_users : (users, items) CSC matrix, or CSR (slower)
        Of the histories; needed for a diversity above 0.

    Returns
    -------
    Recommendations
        At most N, in the order taken, with the scores they had.

    Raises
    ------
    InputError
        For a diversity out of range, or without `item_users`.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> every = make_ranker("popularity").fit(R).recommend(3, R[3], N=50)
    >>> varied = diversify(every, 4, 0.9, R.tocsc())
    >>> len(varied.ids), varied.ids[0] == every.ids[0]
    (4, np.True_)
    """
    N = check_integer("N", N, 1)
    check_diversity(diversity, item_users)
    ids, scores = found.ids, found.scores
    if diversity and len(ids):
        ids, scores = ids[: max(N, POOL)], scores[: max(N, POOL)]
        order = mmr(scores, overlap(item_users, ids), N, diversity)
        ids, scores = ids[order], scores[order]
    return Recommendations(ids[:N], scores[:N], found.fallback)


def check_diversity(diversity: float, item_users: Any) -> None:
    """Refuse a diversity out of range, or one without the histories that it needs."""
    check_real("diversity", diversity, 0.0, 1.0)
    if diversity and item_users is None:
        raise InputError("diversity needs item_users: the histories, as a CSC matrix")


def list_diversity(similarity: ArrayLike) -> float:
    """Return 1 − the mean similarity of the pairs of a list; NaN for fewer than two items.

    Parameters
    ----------
    similarity : (items, items) float
        Of the list's items, 1 on the diagonal.

    Raises
    ------
    InputError
        If the matrix is not square.

    Notes
    -----
    Source: Ziegler et al. 2005, intra-list similarity.

    Examples
    --------
    >>> list_diversity([[1.0, 0.25], [0.25, 1.0]])
    0.75
    """
    S = np.asarray(similarity, dtype=np.float64)
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise InputError(f"similarity is a square matrix, not of shape {S.shape}")
    n = len(S)
    return float(1.0 - (S.sum() - np.trace(S)) / (n * (n - 1))) if n > 1 else float("nan")


def tail_items(popularity: ArrayLike, head: float = 0.8) -> NDArray[np.bool_]:
    """Return the items of the long tail: all but the most popular, which hold `head` of interactions.

    Parameters
    ----------
    popularity : (items,) float
    head : float in 0…1

    Returns
    -------
    (items,) bool

    Raises
    ------
    InputError
        If the head is out of range.

    Examples
    --------
    >>> tail_items([8, 1, 1], head=0.8)
    array([False,  True,  True])
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

    Examples
    --------
    >>> mmr([3.0, 2.9, 1.0], [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], 2, diversity=0.6)
    array([0, 2])
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
