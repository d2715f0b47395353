"""Readers of interaction and feature tables: strict about rows, exact about ids.

pandas' reader shifts columns when rows are one field too long, turns the ids `NA` and `001`
into NaN and 1, and renames repeated columns. Here a row has as many fields as the header or
the file is refused with the line, and ids stay the text they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import (
    ITEM_NAMES,
    RATING_NAMES,
    TIME_NAMES,
    USER_NAMES,
    Columns,
    absent,
    no_ids,
    usual,
)
from recsys.data.interactions import Interactions
from recsys.data.spreadsheets import ENDINGS, read_sheet
from recsys.errors import InputError, counted
from recsys.utils.dates import ACCEPTED, FIRST, iso_seconds, number_of
from recsys.utils.files import check_file, read_text

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Table:
    """A table of text cells: column names, columns, the line each row began on, and lines left out."""

    path: Path
    names: list[str]
    columns: list[NDArray[np.object_]]
    lines: NDArray[np.int64] | range
    ragged: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def column(self, name: str) -> NDArray[np.object_]:
        """Return a column by its name.

        Raises
        ------
        InputError
            If there is none or more than one; the message lists those found.
        """
        count = self.names.count(name)
        if count == 0:
            raise absent(str(self.path), name, self.names)
        if count > 1:
            raise InputError(f"{self.path}: {count} columns are called {name!r}; rename all but one")
        return self.columns[self.names.index(name)]

    def ids(self, name: str) -> NDArray[np.object_]:
        """Return a column of ids, which may be empty texts.

        Raises
        ------
        InputError
            If there is none or more than one, or it holds fractions.
        """
        cells = self.column(name)
        if cells.dtype.kind == "f":
            raise InputError(f"{self.path}: {name} holds fractions; ids must be text or whole numbers")
        return cells

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as finite numbers.

        Raises
        ------
        InputError
            At the first cell that is none; the message names line and value.
        """
        cells = self.column(name)
        if cells.dtype.kind == "f":
            values = cells.astype(np.float64)
        else:
            try:
                values = np.array([float(cell) for cell in cells], dtype=np.float64)
            except ValueError:
                values = np.array([_float(cell) for cell in cells], dtype=np.float64)
        bad = ~np.isfinite(values)
        if not bad.any() and cells.dtype.kind != "f":
            bad = np.array(["_" in cell for cell in cells])  # float() takes 1_000
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.path}, line {self.lines[row]}: {name} is {str(cells[row])[:40]!r}; "
                "a finite number is needed"
            )
        return values

    def times(self, name: str) -> NDArray[np.float64]:
        """Return a column of finite numbers, or of ISO dates as seconds since 1970, UTC without a zone.

        Raises
        ------
        InputError
            At the first cell that is not of the kind of the first; the message names line and value.
        """
        cells = self.column(name)
        if cells.dtype.kind == "f" or np.isfinite(number_of(cells[0])):
            return self.numbers(name)
        values = np.array([iso_seconds(cell) for cell in cells], dtype=np.float64)
        bad = np.isnan(values)
        if bad.any():
            row = int(np.argmax(bad))
            needed = f"an ISO date, as {cells[0][:40]!r} in line {self.lines[0]}," if row else ACCEPTED
            raise InputError(
                f"{self.path}, line {self.lines[row]}: {name} is {cells[row][:40]!r}; {needed} is needed"
            )
        return values


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
    what: str = "interactions",
    strict: bool = True,
) -> Table:
    """Read a delimited text file (plain or gzip), a Parquet file or an Excel file.

    Parameters
    ----------
    path : path
    separator : str, optional
        Found from the first line when not given: `::`, tab, `;`, `|`, or comma.
    names : sequence of str, optional
        Column names of a file without a header.
    encoding : str
    what : str
        What messages miss in a table without rows.
    strict : bool
        Whether a row that has another number of fields than the header, or a missing cell of a Parquet
        file, is refused. Else such rows are left out, their lines in `ragged`, and such cells are empty.

    Returns
    -------
    Table
        Cells as text. Blank lines and lines that start with # are skipped.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or a row has another number of fields than
        the header; the message names the line.
    """
    path = Path(path)
    if is_parquet(path):
        return _read_parquet(path, what, strict)
    if path.suffix.lower() in ENDINGS:
        return Table(path, *read_sheet(path, what))
    lines = read_text(path, encoding).split("\n")
    first = next((k for k, line in enumerate(lines) if _counts(line)), None)
    if first is None:
        raise InputError(f"{path}: no {what}; the file is empty")
    separator = separator or _separator(lines[first])
    rows, numbers = _rows(path, lines, separator)
    header = list(names) if names is not None else [name.strip() for name in rows[0]]
    body, numbers = (rows, numbers) if names is not None else (rows[1:], numbers[1:])
    width = len(header)
    ragged: tuple[int, ...] = ()
    if not strict:
        fits = [len(row) == width for row in body]
        ragged = tuple(line for line, fit in zip(numbers, fits, strict=True) if not fit)
        numbers = [line for line, fit in zip(numbers, fits, strict=True) if fit]
        body = [row for row, fit in zip(body, fits, strict=True) if fit]
    for row, number in zip(body, numbers, strict=True):
        if len(row) != width:
            raise InputError(
                f"{path}, line {number}: {len(row)} fields where "
                f"{'the header has' if names is None else 'there should be'} {width} "
                f"(separator {separator!r})"
            )
    if ragged and not body:
        raise InputError(
            f"{path}: no {what}; none of {counted(len(ragged), 'row')} has the {width} fields of the "
            f"header (separator {separator!r})"
        )
    if not body:
        raise InputError(f"{path}: no {what}; there is a header only")
    columns = [np.array(column, dtype=object) for column in zip(*body, strict=True)]
    return Table(path, header, columns, np.asarray(numbers), ragged)


