"""Novelty: a list moved from popular items to rarer ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.rankers.answers import Recommendations
from recsys.reranking.diversity import POOL
from recsys.utils.validation import check_integer, check_real


def favour_rare(
    found: Recommendations, popularity: ArrayLike, novelty: float, N: int = POOL
) -> Recommendations:
    """Return the best of a list in the order of (1 − novelty)·score + novelty·rarity.

    Score and rarity are positions among these items, from 0 for the last to 1 for the first, ties alike:
    so the weight means the same whatever the scores' unit. The rarest item has the fewest users.

    Parameters
    ----------
    found : Recommendations
        Of one user, best first.
    popularity : (items,) float
        Numbers of users of all items.
    novelty : float in 0…1
        0 keeps the order.
    N : int ≥ 1
        How many of the best are ordered anew; the others are left out unless novelty is 0.

    Returns
    -------
    Recommendations
        Best first; what stands for the scores is that weighted mean, or the scores where novelty is 0.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> found = Recommendations(np.array([4, 2, 0]), np.array([0.9, 0.8, 0.1]))
    >>> favour_rare(found, [1, 0, 5, 0, 90], 0.6).ids
    array([0, 2, 4])
    """
    check_real("novelty", novelty, 0.0, 1.0)
    check_integer("N", N, 1)
    if novelty == 0 or len(found.ids) < 2:
        return found
    ids, scores = found.ids[:N], found.scores[:N]
    known = np.asarray(popularity, dtype=np.float64)[ids]
    worth = (1.0 - novelty) * _ranks(np.asarray(scores, np.float64)) + novelty * _ranks(-known)
    # Rounded: weighted means equal but for their last bit are ties, and stay in the order of the list.
    order = np.argsort(-np.round(worth, 9), kind="stable")
    return Recommendations(ids[order], worth[order].astype(np.float32), found.fallback)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks scaled from 0 for the lowest value to 1 for the highest; ties get their mean."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count) - 1
    return ((last - (count - 1) / 2) / max(len(values) - 1, 1))[which]
