"""Readers of interaction and feature tables: strict about rows, exact about ids.

pandas' reader shifts columns when rows are one field too long, turns the ids `NA` and `001`
into NaN and 1, and renames repeated columns. Here a row has as many fields as the header or
the file is refused with the line, and ids stay the text they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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
from recsys.data.delimited import read_delimited
from recsys.data.interactions import Interactions
from recsys.data.parquet import read_parquet
from recsys.data.profiles import check_plain, is_profiles, profiles_of, read_split
from recsys.data.spreadsheets import ENDINGS, read_sheet
from recsys.errors import InputError, counted
from recsys.utils.dates import ACCEPTED, FIRST, iso_seconds, number_of

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Table:
    """A table of text cells: names, columns, the line each row began on, lines left out, and notes."""

    path: Path
    names: list[str]
    columns: list[NDArray[np.object_]]
    lines: NDArray[np.int64] | range
    ragged: Sequence[int] = ()
    notes: tuple[str, ...] = ()

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
                values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
            except ValueError:
                values = np.fromiter(map(_float, cells), dtype=np.float64, count=len(cells))
        bad = ~np.isfinite(values)
        if not bad.any() and cells.dtype.kind != "f":
            bad = np.fromiter(("_" in cell for cell in cells), bool, len(cells))  # float() takes 1_000
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
    wanted: Callable[[list[str]], Sequence[str]] | None = None,
    max_rows: int | None = None,
) -> Table:
    """Read a delimited text file (plain or gzip), a Parquet file or an Excel file.

    Parameters
    ----------
    path : path
    separator : str, optional
        Found from the first lines when not given: `::`, tab, `;`, `|`, or comma.
    names : sequence of str, optional
        Column names of a file without a header.
    encoding : str
    what : str
        What messages miss in a table without rows.
    strict : bool
        Whether a row that has another number of fields than the header, or a missing cell or a column
        of lists in a Parquet file, is refused. Else such rows are left out, their lines in `ragged`,
        such cells are empty, and such columns left out with a note.
    wanted : callable, optional
        Returns, of the names of a Parquet file's columns, those to read; all when not given.
    max_rows : int, optional
        A file that has more is refused.

    Returns
    -------
    Table
        Cells as text. Blank lines are skipped, and so are lines that start with # before the header;
        after it such a line is a row if it has as many fields as the header, else a comment. How many
        there are of both is in `notes`.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, unpacks to too much, or a row has another number of
        fields than the header; the message names the line.
    """
    path = Path(path)
    if is_parquet(path):
        return Table(path, *read_parquet(path, what, wanted=wanted, strict=strict, max_rows=max_rows))
    if path.suffix.lower() in ENDINGS:
        table = Table(path, *read_sheet(path, what))
        if max_rows is not None and len(table) > max_rows:
            raise InputError(f"{path} has {len(table):,} rows; at most {max_rows:,} are read")
        return table
    cells = read_delimited(
        path, what, separator=separator, names=names, encoding=encoding, strict=strict,
        max_rows=max_rows,
    )  # fmt: skip
    return Table(path, *cells)


def is_parquet(path: str | Path) -> bool:
    """Return whether a file is read as Parquet, by its ending in any case.

    Examples
    --------
    >>> is_parquet("likes.PARQUET"), is_parquet("likes.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in PARQUET


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
    like: Columns | None = None,
) -> Interactions:
    """Read interactions from a file, or from a folder with train.txt and test.txt.

    A .txt whose first line is whole numbers alone has a line a user: the user, then the items, as the
    files in such a folder. `recsys.data.profiles` reads them; columns cannot be named there.

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
    like : Columns, optional
        Names that are taken where the file has them, before usual ones.

    Returns
    -------
    Interactions
        Of a folder with test.txt, its pairs are marked in `held_out`.

    Raises
    ------
    InputError
        Naming file, line, value and remedy.
    """
    folder = os.path.isdir(path)
    if names is None and separator is None and (folder or is_profiles(path)):
        check_plain(
            path, user_col=user_col, item_col=item_col, rating_col=rating_col, time_col=time_col,
            min_rating=min_rating,
        )  # fmt: skip
        return (read_split if folder else profiles_of)(path, name)
    known = like or Columns("", "")

    def chosen(there: list[str]) -> Columns:
        alike = known.among(there)
        return Columns(
            _there(path, there, user_col) or alike["user"] or _usual(path, there, "user", USER_NAMES),
            _there(path, there, item_col) or alike["item"] or _usual(path, there, "item", ITEM_NAMES),
            rating_col or alike["rating"] or usual(there, RATING_NAMES),
            time_col or alike["time"] or usual(there, TIME_NAMES), min_rating,
        )  # fmt: skip

    def wanted(there: list[str]) -> list[str]:
        found = chosen(there)
        return [name for name in (found.user, found.item, found.rating, found.time) if name is not None]

    table = read_table(path, separator=separator, names=names, encoding=encoding, wanted=wanted)
    columns = chosen(table.names)
    users, items = _ids(table, columns.user), _ids(table, columns.item)
    rating = table.numbers(columns.rating) if columns.rating else None
    time = table.times(columns.time) if columns.time else None
    if min_rating is not None and rating is None:
        raise InputError(f"{path}: a minimum rating needs a rating column; name it with --rating-col")
    notes = (*table.notes, *(() if time is None else _notes_of(time)))
    data = Interactions.from_ids(users, items, rating, time, name or Path(path).name, notes)
    data = data if min_rating is None else data.rated(min_rating)
    return replace(data, columns=columns)


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


def _there(path: str | Path, names: list[str], given: str | None) -> str | None:
    if given is not None and given not in names:
        raise absent(str(path), given, names)
    return given


def _usual(path: str | Path, names: list[str], what: str, known: tuple[str, ...]) -> str:
    found = usual(names, known)
    if found is None:
        raise no_ids(str(path), what, names, known, f"--{what}-col", " ")
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
    # an empty cell is no fault of Parquet's where it is none of text; a column of lists is
    table = read_table(path, what=f"features of {what}s", strict=not is_parquet(path))
    if table.notes and is_parquet(path):
        raise InputError(f"{path}: {table.notes[0]}; write several values as text, joined by |")
    return features_of(table, id_col, what, like)


def features_of(table: Table, id_col: str | None, what: str, like: str | None = None) -> pd.DataFrame:
    """Return a table's features indexed by id.

    Parameters and errors are those of `read_features`; where the id column is named, `what` is the
    word for the objects in messages, and may be any.
    """
    known = ITEM_NAMES if what == "item" else USER_NAMES
    id_col = id_col or _usual(table.path, table.names, what, (*((like,) if like else ()), *known, "id"))
    ids = _ids(table, id_col)
    repeated = pd.Index(ids).duplicated()
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InputError(f"{table.path}, line {table.lines[row]}: {what} id {ids[row]!r} occurs twice")
    columns = {n: c for n, c in zip(table.names, table.columns, strict=True) if n != id_col}
    return pd.DataFrame(columns, index=pd.Index(ids, dtype=object, name=id_col))
