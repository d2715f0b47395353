"""Reading tables: interactions, the features of items and users, and test halves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from recsys.data.columns import (
    ITEM_NAMES,
    LARGEST,
    LEADING_ZERO,
    NONE,
    TITLE,
    USER_NAMES,
    WEIGHT,
    WIDE,
    Cells,
    Columns,
    Ids,
    find_columns,
    ids_like,
    ids_of,
    kind_of_cells,
    no_role,
    numbers_of,
    plain_name,
    some,
    texts_of,
    times_of,
)
from recsys.data.interactions import Interactions, check_duplicates, check_ids, merged
from recsys.data.tables import Table, read_table
from recsys.errors import InputError
from recsys.utils.dates import date_text, dated
from recsys.utils.validation import check_choice

ROLES = ("user", "item", "rating", "time", "weight")
REASONS = {
    "fields": "rows with another number of fields than the header",
    "header": "rows that repeat the header",
    "user": "rows without a user",
    "item": "rows without an item",
    "no rating": "rows without a rating",
    "rating": "rows with a rating that is not a number",
    "no time": "rows without a time",
    "time": "rows whose time cannot be read",
    "weight": "rows with a weight that is not positive",
}  # in this order: a row counts for the first
OF_TEST = "test half: "  # begins notes on one


def read_rows(
    table: Any,
    columns: Mapping[str, str | None] | None = None,
    *,
    like: Columns | None = None,
    duplicates: str | None = None,
    decimal: str | None = None,
    day_first: bool | None = None,
    name: str | None = None,
    **form: Any,
) -> Interactions:
    """Return the rows of a table as interactions, whatever their ratings.

    `columns` are those of some of the `ROLES`, `like` the decisions of an earlier reading, and `form`
    parameters of `read_table`; the others are those of `Interactions.from_frame`.
    """
    chosen = {role: (columns or {}).get(role) for role in ROLES}
    _check(chosen, duplicates, decimal)
    if like is not None:
        decimal, duplicates = decimal or like.decimal, duplicates or like.duplicates
        day_first = like.day_first if day_first is None else day_first
    path = isinstance(table, (str, os.PathLike))
    name = name or (Path(table).name if path else "interactions")
    source = read_table(table, name=None if path else name, **form)
    options = _options(source, chosen, like)
    read = source.columns(list(dict.fromkeys(one for found in options.values() for one in found)))
    roles = {role: options[role][0] for role in ("user", "item")}
    u, i = (ids_of(source.name, one, read.pop(one), source.file) for one in roles.values())
    if len(u.codes) == 0:
        raise InputError(f"{source.name}: no interactions; the table has no rows")
    if chosen["item"] is None and like is None and len(i.ids) < 3 and len(source.names) > WIDE:
        raise no_role(source.name, "item", source.names, source.named)
    cells: dict[str, Cells] = {}
    notes = list(source.notes)
    for role in ROLES[2:]:
        named = chosen[role] is not None or getattr(like, role, None) in options[role]
        for one in options[role]:
            found = _numbers(source.name, role, one, read.pop(one), decimal, day_first, named)
            if isinstance(found, Cells):
                roles[role], cells[role] = one, found
                notes += [found.note] if found.note else []
                break
            notes.append(found)
    good, left_out = _good(source, roles, u, i, cells)
    lines = [f"{REASONS[why]}, left out: {count:,}" for why, count in left_out.items()]
    if not good.any():
        raise InputError(f"{source.name}: no valid rows; {'; '.join(lines)}")
    every = bool(good.all())
    values: dict[str, Any] = {role: column.values for role, column in cells.items()}
    values |= {"u": u.codes, "i": i.codes}
    if not every:
        values = {name: column[good] for name, column in values.items()}
    values |= {"user_ids": u.ids, "item_ids": i.ids, "duplicates": duplicates, "name": name}
    data = merged(**values, compact=not every)
    words = {role: f"{role} = {one[:60]}" for role, one in roles.items()}
    if data.time is not None and dated(data.time):
        words["time"] += f", read as {date_text(float(data.time[0]))}"
    said = [words.get(role, f"{role}: none") for role in ("user", "item", "time")]
    said += [words["weight"]] if "weight" in roles else []
    said.append(words.get("rating", "rating: none"))
    own = "" if source.named else "; the first row is read as cells, columns are called 1, 2, …"
    rows = len(good) + sum(source.left_out.values())
    lines = [f"{', '.join(said)}; rows: {rows:,}, pairs: {len(data.users):,}{own}", *lines, *notes]
    counts = [one for one in source.names if plain_name(one) in WEIGHT and one not in roles.values()]
    if counts and source.named and "weight" not in roles:
        lines.append(f"not read: {', '.join(counts)} (weight={counts[0]!r} takes counts or amounts)")
    named_roles: dict[str, Any] = dict(roles)
    decisions = Columns(
        **named_roles,
        kind=source.kind,
        decimal=next((one.decimal for one in cells.values() if one.decimal), decimal),
        day_first=next(
            (one.day_first for one in cells.values() if one.day_first is not None), day_first
        ),
        duplicates=duplicates,
    )
    return replace(data, columns=decisions, notes=(*lines, *u.notes, *i.notes, *data.notes))


def _check(chosen: dict[str, str | None], duplicates: str | None, decimal: str | None) -> None:
    for role, column in chosen.items():
        if column is not None and (not isinstance(column, str) or not column):
            raise InputError(f"{role} must be the name of a column, not {column!r}")
    named = [column for column in chosen.values() if column not in (None, NONE)]
    if len(set(named)) < len(named):
        raise InputError(f"a column has two roles ({', '.join(map(str, named))}): use one per role")
    check_duplicates(duplicates, chosen["weight"] is not None)
    if decimal is not None:
        check_choice("decimal", decimal, (".", ","))


def _options(source: Table, chosen: dict[str, str | None], like: Columns | None) -> dict[str, list[str]]:
    """Return the columns that may have each role, likeliest first: one where it is named."""
    names = source.names
    found = find_columns(names, source.named, source.first) | {"weight": []}
    named = {role: getattr(like, role, None) if one is None else one for role, one in chosen.items()}
    options: dict[str, list[str]] = {}
    for role, column in named.items():
        optional = role in ("rating", "time")
        if column in names or (chosen[role] is not None and not (column == NONE and optional)):
            options[role] = [str(column)]
        elif optional and (chosen[role] is not None or (like is not None and column is None)):
            options[role] = []  # declined
        else:
            taken = [*named.values(), *(one[0] for one in options.values() if one)]
            options[role] = [one for one in found[role] if one not in taken]
            if not options[role] and role in ("user", "item"):
                raise no_role(source.name, role, names, source.named)
    return options


def _numbers(
    where: str,
    role: str,
    name: str,
    column: Any,
    decimal: str | None,
    day_first: bool | None,
    named: bool,
) -> Cells | str:
    """Return a column for a role, or why it cannot have it."""
    if role == "time":
        cells = times_of(where, name, column, day_first)
    else:
        cells = numbers_of(column, decimal)
        if (np.abs(cells.values) > LARGEST).any():
            raise InputError(f"{where}: {name[:60]} contains numbers beyond {LARGEST:.2g}")
    filled, bad = int((~cells.missing).sum()), int(cells.unreadable.sum())
    if 2 * bad < filled or (named and not filled):
        return cells
    if named:
        such = str(column[int(np.argmax(cells.unreadable))])[:40]
        raise InputError(
            f"{where}: {name} is not a {role} column ({such!r}): {bad:,} of {filled:,} cells "
            "cannot be read"
        )
    return f"{name} is not read as a {role}: it {'holds none' if filled else 'is empty'}"


def _good(
    source: Table, roles: dict[str, str], u: Ids, i: Ids, cells: dict[str, Cells]
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return which rows can be used, and how many cannot, by reason."""
    bad: dict[str, NDArray[np.bool_]] = {}
    if source.file and source.named:
        places = [np.flatnonzero(ids.ids == roles[role]) for role, ids in (("user", u), ("item", i))]
        if all(map(len, places)):
            bad["header"] = (u.codes == places[0][0]) & (i.codes == places[1][0])
    bad |= {"user": u.codes < 0, "item": i.codes < 0}
    for role in ("rating", "time"):
        if role in cells:
            bad |= {f"no {role}": cells[role].missing, role: cells[role].unreadable}
    if "weight" in cells:
        bad["weight"] = ~(cells["weight"].values > 0)
    good = np.ones(len(u.codes), dtype=bool)
    left_out = {why: count for why, count in source.left_out.items() if count}
    for why, mask in bad.items():
        if count := int((good & mask).sum()):
            left_out[why] = count
            good &= ~mask
    return good, left_out


