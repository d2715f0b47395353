"""Data for a ranker besides interactions: features of both sides, and times."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.encoding import SEPARATOR, Features, encode_table, side_by_side
from recsys.data.interactions import Interactions
from recsys.data.splits import find_protocol

BUCKETS = 8  # quantiles that numbers such as years are cut at
WORDS = 20_000  # of a text column
SEVERAL = 0.2  # share of cells with a separator from which on a text column holds lists of values
RARE = 0.5  # share of distinct values above which a text column names items instead of describing them


class SideInformation:
    """Features and times for rankers, computed when a ranker first needs them.

    Times are for protocols in time and for production (None).

    >>> from recsys import EASE, FM, load_dataset
    >>> known = SideInformation(load_dataset("sample"))
    >>> list(known.of(FM())), list(known.of(EASE(recency=0.5))), list(known.of(EASE()))
    (['item_features'], ['times'], [])
    """

    def __init__(self, data: Interactions, protocol: str | None = None) -> None:
        self._data, self._protocol = data, protocol

    @cached_property
    def item_features(self) -> sp.csr_matrix | None:
        """Features of the items."""
        return features_of(self._data.item_features)

    @cached_property
    def item_texts(self) -> sp.csr_matrix | None:
        """Features of the items' texts, titles included."""
        found = texts(self._data.item_features)
        return None if found is None else found.X

    @cached_property
    def user_features(self) -> sp.csr_matrix | None:
        """Features of the users, if some users have no interactions."""
        cold = bool((np.diff(self._data.matrix.indptr) == 0).any())
        return features_of(self._data.user_features) if cold else None

    @cached_property
    def times(self) -> sp.csr_matrix | None:
        """When each interaction happened, if the future is to be predicted."""
        named = None if self._protocol is None else find_protocol(self._protocol)
        wanted = self._data.time is not None if named is None else named.predicts_future(self._data)
        return time_matrix(self._data) if wanted else None

    def of(
        self,
        ranker: Any,
        train: sp.csr_matrix | None = None,
        items: NDArray[np.int64] | None = None,
    ) -> dict[str, Any]:
        """Return the side information for a ranker's `fit`; nothing for other models.

        Times are only for rankers with parameters that use them. Other models name their side
        information in an attribute `uses`. The times are those of the interactions in `train`; `items`
        are the remaining columns of `train`.
        """
        wanted = ranker.wanted() if hasattr(ranker, "wanted") else getattr(ranker, "uses", ())
        found = {key: getattr(self, key) for key in sorted(wanted) if getattr(self, key) is not None}
        if "item_texts" in found:
            known = [found[key] for key in ("item_features", "item_texts") if key in found]
            found["item_features"] = sp.csr_matrix(sp.hstack(known, format="csr"))
            del found["item_texts"]
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


def texts(table: pd.DataFrame | None) -> Features | None:
    """Return features of the text columns that `described` leaves out; None without any.

    A feature is a value of a cell with several values, or a lower-case word. It occurs in at least two
    rows; the most frequent `WORDS` features of a column are kept. The vocabulary gives names for
    explanations.

    >>> import pandas as pd
    >>> texts(pd.DataFrame({"title": ["The Red Door", "A red car", "Car"]})).names
    ('title=car', 'title=red')
    """
    from sklearn.feature_extraction.text import CountVectorizer  # late: it takes half a second

    if table is None:
        return None
    parts: list[Features] = []
    for name in table.columns:
        column = table[name]
        if _describes(name, column):
            continue
        cells = column.where(column.notna(), "").astype(str)
        several = cells.str.contains(SEPARATOR, regex=False).mean() > SEVERAL
        counter = CountVectorizer(
            tokenizer=_values if several else _words,
            token_pattern=None,
            lowercase=False,
            min_df=2,
            max_features=WORDS,
            binary=True,
            dtype=np.float64,
        )
        try:
            X = counter.fit_transform(cells)
        except ValueError:  # no value or word stands in two rows
            continue
        values = tuple(str(value) for value in counter.get_feature_names_out())
        parts.append(Features(sp.csr_matrix(X), (str(name),) * len(values), values))
    return side_by_side(parts, len(table)) if parts else None


def _values(cell: str) -> list[str]:
    """Return the values of a cell that holds several."""
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]


def _words(cell: str) -> list[str]:
    """Return the words of two letters or digits at least, in lower case."""
    return re.findall(r"\w\w+", cell.lower())


def described(table: pd.DataFrame | None) -> Features | None:
    """Return the features that `features_of` gives, with their names; None without any."""
    if table is None:
        return None
    kept = [column for column in table.columns if _describes(column, table[column])]
    return encode_table(table[kept], buckets=BUCKETS) if kept else None


def _describes(name: Any, column: pd.Series) -> bool:
    """Return whether a column's values describe rows: numbers, or text that does not name each row."""
    if name == "title":
        return False
    return bool(pd.api.types.is_numeric_dtype(column) or column.nunique() <= max(2, RARE * len(column)))


def time_matrix(data: Interactions) -> sp.csr_matrix:
    """Return the times of all interactions, (users, items) float64: above 0, and 0 where it is "oldest".

    The times themselves, in their unit; where some are not above 0 (dates before 1970 as Unix seconds)
    all are counted from the oldest, which is 1.
    """
    assert data.time is not None
    known = np.isfinite(data.time)
    times = np.where(known, data.time - start_of(data), 0.0)
    return sp.csr_matrix((times, (data.users, data.items)), (data.n_users, data.n_items))


def start_of(data: Interactions) -> float:
    """Return the shift that `time_matrix` subtracts: the oldest time less 1 if that is not above 0."""
    known = np.zeros(0) if data.time is None else data.time[np.isfinite(data.time)]
    oldest = float(known.min()) if len(known) else 1.0
    return 0.0 if oldest > 0 else oldest - 1.0
