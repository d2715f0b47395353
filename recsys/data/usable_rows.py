"""The rows of a table that can be used, and a count of the others by what is wrong with them.

Files on a command line are refused at the first bad row. Where a person looks at a table on a page,
the rows that cannot be read are left out and counted instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.data.interactions import Interactions
from recsys.data.readers import Table
from recsys.errors import InputError
from recsys.utils.dates import iso_seconds, number_of

# What is wrong with a row, in the order in which it is looked for: a row counts for the first.
FAULTS = {
    "fields": ("row with another number of fields than the header", "rows with another number of fields "
               "than the header"),
    "user": ("row without a user", "rows without a user"),
    "item": ("row without an item", "rows without an item"),
    "rating": ("row whose rating is no number", "rows whose rating is no number"),
    "time": ("row whose time cannot be read", "rows whose time cannot be read"),
}  # fmt: skip


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows of a table.

    Attributes
    ----------
    rows : int
        Below the header, blank lines and comments not counted.
    left_out : dict of str to int
        By fault, one of `FAULTS`; every row counts for its first fault.
    first : dict of str to int
        The line of the first row of each fault.
    repeated : int
        Rows about a pair that a later row is about, too; they are merged into it.
    kept : int
        Pairs that are used: rows less those left out and those merged.

    Examples
    --------
    >>> RowCounts(4, {"user": 1}, {"user": 3}, repeated=1, kept=2).sentences()
    ['1 row without a user is left out (line 3).']
    """

    rows: int
    left_out: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    kept: int = 0

    def sentences(self) -> list[str]:
        """Return a sentence for each fault that there is."""
        out = []
        for fault, number in self.left_out.items():
            one, many = FAULTS[fault]
            if number == 1:
                out.append(f"1 {one} is left out (line {self.first[fault]}).")
            else:
                out.append(f"{number:,} {many} are left out, the first in line {self.first[fault]}.")
        return out


def usable_rows(table: Table, columns: Columns, name: str) -> tuple[Interactions, RowCounts]:
    """Return the interactions in the rows of a table that can be used, and what became of the others.

    Parameters
    ----------
    table : Table
        Read with `strict=False`, as a rule.
    columns : Columns
        Users and items must be named; ratings and times are read where they are.
    name : str
        What messages and reports call them.

    Returns
    -------
    data : Interactions
    counts : RowCounts

    Raises
    ------
    InputError
        If a column is absent or named for two things, ids are fractions, or no row can be used.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> cells = [np.array(["ada", "", "bob"], object), np.array(["tea", "tea", "milk"], object)]
    >>> table = Table(Path("t.csv"), ["who", "what"], cells, range(2, 5))
    >>> data, counts = usable_rows(table, Columns("who", "what"), "t")
    >>> data.n_users, counts.left_out, counts.kept
    (2, {'user': 1}, 2)
    """
    named = [c for c in (columns.user, columns.item, columns.rating, columns.time) if c is not None]
    if len(set(named)) < len(named):
        twice = next(c for c in named if named.count(c) > 1)
        raise InputError(
            f"column {twice!r} is chosen for two things; choose another one for one of them"
        )
    users, items = table.ids(columns.user), table.ids(columns.item)
    bad = {"user": _blank(users), "item": _blank(items)}
    rating = time = None
    if columns.rating is not None:
        rating = _numbers(table.column(columns.rating))
        bad["rating"] = ~np.isfinite(rating)
    if columns.time is not None:
        time = _times(table.column(columns.time))
        bad["time"] = ~np.isfinite(time)
    lines = np.asarray(table.lines)
    left_out = {"fields": len(table.ragged)} if table.ragged else {}
    first = {"fields": table.ragged[0]} if table.ragged else {}
    good = np.ones(len(table), dtype=bool)
    for fault, rows in bad.items():
        here = good & rows
        if here.any():
            left_out[fault] = int(here.sum())
            first[fault] = int(lines[np.argmax(here)])
        good &= ~rows
    total = len(table) + len(table.ragged)
    if not good.any():
        told = ", ".join(f"{number:,} {FAULTS[fault][number > 1]}" for fault, number in left_out.items())
        raise InputError(f"{name}: no row can be used: {told}; choose other columns")
    data = Interactions.from_ids(
        users[good], items[good], None if rating is None else rating[good],
        None if time is None else time[good], name,
    )  # fmt: skip
    kept = len(data.users)
    counts = RowCounts(total, left_out, first, int(good.sum()) - kept, kept)
    notes = tuple(text.removesuffix(".") for text in counts.sentences())
    return replace(data, notes=(*table.notes, *notes, *data.notes), columns=columns), counts


def _blank(cells: NDArray[np.object_]) -> NDArray[np.bool_]:
    return np.array([not cell.strip() for cell in cells], dtype=bool)


def _numbers(cells: NDArray) -> NDArray[np.float64]:
    if cells.dtype.kind == "f":
        return cells.astype(np.float64)
    return np.array([number_of(cell) for cell in cells], dtype=np.float64)


def _times(cells: NDArray) -> NDArray[np.float64]:
    """Return times of the kind that most cells are of, numbers or dates; NaN for the others."""
    numbers = _numbers(cells)
    if cells.dtype.kind == "f" or np.isfinite(numbers).all():
        return numbers
    dates = np.array([iso_seconds(cell) for cell in cells], dtype=np.float64)
    return dates if np.isfinite(dates).sum() > np.isfinite(numbers).sum() else numbers
