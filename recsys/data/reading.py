"""Reading a table of interactions, or of the features of items or users."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import (
    ITEM_NAMES,
    MISSING,
    NONE,
    TITLE,
    USER_NAMES,
    WEIGHT,
    Cells,
    Columns,
    absent,
    find_columns,
    ids_of,
    no_role,
    numbers_of,
    parsed,
    plain_name,
    some,
    times_of,
    usual,
)
from recsys.data.interactions import Interactions, check_duplicates, merged
from recsys.data.tables import Table, read_table
from recsys.errors import InputError
from recsys.utils.dates import FIRST
from recsys.utils.validation import check_choice, check_real

NAME = "interactions"
REASONS = {
    "fields": "rows with another number of fields than the header",
    "header": "rows that repeat the header",
    "user": "rows without a user",
    "item": "rows without an item",
    "unrated": "rows without a rating",
    "rating": "rows whose rating is no number",
    "untimed": "rows without a time",
    "time": "rows whose time cannot be read",
    "weight": "rows whose weight is no number above 0",
}  # in this order: a row counts for the first


def read(
    table: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    items: Any = None,
    users: Any = None,
    min_rating: float | None = None,
    duplicates: str | None = None,
    names: Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    day_first: bool | None = None,
    name: str | None = None,
    cold_items: bool = False,
    like: Columns | None = None,
    plain: bool = False,
    keep_zero: bool = False,
) -> Interactions:
    """Return the interactions in a table or a file: `Interactions.from_frame`.

    Further parameters: `like`, decisions of an earlier reading; `plain`, no note on the reading;
    `keep_zero` keeps rows rated at or below 0, which an update uses to remove likes.
    """
    chosen = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight}
    least = _checked(chosen, min_rating, duplicates, decimal)
    if like is not None:
        decimal = like.decimal if decimal is None else decimal
        day_first = like.day_first if day_first is None else day_first
        duplicates = like.duplicates if duplicates is None else duplicates

    def wanted(source: Table) -> dict[str, bool]:
        roles, maybe = _roles(source, chosen, like)
        candidates = [one for options in maybe.values() for one in options]
        return {one: one in (roles["user"], roles["item"]) for one in (*roles.values(), *candidates)}

    path = isinstance(table, (str, os.PathLike))
    name = name or (Path(table).name if path else NAME)
    source = read_table(
        table,
        wanted=wanted,
        names=names,
        header=header,
        delimiter=delimiter,
        encoding=encoding,
        name=None if path else name,
    )
    where = source.name
    roles, maybe = _roles(source, chosen, like)
    cells, notes = _cells(source, roles, maybe, decimal, day_first)
    if least is not None and "rating" not in roles:
        raise InputError(f"{where}: a minimum rating needs a column of ratings: name it with rating=")
    rows = len(cells["user"].codes)
    if rows == 0:
        raise InputError(f"{where}: no {NAME}")
    good, left_out = _good(source, roles, cells)
    if not good.any():
        told = ", ".join(f"{REASONS[why]}: {count:,}" for why, count in left_out.items())
        raise InputError(f"{where}: no valid rows; {told}")
    every = bool(good.all())

    def kept(values: Any) -> Any:
        return values if every else values[good]

    def values(role: str) -> Any:
        return kept(cells[role].values) if role in cells else None

    data = merged(
        kept(cells["user"].codes),
        kept(cells["item"].codes),
        cells["user"].ids,
        cells["item"].ids,
        values("rating"),
        values("time"),
        values("weight"),
        duplicates,
        name,
        compact=not every,
    )
    marks = {cells[role].decimal for role in ("rating", "weight") if role in cells} - {None}
    first = cells["time"].day_first if "time" in cells else None
    columns = Columns(
        roles["user"],
        roles["item"],
        roles.get("rating"),
        roles.get("time"),
        None,
        source.kind,
        roles.get("weight"),
        decimal or ("," if "," in marks else None),
        day_first if first is None else first,
        duplicates,
    )
    lines = [f"{REASONS[why]}, left out: {count:,}" for why, count in left_out.items()]
    if not plain:
        lines = [_described(source, roles, cells, rows, data), *lines, *notes, *_early(data.time)]
        if "," in marks and decimal is None:
            lines.append("numbers have a decimal comma: 4,5 is read as 4.5")
    data = replace(data, columns=columns, notes=(*lines, *data.notes))
    if least is not None:
        data = data.rated(least)
    elif not keep_zero:
        data = data.positive()
    return described(data, items, users, cold_items)


def read_interactions(path: str | Path, **decisions: Any) -> Interactions:
    """Read interactions from a file; the parameters are those of `Interactions.from_frame`."""
    return read(os.fspath(path), **decisions)


def _checked(
    chosen: dict[str, str | None], min_rating: float | None, duplicates: str | None, decimal: str | None
) -> float | None:
    for role, given in chosen.items():
        if given is not None and (not isinstance(given, str) or not given):
            raise InputError(f"{role} must be the name of a column, not {given!r}")
    taken = [given for given in chosen.values() if given not in (None, NONE)]
    if len(set(taken)) < len(taken):
        twice = next(given for given in taken if taken.count(given) > 1)
        raise InputError(f"column {twice!r} has two roles: use one column per role")
    check_duplicates(duplicates, chosen["weight"] is not None)
    if decimal is not None:
        check_choice("decimal", decimal, (".", ","))
    if min_rating is None:
        return None
    return check_real("min_rating", min_rating, -np.inf, open_low=True)


def _roles(
    source: Table, chosen: dict[str, str | None], like: Columns | None
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the column of each role, and of the other roles the columns that have its names."""
    names, own, where = source.names, source.named, source.name
    found = find_columns(names, own, source.first)
    found["weight"] = [one for one in names if plain_name(one) in WEIGHT] if own else []
    declined = {
        role
        for role in ("rating", "time")
        if chosen[role] == NONE and NONE not in names or like is not None and getattr(like, role) is None
    } | ({"weight"} if like is not None else set())
    roles: dict[str, str] = {}
    for role, given in chosen.items():
        if given is not None and not (given == NONE and role in declined):
            if given not in names:
                raise absent(where, given, names, own)
            roles[role] = given
    for role, given in chosen.items():
        before = getattr(like, role, None)
        if given is None and before in names and before not in roles.values():
            roles[role] = before

    def free(role: str) -> list[str]:
        return [one for one in found[role] if one not in roles.values()]

    for role in ("user", "item"):
        if role not in roles:
            if not free(role):
                raise no_role(where, role, names, own)
            roles[role] = free(role)[0]
    others = [role for role in ("rating", "time", "weight") if role not in roles]
    return roles, {role: free(role) for role in others if role not in declined}


