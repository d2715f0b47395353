"""Tables of pandas, polars and pyarrow: columns of whatever comes in, and the same kind out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from recsys.errors import InputError, first_line
from recsys.utils.validation import check_choice

if TYPE_CHECKING:
    import narwhals as nw

KINDS = ("pandas", "polars", "pyarrow")


def wrapped(what: str, table: Any) -> nw.DataFrame[Any]:
    """Return a table behind the one interface that all kinds share; lazy ones are computed."""
    import narwhals as nw

    try:
        frame = nw.from_native(table)
    except TypeError:
        raise InputError(
            f"{what} must be a table of pandas, polars or pyarrow, not {type(table).__name__}"
        ) from None
    except (ValueError, NotImplementedError) as error:  # a column twice, columns in levels
        raise InputError(f"{what}: this table cannot be read: {first_line(error)}") from None
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def kind_of(table: nw.DataFrame[Any]) -> str:
    """Return which of `KINDS` a table is; "pandas" for any other."""
    name = table.implementation.name.lower()
    return name if name in KINDS else "pandas"


def make(
    columns: Mapping[str, Sequence[Any]],
    kind: str = "pandas",
    types: Mapping[str, type] | None = None,
) -> Any:
    """Return a table ("pandas", "polars" or "pyarrow") of columns of equal lengths.

    `types` (str, int or float) are those of columns that are empty.
    """
    check_choice("the kind of a table", kind, KINDS)
    empty: dict[str, Any] = {n: (types or {}).get(n) for n, c in columns.items() if not len(c)}
    if kind == "pandas":
        return pd.DataFrame({n: pd.Series(c, dtype=empty.get(n)) for n, c in columns.items()})
    if kind == "pyarrow":
        arrow: dict[Any, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
        return pa.table({n: pa.array(c, arrow.get(empty.get(n))) for n, c in columns.items()})
    import polars as pl

    return pl.DataFrame({n: pl.Series(n, list(c), empty.get(n)) for n, c in columns.items()})
