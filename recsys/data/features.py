"""Features of items and users as sparse rows, and the side information of a ranker."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data.interactions import Interactions
from recsys.data.splits import find_protocol
from recsys.utils.validation import check_choice

SEPARATOR = "|"  # of several values in a cell
NUMBERS = ("keep", "quantiles", "decades", "values")
WRITTEN_OUT = 1e15  # integers below it are written with all their digits
BUCKETS = 8  # quantiles that numbers such as years are cut at
WORDS = 20_000  # of a text column
SEVERAL = 0.2  # share of cells with a separator from which on a text column holds lists of values
RARE = 0.5  # share of distinct values above which a text column names items instead of describing them


class Features(NamedTuple):
    """The encoded features of the rows of a table."""

    X: sp.csr_matrix  # (rows, features) float64
    columns: tuple[str, ...]  # the table's column of each feature
    values: tuple[str | None, ...]  # what each feature stands for; None where it is the number itself

    @property
    def names(self) -> tuple[str, ...]:
        """`column=value` of each feature, the column alone for a number."""
        return tuple(
            column if value is None else f"{column}={value}"
            for column, value in zip(self.columns, self.values, strict=True)
        )


def encode_table(
    table: pd.DataFrame,
    *,
    numbers: str = "quantiles",
    buckets: int = 10,
    separator: str | None = SEPARATOR,
    skip: Collection[str] = (),
) -> Features:
    """Return the features of a table, by column and in the order of values.

    A missing cell gives no feature. `numbers` is the treatment of numeric columns: "keep", the number as
    one feature, 0 if missing; "quantiles", one feature per bin of columns with more than `buckets`
    values; "decades", one feature per decade of years; "values", one feature per value, as for text.
    `separator` divides the values of a text cell. Columns with lower-case names in `skip` are left out.
    """
    parts = [
        encode_column(str(name), column, numbers=numbers, buckets=buckets, separator=separator)
        for name, column in table.items()
        if str(name).lower() not in skip
    ]
    return side_by_side(parts, len(table))


def side_by_side(parts: Sequence[Features], rows: int) -> Features:
    """Return the features of several columns of so many rows as those of one table."""
    blocks = [sp.csr_matrix((rows, 0)), *(part.X for part in parts)]
    return Features(
        sp.csr_matrix(sp.hstack(blocks, format="csr")),
        tuple(column for part in parts for column in part.columns),
        tuple(value for part in parts for value in part.values),
    )


def encode_column(
    name: str,
    column: pd.Series,
    *,
    numbers: str = "quantiles",
    buckets: int = 10,
    separator: str | None = SEPARATOR,
) -> Features:
    """Return the features of one column; parameters are those of `encode_table`."""
    check_choice("numbers", numbers, NUMBERS)
    parsed = pd.to_numeric(column, errors="coerce")
    values = parsed.to_numpy(np.float64)
    numeric = bool(parsed.notna().sum() == column.notna().sum())
    if numbers == "keep" and numeric:
        return Features(sp.csr_matrix(np.nan_to_num(values)[:, None]), (name,), (None,))
    if numbers == "decades":
        decades = np.floor(values / 10) * 10
        X, found = _indicators([decade] if np.isfinite(decade) else [] for decade in decades)
        found = [f"{decade:.0f}s" for decade in found]
    elif numbers == "quantiles" and numeric and parsed.nunique() > buckets:
        # not scikit-learn's KBinsDiscretizer, which refuses missing cells
        edges = np.unique(np.nanquantile(values, np.linspace(0, 1, buckets + 1)[1:-1]))
        codes = np.searchsorted(edges, values, side="right")
        codes[np.isnan(values)] = -1
        X, found = _indicators([str(code)] if code >= 0 else [] for code in codes)
        found = ranges([values[codes == int(code)] for code in found])
    else:
        text = column.where(column.notna(), "").astype(str)
        parts = ([cell] if separator is None else map(str.strip, cell.split(separator)) for cell in text)
        X, found = _indicators([part for part in cell if part] for cell in parts)
    return Features(X, (name,) * len(found), tuple(found))


def ranges(groups: Sequence[NDArray[np.float64]]) -> list[str]:
    """Return each group of numbers as its lowest and its highest, that alone where they are the same.

    Numbers have as many digits as tell the groups, and the two ends of each, apart.
    """
    spans = [(float(group.min()), float(group.max())) for group in groups]
    for digits in (4, 6, 9, 17):
        ends = [tuple(_written(end, digits) for end in span) for span in spans]
        apart = all((a == b) == (low == high) for (a, b), (low, high) in zip(ends, spans, strict=True))
        if apart and len(set(ends)) == len(ends):
            break
    return [low if low == high else f"{low}–{high}" for low, high in ends]


def _written(number: float, digits: int) -> str:
    whole = number.is_integer() and abs(number) < WRITTEN_OUT
    return f"{number:.0f}" if whole else f"{number:.{digits}g}"


def _indicators(cells: Iterable[Sequence[Any]]) -> tuple[sp.csr_matrix, list[Any]]:
    """Return a 0/1 matrix with a column for each value that occurs in a cell, and the values sorted."""
    # as scikit-learn's MultiLabelBinarizer, which takes most of a second to import
    rows = [list(dict.fromkeys(cell)) for cell in cells]
    flat = np.array([value for row in rows for value in row], dtype=object)
    values, codes = np.unique(flat, return_inverse=True)
    indptr = np.cumsum([0, *map(len, rows)])
    X = sp.csr_matrix((np.ones(len(flat)), codes, indptr), shape=(len(rows), len(values)))
    X.sort_indices()
    return X, values.tolist()


# ---- what a ranker gets


class SideInformation:
    """Features and times for rankers, computed when a ranker first needs them.

    Times are for protocols in time and for production (None).
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

    def of(self, ranker: Any, train: sp.csr_matrix | None = None) -> dict[str, Any]:
        """Return the side information for a ranker's `fit`; nothing for other models.

        Times are only for rankers with parameters that use them. Other models name their side
        information in an attribute `uses`. The times are those of the interactions in `train`.
        """
        wanted = ranker.wanted() if hasattr(ranker, "wanted") else getattr(ranker, "uses", ())
        found = {key: getattr(self, key) for key in sorted(wanted) if getattr(self, key) is not None}
        if "item_texts" in found:
            parts = [found.pop(key) for key in ("item_features", "item_texts") if key in found]
            found["item_features"] = sp.csr_matrix(sp.hstack(parts, format="csr"))
        if train is not None and "times" in found:
            found["times"] = found["times"].multiply(train != 0).tocsr()
        return found


