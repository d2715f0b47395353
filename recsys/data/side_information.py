"""What a ranker can use of the data beyond who liked what: features of both sides, and times."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.encoding import Features, encode_table
from recsys.data.interactions import Interactions
from recsys.data.splits import find_protocol

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
    >>> list(known.of(FM())), list(known.of(EASE(recency=0.5))), list(known.of(EASE()))
    (['item_features'], ['times'], [])
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
        named = None if self._protocol is None else find_protocol(self._protocol)
        wanted = self._data.time is not None if named is None else named.predicts_future(self._data)
        return time_matrix(self._data) if wanted else None

    def of(
        self,
        ranker: Any,
        train: sp.csr_matrix | None = None,
        items: NDArray[np.int64] | None = None,
    ) -> dict[str, Any]:
        """Return the keyword arguments for a ranker's `fit`: what it uses, nothing for other models.

        Parameters
        ----------
        ranker : any model
            Times are for a ranker whose parameters make something of them. A model that is no ranker of
            ours names what it uses in an attribute `uses`.
        train : (users, items) sparse matrix, optional
            What it will be fitted on: it learns when these likes happened, and no other. When not given,
            all of them.
        items : (n,) int, optional
            The only items that are left, of which `train` is.
        """
        wanted = ranker.wanted() if hasattr(ranker, "wanted") else getattr(ranker, "uses", ())
        found = {key: getattr(self, key) for key in sorted(wanted) if getattr(self, key) is not None}
        if items is not None:
            if "item_features" in found:
                found["item_features"] = found["item_features"][items]
            if "times" in found:
                found["times"] = found["times"][:, items]
        if train is not None and "times" in found:
            found["times"] = found["times"].multiply(train != 0).tocsr()
        return found


def features_of(table: pd.DataFrame | None) -> sp.csr_matrix | None:
    """Return a table as features, (rows, features), without names such as titles; None without any."""
    found = described(table)
    return None if found is None else found.X


def described(table: pd.DataFrame | None) -> Features | None:
    """Return the features that `features_of` gives, with their names; None without any."""
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
    return encode_table(table[kept], buckets=BUCKETS) if kept else None


def time_matrix(data: Interactions) -> sp.csr_matrix:
    """Return when each like happened, (users, items) float64: above 0, and 0 where it is "oldest".

    The times themselves, in their unit; where some are not above 0 (dates before 1970 as Unix seconds)
    all are counted from the oldest, which is 1.
    """
    assert data.time is not None
    known = np.isfinite(data.time)
    times = np.where(known, data.time - start_of(data), 0.0)
    return sp.csr_matrix((times, (data.users, data.items)), (data.n_users, data.n_items))


def start_of(data: Interactions) -> float:
    """Return what `time_matrix` takes from all times: the oldest less 1 where that is not above 0."""
    known = np.zeros(0) if data.time is None else data.time[np.isfinite(data.time)]
    oldest = float(known.min()) if len(known) else 1.0
    return 0.0 if oldest > 0 else oldest - 1.0