# ---- features of items and users


def with_tables(
    data: Interactions,
    items: Any,
    users: Any,
    cold_items: bool = False,
    item_id: str | None = None,
    user_id: str | None = None,
) -> Interactions:
    """Return the interactions with the tables of items and users, if there are such."""
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
    table: Any, what: str, like: str, ids: NDArray[np.object_], id_col: str | None = None
) -> pd.DataFrame:
    """Return the features of items or users indexed by id, one at least among `ids`."""
    if (
        isinstance(table, pd.DataFrame)
        and id_col is None
        and not isinstance(table.index, pd.RangeIndex)
        and table.index.nlevels == 1
        and _id_column(list(table.columns), what, like) is None
    ):
        table = table.rename_axis(index="id")
    found = read_features(table, id_col, what, like)
    found.index = pd.Index(ids_like(ids, found.index), dtype=object)
    check_ids(what, found.index, ids)
    return found


def _id_column(names: Sequence[str], what: str, like: str | None) -> str | None:
    known = (like, *(ITEM_NAMES if what == "item" else USER_NAMES), "id")
    found = next((name for name in known if name in names), None)
    if found is None and what in ("item", "user"):
        likely = find_columns([str(name) for name in names])[what]
        found = next((name for name in likely if plain_name(name) not in TITLE), None)
    return found


