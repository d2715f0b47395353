"""One user's list: the best items, away from dislikes, varied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import CapabilityError, InputError
from recsys.rankers.answers import Recommendations
from recsys.rankers.base import Ranker
from recsys.reranking.dislikes import DISLIKE_WEIGHT, penalize_dislikes
from recsys.reranking.diversity import POOL, check_diversity, diversify
from recsys.reranking.merchandising import Merchandising
from recsys.utils.topn import all_but
from recsys.utils.validation import check_ids, check_integer, check_real


def rerank(
    ranker: Ranker, userid: int, user_items: Any, N: int = 10, *, dislikes: ArrayLike = (),
    dislike_weight: float = DISLIKE_WEIGHT, diversity: float = 0.0, item_users: Any = None,
    filter_already_liked_items: bool = True, filter_items: ArrayLike | None = None,
    items: ArrayLike | None = None, recalculate_user: bool = False, times: Any = None,
    merchandising: Merchandising | None = None,
) -> Recommendations:  # fmt: skip
    """Return one user's best items, as `recommend` does, away from dislikes and varied.

    Parameters
    ----------
    ranker : fitted Ranker
    userid : int
    user_items : (1, items) sparse matrix
    N : int ≥ 1
    dislikes : int array
        Never returned; what goes with them is lowered, see `penalize_dislikes`.
    dislike_weight : float ≥ 0
        How much it is lowered; 0 only leaves the dislikes out.
    diversity : float in 0…1
        The N are taken from the best hundred by maximal marginal relevance; 0 keeps the order.
    item_users : (users, items) CSC matrix
        Of the histories: similar is who has the same users. Needed for `diversity`.
    filter_already_liked_items, filter_items, items, recalculate_user, times
        As in `recommend`, save that liked items are left out though `items` lists them.
    merchandising : Merchandising, optional
        Pinned items, boosts, how many items of a brand and of a protected group: of what may be in the
        list.

    Returns
    -------
    Recommendations
        (ids, scores), at most N, in the order taken; `fallback` as in `recommend`.

    Raises
    ------
    InputError, NotFittedError
        Also for dislikes where the ranker cannot fold in rows.

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
    if diversity and merchandising is not None and merchandising.fair is not None:
        raise InputError("fair and diversity each order the list: leave one of them out")
    dislike_weight = check_real("dislike_weight", dislike_weight, 0.0)
    check_diversity(diversity, item_users)
    if np.ndim(userid) != 0:
        raise InputError("rerank takes one user at a time")
    disliked = check_ids("dislikes", dislikes, getattr(ranker, "n_items_", None))
    if len(disliked) and dislike_weight and "fold-in" not in ranker.capabilities:
        raise CapabilityError(f"{ranker.name} cannot take dislikes as a history: pass dislike_weight=0")
    if items is not None and filter_items is None and filter_already_liked_items:
        ranker._check_fitted()
        filter_items, items = all_but(ranker.n_items_, items), None
    options: dict[str, Any] = {
        "filter_already_liked_items": filter_already_liked_items, "filter_items": filter_items,
        "items": items, "recalculate_user": recalculate_user, "times": times,
    }  # fmt: skip
    if merchandising is not None or len(disliked):
        found = ranker.recommend(userid, user_items, N=ranker.n_items_, **options)
        found = found if merchandising is None else merchandising.boosted(found)
        if len(disliked):
            found = penalize_dislikes(ranker, found, disliked, dislike_weight)
    else:
        found = ranker.recommend(userid, user_items, N=max(N, POOL) if diversity else N, **options)
    if merchandising is None:
        return diversify(found, N, diversity, item_users)
    pinned, others = merchandising.applied(found, max(N, POOL) if diversity else N)
    others = diversify(others, N, diversity, item_users)
    return Recommendations(
        np.concatenate((pinned.ids, others.ids))[:N],
        np.concatenate((pinned.scores, others.scores))[:N],
        found.fallback,
    )
