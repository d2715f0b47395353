"""Cells of a column as ids, numbers or points in time, of whatever kind the column is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import Spelling
from recsys.errors import InputError
from recsys.utils.dates import EPOCH

NO_ID = frozenset(("na", "n/a", "nan", "null", "none", "\\n", "undefined", "#n/a"))
MISSING = NO_ID | {"", "nat"}  # numbers and times
WHOLE_FLOAT = re.compile(r"[+-]?\d+\.0+")
# Numbers with thousands separators, by the decimal mark: 1,234.5 and 1.234,5.
GROUPS = {
    ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?"),
}
IN_CACHE = 1 << 16  # codes
LOOKED_AT = 2_000  # different texts that the form of dates is decided by
MAYBE_DATE = re.compile(r"\d[-/. ]+\d|\d{8}|[a-zA-Z]{3}.*\d")
ZONE = re.compile(r"\s*(UTC|GMT)$", re.IGNORECASE)
# Epochs by magnitude: from March 1973 on in seconds, and as far in the other units.
UNITS = (("seconds", 1e8, 1.0), ("milliseconds", 1e11, 1e3), ("microseconds", 1e14, 1e6),
         ("nanoseconds", 1e17, 1e9))  # fmt: skip
CLOCKS = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    " %I:%M %p",
    " %I:%M:%S %p",
    ", %H:%M",
    ", %H:%M:%S",
    " %H.%M",
    " %H.%M.%S",
)
DAY_FIRST = ("%d/%m/%Y", "%d/%m/%y", "%d-%m-%Y", "%d-%m-%y")
MONTH_FIRST = ("%m/%d/%Y", "%m/%d/%y", "%m-%d-%Y", "%m-%d-%y")
CERTAIN = (
    "%d.%m.%Y", "%d.%m.%y", "%d. %m. %Y", "%d.%m.%Y.", "%Y. %m. %d.",
    "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%m %d, %Y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
OTHERS = ("%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z")


class Coded(NamedTuple):
    """A column of ids."""

    codes: NDArray[np.int64]  # (rows,), the number of its id; −1 where it has none
    ids: NDArray[np.object_]  # (n,) text or integers, in the order of their first appearance
    changed: str = ""  # what was made of them, for a note
    doubt: str = ""  # what may be wrong about them, for a note


def coded(name: str, what: str, column: Any, as_text: bool = False) -> Coded:
    """Return a column of ids (text or integers; arrow, pandas or numpy) as numbers.

    Blanks around texts are taken away, and whole floats are integers. Missing cells and blank texts are
    no ids. With `as_text` anything but fractions is taken as its text, as ids of files are. Messages
    call the table `name` and the column `what`.
    """
    codes, values = factorized(name, what, column)
    kinds = set(map(type, values))
    if kinds == {int} and as_text:
        return Coded(codes, _objects(list(map(str, values))))
    if kinds == {float}:
        if all(one.is_integer() for one in values):
            whole = [str(int(one)) if as_text else int(one) for one in values]
            return Coded(codes, _objects(whole))
        raise InputError(f"{name}: {what} holds fractions; ids must be text or integers")
    if as_text:
        values = _objects([one if isinstance(one, str) else str(one) for one in values])
    for value in values if kinds != {str} else ():
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InputError(
                f"{name}: {what} must be text or integers, not {str(value)[:60]!r} "
                f"({type(value).__name__}); convert them, as by .astype(str)"
            )
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise InputError(f"{name}: {what} hold a number beyond 64 bits; make them text")
    if len({type(value) for value in values}) > 1:
        raise InputError(
            f"{name}: {what} are text and integers mixed; make them one kind, as by .astype(str)"
        )
    if not len(values) or type(values[0]) is int:
        return Coded(codes, values)
    texts, changed = [text.strip() for text in values], ""
    doubtful = [k for k, text in enumerate(texts) if text.lower() in NO_ID]
    told = ""
    if doubtful:
        at = max(doubtful, key=lambda k: int((codes == k).sum()))
        if (rows := int((codes == at).sum())) > 1:
            told = (
                f"{texts[at]!r} in {rows:,} rows is read as an id; leave these rows out if it means "
                "that there is none"
            )
    if any(len(text) < len(value) for text, value in zip(texts, values, strict=True)):
        changed = "blanks around ids are taken away" if any(texts) else ""
    if all(not text or WHOLE_FLOAT.fullmatch(text) for text in texts) and any(texts):
        texts = [text.split(".")[0].removeprefix("+") for text in texts]
        changed = "ids such as 1.0 are read as 1"
    if changed or "" in texts:
        again, values = pd.factorize(np.array([text or None for text in texts], dtype=object))
        codes = np.where(codes < 0, -1, again[codes]) if len(again) else codes
        return Coded(codes, _objects(values), changed, told)
    return Coded(codes, values, doubt=told)


def _objects(values: Any) -> NDArray[np.object_]:
    out = np.empty(len(values), dtype=object)
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        values = [one.item() if isinstance(one, np.generic) else one for one in values]
    out[:] = values
    return out


def factorized(name: str, what: str, column: Any) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return a number for each cell, −1 where there is none, and the different cells in order."""
    if _is_arrow(column):
        import pyarrow as pa

        if isinstance(column.type, pa.BaseExtensionType):
            return factorized(name, what, pd.Series(column.to_pylist(), dtype=object))
        if pa.types.is_null(column.type):
            return np.full(len(column), -1), np.zeros(0, dtype=object)
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(whole, pa.ChunkedArray):  # no chunk at all
                return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object)
            indices = whole.indices
            if indices.null_count:  # polars' codes are unsigned
                indices = indices.cast(pa.int64()).fill_null(-1)
            codes = indices.to_numpy(zero_copy_only=False)
            values = [text_of(name, what, value) for value in _entries(name, what, whole.dictionary)]
            return _in_order(codes, _objects(values))
        return factorized(name, what, column.dictionary_encode())
    try:
        codes, values = pd.factorize(column)
    except TypeError:  # lists, dicts: what has no hash
        raise InputError(f"{name}: {what} must be text or integers, one a row") from None
    return codes, _objects(values)


