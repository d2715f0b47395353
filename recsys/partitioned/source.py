"""Partitioned Parquet: which files and columns there are, and their rows a batch at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.data.columns import ITEM_NAMES, RATING_NAMES, TIME_NAMES, USER_NAMES, usual
from recsys.errors import InputError, counted, first_line
from recsys.utils.files import check_file, shown
from recsys.utils.remote import url_of
from recsys.utils.validation import check_real

BATCH = 1 << 20  # rows that are held at once
UNIT = 1 << 22  # rows of a task, where groups of rows are smaller


class Unit(NamedTuple):
    """Some groups of rows of one file, which one worker reads."""

    file: str
    first: int
    last: int  # the group behind the last one


@dataclass(frozen=True)
class Source:
    """The source of rows."""

    files: tuple[tuple[str, int, int, int], ...]  # path, bytes, when it was changed, rows
    user: str
    item: str
    rating: str | None
    time: str | None
    min_rating: float | None
    user_text: bool  # whether these ids are text; else integers
    item_text: bool
    time_kind: str | None  # "float64", "int64" or "timestamp[UNIT]", with the finest unit of any file
    units: tuple[Unit, ...]

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(rows for *_, rows in self.files)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    @classmethod
    def of_plain(cls, given: dict[str, Any]) -> Source:
        """Return the source that `plain` describes."""
        files = tuple((str(path), *map(int, numbers)) for path, *numbers in given["files"])
        units = tuple(Unit(*unit) for unit in given["units"])
        return cls(**{**given, "files": files, "units": units})


class Batch(NamedTuple):
    """Some rows: ids as `recsys.partitioned.ids` has them."""

    users: Any
    items: Any
    rating: NDArray[np.float64] | None
    time: NDArray[np.float64] | NDArray[np.int64] | None


def files_of(given: str | os.PathLike[str]) -> list[Path]:
    """Return the Parquet files of a folder and those below it, of a pattern, or one file, by name."""
    text = os.fspath(given)
    if url_of(text) is not None:
        raise InputError(
            f"{shown(text)}: partitions are read from folders, not from URLs; mount or copy them"
        )
    path = Path(text)
    if path.is_dir():
        found = [
            one
            for one in sorted(path.rglob("*.parquet"))
            if not any(part.startswith((".", "_")) for part in one.relative_to(path).parts)
        ]
        if not found:
            raise InputError(f"{shown(text)} holds no .parquet file")
        return found
    found = [path] if path.exists() else [Path(one) for one in sorted(glob.glob(text))]
    if not found:
        raise InputError(f"{shown(text)} is no folder of .parquet files, and no file matches it")
    return found


def look(
    given: str | os.PathLike[str],
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    min_rating: float | None = None,
    timed: bool = False,
) -> Source:
    """Return a source from the files' footers; no row is read.

    With a minimum rating, columns of ratings and times with usual names are taken where none is named;
    those of times also for a ranker that is `timed`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files: list[tuple[str, int, int, int]] = []
    units = []
    times: dict[str, str] = {}  # kind: a file that has it
    kinds: dict[str, tuple[bool, str]] = {}
    for path in files_of(given):
        size = check_file(path)
        try:
            with pq.ParquetFile(path) as file:
                metadata, schema = file.metadata, file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{shown(path)} is no readable Parquet file: {first_line(error)}") from None
        user = _column(path, schema.names, user, "user", USER_NAMES)
        item = _column(path, schema.names, item, "item", ITEM_NAMES)
        if user == item:
            raise InputError(
                f"users and items are both column {user!r}: name two with --user-col and --item-col"
            )
        if min_rating is not None:
            check_real("min_rating", min_rating, -np.inf)
        if min_rating is not None or timed:
            found_time = usual(schema.names, TIME_NAMES)
            if time is None and found_time is not None and files:
                raise InputError(
                    f"{shown(path)} has a column {found_time!r}, {shown(files[0][0])} has no times: "
                    "write it to all files, or to none"
                )
            time = time or found_time
        if min_rating is not None:
            rating = rating or usual(schema.names, RATING_NAMES)
            if rating is None:
                raise InputError("a minimum rating needs a rating column; name it with --rating-col")
        for name in (rating, time):
            if name is not None:
                _column(path, schema.names, name, "", ())
                if not _is_number(schema.field(name).type):
                    raise InputError(
                        f"{shown(path)}: column {name!r} holds {schema.field(name).type}; it has to "
                        f"hold numbers{' or timestamps' if name == time else ''}"
                    )
        if time is not None:
            times.setdefault(_time_kind(schema.field(time).type), shown(path))
        for name in (user, item):
            text = _is_text(path, name, schema.field(name).type)
            before = kinds.setdefault(name, (text, shown(path)))
            if before[0] != text:
                raise InputError(
                    f"ids of {name!r} are text in one of {before[1]} and {shown(path)}, "
                    "integers in the other"
                )
        files.append((str(path.absolute()), size, path.stat().st_mtime_ns, metadata.num_rows))
        first = held = 0
        for group in range(metadata.num_row_groups):
            held += metadata.row_group(group).num_rows
            if held >= UNIT or group == metadata.num_row_groups - 1:
                units.append(Unit(files[-1][0], first, group + 1))
                first, held = group + 1, 0
    assert user is not None and item is not None
    found = Source(
        tuple(files), user, item, rating, time, min_rating, kinds[user][0], kinds[item][0],
        _one_kind(time, times), tuple(units),
    )  # fmt: skip
    if found.rows == 0:
        raise InputError(f"{shown(given)}: {counted(len(files), 'file')} without a row")
    return found


