"""Tables of pandas, polars and pyarrow: columns of whatever comes in, and the same kind out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from recsys.errors import InputError, first_line

if TYPE_CHECKING:
    import narwhals as nw

KINDS = ("pandas", "polars", "pyarrow")


def wrapped(what: str, table: Any) -> nw.DataFrame[Any]:
    """Return a table behind the one interface that all kinds share; lazy ones are computed."""
    import narwhals as nw

    try:
        found = nw.from_native(table)
    except TypeError:
        raise InputError(
            f"{what} must be a table of pandas, polars or pyarrow, not {type(table).__name__}"
        ) from None
    except (ValueError, NotImplementedError) as error:  # a column twice, columns in levels
        raise InputError(f"{what}: this table cannot be read: {first_line(error)}") from None
    return found.collect() if isinstance(found, nw.LazyFrame) else found


def kind_of(table: nw.DataFrame[Any]) -> str:
    """Return which of `KINDS` a table is; "pandas" for any other."""
    name = table.implementation.name.lower()
    return name if name in KINDS else "pandas"


def column(table: nw.DataFrame[Any], name: str) -> pd.Series:
    """Return a column, its index left behind, as pandas has it."""
    native = table[name].to_native()
    if kind_of(table) == "polars":
        native = native.to_arrow()
    # Arrow's own conversion: narwhals' (2.29) drops the nulls of a dictionary.
    found = native.to_pandas() if hasattr(native, "to_pandas") else pd.Series(native)
    return found.reset_index(drop=True)


def make(
    columns: Mapping[str, Sequence[Any]],
    kind: str = "pandas",
    types: Mapping[str, type] | None = None,
) -> Any:
    """Return a table ("pandas", "polars" or "pyarrow") of columns of equal lengths.

    `types` (str, int or float) are those of columns that are empty, which do not tell.

    >>> make({"item": ["tea", "milk"], "score": [2.0, 1.0]})
       item  score
    0   tea    2.0
    1  milk    1.0
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"the kind of a table must be one of {', '.join(KINDS)}, not {kind!r}")
    known: dict[str, Any] = {
        name: None if len(columns[name]) else (types or {}).get(name) for name in columns
    }
    if kind == "pandas":
        return pd.DataFrame(
            {
                name: values if known[name] is None else pd.Series(values, dtype=known[name])
                for name, values in columns.items()
            }
        )
    if kind == "pyarrow":
        import pyarrow as pa

        arrow: dict[Any, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64(), None: None}
        return pa.table({name: pa.array(c, arrow[known[name]]) for name, c in columns.items()})
    try:
        import polars as pl
    except ImportError:
        raise InputError("a polars table needs polars: pip install polars") from None
    return pl.DataFrame(
        {name: pl.Series(name, list(c), dtype=known[name]) for name, c in columns.items()}
    )