def features_of(table: pd.DataFrame | None) -> sp.csr_matrix | None:
    """Return a table as features, (rows, features), without names such as titles; None without any."""
    if table is None:
        return None
    described = [column for column in table.columns if _describes(column, table[column])]
    return encode_table(table[described], buckets=BUCKETS).X if described else None


def texts(table: pd.DataFrame | None) -> Features | None:
    """Return features of the text columns that `features_of` leaves out; None without any.

    A feature is a value of a cell with several values, or a lower-case word, that occurs twice; the
    most frequent `WORDS` of a column are kept.
    """
    if table is None:
        return None
    parts: list[Features] = []
    for name in table.columns:
        if _describes(name, table[name]):
            continue
        cells = table[name].where(table[name].notna(), "").astype(str)
        several = cells.str.contains(SEPARATOR, regex=False).mean() > SEVERAL
        X, found = _indicators((_values if several else _words)(cell) for cell in cells)
        counts = X.getnnz(axis=0)
        kept = np.flatnonzero(counts > 1)
        kept = np.sort(kept[np.argsort(-counts[kept])[:WORDS]])
        if len(kept):
            names = (str(name),) * len(kept)
            parts.append(Features(X[:, kept], names, tuple(found[k] for k in kept)))
    return side_by_side(parts, len(table)) if parts else None


def _values(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]


def _words(cell: str) -> list[str]:
    return re.findall(r"\w\w+", cell.lower())


def _describes(name: Any, column: pd.Series) -> bool:
    """Return whether a column's values describe rows: numbers, or text that does not name each row."""
    few = column.nunique() <= max(2, RARE * len(column))
    return name != "title" and bool(few or pd.api.types.is_numeric_dtype(column))


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
