"""Popularity and novelty of recommended items: expectations over the orders of tied items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.evaluation.metrics.base import ListContext, set_metric
from recsys.evaluation.metrics.first_items import FirstItems


@set_metric(
    "novelty",
    "mean −log2(train popularity / users) of the first k; a cold item counts as half a user's",
)
def novelty(first: ArrayLike | FirstItems, context: ListContext) -> NDArray[np.float64]:
    """Return each user's mean self-information −log2(p) of the first items, NaN for none.

    Parameters
    ----------
    first : (users, k) int, or FirstItems
        Ranked ids, −1 is padding.
    context : ListContext

    Returns
    -------
    (users,) float64

    Raises
    ------
    InputError
        If the ids are none of the context's items.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, novelty
    >>> novelty([[0, 1], [-1, -1]], ListContext(sp.csr_matrix([[1, 0], [1, 1]])))
    array([0.5, nan])
    """
    share = np.maximum(context.popularity, 0.5) / context.n_users
    return context.first(first).mean(-np.log2(share))


@set_metric(
    "arp",
    "average recommendation popularity: mean number of users who have the first k in training",
    better="",
)
def average_popularity(first: ArrayLike | FirstItems, context: ListContext) -> NDArray[np.float64]:
    """Return how many users have the first items in training, on average; arguments as in `novelty`.

    Notes
    -----
    Source: Yin et al. 2012.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, average_popularity
    >>> average_popularity([[0, 1]], ListContext(sp.csr_matrix([[1, 0], [1, 1]])))
    array([1.5])
    """
    return context.first(first).mean(context.popularity)


@set_metric(
    "popularity-lift",
    "how much more popular the first k are than the user's own items in training: the ratio of the mean "
    "numbers of users who have them, less 1; without a value for a user who has none",
    better="",
)
def popularity_lift(first: ArrayLike | FirstItems, context: ListContext) -> NDArray[np.float64]:
    """Return the popularity of the first items over that of the profile, less 1.

    Parameters
    ----------
    first, context
        As in `novelty`; the profiles are the rows of `context.users` in training.

    Notes
    -----
    Source: the popularity lift of Abdollahpouri et al. 2020, for each user in place of a group.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, popularity_lift
    >>> train = sp.csr_matrix([[0, 1, 0], [1, 0, 1], [1, 0, 0]])
    >>> popularity_lift([[0], [1]], ListContext(train, users=[0, 1]))
    array([ 1.        , -0.33333333])
    """
    found = average_popularity(context.first(first), context)
    profiles = context.profiles
    length = np.diff(profiles.indptr)
    own = np.divide(
        profiles @ context.popularity, length, out=np.full(len(length), np.nan), where=length > 0
    )
    return found / own - 1.0
