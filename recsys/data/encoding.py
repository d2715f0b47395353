"""Feature tables as sparse rows: one feature a value, numbers kept or cut, several values in a cell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.utils.validation import check_choice

SEPARATOR = "|"  # of several values in a cell
NUMBERS = ("keep", "quantiles", "decades", "values")
WRITTEN_OUT = 1e15  # integers below it are written with all their digits


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

    Each row describes an object; a missing cell gives no feature. `numbers` is the treatment of numeric
    columns: "keep", the number as one feature, 0 if missing; "quantiles", one feature per bin of columns
    with more than `buckets` values; "decades", one feature per decade of years; "values", one feature
    per value, as for text. `separator` divides the values of a text cell. Columns with lower-case names
    in `skip` are left out.

    >>> import pandas as pd
    >>> from recsys.data.encoding import encode_table
    >>> found = encode_table(pd.DataFrame({"year": [1994, 2001], "genres": ["Drama|War", "War"]}))
    >>> found.names
    ('year=1994', 'year=2001', 'genres=Drama', 'genres=War')
    >>> found.X.toarray()
    array([[1., 0., 1., 1.],
           [0., 1., 0., 1.]])
    """
    parts = [
        encode_column(
            str(name), table.iloc[:, position], numbers=numbers, buckets=buckets, separator=separator
        )
        for position, name in enumerate(table.columns)
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
    """Return the features of one column; arguments and errors as in `encode_table`.

    >>> import pandas as pd
    >>> from recsys.data.encoding import encode_column
    >>> encode_column("year", pd.Series([1994, None, 1999]), numbers="decades").names
    ('year=1990s',)
    """
    check_choice("numbers", numbers, NUMBERS)
    parsed = pd.to_numeric(column, errors="coerce")
    values = parsed.to_numpy(np.float64)
    numeric = bool(parsed.notna().sum() == column.notna().sum())
    if numbers == "decades":
        decades = np.floor(values / 10) * 10
        X, found = _indicators([[d] if np.isfinite(d) else [] for d in decades])
        return _features(name, X, [f"{d:.0f}s" for d in found])
    if numbers == "keep" and numeric:
        kept = sp.csr_matrix(np.nan_to_num(values)[:, None])
        return Features(kept, (name,), (None,))
    if numbers == "quantiles" and numeric and parsed.nunique() > buckets:
        # not scikit-learn's KBinsDiscretizer, which refuses missing cells
        edges = np.unique(np.nanquantile(values, np.linspace(0, 1, buckets + 1)[1:-1]))
        codes = np.searchsorted(edges, values, side="right")
        cells = [[str(c)] if k else [] for c, k in zip(codes, parsed.notna(), strict=True)]
        X, found = _indicators(cells)
        return _features(name, X, ranges([values[codes == int(code)] for code in found]))
    text = column.where(column.notna(), "").astype(str)
    if separator is None:
        return _features(name, *_indicators([[cell] if cell else [] for cell in text]))
    parts = ([part.strip() for part in cell.split(separator)] for cell in text)
    return _features(name, *_indicators([[part for part in cell if part] for cell in parts]))


def ranges(groups: Sequence[NDArray[np.float64]]) -> list[str]:
    """Return each group of numbers as its lowest and its highest, that alone where they are the same.

    Integers are written out; others with so many digits that no two groups read alike, nor the two
    ends of one. No group is empty, and no number lies in the range of another group.

    >>> import numpy as np
    >>> ranges([np.array([20.0, 29.0]), np.array([30.5, 31.25]), np.array([40.0, 40.0])])
    ['20–29', '30.5–31.25', '40']
    """
    spans = [(float(group.min()), float(group.max())) for group in groups]
    for digits in (4, 6, 9, 17):
        ends = [(_written(low, digits), _written(high, digits)) for low, high in spans]
        apart = all((a == b) == (low == high) for (a, b), (low, high) in zip(ends, spans, strict=True))
        if apart and len(set(ends)) == len(ends):
            break
    return [low if low == high else f"{low}–{high}" for low, high in ends] if spans else []


def _written(number: float, digits: int) -> str:
    whole = number.is_integer() and abs(number) < WRITTEN_OUT
    return f"{number:.0f}" if whole else f"{number:.{digits}g}"


def _features(name: str, X: sp.csr_matrix, values: Sequence[str]) -> Features:
    return Features(X, (name,) * len(values), tuple(values))


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
