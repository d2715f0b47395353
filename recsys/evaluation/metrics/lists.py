"""Metrics of recommended lists beyond accuracy: how much of the catalogue they show, and how rare it is.

All have one signature: ranked ids, (users, k) with −1 for padding, and a `ListContext`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.evaluation.metrics.base import ListContext, list_metric


@list_metric(
    "coverage",
    "share of the catalogue that occurs in anybody's first k (ties by item index)",
    per_user=False,
)
def coverage(ids: ArrayLike, context: ListContext) -> float:
    """Return the share of the catalogue that occurs in the lists.

    Parameters
    ----------
    ids : (users, k) int
        −1 is padding.
    context : ListContext

    Raises
    ------
    InputError
        If the ids are none of the context's items.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, coverage
    >>> coverage([[0, 1], [1, -1]], ListContext(sp.csr_matrix((2, 4))))
    0.5
    """
    ranked = _ranked(ids, context.n_items)
    return float(len(np.unique(ranked[ranked >= 0])) / context.n_items)


@list_metric(
    "novelty",
    "mean −log2(train popularity / users) of the first k (ties by item index); an item "
    "nobody has counts as half a user's",
)
def novelty(ids: ArrayLike, context: ListContext) -> NDArray[np.float64]:
    """Return each user's mean self-information −log2(p) of the ranked ids, NaN for none.

    Parameters
    ----------
    ids, context
        As in `coverage`.

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
    ranked = _ranked(ids, context.n_items)
    share = np.maximum(context.popularity, 0.5) / context.n_users
    info = np.where(ranked >= 0, -np.log2(share[ranked]), np.nan)
    counts = (ranked >= 0).sum(axis=1)
    total = np.nansum(info, axis=1)
    return np.divide(total, counts, out=np.full(len(ranked), np.nan), where=counts > 0)


def _ranked(ids: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return ranked ids, (users, k), once each is an item or −1."""
    array = np.asarray(ids)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"ranked ids must be whole numbers, (users, k), not {array.shape} {array.dtype}"
        )
    array = array.astype(np.int64)
    if array.size and (array.min() < -1 or array.max() >= n_items):
        raise InputError(f"ranked ids must be within −1…{n_items - 1}")
    return array