def read_features(source: Any, id_col: str | None, what: str, like: str | None = None) -> pd.DataFrame:
    """Return a table of features of `what` ("item", "user" or another word) indexed by id.

    The id column is by default `like`, or one with a usual name.
    """
    table = read_table(source, name=None if isinstance(source, (str, os.PathLike)) else f"{what}s")
    id_col = id_col or _id_column(table.names, what, like)
    if id_col is None:
        raise InputError(
            f"{table.name}: no {what} column; found: {some(table.names)}. Name the id column"
        )
    columns = table.columns([id_col, *(name for name in table.names if name != id_col)])
    ids = ids_of(table.name, id_col, columns.pop(id_col), table.file)
    if len(ids.codes) == 0:
        raise InputError(f"{table.name}: no features of {what}s; the table has no rows")
    if (ids.codes < 0).any():
        raise InputError(f"{table.name}, row {int(np.argmax(ids.codes < 0)) + 1}: {id_col} is empty")
    if len(ids.ids) < len(ids.codes):
        row = int(np.argmax(pd.Series(ids.codes).duplicated()))
        again = ids.ids[ids.codes[row]]
        raise InputError(f"{table.name}, row {row + 1}: {what} id {again!r} occurs twice")
    features = {name: feature(column) for name, column in columns.items()}
    return pd.DataFrame(features, index=pd.Index(ids.ids, dtype=object, name=id_col))


def feature(column: Any) -> NDArray[Any]:
    """Return a column as numbers, truth values, or text; several values of a cell joined by |."""
    kind = kind_of_cells(column)
    if pa.types.is_boolean(kind):
        cells = column.to_pylist()
        return np.array(cells, dtype=object if None in cells else bool)
    if pa.types.is_temporal(kind):
        cells = [None if cell is None else cell.isoformat() for cell in column.to_pylist()]
        return np.array([cell and cell.removesuffix("T00:00:00") for cell in cells], dtype=object)
    numbers = numbers_of(column)
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        codes, texts = texts_of(column)
        leading_zeros = any(map(LEADING_ZERO.match, texts))
        if numbers.missing.all() or numbers.unreadable.any() or leading_zeros:
            return np.array([text if text.strip() else None for text in texts], dtype=object)[codes]
    values = numbers.values
    whole = (values == np.floor(values)).all() and (np.abs(values) < 2**53).all()
    return values.astype(np.int64) if whole else values


