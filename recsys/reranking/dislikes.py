"""What a person can ask of a list besides being good: variety, and distance from what they dislike."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import CapabilityError, InputError
from recsys.rankers.base import Ranker, Recommendations
from recsys.reranking.diversity import mmr
from recsys.utils.topn import all_but
from recsys.utils.validation import check_ids, check_integer, check_real, take_columns

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
        0 between an item that nobody has and any other.

    Raises
    ------
    InputError
        If the matrix or an id cannot be used.
    """
    some = take_columns(item_users, ids)
    shared = np.asarray((some.T @ some).todense())
    size = np.sqrt(shared.diagonal())
    size[size == 0] = 1.0
    out = shared / np.outer(size, size)
    np.fill_diagonal(out, 1.0)
    return out


def steer(
    ranker: Ranker, userid: int, user_items: Any, N: int = 10, *, dislikes: ArrayLike = (),
    aversion: float = 0.5, diversity: float = 0.0, item_users: Any = None,
    filter_already_liked_items: bool = True, filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None, recalculate_user: bool = False,
) -> Recommendations:  # fmt: skip
    """Return one user's best items, as `recommend` does, away from dislikes and varied.

    Parameters
    ----------
    ranker : fitted Ranker
    userid : int
    user_items : (1, items) sparse matrix
    N : int ≥ 1
    dislikes : int array
        Never returned; every score is lowered by `aversion` times what the dislikes, taken as a
        history, would give the item, in standard deviations of both.
    aversion : float ≥ 0
        0 only leaves the dislikes out.
    diversity : float in 0…1
        The N are taken from the best hundred by maximal marginal relevance; 0 keeps the order.
    item_users : (users, items) CSC matrix
        Of the histories: similar is who has the same users. Needed for `diversity`.
    filter_already_liked_items, filter_items, items, recalculate_user
        As in `recommend`, save that liked items are left out though `items` lists them.

    Returns
    -------
    Recommendations
        (ids, scores), at most N, in the order taken; `fallback` as in `recommend`.

    Raises
    ------
    InputError, NotFittedError
        Also for dislikes where the ranker cannot fold in rows.
    """
    N = check_integer("N", N, 1)
    check_real("aversion", aversion, 0.0)
    _check_diversity(diversity, item_users)
    if np.ndim(userid) != 0:
        raise InputError("steer takes one user at a time")
    away = np.unique(check_ids("dislikes", dislikes, getattr(ranker, "n_items_", None)))
    if items is not None and filter_items is None and filter_already_liked_items:
        ranker._check_fitted()
        filter_items, items = all_but(ranker.n_items_, items), None
    options: dict[str, Any] = {
        "filter_already_liked_items": filter_already_liked_items, "filter_items": filter_items,
        "items": items, "recalculate_user": recalculate_user,
    }  # fmt: skip
    if len(away) == 0 and diversity == 0.0:
        return ranker.recommend(userid, user_items, N=N, **options)
    enough = max(N, POOL) if diversity else N
    if len(away) == 0:
        found = ranker.recommend(userid, user_items, N=enough, **options)
        ids, scores = found
    else:
        found = ranker.recommend(userid, user_items, N=ranker.n_items_, **options)
        ids, scores = _averse(ranker, found, away, aversion)
        ids, scores = ids[:enough], scores[:enough]
    if diversity and len(ids):
        order = mmr(scores, overlap(item_users, ids), N, diversity)
        ids, scores = ids[order], scores[order]
    return Recommendations(ids, scores, found.fallback)


def similar(
    ranker: Ranker, item: int, N: int = 10, *, diversity: float = 0.0, item_users: Any = None,
    filter_items: ArrayLike | None = None, items: ArrayLike | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:  # fmt: skip
    """Return the items most similar to one, itself left out, varied as by `steer`.

    Raises
    ------
    InputError, NotFittedError
        As `similar_items`; for a diversity out of range or without `item_users`.
    """
    N = check_integer("N", N, 1)
    _check_diversity(diversity, item_users)
    if items is not None and filter_items is not None:
        raise InputError("pass filter_items or items, not both")
    allowed: dict[str, Any] = {
        "filter_items": [item, *np.atleast_1d(() if filter_items is None else filter_items)]
    }
    if items is not None:
        allowed = {"items": [k for k in np.atleast_1d(items) if k != item]}
    ids, scores = ranker.similar_items(item, N=max(N, POOL) if diversity else N, **allowed)
    if diversity and len(ids):
        order = mmr(scores, overlap(item_users, ids), N, diversity)
        ids, scores = ids[order], scores[order]
    return ids, scores


def _check_diversity(diversity: float, item_users: Any) -> None:
    check_real("diversity", diversity, 0.0, 1.0)
    if diversity and item_users is None:
        raise InputError("diversity needs item_users: the histories, as a CSC matrix")


def _averse(
    ranker: Ranker, found: Recommendations, away: NDArray[np.int64], aversion: float
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Leave dislikes out of a whole ordering and lower what they speak for."""
    if aversion and "fold-in" not in ranker.capabilities:
        raise CapabilityError(f"{ranker.name} cannot take dislikes as a history: pass aversion=0")
    keep = ~np.isin(found.ids, away)
    ids, scores = found.ids[keep], found.scores[keep].astype(np.float64)
    if aversion and len(ids):
        m = ranker.n_items_
        row = sp.csr_matrix((np.ones(len(away), np.float32), away, [0, len(away)]), (1, m))
        every, values = ranker.recommend(
            0, row, N=m, filter_already_liked_items=False, recalculate_user=True
        )
        against = np.empty(m)
        against[every] = values
        deviation = float(against.std())
        if deviation > 0:
            lowered = (against[ids] - against.mean()) / deviation
            scores = scores - aversion * float(scores.std()) * lowered
    order = np.lexsort((ids, -scores))
    return ids[order], scores[order].astype(np.float32)
