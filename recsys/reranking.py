"""Lists of one user with dislikes and diversity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import CapabilityError, InputError
from recsys.rankers.base import Ranker, Recommendations
from recsys.utils.sparse import row_of
from recsys.utils.validation import check_ids, check_integer, check_real, take_columns

DISLIKE_WEIGHT = 0.5  # standard deviations of the scores
POOL = 100  # of the best, from which a varied list is chosen


def rerank(
    ranker: Ranker,
    userid: int,
    user_items: Any,
    N: int = 10,
    *,
    dislikes: ArrayLike = (),
    diversity: float = 0.0,
    item_users: Any = None,
    filter_already_liked_items: bool = True,
    filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None,
    **options: Any,
) -> Recommendations:
    """Return one user's best items, as `recommend` does, with dislikes and diversity.

    Parameters
    ----------
    ranker : fitted Ranker
    userid : int
    user_items : (1, items) sparse matrix
    N : int ≥ 1
    dislikes : int array
        Items to leave out; `penalize_dislikes` ranks similar items lower.
    diversity : float in 0…1
        `mmr` selects the N items from the best hundred; 0 keeps the order.
    item_users : (users, items) CSC matrix
        Histories; items of the same users are similar. Required for `diversity`.
    filter_already_liked_items, filter_items, items, **options
        As in `Ranker.recommend`; liked items are left out even if `items` lists them.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> ids, scores = rerank(model, 3, R[3], 5, diversity=0.3, item_users=R.tocsc())
    >>> ids.shape, int(ids[0]) == int(model.recommend(3, R[3]).ids[0])
    ((5,), True)
    """
    N = check_integer("N", N, 1)
    _check_diversity(diversity, item_users)
    if np.ndim(userid) != 0:
        raise InputError("rerank accepts one user at a time")
    disliked = check_ids("dislikes", dislikes, getattr(ranker, "n_items_", None))
    if len(disliked) and not ranker.folds_in:
        raise CapabilityError(f"{ranker.name} cannot rank a history, which dislikes need")
    if items is not None and filter_items is None and filter_already_liked_items:
        # As `filter_items`, so that listed items that are liked already stay out.
        listed = check_ids("items", items, user_items.shape[1])
        filter_items, items = np.setdiff1d(np.arange(user_items.shape[1]), listed), None
    options |= {"filter_items": filter_items, "items": items}
    options["filter_already_liked_items"] = filter_already_liked_items
    pool = user_items.shape[1] if len(disliked) else max(N, POOL) if diversity else N
    result = ranker.recommend(userid, user_items, N=pool, **options)
    if len(disliked):
        result = penalize_dislikes(ranker, result, disliked)
    return _diversify(result, N, diversity, item_users)


def penalize_dislikes(
    ranker: Ranker, result: Recommendations, dislikes: NDArray[Any]
) -> Recommendations:
    """Return a whole ranking without the dislikes and with lower scores of similar items.

    A score s becomes s − ½ · σ(s) · (d − mean(d)) / σ(d), where d are the scores of all items for the
    dislikes as a history: Rocchio's negative feedback (1971), on scores.
    """
    keep = ~np.isin(result.ids, dislikes)
    ids, scores = result.ids[keep], result.scores[keep].astype(np.float64)
    row = row_of(np.unique(dislikes), ranker.n_items_)
    against = ranker.scores(0, row, recalculate_user=True)[0].astype(np.float64)
    if len(ids) and against.std() > 0:
        standardized = (against[ids] - against.mean()) / against.std()
        scores = scores - DISLIKE_WEIGHT * scores.std() * standardized
    order = np.lexsort((ids, -scores))
    return Recommendations(ids[order], scores[order].astype(np.float32), result.fallback)


def similar(
    ranker: Ranker,
    item: int,
    N: int = 10,
    *,
    diversity: float = 0.0,
    item_users: Any = None,
    filter_items: ArrayLike | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return (ids, scores) of the items most similar to one, itself left out; parameters as in `rerank`.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> ids, scores = similar(model, 3, 5)
    >>> ids.shape, 3 in ids
    ((5,), False)
    """
    N = check_integer("N", N, 1)
    _check_diversity(diversity, item_users)
    without = [item, *np.atleast_1d(() if filter_items is None else filter_items)]
    pool = max(N, POOL) if diversity else N
    result = Recommendations(*ranker.similar_items(item, N=pool, filter_items=without))
    result = _diversify(result, N, diversity, item_users)
    return result.ids, result.scores


def _check_diversity(diversity: float, item_users: Any) -> None:
    check_real("diversity", diversity, 0.0, 1.0)
    if diversity and item_users is None:
        raise InputError("diversity needs item_users: the histories, as a CSC matrix")


def _diversify(result: Recommendations, N: int, diversity: float, item_users: Any) -> Recommendations:
    """Return N items that `mmr` selects from the first hundred of a list."""
    ids, scores = result.ids, result.scores
    if diversity and len(ids):
        ids, scores = ids[: max(N, POOL)], scores[: max(N, POOL)]
        order = mmr(scores, overlap(item_users, ids), N, diversity)
        ids, scores = ids[order], scores[order]
    return Recommendations(ids[:N], scores[:N], result.fallback)


def overlap(item_users: Any, ids: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine of the users of each pair of items, 1 on the diagonal.

    >>> import scipy.sparse as sp
    >>> overlap(sp.csc_matrix([[1.0, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]), [0, 1]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    columns = take_columns(item_users, ids)
    shared = np.asarray((columns.T @ columns).todense())
    size = np.sqrt(shared.diagonal())
    size[size == 0] = 1.0
    out = shared / np.outer(size, size)
    np.fill_diagonal(out, 1.0)
    return out


def mmr(scores: ArrayLike, similarity: ArrayLike, N: int, diversity: float) -> NDArray[np.int64]:
    """Return the positions of N items by maximal marginal relevance (Carbonell and Goldstein 1998).

    Each is the one with the largest (1 − diversity)·score − diversity·(largest similarity to those
    before), scores scaled to 0…1.

    >>> mmr([3.0, 2.9, 1.0], [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], 2, diversity=0.6)
    array([0, 2])
    """
    relevance = np.asarray(scores, dtype=np.float64)
    S = np.asarray(similarity, dtype=np.float64)
    if len(relevance) == 0:
        return np.zeros(0, dtype=np.int64)
    span = float(relevance.max() - relevance.min())
    relevance = (relevance - relevance.min()) / (span if span > 0 else 1.0)
    nearest = np.zeros(len(relevance))
    left = np.ones(len(relevance), dtype=bool)
    chosen: list[int] = []
    for _ in range(min(N, len(relevance))):
        value = np.where(left, (1 - diversity) * relevance - diversity * nearest, -np.inf)
        best = int(np.argmax(value))
        nearest = np.maximum(nearest, S[best]) if chosen else S[best].copy()
        chosen.append(best)
        left[best] = False
    return np.array(chosen, dtype=np.int64)
