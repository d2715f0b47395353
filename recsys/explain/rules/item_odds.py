"""Odds of each item in a Rasch model of all interactions, which has no preferences but popularity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.utils.validation import clean_matrix

ROUNDS = 5_000
TOLERANCE = 1e-10


def item_odds(likes: Any) -> NDArray[np.float64]:
    """Return each item's odds of being liked by a user of a given activity, in a Rasch model.

    A user has an item with odds that are the user's activity times the item's odds. Both are the
    maximum of the likelihood: the expected number of interactions of each user and each item is the
    observed one. The share of users who like an item would not do. Where some users like nearly
    everything, even rare items have many interactions, all of them of these users.

    Parameters
    ----------
    likes : (users, items) sparse matrix or array
        All interactions: what is above 0.

    Returns
    -------
    (items,) float64 ≥ 0
        The greatest is 1; 0 for cold items. A constant factor means nothing.

    Raises
    ------
    InputError
        If `likes` is no sound matrix.

    Notes
    -----
    Source: Rasch 1960; activity depends on the number of a user's interactions only, and odds on the
    number of an item's, so the model has as many unknowns as there are distinct numbers. A user with all
    items, and an item of all users, count as a quarter of an interaction less, since their odds would be
    infinite. Where no finite odds have such expectations, as with very few users, they are those of the
    last iteration.

    Examples
    --------
    >>> item_odds(np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]])).round(3).tolist()
    [1.0, 0.299, 0.0]
    """
    R = clean_matrix(likes)
    lengths, counts = np.diff(R.indptr), np.bincount(R.indices, minlength=R.shape[1])
    rows, persons = np.unique(lengths[lengths > 0], return_counts=True)
    sizes, place, items = np.unique(counts[counts > 0], return_inverse=True, return_counts=True)
    if not len(rows):
        return np.zeros(R.shape[1])
    r, c = rows.astype(np.float64), sizes.astype(np.float64)
    everything, everybody = rows == items.sum(), sizes == persons.sum()
    # Subtract a quarter of an interaction for each of these, evenly from all items or users: the sums
    # stay equal.
    r -= 0.25 * everything + 0.25 * (items @ everybody) / persons.sum()
    c -= 0.25 * everybody + 0.25 * (persons @ everything) / items.sum()
    activity, odds = r / np.sqrt(r @ persons), c / np.sqrt(c @ items)
    for _ in range(ROUNDS):
        before = odds
        activity = r / ((1.0 / (1.0 + np.outer(activity, odds))) @ (items * odds))
        odds = c / ((persons * activity) @ (1.0 / (1.0 + np.outer(activity, odds))))
        top = odds.max()  # a factor that moves from one side to the other
        odds, activity = odds / top, activity * top
        if np.abs(odds / before - 1.0).max() < TOLERANCE:
            break
    out = np.zeros(R.shape[1])
    out[counts > 0] = odds[place]
    return out