def _in_order(
    codes: NDArray[Any], values: NDArray[np.object_]
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return codes and values in the order of first appearance, without values that do not appear."""
    if codes.dtype not in (np.int32, np.int64):
        codes = codes.astype(np.int64)
    if len(codes) and _appear_in_order(codes, len(values)):  # most often, and soon found
        return codes, values
    fresh, places = (
        pd.factorize(np.where(codes < 0, -1, codes)) if (codes < 0).any() else pd.factorize(codes)
    )
    absent = np.flatnonzero(places == -1)
    if len(absent):
        at = int(absent[0])
        fresh = np.where(fresh == at, -1, fresh - (fresh > at))
        places = np.delete(places, at)
    return fresh, values[places]


def _appear_in_order(codes: NDArray[Any], count: int) -> bool:
    """Return whether all codes below `count` appear, each for the first time after the lower ones."""
    highest = codes.dtype.type(-1)
    for start in range(0, len(codes), IN_CACHE):
        part = codes[start : start + IN_CACHE]
        if part.max() > highest:
            so_far = np.maximum(np.maximum.accumulate(part), highest)
            if np.diff(so_far, prepend=highest).max() > 1:
                return False
            highest = so_far[-1]
    return bool(highest == count - 1)


def _entries(name: str, what: str, dictionary: Any) -> list[Any]:
    try:
        return dictionary.to_pylist()
    except UnicodeDecodeError:
        raise InputError(
            f"{name}: {what[:40]} holds bytes that are no UTF-8 text; write it as text"
        ) from None


def text_of(name: str, what: str, value: Any) -> Any:
    """Return an entry of a file as an id has it: bytes as text, anything but numbers as its text."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{name}: {what[:40]} holds bytes that are no UTF-8 text, such as {value[:20]!r}; write "
                "it as text"
            ) from None
    return value


def _is_arrow(column: Any) -> bool:
    return type(column).__module__.startswith("pyarrow")


# ---- numbers


class Numbers(NamedTuple):
    """A column of numbers."""

    values: NDArray[np.float64]  # (rows,), NaN where there is none
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    decimal: str = "."
    example: str = ""  # a cell that is no number
    grouped: str = ""  # a cell with thousands separators


