"""Disliked items: left out of a list, and similar ones lowered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recsys.errors import CapabilityError
from recsys.rankers.answers import Recommendations
from recsys.rankers.base import Ranker
from recsys.utils.sparse import row_of
from recsys.utils.validation import check_ids, check_real

DISLIKE_WEIGHT = 0.5  # standard deviations of a list that the dislikes count, unless another is given


def penalize_dislikes(
    ranker: Ranker, found: Recommendations, dislikes: ArrayLike, weight: float = DISLIKE_WEIGHT
) -> Recommendations:
    """Return a whole ordering without the disliked items, and with what they speak for lowered.

    Every score is lowered by `weight` times what the dislikes, taken as a history, would give the
    item, in standard deviations of both: s − weight · σ(s) · (d − mean(d)) / σ(d), where σ(s) is
    that of the items kept and d the scores of all items for the row of dislikes.

    Parameters
    ----------
    ranker : fitted Ranker
    found : Recommendations
        Of one user: every item that may be recommended.
    dislikes : int array
    weight : float ≥ 0
        0 only leaves the dislikes out.

    Returns
    -------
    Recommendations
        Best first, equal scores by index; `fallback` as in `found`.

    Raises
    ------
    InputError
        If an index or the weight is out of range.
    CapabilityError
        If the ranker cannot rank a row of its own, and the weight is above 0.

    Notes
    -----
    A negative profile subtracted from the positive one, as Rocchio's relevance feedback has it
    (1971), on scores instead of vectors.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> every = model.recommend(3, R[3], N=R.shape[1])
    >>> worst = int(every.ids[0])
    >>> worst in penalize_dislikes(model, every, [worst]).ids
    False
    """
    weight = check_real("weight", weight, 0.0)
    m = getattr(ranker, "n_items_", None)
    disliked = np.unique(check_ids("dislikes", dislikes, m))
    if weight and "fold-in" not in ranker.capabilities:
        raise CapabilityError(f"{ranker.name} cannot take dislikes as a history: pass a weight of 0")
    keep = ~np.isin(found.ids, disliked)
    ids, scores = found.ids[keep], found.scores[keep].astype(np.float64)
    if weight and len(ids):
        profile = row_of(disliked, ranker.n_items_)
        against = ranker.scores(0, profile, recalculate_user=True)[0].astype(np.float64)
        deviation = float(against.std())
        if deviation > 0:
            lowered = (against[ids] - against.mean()) / deviation
            scores = scores - weight * float(scores.std()) * lowered
    order = np.lexsort((ids, -scores))
    return Recommendations(ids[order], scores[order].astype(np.float32), found.fallback)
