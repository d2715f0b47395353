"""Interactions and features out of tables in memory, of pandas, polars or pyarrow, or out of files."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, datetime
from typing import Any

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
    some,
    usual,
)
from recsys.data.encoding import SEPARATOR
from recsys.data.interactions import Interactions
from recsys.data.readers import read_features, read_interactions
from recsys.errors import InputError
from recsys.utils.dates import ACCEPTED, iso_seconds
from recsys.utils.frames import column, kind_of, pandas_of, wrapped
from recsys.utils.validation import check_real

NAME = "interactions"


def interactions_of(
    table: Any, columns: Columns, items: Any = None, users: Any = None, name: str | None = None
) -> Interactions:
    """Return the interactions in a table or a file, as `Interactions.from_frame` does.

    Parameters
    ----------
    table, items, users, name
        As there.
    columns : Columns
        An empty name, or None, is looked for.
    """
    if isinstance(table, (str, os.PathLike)):
        data = read_interactions(
            os.fspath(table), user_col=columns.user or None, item_col=columns.item or None,
            rating_col=columns.rating, time_col=columns.time, min_rating=columns.min_rating, name=name,
        )  # fmt: skip
    else:
        data = _read(table, columns, name or NAME)
    assert data.columns is not None
    features: dict[str, pd.DataFrame] = {}
    if items is not None:
        features["items"] = features_table(items, "item", data.columns.item, data.item_ids)
    if users is not None:
        features["users"] = features_table(users, "user", data.columns.user, data.user_ids)
    return data.with_features(**features) if features else data


def table_interactions(table: Any, like: Columns, name: str) -> Interactions:
    """Return the interactions in a table; its columns are called as others' are, or by a usual name.

    Raises
    ------
    InputError
        As `interactions_of`.
    """
    named = like.among(_names(name, wrapped(name, table)))
    return _read(table, checked(named, None), name)


def checked(given: dict[str, str | None], min_rating: float | None) -> Columns:
    """Return the columns asked for, an empty name where one of users or items is to be looked for.

    Raises
    ------
    InputError
        If a name is no text, one is given twice, or the least rating is no number.
    """
    for role, name in given.items():
        if name is not None and (not isinstance(name, str) or not name):
            raise InputError(f"{role} must be the name of a column, not {name!r}")
    named = [name for name in given.values() if name is not None]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise InputError(f"column {twice!r} is named for two things; name each its own")
    least = None if min_rating is None else check_real("min_rating", min_rating, -np.inf, open_low=True)
    return Columns(given["user"] or "", given["item"] or "", given["rating"], given["time"], least)


def _names(what: str, frame: Any) -> list[str]:
    """Return the columns of a table; each is text, and there once."""
    names = list(frame.columns)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{what}: column {name!r} has no name of text; rename it")
    return names


def columns_found(name: str, names: list[str], asked: Columns) -> Columns:
    """Return the columns that are meant among those there are.

    Raises
    ------
    InputError
        If one that is named is absent, or there is none of a usual name for users or items.
    """
    for given in (asked.user, asked.item, asked.rating, asked.time):
        if given and given not in names:
            raise absent(name, given, names)
    ids: dict[str, Any] = {}
    for what, given, known in (("user", asked.user, USER_NAMES), ("item", asked.item, ITEM_NAMES)):
        found = given or usual(names, known)
        if not found:
            raise no_ids(name, what, names, known, what, "=")
        ids[what] = found
    return replace(
        asked, **ids, rating=asked.rating or usual(names, RATING_NAMES),
        time=asked.time or usual(names, TIME_NAMES),
    )  # fmt: skip


def _read(table: Any, asked: Columns, name: str) -> Interactions:
    frame = wrapped(name, table)
    columns = columns_found(name, _names(name, frame), asked)
    data = Interactions.from_ids(
        _ids(column(frame, columns.user)),
        _ids(column(frame, columns.item)),
        None if columns.rating is None else column(frame, columns.rating),
        None if columns.time is None else _times(name, columns.time, column(frame, columns.time)),
        name,
    )
    if columns.min_rating is not None:
        if columns.rating is None:
            raise InputError(f"{name}: a minimum rating needs a column of ratings; name it with rating=")
        data = data.rated(columns.min_rating)
    return replace(data, columns=replace(columns, kind=kind_of(frame)))


def _ids(cells: pd.Series) -> pd.Series:
    """Return whole numbers as such where missing cells beside them had made them fractions."""
    return cells.astype("Int64") if cells.dtype.kind == "f" and _whole(cells) else cells


def _whole(cells: pd.Series) -> bool:
    known = cells.dropna()
    return len(known) < len(cells) and bool((known == np.floor(known)).all())


def _times(name: str, what: str, cells: pd.Series) -> Any:
    """Return times as they are, or ISO dates in text as seconds since 1970."""
    if not (pd.api.types.is_string_dtype(cells.dtype) or isinstance(cells.dtype, pd.CategoricalDtype)):
        return cells
    if not all(isinstance(cell, str) for cell in cells):
        return cells  # datetimes and the like; missing cells are refused by row
    seconds = np.array([iso_seconds(cell) for cell in cells])
    if np.isnan(seconds).any():
        row = int(np.argmax(np.isnan(seconds)))
        raise InputError(
            f"{name}: row {row} of {what} is {str(cells.iloc[row])[:40]!r}; {ACCEPTED} is needed"
        )
    return seconds


def features_table(table: Any, what: str, id_column: str, ids: NDArray[np.object_]) -> pd.DataFrame:
    """Return what is known of items or users, indexed by id.

    Parameters
    ----------
    table : table or path
    what : "item" or "user"
    id_column : str
        What the interactions call it; a usual name is taken where that is none of the table's.
    ids : (n,) object
        Those of the interactions.

    Raises
    ------
    InputError
        If there is no column of ids, an id is there twice or missing, or none is one of `ids`.
    """
    if isinstance(table, (str, os.PathLike)):
        found = read_features(os.fspath(table), None, what, like=id_column)
    else:
        found = _features(table, what, id_column)
    # Whole numbers in one table and their text in the other are the same ids.
    by_text = {str(name): name for name in ids}
    found = found.set_axis(pd.Index([by_text.get(str(k), k) for k in found.index], dtype=object))
    known = pd.Index(ids).isin(found.index)
    if len(found) and not known.any():
        raise InputError(
            f"{what}s: no {what} of the interactions is in this table; its ids are such as "
            f"{found.index[0]!r}, those of the interactions such as {ids[0]!r}"
        )
    return found


def _features(table: Any, what: str, id_column: str) -> pd.DataFrame:
    frame = wrapped(f"{what}s", table)
    names = _names(f"{what}s", frame)
    known = (id_column, *(ITEM_NAMES if what == "item" else USER_NAMES), "id")
    name = usual(names, known)
    if name is None and kind_of(frame) == "pandas" and _indexed(table):
        out = table.set_axis(pd.Index(list(table.index), dtype=object))
    elif name is None:
        raise InputError(
            f"{what}s: no column of ids; found: {some(names)}. Call it {id_column!r}, as the "
            "interactions do"
        )
    else:
        out = pandas_of(frame, [other for other in names if other != name])
        out.index = pd.Index(_ids(column(frame, name)).tolist(), dtype=object)
    out = out.apply(_plain_cells)
    if out.index.hasnans:
        raise InputError(f"{what}s: row {int(np.argmax(out.index.isna()))} has no id; drop such rows")
    twice = out.index.duplicated()
    if twice.any():
        raise InputError(f"{what}s: id {out.index[int(np.argmax(twice))]!r} occurs twice")
    return out


def _indexed(table: pd.DataFrame) -> bool:
    """Return whether a frame's index is of ids, and not the numbers of its rows."""
    return not isinstance(table.index, pd.RangeIndex) or table.index.name is not None


def _plain_cells(cells: pd.Series) -> pd.Series:
    """Return a column as files keep it: numbers, truth values, or text; several values joined by |."""
    kind = cells.dtype
    if pd.api.types.is_bool_dtype(kind):
        plain = [None if pd.isna(cell) else bool(cell) for cell in cells]
        return pd.Series(plain, cells.index, dtype=bool if None not in plain else object)
    if pd.api.types.is_numeric_dtype(kind):
        if pd.api.types.is_integer_dtype(kind) and not cells.hasnans:
            return pd.Series(cells.to_numpy(dtype=np.int64), cells.index)
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return pd.Series(np.where(np.isfinite(numbers), numbers, np.nan), cells.index)
    return pd.Series([_plain_cell(cell) for cell in cells.tolist()], cells.index, dtype=object)


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return SEPARATOR.join(str(part) for part in cell)
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
        return None
    if isinstance(cell, (datetime, date)):
        text = cell.isoformat()
        return text.removesuffix("T00:00:00")
    return cell if isinstance(cell, (str, bool, int, float)) else str(cell)