def _cells(
    source: Table,
    roles: dict[str, str],
    maybe: dict[str, list[str]],
    decimal: str | None,
    day_first: bool | None,
) -> tuple[dict[str, Cells], list[str]]:
    """Return the parsed columns; candidates with matching cells take their roles."""
    where, notes = source.name, list(source.notes)
    cells = {
        role: ids_of(where, roles[role], source.column(roles[role]), source.file)
        for role in ("user", "item")
    }
    for role in ("rating", "time", "weight"):
        named = role in roles
        for one in [roles[role]] if named else maybe.get(role, []) if role != "weight" else []:
            if not named and one in roles.values():
                continue
            column = source.column(one)
            try:
                if role == "time":
                    found = times_of(where, one, column, day_first)
                else:
                    found = numbers_of(where, one, column, decimal)
            except InputError as error:
                if named or role == "time" or "must be" not in str(error):
                    raise
                notes.append(f"{one} holds no numbers: it is not read as a {role}")
                continue
            filled, bad = int((~found.missing).sum()), int(found.unreadable.sum())
            if named and filled and 2 * bad >= filled:
                such = f" ({found.example[:40]!r})" if found.example else ""
                raise InputError(
                    f"{where}: {one} is not a {role} column{such}: {bad:,} of {filled:,} "
                    "cells cannot be read"
                )
            if not named and 2 * bad >= filled:
                holds = "holds none" if filled else "is empty"
                notes.append(f"{one} is called as {role}s are, but {holds}: it is not read")
                continue
            roles[role], cells[role] = one, found
            break
    notes += [note for one in cells.values() for note in one.notes]
    if source.index:
        notes.append(f"{', '.join(source.index)} taken from the index")
    counts = [one for one in maybe.get("weight", []) if one not in roles.values()]
    if counts:
        notes.append(f"not read: {', '.join(counts)} (weight={counts[0]!r} takes counts or amounts)")
    return cells, notes