def _texts(column: Any) -> tuple[NDArray[np.int64], list[str]] | None:
    """Return the codes and the different texts of a column of text, None for another kind."""
    if _is_arrow(column):
        import pyarrow as pa

        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)
                or pa.types.is_string_view(kind)
                or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):  # fmt: skip
            return None
    elif not (
        pd.api.types.is_string_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype)
        or (column.dtype == object and all(isinstance(one, str) for one in column if not _void(one)))
    ):  # fmt: skip
        return None
    codes, values = factorized("", "", column)
    if not all(isinstance(one, str) for one in values):
        return None
    return codes, [one.strip() for one in values]


def _void(cell: Any) -> bool:
    return cell is None or cell is pd.NA or cell is pd.NaT or cell != cell


def numbers_of(name: str, what: str, column: Any, decimal: str | None = None) -> Numbers:
    """Return a column as finite numbers, with a decimal comma where more cells have one than a point.

    Commas that all stand before three digits separate thousands, and so do points where commas are
    decimal.
    """
    found = _texts(column)
    if found is None:
        values = _floats(name, what, column)
        infinite, missing = np.isinf(values), np.isnan(values)
        values[infinite] = np.nan
        return Numbers(values, missing, infinite)
    codes, texts = found
    if not texts:
        empty = np.full(len(codes), np.nan)
        return Numbers(empty, np.isnan(empty), np.zeros(len(codes), dtype=bool))
    cells = np.array(texts, dtype=object)
    values = _parsed(cells)
    if decimal is None:
        decimal = "."
        commas = [text for text in texts if "," in text]
        if not all(GROUPS["."].fullmatch(text) for text in commas):
            read = _parsed(np.array([text.replace(",", ".") for text in commas], dtype=object))
            points = sum("." in t for t, v in zip(texts, values, strict=True) if np.isfinite(v))
            groups = sum(GROUPS[","].fullmatch(text) is not None for text in commas)
            if np.isfinite(read).sum() + groups > points:
                decimal = ","
    grouped = [k for k, text in enumerate(texts) if GROUPS[decimal].fullmatch(text)]
    plain = list(texts)
    for k in grouped:
        plain[k] = texts[k].replace("." if decimal == "," else ",", "")
    if decimal == ",":
        plain = [text.replace(".", "\0").replace(",", ".") for text in plain]
    if grouped or decimal == ",":
        values = _parsed(np.array(plain, dtype=object))
    void = np.array([text.lower() in MISSING for text in texts])
    bad = ~np.isfinite(values) & ~void
    example = texts[int(np.argmax(bad))] if bad.any() else ""
    values[~np.isfinite(values)] = np.nan
    absent = codes < 0
    out = np.where(absent, np.nan, values[codes])
    example_grouped = texts[grouped[0]] if grouped else ""
    return Numbers(out, absent | void[codes], ~absent & bad[codes], decimal, example, example_grouped)


