"""What a ranker can use of the data beyond who liked what: features of both sides, and times."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.encoding import encode_table
from recsys.data.interactions import Interactions
from recsys.data.splits import PROTOCOLS

BUCKETS = 8  # quantiles that numbers such as years are cut at
RARE = 0.5  # share of distinct values above which a text column names items instead of describing them


class SideInformation:
    """What rankers can use of some data beyond who liked what, made when the first of them asks.

    Parameters
    ----------
    data : Interactions
    protocol : str, optional
        How a ranker will be evaluated: times are for those that predict the future. None for use, which
        does.

    Attributes
    ----------
    item_features, user_features : (items, …), (users, …) float64 CSR, or None
        Of users only where some have no likes: beside a history they cost a little accuracy.
    times : (users, items) float64 CSR, or None

    Examples
    --------
    >>> from recsys import EASE, FM, load_dataset
    >>> known = SideInformation(load_dataset("sample"))
    >>> list(known.of(FM())), known.of(EASE())
    (['item_features'], {})
    """

    def __init__(self, data: Interactions, protocol: str | None = None) -> None:
        self._data, self._protocol = data, protocol

    @cached_property
    def item_features(self) -> sp.csr_matrix | None:
        """What is known of the items."""
        return features_of(self._data.item_features)

    @cached_property
    def user_features(self) -> sp.csr_matrix | None:
        """What is known of the users, if there are some without likes."""
        cold = bool((np.diff(self._data.matrix.indptr) == 0).any())
        return features_of(self._data.user_features) if cold else None

    @cached_property
    def times(self) -> sp.csr_matrix | None:
        """When each like happened, if the future is to be predicted."""
        wanted = self._protocol is None or PROTOCOLS.get(self._protocol).needs_time
        return time_matrix(self._data) if wanted and self._data.time is not None else None

    def of(self, ranker: Any, items: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Return the keyword arguments for a ranker's `fit`: what it uses, nothing for other models.

        Parameters
        ----------
        ranker : any model
        items : (n,) int, optional
            The only items that are left.
        """
        uses = sorted(getattr(ranker, "uses", ()))
        found = {key: getattr(self, key) for key in uses if getattr(self, key) is not None}
        if items is not None:
            if "item_features" in found:
                found["item_features"] = found["item_features"][items]
            if "times" in found:
                found["times"] = found["times"][:, items]
        return found


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
    return encode_table(table[kept], buckets=BUCKETS).X if kept else None


def time_matrix(data: Interactions) -> sp.csr_matrix:
    """Return when each like happened, (users, items) float64: above 0, and 0 where it is "oldest".

    The times themselves, in their unit; where some are not above 0 (dates before 1970 as Unix seconds)
    their places in the order of all, from 1.
    """
    assert data.time is not None
    values, places = np.unique(data.time, return_inverse=True)
    known = values[np.isfinite(values)]
    if len(known) and known[0] > 0:
        times = np.where(np.isfinite(data.time), data.time, 0.0)
    else:
        times = places.ravel() + 1.0
    return sp.csr_matrix((times, (data.users, data.items)), (data.n_users, data.n_items))
