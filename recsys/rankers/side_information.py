"""What a ranker can use of the data beyond who liked what: features of both sides, and times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from recsys.data import Interactions
from recsys.fm.encoder import encode_table

BUCKETS = 8  # quantiles that numbers such as years are cut at
RARE = 0.5  # share of distinct values above which a text column names items instead of describing them
BY_TIME = ("half-profile-time", "temporal")


def prepare(ranker: Any, data: Interactions, protocol: str | None = None) -> Any:
    """Give a ranker the features there are, and the times for validation if they are what it will face.

    Parameters
    ----------
    ranker : unfitted ranker
        Takes what it has a method for: `set_item_features`, `set_user_features`, `set_times`.
    data : Interactions
    protocol : str, optional
        How it will be evaluated; None for use, where the future is predicted if there are times.

    Returns
    -------
    The ranker itself.
    """
    if hasattr(ranker, "set_item_features"):
        ranker.set_item_features(features_of(data.item_features))
    if hasattr(ranker, "set_user_features"):
        # beside a history they cost a little accuracy: for those who have none
        cold = bool((np.diff(data.matrix.indptr) == 0).any())
        ranker.set_user_features(features_of(data.user_features) if cold else None)
    if hasattr(ranker, "set_times"):
        wanted = data.time is not None and (protocol is None or protocol in BY_TIME)
        ranker.set_times(time_matrix(data) if wanted else None)
    return ranker


def features_of(table: pd.DataFrame | None) -> sp.csr_matrix | None:
    """Return a table as features, (rows, features), without names such as titles; None without any."""
    if table is None:
        return None
    kept = [
        column
        for column in table.columns
        if column != "title"
        and (
            pd.api.types.is_numeric_dtype(table[column])
            or table[column].nunique() <= max(2, RARE * len(table))
        )
    ]
    return encode_table(table[kept], BUCKETS)[0] if kept else None


def time_matrix(data: Interactions) -> sp.csr_matrix:
    """Return when each like happened, (users, items), as places in the order of all times from 1."""
    assert data.time is not None
    places = np.unique(data.time, return_inverse=True)[1].ravel() + 1.0
    shape = (data.n_users, data.n_items)
    return sp.csr_matrix((places, (data.users, data.items)), shape)