def _parsed(cells: NDArray[np.object_]) -> NDArray[np.float64]:
    return np.array(pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce"), dtype=np.float64)


def _floats(name: str, what: str, column: Any) -> NDArray[np.float64]:
    if _is_arrow(column):
        if str(column.type) == "double":
            values = column.to_numpy(zero_copy_only=False)  # NaN for null
            return values if values.flags.writeable else values.copy()
        column = column.to_pandas()
    kind = column.dtype.kind
    if kind not in "biufO":
        raise InputError(f"{name}: {what} must be numbers, not {column.dtype}")
    if isinstance(column.dtype, np.dtype) and kind != "O":
        return np.array(column, dtype=np.float64)
    try:
        return np.array(pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise InputError(f"{name}: {what} must be numbers, not {column.dtype}") from None


# ---- points in time


@dataclass(frozen=True)
class Times:
    """A column of points in time."""

    # (rows,), seconds since 1970 where they are dates, else numbers as they are; NaN where there is none
    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    read_as: str = ""  # the first one as text, "" where they are numbers of no known unit
    notes: tuple[str, ...] = ()
    example: str = ""  # a cell that is none
    day_first: bool | None = None  # how dates such as 01/02/2020 were read


def times_of(
    name: str, what: str, column: Any, day_first: bool | None = None, spelling: Spelling | None = None
) -> Times:
    """Return a column as points in time: numbers, or dates as seconds since 1970 (UTC without a zone).

    Numbers from 10¹¹ on are milliseconds, from 10¹⁴ on microseconds and from 10¹⁷ on nanoseconds since
    1970, and become seconds; smaller ones stay what they are.
    """
    spelling = spelling or Spelling()
    moments = _moments(column)
    if moments is not None:
        return _dated(moments, np.isnan(moments), np.zeros(len(moments), dtype=bool), ())
    found = _texts(column)
    if found is None:
        values = _floats(name, what, column)
        return _of_numbers(name, what, values, np.isnan(values), np.isposinf(values))
    codes, texts = found
    numbers = numbers_of(name, what, column, ".")
    readable = int(np.isfinite(numbers.values).sum())
    if readable and not is_calendar(numbers.values):
        dates = np.zeros(0)
        if numbers.unreadable.any():
            dates, _ = _dates(name, what, texts, day_first, spelling)
            dates = dates[codes[codes >= 0]]
        if np.isfinite(dates).sum() <= readable:
            return _of_numbers(
                name, what, numbers.values, numbers.missing, numbers.unreadable, numbers.example
            )
    values, day_first = _dates(name, what, texts, day_first, spelling)
    void = np.array([text.lower() in MISSING for text in texts], dtype=bool)
    bad = np.isnan(values) & ~void
    absent = codes < 0
    out = np.where(absent, np.nan, values[codes]) if len(texts) else np.full(len(codes), np.nan)
    example = texts[int(np.argmax(bad))] if bad.any() else ""
    missing = absent | (void[codes] if len(texts) else absent)
    return replace(_dated(out, missing, ~missing & np.isnan(out), (), example), day_first=day_first)


def _moments(column: Any) -> NDArray[np.float64] | None:
    """Return datetimes as seconds, None for another kind of column."""
    if _is_arrow(column):
        import pyarrow as pa

        if not pa.types.is_temporal(column.type) or pa.types.is_time(column.type):
            return None
        column = column.to_pandas()
    kind = column.dtype.kind
    if kind == "O":
        told = pd.api.types.infer_dtype(column, skipna=True)
        if told not in ("datetime", "date", "datetime64"):
            return None
    elif kind != "M":
        return None
    moments = pd.to_datetime(pd.Series(column), utc=True).to_numpy("datetime64[ns]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1e9)


def is_calendar(values: NDArray[np.float64]) -> bool:
    """Return whether numbers are days such as 20200131."""
    known = values[np.isfinite(values)]
    if not len(known) or known.min() < 19_000_101 or known.max() > 21_001_231:
        return False
    day, month = known % 100, known // 100 % 100
    return bool(((day >= 1) & (day <= 31) & (month >= 1) & (month <= 12)).all())


def _of_numbers(
    name: str, what: str, values: NDArray[np.float64], missing: NDArray[np.bool_],
    unreadable: NDArray[np.bool_], example: str = "",
) -> Times:  # fmt: skip
    known = values[np.isfinite(values)]
    if not len(known):
        return Times(values, missing, unreadable, example=example)
    starts = np.array([start for _, start, _ in UNITS])
    unit = np.searchsorted(starts, known, side="right") - 1  # −1: too small for a date
    counts = [int((unit == k).sum()) for k in range(len(UNITS))]
    if sum(counts[1:]) == 0 or sum(counts) < len(known) - int((known == 0).sum()):
        if counts[0] == len(known):
            return _dated(values, missing, unreadable, (), example)
        return Times(values, missing, unreadable, example=example)
    scale = np.array([1.0, *(divisor for _, _, divisor in UNITS)])
    out = values.copy()
    out[np.isfinite(values)] = known / scale[unit + 1]
    told = [f"{count:,} in {UNITS[k][0]}" for k, count in enumerate(counts) if count]
    if len(told) > 1:
        notes = (
            f"times of {what} are of {len(told)} magnitudes, {' and '.join(told)}: all are read as "
            "seconds",
        )
    else:
        notes = (f"times of {what} are {told[0].split(' in ')[1]} since 1970, read as seconds",)
    return _dated(out, missing, unreadable, notes, example)


def _dated(
    values: NDArray[np.float64], missing: NDArray[np.bool_], unreadable: NDArray[np.bool_],
    notes: Sequence[str], example: str = "",
) -> Times:  # fmt: skip
    known = values[np.isfinite(values)]
    read_as = moment_text(float(known[0])) if len(known) else ""
    return Times(values, missing, unreadable, read_as, tuple(notes), example)


def moment_text(seconds: float) -> str:
    """Return a point in time as readable text.

    >>> moment_text(1503927060.0), moment_text(0.0)
    ('28 Aug 2017 13:31', '1 Jan 1970')
    """
    try:
        found = (
            datetime.fromtimestamp(seconds, UTC)
            if seconds >= 0
            else EPOCH + pd.Timedelta(seconds=seconds)
        )
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"
    day = f"{found.day} {MONTHS[found.month - 1]} {found.year}"
    clock = found.strftime("%H:%M:%S" if found.second else "%H:%M")
    return day if clock == "00:00" else f"{day} {clock}"


MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def _dates(
    name: str, what: str, texts: Sequence[str], day_first: bool | None, spelling: Spelling
) -> tuple[NDArray[np.float64], bool | None]:
    """Return texts as seconds since 1970, and whether days come first where months could.

    Seconds are NaN where a text is no date of the form that most are of.
    """
    cells = [ZONE.sub("", text) if text[-3:].upper() in ("UTC", "GMT") else text for text in texts]
    filled = [cell for cell in cells if cell and MAYBE_DATE.search(cell[:60])]
    step = max(1, len(filled) // LOOKED_AT)
    some = filled[::step]
    if not some:
        return np.full(len(cells), np.nan), None

    few = some[:: max(1, len(some) // 20)]

    def fits(form: str) -> int:
        if not np.isfinite(_strptime(few, form)).any():
            return 0
        return int(np.isfinite(_strptime(some, form)).sum())

    if fits("ISO8601") == len(some) or (best := _best(some, fits, day_first)) is None:
        return _strptime(cells, "ISO8601"), None
    form, other = best
    if other:
        text = next(cell for cell in filled if np.isfinite(_strptime([cell], form))[0])
        ways = [moment_text(float(_strptime([text], one)[0])) for one in (form, other)]
        raise InputError(
            f"{name}: {what} has dates such as {text[:40]!r}, which may be {ways[0]} or {ways[1]}: "
            f"say {spelling.choice('day_first', True)} or {spelling.choice('day_first', False)}"
        )
    day_first = True if form.startswith(DAY_FIRST) else False if form.startswith(MONTH_FIRST) else None
    return _strptime(cells, form), day_first


def _best(some: list[str], fits: Any, day_first: bool | None) -> tuple[str, str] | None:
    """Return the form that most texts are of, and the other one that as many may be of."""
    iso = fits("ISO8601")
    found: list[tuple[int, str, str]] = []
    pairs = list(zip(DAY_FIRST, MONTH_FIRST, strict=True))
    separator = "/" if any("/" in cell for cell in some) else "-"
    for clock in CLOCKS:
        for one, two in pairs:
            if separator not in one:
                continue
            counts = fits(one + clock), fits(two + clock)
            if day_first is not None:
                found.append((counts[not day_first], (one, two)[not day_first] + clock, ""))
            elif counts[0] == counts[1]:
                found.append((counts[0], one + clock, two + clock))
            else:
                found.append((max(counts), (one if counts[0] > counts[1] else two) + clock, ""))
        found += [(fits(one + clock), one + clock, "") for one in CERTAIN]
    found += [(fits(one), one, "") for one in OTHERS]
    count, form, other = max(found, key=lambda one: one[0])
    return (form, other) if count > iso else None


def _strptime(cells: Sequence[str], form: str) -> NDArray[np.float64]:
    given = pd.Series(np.array(cells, dtype=object), dtype=object)
    moments = pd.to_datetime(given, format=form, utc=True, errors="coerce")
    found = moments.to_numpy("datetime64[us]")
    return np.where(np.isnat(found), np.nan, found.astype(np.int64) / 1e6)
