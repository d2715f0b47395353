"""What a ranker can use of the data beyond who liked what: features of both sides, and times."""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class SideInformation:
    """What is known beyond who liked what, as matrices that `fit` takes.

    Attributes
    ----------
    item_features, user_features : (items, …), (users, …) float64 CSR, or None
    times : (users, items) float64 CSR, or None
    """

    item_features: sp.csr_matrix | None = None
    user_features: sp.csr_matrix | None = None
    times: sp.csr_matrix | None = None

    def of(self, ranker: Any) -> dict[str, Any]:
        """Return the keyword arguments for a ranker's `fit`: what it uses, nothing for other models."""
        uses = getattr(ranker, "uses", ())
        return {key: value for key, value in vars(self).items() if key in uses and value is not None}

    def of_items(self, items: NDArray[np.int64]) -> SideInformation:
        """Return what is known where only some of the items are left."""
        return replace(
            self,
            item_features=None if self.item_features is None else self.item_features[items],
            times=None if self.times is None else self.times[:, items],
        )


def side_information(data: Interactions, protocol: str | None = None) -> SideInformation:
    """Return what rankers can use of the data beyond who liked what.

    Parameters
    ----------
    data : Interactions
    protocol : str, optional
        How a ranker will be evaluated: times are for those that predict the future. None for use, which
        does.

    Returns
    -------
    SideInformation
        Features of users only where some have no likes: beside a history they cost a little accuracy.
    """
    cold = bool((np.diff(data.matrix.indptr) == 0).any())
    timed = data.time is not None and (protocol is None or PROTOCOLS.get(protocol).needs_time)
    return SideInformation(
        features_of(data.item_features),
        features_of(data.user_features) if cold else None,
        time_matrix(data) if timed else None,
    )


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
    """Return when each like happened, (users, items), as places in the order of all times from 1."""
    assert data.time is not None
    places = np.unique(data.time, return_inverse=True)[1].ravel() + 1.0
    shape = (data.n_users, data.n_items)
    return sp.csr_matrix((places, (data.users, data.items)), shape)