def _good(
    source: Table, roles: dict[str, str], cells: dict[str, Cells]
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return which rows can be used, and how many cannot, by reason."""
    u, i = cells["user"], cells["item"]
    bad: dict[str, NDArray[np.bool_]] = {}
    if source.file and source.header:
        at = [
            next((k for k, one in enumerate(ids.ids) if one == roles[role]), -2)
            for role, ids in (("user", u), ("item", i))
        ]
        bad["header"] = (u.codes == at[0]) & (i.codes == at[1])
    bad |= {"user": u.codes < 0, "item": i.codes < 0}
    if "rating" in cells:
        bad |= {"unrated": cells["rating"].missing, "rating": cells["rating"].unreadable}
    if "time" in cells:
        bad |= {"untimed": cells["time"].missing, "time": cells["time"].unreadable}
    if "weight" in cells:
        bad["weight"] = ~(cells["weight"].values > 0)
    good = np.ones(len(u.codes), dtype=bool)
    left_out = {"fields": source.ragged} if source.ragged else {}
    for why, mask in bad.items():
        count = int((good & mask).sum())
        if count:
            left_out[why] = count
            good &= ~mask
    return good, left_out


def _described(
    source: Table, roles: dict[str, str], cells: dict[str, Cells], rows: int, data: Interactions
) -> str:
    """Return which columns were read as what, and how many rows became interactions."""
    parts = []
    for role in ("user", "item", "time", "weight", "rating"):
        if role in roles:
            read_as = cells[role].read_as
            parts.append(f"{role} = {roles[role][:60]}{f', read as {read_as}' if read_as else ''}")
        elif role != "weight":
            parts.append(f"{role}: none")
    own = "" if source.named else "; the first row is read as cells, columns are called 1, 2, …"
    return f"{', '.join(parts)}; rows: {rows + source.ragged:,}, pairs: {len(data.users):,}{own}"


def _early(time: NDArray[np.float64] | None) -> list[str]:
    """Say where times are counted from the oldest; counts that begin at 0 lose nothing by it."""
    if time is None or not len(time):
        return []
    early = int((time < 0).sum() if time.max() < FIRST else (time <= 0).sum())
    return (
        [f"times that are not above 0: {early:,}; models count times from the oldest"] if early else []
    )


# ---- features of items and users


def described(
    data: Interactions,
    items: Any,
    users: Any,
    cold_items: bool = False,
    item_id: str | None = None,
    user_id: str | None = None,
) -> Interactions:
    """Return the interactions with features of items and users."""
    columns = data.columns or Columns()
    features: dict[str, pd.DataFrame] = {}
    if items is not None:
        features["items"] = features_table(items, "item", columns.item, data.item_ids, item_id)
    if users is not None:
        features["users"] = features_table(users, "user", columns.user, data.user_ids, user_id)
    if not features:
        return data
    data = data.with_features(cold_items=cold_items, **features)
    if data.columns is not None:
        data = replace(data, columns=replace(data.columns, cold_items=cold_items))
    if users is not None and len(np.unique(data.users)) == data.n_users:
        note = "no model reads the user table, as every user has interactions"
        data = replace(data, notes=(*data.notes, note))
    return data


def features_table(
    table: Any, what: str, id_column: str, ids: NDArray[np.object_], id_col: str | None = None
) -> pd.DataFrame:
    """Return the features of items or users indexed by id, one at least among `ids`."""
    if (
        isinstance(table, pd.DataFrame)
        and id_col is None
        and _indexed(table)
        and not _usual(table.columns, what, id_column)
    ):
        table = table.rename_axis(index="id").reset_index()
    found = read_features(table, id_col, what, id_column)
    if len(ids) and isinstance(ids[0], int):  # integers in one table and text in the other are the same
        by_text = {str(one): one for one in ids}
        found.index = pd.Index([by_text.get(str(one), one) for one in found.index], dtype=object)
    elif len(found) and not isinstance(found.index[0], str):
        found.index = pd.Index([str(one) for one in found.index], dtype=object)
    if len(found) and not pd.Index(ids).isin(found.index).any():
        raise InputError(
            f"{what}s: no {what} id of this table occurs in the interactions; ids are "
            f"such as {found.index[0]!r} here and {ids[0]!r} there"
        )
    return found


def _indexed(table: pd.DataFrame) -> bool:
    return not isinstance(table.index, pd.RangeIndex) and table.index.nlevels == 1


def _usual(names: Any, what: str, like: str | None) -> str | None:
    known = ITEM_NAMES if what == "item" else USER_NAMES
    found = usual(list(names), (*((like,) if like else ()), *known, "id"))
    if found is None and what in ("item", "user"):
        told = find_columns([str(name) for name in names])[what]
        found = next((name for name in told if plain_name(name) not in TITLE), None)
    return found


def read_features(source: Any, id_col: str | None, what: str, like: str | None = None) -> pd.DataFrame:
    """Return a table of features indexed by id.

    Parameters
    ----------
    source : path or table
    id_col : str, optional
        The id column; by default `like` or a column with a usual name.
    what : str
        "item" or "user", or with `id_col` any word for the objects.
    like : str, optional
        Name of the id column of the interactions.
    """
    table = read_table(source, name=None if isinstance(source, (str, os.PathLike)) else f"{what}s")
    id_col = id_col or _usual(table.names, what, like)
    if id_col is None:
        raise InputError(
            f"{table.name}: no {what} column; found: {some(table.names)}. Name the id column"
        )
    ids = ids_of(table.name, id_col, table.column(id_col), table.file)
    if len(ids.codes) == 0:
        raise InputError(f"{table.name}: no features of {what}s; there is a header only")
    if (ids.codes < 0).any():
        raise InputError(f"{table.name}, row {int(np.argmax(ids.codes < 0)) + 1}: {id_col} is empty")
    if len(ids.ids) < len(ids.codes):
        row = int(np.argmax(pd.Series(ids.codes).duplicated()))
        again = ids.ids[ids.codes[row]]
        raise InputError(f"{table.name}, row {row + 1}: {what} id {again!r} occurs twice")
    columns = {name: feature(table.column(name)) for name in table.names if name != id_col}
    return pd.DataFrame(columns, index=pd.Index(ids.ids, dtype=object, name=id_col))


def feature(column: Any) -> Any:
    """Return a column as numbers, truth values, or text; several values of a cell joined by |."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        cells = column.to_pylist()
        return np.array(cells, dtype=object if None in cells else bool)
    if pa.types.is_integer(kind) and column.null_count == 0:
        return column.cast(pa.int64()).to_numpy()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole(np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64))
    cells = column.to_pylist()
    if pa.types.is_temporal(kind):
        texts = [None if cell is None else cell.isoformat().removesuffix("T00:00:00") for cell in cells]
        return np.array(texts, dtype=object)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        cells = [
            None if cell is None else "|".join(map(str, cell)) if isinstance(cell, list) else str(cell)
            for cell in cells
        ]
    stripped = ["" if cell is None else cell.strip() for cell in cells]
    filled = [text for text in stripped if text.lower() not in MISSING]
    leading = any(len(text) > 1 and text[0] == "0" and text[1].isdigit() for text in filled)
    if filled and not leading:
        distinct = list(dict.fromkeys(filled))
        values, _ = parsed(distinct)
        if np.isfinite(values).all():
            of = dict(zip(distinct, values, strict=True))
            return _whole(np.array([of.get(text, np.nan) for text in stripped]))
    return np.array(
        [cell if text else None for cell, text in zip(cells, stripped, strict=True)], dtype=object
    )


def _whole(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return whole numbers without a gap as integers."""
    values[~np.isfinite(values)] = np.nan
    fine = np.isfinite(values).all() and (values == np.floor(values)).all()
    return values.astype(np.int64) if fine and (np.abs(values) < 2**53).all() else values