def is_parquet(path: str | Path) -> bool:
    """Return whether a file is read as Parquet, by its ending in any case.

    Examples
    --------
    >>> is_parquet("likes.PARQUET"), is_parquet("likes.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in PARQUET


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _separator(line: str) -> str:
    return next((mark for mark in ("::", "\t", ";", "|", ",") if mark in line), ",")


def _rows(path: Path, lines: list[str], separator: str) -> tuple[list[list[str]], list[int]]:
    """Split into fields; quoted fields (which may span lines) only for one-character separators."""
    numbers = [k for k, line in enumerate(lines, 1) if _counts(line)]
    kept = [lines[k - 1] for k in numbers]
    if len(separator) > 1 or not any('"' in line for line in kept):
        return [line.split(separator) for line in kept], numbers
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, strict=True)
    rows, numbers, start = [], [], 1
    try:
        for row in reader:
            if row and _counts(lines[start - 1]):
                rows.append(row)
                numbers.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {start}: {error}") from None
    return rows, numbers


def _read_parquet(path: Path, what: str, strict: bool) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path)
    try:
        frame = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        text = str(error).split("\n")[0][:120]
        raise InputError(f"{path} is no readable Parquet file: {text}") from None
    if frame.num_rows == 0:
        raise InputError(f"{path}: no {what}; the file is empty")
    columns = []
    for name, column in zip(frame.column_names, frame.columns, strict=True):
        if column.null_count and strict:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise InputError(f"{path}, row {row + 1}: {name} is missing")
        if pa.types.is_floating(column.type):
            columns.append(column.to_numpy())
        else:
            cells = ["" if value is None else str(value) for value in column.to_pylist()]
            columns.append(np.array(cells, dtype=object))
    return Table(path, list(frame.column_names), columns, range(1, frame.num_rows + 1))


def read_interactions(
    path: str | Path,
    *,
    user_col: str | None = None,
    item_col: str | None = None,
    rating_col: str | None = None,
    time_col: str | None = None,
    min_rating: float | None = None,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
    name: str | None = None,
) -> Interactions:
    """Read interactions from a file.

    Parameters
    ----------
    path : path
    user_col, item_col : str, optional
        Column names; when not given, a usual name is looked for.
    rating_col, time_col : str, optional
        Read only when named; `rating` and `timestamp` are taken when present. Times are numbers of any
        unit, or ISO dates, which become seconds since 1970.
    min_rating : float, optional
        Rows rated below it are dropped, and counted in the notes.
    separator, names, encoding
        As in `read_table`.
    name : str, optional
        Name of the result; the file's when not given.

    Returns
    -------
    Interactions

    Raises
    ------
    InputError
        Naming file, line, value and remedy.
    """
    table = read_table(path, separator=separator, names=names, encoding=encoding)
    user_col = user_col or _usual(table, "user", USER_NAMES)
    users = _ids(table, user_col)
    item_col = item_col or _usual(table, "item", ITEM_NAMES)
    items = _ids(table, item_col)
    rating_col = rating_col or usual(table.names, RATING_NAMES)
    time_col = time_col or usual(table.names, TIME_NAMES)
    rating = table.numbers(rating_col) if rating_col else None
    time = table.times(time_col) if time_col else None
    if min_rating is not None and rating is None:
        raise InputError(f"{path}: a minimum rating needs a rating column; name it with --rating-col")
    notes = () if time is None else _notes_of(time)
    data = Interactions.from_ids(users, items, rating, time, name or Path(path).name, notes)
    data = data if min_rating is None else data.rated(min_rating)
    return replace(data, columns=Columns(user_col, item_col, rating_col, time_col, min_rating))


def _notes_of(time: NDArray[np.float64]) -> tuple[str, ...]:
    """Say where times are counted from the oldest; counts that begin at 0 lose nothing by it."""
    early = int((time < 0).sum() if time.max() < FIRST else (time <= 0).sum())
    if early == 0:
        return ()
    are = "is" if early == 1 else "are"
    return (
        f"{counted(early, 'time')} {are} not above 0, as dates before 1970 are: models count "
        "times from the oldest",
    )


def _ids(table: Table, name: str) -> NDArray[np.object_]:
    cells = table.ids(name)
    empty = cells == ""
    if empty.any():
        raise InputError(f"{table.path}, line {table.lines[int(np.argmax(empty))]}: {name} is empty")
    return cells


def _usual(table: Table, what: str, known: tuple[str, ...]) -> str:
    found = usual(table.names, known)
    if found is None:
        raise no_ids(str(table.path), what, table.names, known, f"--{what}-col", " ")
    return found


def read_features(
    path: str | Path, id_col: str | None, what: str, like: str | None = None
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

    Raises
    ------
    InputError
        If the file, the id column or an id (repeated) cannot be used.
    """
    return features_of(read_table(path, what=f"features of {what}s"), id_col, what, like)


def features_of(table: Table, id_col: str | None, what: str, like: str | None = None) -> pd.DataFrame:
    """Return a table's features indexed by id.

    Parameters and errors are those of `read_features`; where the id column is named, `what` is the
    word for the objects in messages, and may be any.
    """
    known = ITEM_NAMES if what == "item" else USER_NAMES
    id_col = id_col or _usual(table, what, (*((like,) if like else ()), *known, "id"))
    ids = _ids(table, id_col)
    repeated = pd.Index(ids).duplicated()
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InputError(f"{table.path}, line {table.lines[row]}: {what} id {ids[row]!r} occurs twice")
    columns = {n: c for n, c in zip(table.names, table.columns, strict=True) if n != id_col}
    return pd.DataFrame(columns, index=pd.Index(ids, dtype=object, name=id_col))
