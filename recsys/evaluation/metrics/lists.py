"""Metrics of all lists together: how much of the catalogue they show, and how evenly.

Both take ranked ids, (users, k) with −1 for padding, and a `ListContext`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recsys.evaluation.metrics.base import ListContext, list_metric
from recsys.evaluation.metrics.first_items import ranked_ids


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
    ranked = ranked_ids(ids, context.n_items)
    return float(len(np.unique(ranked[ranked >= 0])) / context.n_items)


@list_metric(
    "gini",
    "Gini index of how often each item of the catalogue occurs in the first k of all users: 0 where all "
    "occur alike, near 1 where one has every position (ties by item index)",
    per_user=False,
    better="less",
)
def gini(ids: ArrayLike, context: ListContext) -> float:
    """Return how unevenly the items of the catalogue occur in the lists; NaN where lists are empty.

    Parameters
    ----------
    ids, context
        As in `coverage`.

    Notes
    -----
    Σ_i (2i − n − 1) c_(i) / (n Σ_i c_i) over the counts c of all n items in ascending order, never
    recommended ones among them; at most 1 − 1/n.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, gini
    >>> context = ListContext(sp.csr_matrix((2, 4)))
    >>> gini([[0, 1], [2, 3]], context), gini([[0], [0]], context)
    (0.0, 0.75)
    """
    ranked = ranked_ids(ids, context.n_items)
    counts = np.sort(np.bincount(ranked[ranked >= 0], minlength=context.n_items))
    total = int(counts.sum())
    if total == 0:
        return float("nan")
    places = 2 * np.arange(1, len(counts) + 1) - len(counts) - 1
    return float(places @ counts / (len(counts) * total))