def batches(source: Source, unit: Unit, columns: str = "") -> Iterator[Batch]:
    """Yield the rows of a unit, at most `BATCH` of them at a time; "items" leaves other columns unread.

    What is no longer the file that was looked at is refused, and a missing id or number.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = [source.item] if columns == "items" else [source.user, source.item]
    if columns != "items":
        wanted += [name for name in (source.rating, source.time) if name is not None]
    try:
        _check_same(source, unit)
        with pq.ParquetFile(unit.file, buffer_size=1 << 20) as file:
            groups = list(range(unit.first, unit.last))
            for found in file.iter_batches(
                BATCH, row_groups=groups, columns=list(dict.fromkeys(wanted)), use_threads=False
            ):
                column = {name: found.column(name) for name in dict.fromkeys(wanted)}
                for name, cells in column.items():
                    if cells.null_count:
                        raise InputError(
                            f"{shown(unit.file)}: column {name!r} has empty cells: leave these rows out"
                        )
                items = _ids(unit.file, source.item, column[source.item], source.item_text)
                if columns == "items":
                    yield Batch(None, items, None, None)
                    continue
                yield Batch(
                    _ids(unit.file, source.user, column[source.user], source.user_text), items,
                    _numbers(unit.file, source.rating, column),
                    _numbers(unit.file, source.time, column, source.time_kind),
                )  # fmt: skip
        _check_same(source, unit)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{shown(unit.file)} cannot be read: {first_line(error)}") from None


def _column(path: Path, there: list[str], given: str | None, what: str, usual: tuple[str, ...]) -> str:
    found = given if given is not None else next((name for name in usual if name in there), None)
    if found is None or there.count(found) != 1:
        option = (
            f"name the column of {what}s with --{what}-col; only {', '.join(usual)} are looked for"
            if given is None
            else f"no single column {given!r}"
        )
        some = ", ".join(map(repr, there[:10]))
        raise InputError(f"{shown(path)}: {option}; it has {some}")
    return found


def _check_same(source: Source, unit: Unit) -> None:
    """Refuse a file that is not the one that was looked at: two stages would read different rows."""
    size, changed = next(tuple(numbers[:2]) for path, *numbers in source.files if path == unit.file)
    now = os.stat(unit.file)
    if (now.st_size, now.st_mtime_ns) != (size, changed):
        raise InputError(
            f"{shown(unit.file)} was changed during the work: remove the work folder and run it again"
        )


def _time_kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}]"
    return "int64" if pa.types.is_integer(kind) else "float64"


def _one_kind(name: str | None, kinds: dict[str, str]) -> str | None:
    """Return as what the times of all files are read: integers stay such, to their last digit."""
    moments = [kind for kind in kinds if kind.startswith("timestamp")]
    if moments and len(moments) < len(kinds):
        other = next(kind for kind in kinds if kind not in moments)
        raise InputError(
            f"column {name!r} holds timestamps in {kinds[moments[0]]}, numbers in {kinds[other]}"
        )
    if moments:
        return max(moments, key=[f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns")].index)
    return None if not kinds else "float64" if "float64" in kinds else "int64"


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind))


def _is_text(path: Path, name: str, kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return True
    if pa.types.is_integer(kind):
        return False
    raise InputError(f"{shown(path)}: column {name!r} holds {kind}; ids are text or integers")


def _ids(path: str, name: str, cells: Any, text: bool) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    try:
        return cells.cast(pa.large_string()) if text else cells.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InputError(f"{shown(path)}: column {name!r} holds integers beyond 64 bits") from None


def _numbers(path: str, name: str | None, column: dict[str, Any], kind: str | None = None) -> Any:
    """Return numbers as float64; times of integers or moments as int64, in the unit of `kind`."""
    import pyarrow as pa

    if name is None:
        return None
    cells = column[name]
    if kind is not None and kind != "float64":
        try:
            if pa.types.is_timestamp(cells.type):
                cells = cells.cast(pa.timestamp(kind[10:-1], cells.type.tz))
            return cells.cast(pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            raise InputError(f"{shown(path)}: column {name!r} holds times beyond 64 bits") from None
    if pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.int64())
    found = cells.to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isnan(found).any():
        raise InputError(f"{shown(path)}: column {name!r} holds NaN: leave these rows out")
    return found