# ---- test halves


def with_test(data: Interactions, test: Any, min_rating: float | None = None) -> Interactions:
    """Return the interactions with a test half marked: `Interactions.with_test`."""
    if not isinstance(test, Interactions):
        least = data.columns.min_rating if min_rating is None and data.columns else min_rating
        name = None if isinstance(test, (str, os.PathLike)) else "test"
        test = read_rows(test, like=data.columns, name=name)
        test = test.positive() if least is None or test.rating is None else test.rated(least)
    rows = np.arange(len(test.users)) if test.held_out is None else np.flatnonzero(test.held_out)
    users, _ = _matched(data, test, "user")
    _, item_ids = _matched(data, test, "item")
    known = rows[users[test.users[rows]] >= 0]
    # Items of users who are left out are none of the catalogue.
    every = pd.Index(data.item_ids).append(pd.Index(item_ids[np.unique(test.items[known])])).unique()
    u = users[test.users[known]]
    i = every.get_indexer(pd.Index(item_ids[test.items[known]], dtype=object))
    have = data.users.astype(np.int64) * len(every) + data.items
    pairs = u.astype(np.int64) * len(every) + i
    inside, added = np.isin(have, pairs), ~np.isin(pairs, have)
    columns: dict[str, Any] = {
        "users": np.concatenate([data.users, u[added]]).astype(np.int32),
        "items": np.concatenate([data.items, i[added]]).astype(np.int32),
        "held_out": np.concatenate([inside, np.ones(int(added.sum()), dtype=bool)]),
        "item_ids": every.to_numpy(dtype=object),
    }
    notes = [note for note in test.notes if test.held_out is None]
    notes.append(f"pairs: {len(pairs):,}, users: {len(np.unique(u)):,}")
    if len(known) < len(rows):
        absent_users = len(np.unique(test.users[rows])) - len(np.unique(u))
        notes.append(
            f"not among the interactions, left out: users {absent_users:,}, with pairs "
            f"{len(rows) - len(known):,}"
        )
    if len(every) > data.n_items:
        notes.append(f"items that only it has, ranked, too: {len(every) - data.n_items:,}")
    for name in ("rating", "time"):
        ours, theirs = getattr(data, name), getattr(test, name)
        if ours is not None and added.any():
            columns[name] = None if theirs is None else np.concatenate([ours, theirs[known][added]])
            if theirs is None:
                notes.append(f"it has no {name}s: those of the interactions are left out")
    if data.weight is not None:  # what is tested weighs 1: it does not train
        columns["weight"] = np.concatenate([data.weight, np.ones(int(added.sum()))])
    if data.item_features is not None and len(every) > data.n_items:
        columns["item_features"] = data.item_features.reindex(every)
    # Nothing more is said of a test half that is replaced.
    before = [note for note in data.notes if not note.startswith(OF_TEST)]
    return replace(data, notes=(*before, *(OF_TEST + note for note in notes)), **columns)


def _matched(
    data: Interactions, test: Interactions, what: str
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return the positions of the test half's ids in the data, −1 for unknown ones, and the ids."""
    known = getattr(data, f"{what}_ids")
    ids = np.array(ids_like(known, getattr(test, f"{what}_ids")), dtype=object)
    text = next((one for one in ids if type(one) is not type(known[0])), None)
    if text is not None:
        raise InputError(
            f"test: {what} ids such as {text[:60]!r} are text, but ids of the interactions "
            "are integers: use one type"
        )
    positions = pd.Index(known).get_indexer(pd.Index(ids))
    if (positions < 0).all():
        raise InputError(
            f"{test.name}: no {what} id occurs in {data.name}; ids are such as {ids[0]!r} "
            f"here and {known[0]!r} there"
        )
    return positions, ids
