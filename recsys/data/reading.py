"""The one reading of a table of interactions, for Python, the command line and the app.

It decides what is not given: header, delimiter, encoding, decimal mark, which columns are users, items,
ratings and times, and what times are. What it decided and what became of every row is in the notes of
what it returns, and each decision is overruled by the same word everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.cells import Coded, Numbers, Times, coded, numbers_of, times_of
from recsys.data.columns import ITEM_NAMES, USER_NAMES, Columns, Spelling, absent, no_ids, some, usual
from recsys.data.delimited import DelimitedRows
from recsys.data.encoding import SEPARATOR
from recsys.data.interactions import Interactions, check_duplicates, merged
from recsys.data.readers import open_rows, read_features
from recsys.data.roles import EXACT, Looks, Roles, find_roles, looks_of, proposals, strength_of
from recsys.data.row_counts import FAULTS, RowCounts
from recsys.data.rows import Rows, check_once
from recsys.errors import InputError, counted
from recsys.utils.dates import ACCEPTED, FIRST
from recsys.utils.frames import column, kind_of, pandas_of, wrapped
from recsys.utils.validation import check_choice, check_real

NAME = "interactions"
NONE = "none"  # of ratings or times: that there are none, whatever columns are called
SAMPLE = 1_000  # rows of a frame that are looked at
MOST_LOOKS = 200  # columns beyond which only those with a telling name are looked at
LAST = 3  # rows at the end among which rows of totals are looked for
TOTALS = frozenset(
    "total totals sum summe gesamt gesamtsumme somme totale suma razem totaal grandtotal".split()
)
FORM = ("delimiter", "names", "header", "encoding")


class FrameRows(Rows):
    """A table of pandas, polars or pyarrow; levels of an index with names are columns, too."""

    def __init__(self, name: str, table: Any) -> None:
        self.taken: list[str] = []
        if isinstance(table, pd.DataFrame):
            for twice in table.columns[table.columns.duplicated()]:
                check_once(name, twice, list(table.columns))
            levels = [level for level in table.index.names if level is not None]
            self.taken = [str(level) for level in levels if level not in table.columns]
            if self.taken:
                table = table.reset_index([level for level in levels if level in self.taken])
        self.frame = wrapped(name, table)
        names = list(self.frame.columns)
        for one in names:
            if not isinstance(one, str):
                raise InputError(f"{name}: column {one!r} has no name of text; rename it")
        super().__init__(name, names)

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return the first cells of a column."""
        return column(self.frame.head(SAMPLE), self.names[k]).to_numpy(dtype=object)

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return columns; as of `Rows`."""
        return [column(self.frame, self.names[k]) for k in used]

    def where(self, rows: Sequence[int]) -> dict[int, str]:
        """Return where rows are."""
        return {row: f"row {row}" for row in rows}


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
    like: Columns | None = None,
    interface: str = "python",
    max_rows: int | None = None,
    keep_zero: bool = False,
) -> Interactions:
    """Return the interactions in a table or a file: `Interactions.from_frame`, for every interface.

    Other parameters than those of `from_frame`:

    - like: names that are taken where the table has them, before usual ones
    - interface: as of `Spelling`; of a dataset, whose form is known, notes do not say how it was read
    - max_rows: a table that has more is refused
    - keep_zero: keep rows rated at or below 0: an update takes interactions back by them
    """
    spelling = Spelling(interface)
    named = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight}
    if name is not None and not isinstance(name, str):
        raise InputError(f"name must be text, not {name!r}")
    least = _checked(named, min_rating, duplicates, decimal, weight, spelling)
    form = {"delimiter": delimiter, "names": names, "header": header, "encoding": encoding}
    if isinstance(table, (str, os.PathLike)):
        path = os.fspath(table)
        rows: Rows = open_rows(path, NAME, interface, **form)
        name, kind = name or Path(path).name, "pandas"
    else:
        for key, value in form.items():
            if value is not None:
                raise InputError(f"{spelling.of(key).rstrip('=')} is for files; a table has its columns")
        rows = FrameRows(name or NAME, table)
        name, kind = name or NAME, kind_of(rows.frame)
    if like is not None:
        if weight is None and like.weight in rows.names:
            weight = named["weight"] = like.weight
        decimal = like.decimal if decimal is None else decimal
        day_first = like.day_first if day_first is None else day_first
        duplicates = like.duplicates if duplicates is None else duplicates
    roles, looks = _roles(rows, named, like, spelling)
    columns = Columns(
        rows.names[roles.user], rows.names[roles.item],  # type: ignore[index]
        None if roles.rating is None else rows.names[roles.rating],
        None if roles.time is None else rows.names[roles.time], None, kind, weight,
    )  # fmt: skip
    if least is not None and columns.rating is None:
        raise InputError(
            f"{rows.name}: a minimum rating needs a column of ratings; name it with "
            f"{spelling.of('rating').rstrip('=')}"
        )
    data = _read(
        rows, columns, roles, looks, weight, name, decimal=decimal, day_first=day_first,
        duplicates=duplicates, spelling=spelling, max_rows=max_rows,
    )  # fmt: skip

    if least is not None:
        data = data.rated(least)
    elif not keep_zero:
        data = data.positive()
    return _described(data, items, users)


def read_interactions(path: str | Path, **decisions: Any) -> Interactions:
    """Read interactions from a file.

    Parameters
    ----------
    path : path
    **decisions
        As of `Interactions.from_frame`.

    """
    return read(os.fspath(path), **decisions)


def _checked(
    named: dict[str, str | None], min_rating: float | None, duplicates: str | None, decimal: str | None,
    weight: str | None, spelling: Spelling,
) -> float | None:  # fmt: skip
    """Check what was given, and return the least rating as a number."""
    for role, given in named.items():
        if given is not None and (not isinstance(given, str) or not given):
            raise InputError(
                f"{spelling.of(role).rstrip('=')} must be the name of a column, not {given!r}"
            )
    chosen = [given for given in named.values() if given not in (None, NONE)]
    if len(set(chosen)) < len(chosen):
        twice = next(given for given in chosen if chosen.count(given) > 1)
        raise InputError(f"column {twice!r} is given for two roles: give each role a column of its own")
    check_duplicates(duplicates, weight is not None, spelling)
    if decimal is not None:
        check_choice(spelling.of("decimal").rstrip("="), decimal, (".", ","))
    return (
        None
        if min_rating is None
        else check_real(spelling.of("min_rating").rstrip("="), min_rating, -np.inf, open_low=True)
    )


def _roles(
    rows: Rows, named: dict[str, str | None], like: Columns | None, spelling: Spelling
) -> tuple[Roles, list[Looks]]:
    """Return which columns are meant, and what each is like."""
    names = rows.names
    chosen: dict[str, int | None] = {}
    for role, given in named.items():
        if given is not None:
            if given == NONE and given not in names and role in ("rating", "time"):
                chosen[role] = None
                continue
            if given not in names:
                error = absent(rows.name, given, names)
                raise error if rows.header else InputError(f"{error}; {_no_header(rows, spelling)}")
            check_once(rows.name, given, names)
            chosen[role] = names.index(given)
    for role, alike in ({} if like is None else like.among(names)).items():
        if role in chosen:
            continue
        if alike is not None and names.index(alike) not in chosen.values():
            chosen[role] = names.index(alike)
        elif role in ("rating", "time") and getattr(like, role) is None:
            chosen[role] = None  # as declined before
    looks = _looks(rows, [k for k in chosen.values() if k is not None])
    roles = find_roles(names, looks, chosen, rows.header)
    for role, place, known in (("user", roles.user, USER_NAMES), ("item", roles.item, ITEM_NAMES)):
        if place is None:
            raise no_ids(rows.name, role, names, known, spelling, role)
        check_once(rows.name, names[place], names)
    return roles, looks


def _looks(rows: Rows, chosen: Sequence[int] = ()) -> list[Looks]:
    """Return looks at the columns; of very many, only at chosen ones and those with a telling name."""
    names, nothing = rows.names, Looks(0, 0, 0, 0, np.nan, np.nan, 0)
    telling = [
        len(names) <= MOST_LOOKS or k in chosen or any(strength_of(names[k], role) for role in EXACT)
        for k in range(len(names))
    ]
    return [looks_of(rows.sample(k)) if telling[k] else nothing for k in range(len(names))]


@dataclass(frozen=True)
class Look:
    """A preview of a file before it is read."""

    names: list[str]
    first: list[list[str]]  # the first cells of each column, as text
    roles: Roles  # the columns that are meant, as far as names tell
    questions: list[str]  # what other columns may be


def look(path: str | Path, shown_rows: int, **form: Any) -> Look:
    """Return a preview of a file for a page; parameters and errors of `open_rows`."""
    rows = open_rows(path, NAME, "page", **form)
    looks = _looks(rows)
    roles = find_roles(rows.names, looks, {}, rows.header)
    first = [
        ["" if one is None else str(one) for one in rows.sample(k)[:shown_rows]]
        for k in range(len(rows.names))
    ]
    return Look(rows.names, first, roles, proposals(rows.names, looks, roles, Spelling("page"), None))


def _no_header(rows: Rows, spelling: Spelling) -> str:
    first = rows.form.sample[0] if isinstance(rows, DelimitedRows) and rows.form.sample else []
    shown = ", ".join(cell[:20] for cell in first[:5])
    names = (
        "" if spelling.interface == "page" else f"name them with {spelling.of('names').rstrip('=')}, or "
    )
    return (
        f"the first row ({shown}{', …' if len(first) > 5 else ''}) is taken for cells and not for a "
        f"header, and columns are called 1 to {len(rows.names)}: {names}say "
        f"{spelling.choice('header', True)}"
    )


def _read(
    rows: Rows, columns: Columns, roles: Roles, looks: list[Looks], weight: str | None, name: str, *,
    decimal: str | None, day_first: bool | None, duplicates: str | None, spelling: Spelling,
    max_rows: int | None,
) -> Interactions:  # fmt: skip
    assert roles.user is not None and roles.item is not None
    used = [roles.user, roles.item]
    kinds = ["ids", "ids"]
    for place in (roles.rating, roles.time):
        if place is not None:
            used.append(place)
            kinds.append("numbers" if looks[place].numbers == 1 and decimal != "," else "text")
    if weight is not None:
        used.append(rows.names.index(weight))
        kinds.append("numbers" if looks[used[-1]].numbers == 1 and decimal != "," else "text")
    found = rows.read(used, kinds, max_rows)
    size = len(found[0])
    if rows.ragged >= max(size, 1):
        raise InputError(f"{rows.name}, {rows.ragged_at()}")
    if size == 0:
        only = "there is a header only" if rows.header else "the file is empty"
        raise InputError(
            f"{rows.name}: no {NAME}" + ("" if isinstance(rows, FrameRows) else f"; {only}")
        )
    as_text = not isinstance(rows, FrameRows)
    cells = iter(found)
    u = coded(rows.name, columns.user, next(cells), as_text)
    i = coded(rows.name, columns.item, next(cells), as_text)
    grades = (
        None if columns.rating is None else numbers_of(rows.name, columns.rating, next(cells), decimal)
    )
    times = (
        None
        if columns.time is None
        else times_of(rows.name, columns.time, next(cells), day_first, spelling)
    )
    amounts = None if weight is None else numbers_of(rows.name, weight, next(cells), decimal)
    del found, cells
    _check_readable(rows, columns, weight, grades, times, amounts)
    bad = _faults(rows, columns, u, i, grades, times, amounts)
    good = np.ones(size, dtype=bool)
    left_out = {"fields": rows.ragged} if rows.ragged else {}
    firsts: dict[str, int] = {}
    for fault, mask in bad.items():
        if mask is None:
            continue
        here = good & mask
        if here.any():
            left_out[fault], firsts[fault] = int(here.sum()), int(np.argmax(here))
            good &= ~mask
    left_out = {fault: left_out[fault] for fault in FAULTS if fault in left_out}
    if not good.any():
        told = ", ".join(f"{number:,} {FAULTS[fault][number > 1]}" for fault, number in left_out.items())
        raise InputError(f"{rows.name}: no row can be used: {told}; name other columns")
    at = rows.where(list(firsts.values())) if firsts else {}
    where = {fault: at.get(row, f"row {row + 1}") for fault, row in firsts.items()}
    if "fields" in left_out:
        where["fields"] = rows.ragged_at().split(":")[0]
    told = _roles_told(columns, weight, times, grades)
    marks = {None if one is None else one.decimal for one in (grades, amounts)} - {None}
    read_so = replace(
        columns,
        decimal=decimal or ("," if marks == {","} else None),
        day_first=day_first if times is None or times.day_first is None else times.day_first,
        duplicates=duplicates,
    )

    def of(chosen: NDArray[np.bool_], **faults: Any) -> Interactions:
        every = bool(chosen.all())

        def kept(values: Any) -> Any:
            return values if values is None or every else values[chosen]

        found = merged(
            kept(u.codes), kept(i.codes), u.ids, i.ids, None if grades is None else kept(grades.values),
            None if times is None else kept(times.values),
            None if amounts is None else kept(amounts.values),
            duplicates, name, compact=not every,
        )  # fmt: skip
        pairs, number = len(found.users), int(chosen.sum())
        bad_rows = sum(faults.get("left_out", {}).values())
        counts = RowCounts(number + bad_rows, repeated=number - pairs, kept=pairs, roles=told, **faults)
        return replace(found, columns=read_so, counts=counts)

    data = of(good, left_out=left_out, first=where)
    counts = data.counts
    assert counts is not None
    notes = [text.removesuffix(".") for text in counts.sentences()]
    if spelling.interface == "dataset":  # whose form is known
        return replace(data, notes=(*notes, *data.notes))
    notes = [counts.description, *notes, *rows.notes]
    if not rows.header:
        notes.append(_no_header(rows, spelling))
    if grades is not None and grades.decimal == "," and decimal is None:
        notes.append(f"{columns.rating} has decimal commas: 4,5 is read as 4.5")
    for what, read_as in ((columns.rating, grades), (weight, amounts)):
        if read_as is not None and read_as.grouped:
            plain = read_as.grouped.replace("." if read_as.decimal == "," else ",", "").replace(",", ".")
            notes.append(f"{what} has thousands separators: {read_as.grouped} is read as {plain}")
    for column_name, ids in ((columns.user, u), (columns.item, i)):
        if ids.changed:
            notes.append(f"{column_name}: {ids.changed}")
        if ids.doubt:
            notes.append(f"{column_name}: {ids.doubt}")
    if times is not None:
        notes += [*times.notes, *_early(data.time)]
    if isinstance(rows, FrameRows):
        index = [
            one
            for one in rows.taken
            if one in (columns.user, columns.item, columns.rating, columns.time)
        ]
        if index:
            notes.append(f"{' and '.join(index)} taken from the index, as by reset_index()")
    proposed = proposals(rows.names, looks, roles, spelling, weight)
    return replace(data, notes=(*notes, *data.notes, *proposed))


def _check_readable(
    rows: Rows, columns: Columns, weight: str | None, grades: Numbers | None, times: Times | None,
    amounts: Numbers | None,
) -> None:  # fmt: skip
    """Refuse a column of which half the cells or more are not what it is read as."""
    for what, found, needed in (
        (columns.rating, grades, "a finite number"), (columns.time, times, ACCEPTED),
        (weight, amounts, "a finite number"),
    ):  # fmt: skip
        if found is None:
            continue
        bad, filled = int(found.unreadable.sum()), int((~found.missing).sum())
        if bad and 2 * bad >= filled:
            row = int(np.argmax(found.unreadable))
            such = f" ({found.example[:40]!r})" if found.example else ""
            raise InputError(
                f"{rows.name}, {rows.where([row]).get(row, f'row {row + 1}')}: {what} cannot be "
                f"read{such}, nor can {bad:,} of {filled:,} cells; {needed} is needed"
            )


def _faults(
    rows: Rows, columns: Columns, u: Coded, i: Coded, grades: Numbers | None, times: Times | None,
    amounts: Numbers | None,
) -> dict[str, NDArray[np.bool_] | None]:  # fmt: skip
    """Return which rows are left out, by reason."""
    out: dict[str, NDArray[np.bool_] | None] = {
        "header": _again(rows, columns, u, i), "totals": _totals(u, i), "user": u.codes < 0,
        "item": i.codes < 0,
    }  # fmt: skip
    if grades is not None:
        out["unrated"], out["rating"] = grades.missing, grades.unreadable
    if times is not None:
        out["untimed"], out["time"] = times.missing, times.unreadable
    if amounts is not None:
        out["weight"] = ~(amounts.values > 0)
    return out


def _again(rows: Rows, columns: Columns, u: Coded, i: Coded) -> NDArray[np.bool_] | None:
    """Return which rows are the header again, as where files were written one behind the other."""
    if not rows.header:
        return None
    at = [
        next((k for k, one in enumerate(ids.ids) if one == name), -1)
        for ids, name in ((u, columns.user), (i, columns.item))
    ]
    return None if -1 in at else (u.codes == at[0]) & (i.codes == at[1])


def _totals(u: Coded, i: Coded) -> NDArray[np.bool_] | None:
    """Return which rows at the end hold totals: no other id stands in them.

    Rows without ids may stand between them.
    """
    size = len(u.codes)
    out = np.zeros(size, dtype=bool)
    for row in range(size - 1, max(-1, size - 1 - LAST), -1):
        codes = [(ids, ids.codes[row]) for ids in (u, i) if ids.codes[row] >= 0]
        out[row] = bool(codes) and all(
            re.sub(r"[^a-z]", "", str(ids.ids[code]).lower()) in TOTALS
            and int((ids.codes == code).sum()) == 1
            for ids, code in codes
        )
        if codes and not out[row]:
            break
    return out if out.any() else None


def _roles_told(
    columns: Columns, weight: str | None, times: Times | None, grades: Numbers | None
) -> str:
    parts = [f"user = {columns.user[:60]}", f"item = {columns.item[:60]}"]
    if columns.time is not None and times is not None:
        read_as = f", read as {times.read_as}" if times.read_as else ""
        parts.append(f"time = {columns.time[:60]}{read_as}")
    if weight is not None:
        parts.append(f"weight = {weight[:60]}")
    if columns.time is None:
        parts.append("time: none")
    told = ", ".join(parts)
    return f"{told}; " + (
        "rating: none" if columns.rating is None else f"rating = {columns.rating[:60]}"
    )


def _early(time: NDArray[np.float64] | None) -> list[str]:
    """Say where times are counted from the oldest; counts that begin at 0 lose nothing by it."""
    if time is None or not len(time):
        return []
    early = int((time < 0).sum() if time.max() < FIRST else (time <= 0).sum())
    if early == 0:
        return []
    are = "is" if early == 1 else "are"
    return [
        f"{counted(early, 'time')} {are} not above 0, as dates before 1970 are: models count "
        "times from the oldest"
    ]


def _described(data: Interactions, items: Any, users: Any) -> Interactions:
    """Return the interactions with what is known of items and users."""
    assert data.columns is not None
    features: dict[str, pd.DataFrame] = {}
    if items is not None:
        features["items"] = features_table(items, "item", data.columns.item, data.item_ids)
    if users is not None:
        features["users"] = features_table(users, "user", data.columns.user, data.user_ids)
    return data.with_features(**features) if features else data


def features_table(table: Any, what: str, id_column: str, ids: NDArray[np.object_]) -> pd.DataFrame:
    """Return the features of items or users in a table or file, indexed by id.

    The ids are in the column that the interactions call so, or in one of a usual name. One of them must
    be among `ids`, those of the interactions.
    """
    if isinstance(table, (str, os.PathLike)):
        found = read_features(os.fspath(table), None, what, like=id_column, interface="python")
    else:
        found = _features(table, what, id_column)
    # Integers in one table and their text in the other are the same ids.
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
    names = list(frame.columns)
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
        found = coded(f"{what}s", name, column(frame, name))
        known_ids = np.array([*found.ids, None], dtype=object)  # the last is where there is no id
        out.index = pd.Index(known_ids[found.codes], dtype=object)
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
