"""Calibration: whether lists have the shares of genres that a user's own items have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.data.encoding import encode_column
from recsys.errors import InputError
from recsys.evaluation.metrics.base import ListContext, list_metric
from recsys.evaluation.metrics.first_items import ranked_ids
from recsys.registry import did_you_mean

ALPHA = (
    0.01  # of the user's own distribution in the list's, so that what a list lacks costs a finite amount
)
FEATURE = "genres"
BUCKETS = 8  # quantiles that numbers such as years are cut at


@list_metric(
    "calibration",
    "miscalibration: KL divergence, in nats, of the shares of an item feature (genres, or the column "
    "after the colon) in the first k from those in the user's training items, smoothed with α = 0.01 of "
    "these (ties by item index)",
    better="less",
    takes_feature=True,
)
def calibration(
    ids: ArrayLike, context: ListContext, feature: str | None = None, alpha: float = ALPHA
) -> NDArray[np.float64]:
    """Return KL(p ‖ (1 − α) q + α p) of each user's feature shares p in training and q in the list.

    Parameters
    ----------
    ids : (users, k) int
        −1 is padding.
    context : ListContext
        With `item_features`.
    feature : str, optional
        A column of the items; "genres" when not given. A cell's values are parted at | and share one
        item's weight alike; numbers of many values are cut at their quantiles.
    alpha : float in (0, 1)

    Returns
    -------
    (users,) float64
        0 where the shares are the same. NaN where none of the user's items has the feature.

    Raises
    ------
    InputError
        If there is no such column, or the ids are none of the context's items.

    Notes
    -----
    Source: Steck 2018, (2), (3) and (6), every item of a list weighing the same. A list without the
    feature has q = 0, and log(1/α).

    Examples
    --------
    >>> import pandas as pd, scipy.sparse as sp
    >>> from recsys.evaluation.metrics import ListContext, calibration
    >>> films = pd.DataFrame({"genres": ["Drama", "War", "Drama|War", "Drama"]})
    >>> context = ListContext(sp.csr_matrix([[1, 1, 0, 0]]), item_features=films)
    >>> calibration([[2]], context), calibration([[3]], context).round(2)
    (array([0.]), array([1.96]))
    """
    ranked = ranked_ids(ids, context.n_items)
    shares = feature_shares(context, feature)
    rows = np.nonzero(ranked >= 0)[0]
    shape = (len(ranked), context.n_items)
    listed = sp.csr_matrix((np.ones(len(rows)), (rows, ranked[ranked >= 0])), shape)
    wanted = _distribution(context.profiles @ shares)
    found = _distribution(listed @ shares)
    smooth = (1.0 - alpha) * found + alpha * wanted
    ratio = np.divide(wanted, smooth, out=np.ones_like(wanted), where=wanted > 0)
    divergence = (wanted * np.log(ratio)).sum(axis=1)
    return np.where(wanted.sum(axis=1) > 0, np.maximum(divergence, 0.0), np.nan)


def feature_shares(context: ListContext, feature: str | None) -> sp.csr_matrix:
    """Return p(value | item), (items, values) float64 CSR; an empty row for an item without a value."""
    place = feature_column(context.item_features, feature)
    assert context.item_features is not None
    X = encode_column("feature", context.item_features.iloc[:, place], buckets=BUCKETS).X
    totals = np.asarray(X.sum(axis=1)).ravel()
    return sp.csr_matrix(sp.diags(1.0 / np.maximum(totals, 1.0)) @ X)


def feature_column(table: pd.DataFrame | None, feature: str | None) -> int:
    """Return the place of a column of the items' table, "genres" when none is named.

    Raises
    ------
    InputError
        If there is no such column.
    """
    columns = [] if table is None else [str(name) for name in table.columns]
    name = FEATURE if feature is None else feature
    if name not in columns:
        hint = did_you_mean(name, columns) if columns else "calibration needs a table of items"
        raise InputError(f"items have no {name!r}: {hint}; name a column, as in calibration:genres@10")
    return columns.index(name)


def _distribution(sums: sp.csr_matrix) -> NDArray[np.float64]:
    dense = np.asarray(sums.todense(), dtype=np.float64)
    return dense / np.maximum(dense.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
