"""Readers of tables: which kind a file is of, its cells as text, and features by id.

Interactions are read in `recsys.data.reading`, from these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.cells import coded, factorized, numbers_of
from recsys.data.columns import ITEM_NAMES, USER_NAMES, Spelling, absent, no_ids, some, usual
from recsys.data.delimited import DelimitedRows
from recsys.data.json_tables import JsonRows, is_json
from recsys.data.parquet import ParquetRows
from recsys.data.roles import KNOWN
from recsys.data.rows import Rows, check_once
from recsys.data.sources import Source
from recsys.data.spreadsheets import ENDINGS, SheetRows
from recsys.errors import InputError, counted
from recsys.utils.files import shown

PARQUET = (".parquet", ".pq")
OPTIONS = ("delimiter", "names", "header", "encoding")  # that decide the form of a file


@dataclass(frozen=True)
class Table:
    """A table of cells."""

    path: str | Path  # what messages call it
    names: list[str]
    columns: list[NDArray[Any]]  # text, or floating point of a Parquet file
    rows: Rows | None = None  # where they came from, which tells where a row is
    notes: tuple[str, ...] = field(default=())  # what was decided about its form

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def where(self, row: int) -> str:
        """Return where a row is: "line 7"."""
        return (
            f"row {row + 1}" if self.rows is None else self.rows.where([row]).get(row, f"row {row + 1}")
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return a column by its name."""
        if name not in self.names:
            raise absent(str(self.path), name, self.names)
        check_once(str(self.path), name, self.names)
        return self.columns[self.names.index(name)]

    def ids(self, name: str) -> NDArray[np.object_]:
        """Return a column of ids as text."""
        found = coded(str(self.path), name, self.column(name), as_text=True)
        if (found.codes < 0).any():
            row = int(np.argmax(found.codes < 0))
            raise InputError(f"{self.path}, {self.where(row)}: {name} is empty")
        return found.ids[found.codes]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as finite numbers."""
        cells = self.column(name)
        found = numbers_of(str(self.path), name, pd.Series(cells))
        bad = ~np.isfinite(found.values)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.path}, {self.where(row)}: {name} is {str(cells[row])[:40]!r}; a finite number "
                "is needed"
            )
        return found.values


def open_rows(path: str | Path, what: str, interface: str = "python", **form: Any) -> Rows:
    """Return a file as a table that is not read yet.

    It is delimited text, JSON (lines or an array), Parquet or Excel; text plain or packed by gzip, bz2,
    xz or zstd, or alone in a zip archive. `form` is delimiter, names, header and encoding, decided by
    the file where they are None. `what` is what messages miss in a table without rows.
    """
    path, spelling = Path(path), Spelling(interface)
    given = {key: value for key, value in form.items() if value is not None}
    names = given.get("names")
    if isinstance(names, str) or (names is not None and len(set(names)) < len(list(names))):
        raise InputError(f"{spelling.of('names').rstrip('=')} must be names of columns, each once")

    def only(kind: str, *allowed: str) -> None:
        for key in given:
            if key not in allowed:
                option = (
                    spelling.of(key).rstrip("=")
                    if key != "header"
                    else spelling.choice("header", bool(given[key]))
                )
                raise InputError(f"{shown(path)}: {option} is for delimited text, and this is {kind}")

    if is_parquet(path):
        only("Parquet")
        return ParquetRows(path, what)
    if path.suffix.lower() in ENDINGS:
        only("Excel", "names", "header")
        return SheetRows(path, what, known=KNOWN, **given)
    source = Source(path, given.pop("encoding", None))
    if not given and is_json(source.head()[0]):
        return JsonRows(source, what)
    rows = DelimitedRows(source, what, known=KNOWN, **given)
    if (
        names is not None
        and rows.form.sample
        and all(len(r) != len(rows.names) for r in rows.form.sample)
    ):
        fields = len(rows.form.sample[0])
        raise InputError(
            f"{shown(path)}: {counted(len(rows.names), 'name')} for {counted(fields, 'column')}; "
            f"{spelling.of('names').rstrip('=')} names every column"
        )
    return rows


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
    what: str = "interactions",
    max_rows: int | None = None,
) -> Table:
    """Read all cells of a table as text, missing ones empty; the form is decided as by `open_rows`.

    Blank lines are skipped, and so are lines that start with # before the header; after it such a line
    is a row if it has as many fields as the header, else a comment, which is counted in `notes`. Another
    number of fields than the header's is refused.
    """
    plain = str(path).lower().endswith((*PARQUET, *ENDINGS))
    form: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "names": names}
    if not plain:
        form["header"] = True if names is None else None
    rows = open_rows(path, what, **form)
    every = range(len(rows.names))
    if isinstance(rows, ParquetRows) and (lists := [rows.names[k] for k in every if rows.nested(k)]):
        raise InputError(
            f"{path}: {counted(len(lists), 'column')} of several values a cell: {some(lists)}; write "
            "several values as text, joined by |"
        )
    columns = rows.read(every, ["text"] * len(every), max_rows)
    if rows.ragged:
        raise InputError(f"{path}, {rows.ragged_at()}")
    if len(columns[0]) == 0:
        only = "there is a header only" if rows.header and names is None else "the file is empty"
        raise InputError(f"{path}: no {what}; {only}")
    return Table(path, rows.names, [_plain(column) for column in columns], rows, tuple(rows.notes))


def _plain(column: Any) -> NDArray[Any]:
    """Return a column as text, or as floats where it is of floats; equal texts are one in memory."""
    if not isinstance(column, pd.Series):
        import pyarrow as pa

        if pa.types.is_floating(column.type):
            return column.to_numpy()
    elif column.dtype.kind == "f":
        return np.asarray(column, dtype=np.float64)
    coded("", "", column, as_text=True)  # which refuses fractions among texts
    codes, values = factorized("", "", column)
    texts = np.array(
        [*("" if v is None else v if isinstance(v, str) else str(v) for v in values), ""], dtype=object
    )
    return texts[codes]


def is_parquet(path: str | Path) -> bool:
    """Return whether a file is read as Parquet, by its ending in any case.

    >>> is_parquet("likes.PARQUET"), is_parquet("likes.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in PARQUET


def read_features(
    path: str | Path, id_col: str | None, what: str, like: str | None = None, interface: str = "terminal"
) -> pd.DataFrame:
    """Read a table of item or user features, indexed by id.

    Parameters
    ----------
    path : path
    id_col : str, optional
        The id column; a usual name is looked for when not given.
    what : "item" or "user"
    like : str, optional
        What the interactions call the ids: taken before the usual names, where the table has it.
    interface : str
        As in `Spelling`.

    Raises
    ------
    InputError
        If the file, the id column or an id (repeated) cannot be used.
    """
    return features_of(read_table(path, what=f"features of {what}s"), id_col, what, like, interface)


def features_of(
    table: Table, id_col: str | None, what: str, like: str | None = None, interface: str = "terminal"
) -> pd.DataFrame:
    """Return a table's features indexed by id.

    Parameters and errors are those of `read_features`; where the id column is named, `what` is the
    word for the objects in messages, and may be any.
    """
    known = ITEM_NAMES if what == "item" else USER_NAMES
    id_col = id_col or usual(table.names, (*((like,) if like else ()), *known, "id"))
    if id_col is None:
        option = f"{what}_id" if interface == "terminal" else what
        raise no_ids(str(table.path), what, table.names, known, Spelling(interface), option)
    ids = table.ids(id_col)
    repeated = pd.Index(ids).duplicated()
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InputError(f"{table.path}, {table.where(row)}: {what} id {ids[row]!r} occurs twice")
    columns = {n: c for n, c in zip(table.names, table.columns, strict=True) if n != id_col}
    return pd.DataFrame(columns, index=pd.Index(ids, dtype=object, name=id_col))
