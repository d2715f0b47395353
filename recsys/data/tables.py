"""Tables: a file, or a frame of pandas, polars or pyarrow, as columns of arrow; frames of each kind."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import mmap
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from recsys.data.columns import ROLE_WORDS, absent, plain_name, texts_of
from recsys.errors import InputError, first_line
from recsys.utils.distribution import install_hint
from recsys.utils.files import check_file, check_growth, shown
from recsys.utils.validation import check_choice

if TYPE_CHECKING:
    import narwhals as nw

MOST_COLUMNS = 5_000
LONGEST_LINE = 1 << 24  # bytes
STRETCH = 1 << 22  # bytes that are unpacked at once
SAMPLE = 2_000  # lines of an irregular file that tell whether it is a table
DELIMITERS = ("\t", ";", "|", ",", "::")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
KINDS = ("pandas", "polars", "pyarrow")


@dataclass
class Table:
    """A table: the names of its columns, and a function that reads some of them."""

    name: str  # in messages
    names: list[str]
    read: Callable[[Sequence[str]], Mapping[str, Any]]
    named: bool = True  # whether names were read or given
    file: bool = True
    kind: str = "pandas"
    left_out: dict[str, int] = field(default_factory=dict)  # rows that no column has, by reason
    notes: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)  # cells of the first row of delimited text

    def columns(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        """Return columns as arrow has them; of two of one name neither."""
        for name in names:
            if name not in self.names:
                raise absent(self.name, name, self.names, self.named)
            if self.names.count(name) > 1:
                raise InputError(
                    f"{self.name}: several columns have the name {name[:60]!r}: rename them"
                )
        read = self.read(names)
        return {name: as_arrow(self.name, name, cells, self.file) for name, cells in read.items()}

    def texts(self, names: Sequence[str]) -> list[NDArray[np.object_]]:
        """Return columns as text, missing cells empty."""
        columns = self.columns(names)
        found = [texts_of(columns[name]) for name in names]
        return [np.array(texts, dtype=object)[codes] for codes, texts in found]


def read_table(
    source: Any,
    *,
    names: Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    name: str | None = None,
) -> Table:
    """Return a table.

    Parameters
    ----------
    source : path, or frame of pandas, polars or pyarrow
        A file is delimited text, JSON (lines or an array), Parquet (or a folder of it) or Excel; text
        plain, or packed by gzip, bz2, xz, zstd or zip.
    names, header, delimiter, encoding : optional
        Of delimited text; decided by the first lines by default.
    name : str, optional
        Name of the table in messages.
    """
    if isinstance(source, Table):
        return source
    if not isinstance(source, (str, os.PathLike)):
        form = {"names": names, "header": header, "delimiter": delimiter, "encoding": encoding}
        for what, value in form.items():
            if value is not None:
                raise InputError(f"{what} applies only to files")
        return _of_frame(source, name or "interactions")
    path = Path(source)
    where, ending = name or shown(path), path.suffix.lower()
    if ending in PARQUET or path.is_dir():
        return _of_parquet(path, where)
    if ending in EXCEL:
        return _of_sheet(path, where, names, header)
    notes: list[str] = []
    text = _utf8(_unpacked(path), encoding, where, notes)
    begin = text[:64].lstrip()
    if not begin:
        raise InputError(f"{where}: the file is empty")
    if delimiter is None and names is None and begin[:1] in (b"[", b"{"):
        return _of_json(text, where)
    return _of_text(text, where, names, header, delimiter, notes)


def _of_frame(frame: Any, where: str) -> Table:
    if isinstance(frame, pd.DataFrame):
        frame = frame.reset_index(
            [one for one in frame.index.names if one not in (None, *frame.columns)]
        )
    table = wrapped(where, frame)
    names = list(table.columns)
    for one in names:
        if not isinstance(one, str):
            raise InputError(f"{where}: the name of column {one!r} is not text; rename it")
    kind = kind_of(table)

    def read(some: Sequence[str]) -> dict[str, Any]:
        cells = {name: table[name].to_native() for name in some}
        return {name: c.to_arrow() if kind == "polars" else c for name, c in cells.items()}

    return Table(where, names, read, file=False, kind=kind)


def as_arrow(where: str, name: str, cells: Any, as_text: bool = False) -> pa.ChunkedArray:
    """Return a column of any kind as arrow has it; mixed cells are text, or refused.

    Messages call it `name` of the table `where`.
    """
    if isinstance(cells, pa.ChunkedArray):
        return cells
    try:
        found = cells if isinstance(cells, pa.Array) else pa.array(cells, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        plain = [_plain(cell) for cell in cells]
        kinds = sorted({type(cell).__name__ for cell in plain if cell is not None})
        numbers = kinds == ["float", "int"]
        if as_text and not numbers:
            plain = [None if cell is None else str(cell) for cell in plain]
        elif len(kinds) > 1 and not numbers:
            raise InputError(
                f"{where}: {name[:60]} mixes {' and '.join(kinds)}; convert it to one type, for "
                "example with .astype(str)"
            ) from None
        try:
            found = pa.array(plain, pa.float64() if numbers else None)
        except (pa.ArrowInvalid, OverflowError):
            raise InputError(f"{where}: {name[:60]} contains a number beyond 64 bits") from None
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _plain(cell: Any) -> Any:
    """Return a cell as a scalar: several values joined by |, and other objects as text."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return "|".join(str(part) for part in cell)
    if not isinstance(cell, dict) and pd.isna(cell):
        return None
    return cell if isinstance(cell, (str, bool, int, float)) else str(cell)


def _of_parquet(path: Path, where: str) -> Table:
    import pyarrow.parquet as pq

    size = max(1, 0 if path.is_dir() else check_file(path))
    try:
        schema = pq.ParquetDataset(path).schema
        if path.is_file():
            meta = pq.read_metadata(path)
            grown = sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups))
            check_growth(path, size * 50, grown)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{where}: not a Parquet table: {first_line(error)}") from None
    _check_width(where, len(schema.names))

    def read(some: Sequence[str]) -> dict[str, Any]:
        try:
            table = pq.read_table(path, columns=list(some), read_dictionary=list(some))
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{where}: cannot be read: {first_line(error)}") from None
        return {name: table.column(name) for name in some}

    return Table(where, list(schema.names), read)


def _check_width(where: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise InputError(f"{where}: {columns:,} columns; at most {MOST_COLUMNS:,} are supported")


def _of_sheet(path: Path, where: str, names: Sequence[str] | None, header: bool | None) -> Table:
    check_file(path)
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as file:  # older workbooks are no zip
        check_growth(path, path.stat().st_size, sum(part.file_size for part in file.infolist()))
    try:
        frame = pd.read_excel(path, header=None, dtype=object, engine="calamine")
    except ImportError:
        raise InputError(f"Excel files need python-calamine: {install_hint('excel')}") from None
    except Exception as error:  # noqa: BLE001 - whatever calamine says of a broken workbook
        raise InputError(f"{where}: not a readable workbook: {first_line(error)}") from None
    frame = frame.dropna(how="all").dropna(how="all", axis=1)
    if not len(frame):
        raise InputError(f"{where}: the sheet is empty")
    first = ["" if pd.isna(cell) else str(cell) for cell in frame.iloc[0]]
    found, own = _names(where, first, names, header)

    def exact(cell: Any) -> Any:
        # A workbook has floats: pandas made integers of them, also where these are rounded.
        if isinstance(cell, int) and abs(cell) >= 2**53:
            return float(cell)
        return cell if isinstance(cell, date) else _plain(cell)

    def read(some: Sequence[str]) -> dict[str, Any]:
        return {name: [*map(exact, frame.iloc[int(own) :, found.index(name)])] for name in some}

    return Table(where, found, read, own or names is not None, first=first)


def _names(
    where: str, first: Sequence[str], names: Sequence[str] | None, header: bool | None
) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the first row has them."""
    _check_width(where, len(first))
    if names is not None:
        if isinstance(names, str) or len(set(names)) < len(names) or len(names) != len(first):
            raise InputError(f"{where}: names must be {len(first)} distinct names, one for each column")
        return list(names), bool(header)
    if header is None:  # a word of a role, or neither numbers nor empty cells
        numbers = pd.to_numeric(pd.Series(first, dtype=object).str.replace(",", "."), errors="coerce")
        header = all(cell.strip() for cell in first) and bool(numbers.isna().all())
        header |= any(plain_name(cell) in ROLE_WORDS for cell in first)
    return [cell.strip() if header else str(k + 1) for k, cell in enumerate(first)], header


def _of_json(text: Any, where: str) -> Table:
    decode = json.JSONDecoder(parse_constant=lambda _: None).decode  # NaN and Infinity are empty cells
    rows: Any = []
    try:
        content = bytes(text).decode()
        if content.lstrip()[0] == "[":
            rows = decode(content)
        else:
            rows.extend(decode(line) for line in content.split("\n") if line.strip())
    except (ValueError, RecursionError) as error:
        what = f"object {len(rows) + 1:,} is not JSON" if rows else "neither JSON lines nor an array"
        raise InputError(f"{where}: {what}: {error}") from None
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where}: a JSON table must have one object per row, in lines or in an array")
    names = list(dict.fromkeys(key for row in rows for key in row))
    _check_width(where, len(names))
    return Table(where, names, lambda some: {name: [row.get(name) for row in rows] for name in some})


# ---- text


def _unpacked(path: Path) -> bytes | mmap.mmap:
    """Return the bytes of a file, mapped where it is not packed."""
    size = check_file(path)
    with path.open("rb") as file:
        begin = file.read(6)
        opened = next((opener for mark, opener in PACKED.items() if begin.startswith(mark)), None)
        if opened is None:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    grown, parts = 0, []
    try:
        with opened(path) as stream:
            while part := stream.read(STRETCH):
                grown += len(part)
                check_growth(path, size, grown)
                parts.append(part)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise InputError(f"{shown(path)}: damaged archive: {first_line(error)}") from None
    return b"".join(parts)


def _zipped(path: Path) -> Any:
    archive = zipfile.ZipFile(path)
    inside = [one for one in archive.infolist() if not one.is_dir() and "__MACOSX" not in one.filename]
    if len(inside) != 1:
        raise InputError(f"{shown(path)}: {len(inside)} files in the archive; it must contain one")
    return archive.open(inside[0])


PACKED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"PK\x03\x04": _zipped,
    b"\x28\xb5\x2f\xfd": lambda path: pa.input_stream(str(path), compression="zstd"),
}


def _utf8(data: Any, encoding: str | None, where: str, notes: list[str]) -> Any:
    """Return text as UTF-8; without an encoding, what is neither UTF-8 nor UTF-16 is cp1252."""
    try:
        if encoding is None and data[:2] not in UTF16:
            decoder = codecs.getincrementaldecoder("utf-8")()
            for start in range(0, len(data), STRETCH):
                decoder.decode(data[start : start + STRETCH], final=start + STRETCH >= len(data))
            return data[3:] if data[:3] == codecs.BOM_UTF8 else data
        return str(data, encoding or "utf-16").removeprefix("\ufeff").encode()
    except (LookupError, TypeError):
        raise InputError(f"{where}: unknown encoding {encoding!r}, such as utf-8 and cp1252") from None
    except UnicodeError:
        if encoding is not None:
            raise InputError(f"{where}: the text is not {encoding}: set its encoding") from None
    notes.append("the text is read as cp1252: another is named with encoding=")
    return str(data, "cp1252", errors="replace").encode()


def _of_text(
    text: Any,
    where: str,
    names: Sequence[str] | None,
    header: bool | None,
    delimiter: str | None,
    notes: list[str],
) -> Table:
    lines = text[: LONGEST_LINE + 1].split(b"\n", 2)
    if len(lines[0]) > LONGEST_LINE:
        raise InputError(f"{where}: the first line has more than {LONGEST_LINE:,} bytes")
    first, second = (line.rstrip(b"\r").decode(errors="replace") for line in [*lines, b""][:2])
    skip = 0
    if delimiter is None and re.fullmatch(r'"?sep=(.|\t)"?', first):
        delimiter, skip, first = first.strip('"')[-1], 1, second
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda mark: first.count(mark) * len(mark))
        if delimiter not in first:
            delimiter = " " if " " in first.strip() else ","
    if delimiter == "::":
        text, delimiter = bytes(text).replace(b"::", b"\x1f"), "\x1f"
        first = first.replace("::", "\x1f")
    if not isinstance(delimiter, str) or len(delimiter.encode()) != 1:
        raise InputError(f"delimiter must be one character or '::', not {delimiter!r}")
    try:
        cells = next(csv.reader([first], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"{where}: {error}") from None
    found, own = _names(where, cells, names, header)
    skip += own
    numbers = [str(k) for k in range(len(found))]
    left_out: dict[str, int] = {}

    def parsed(content: Any, chosen: dict[str, str], skip: int, block: int) -> Any:
        convert = pc.ConvertOptions(
            include_columns=list(chosen.values()),
            column_types=dict.fromkeys(chosen.values(), pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        )
        every = pc.ReadOptions(column_names=numbers, skip_rows=skip, block_size=block)
        form = pc.ParseOptions(delimiter=delimiter, newlines_in_values=block > STRETCH)
        return pc.read_csv(pa.BufferReader(pa.py_buffer(content)), every, form, convert)

    def read(some: Sequence[str]) -> dict[str, Any]:
        chosen = {name: numbers[found.index(name)] for name in some}
        try:
            if _odd_quotes(text):
                raise pa.ArrowInvalid
            table = parsed(text, chosen, skip, STRETCH)
        except pa.ArrowException:
            regular, left_out["fields"] = _regular(text, where, delimiter, skip, len(found))
            table = parsed(regular, chosen, 0, LONGEST_LINE)
        return {name: table.column(number) for name, number in chosen.items()}

    named = own or names is not None
    return Table(where, found, read, named, left_out=left_out, notes=notes, first=cells)


def _odd_quotes(text: Any) -> bool:
    """Return whether a line has an odd number of quotes: a cell of several lines, or a stray quote."""
    if text.find(b'"') < 0:
        return False
    array = np.frombuffer(text, dtype=np.uint8)
    quotes, ends = np.flatnonzero(array == ord('"')), np.flatnonzero(array == ord("\n"))
    return bool((np.searchsorted(quotes, ends) % 2).any()) or len(quotes) % 2 == 1


def _regular(text: Any, where: str, delimiter: str, skip: int, width: int) -> tuple[bytes, int]:
    """Return the rows of an irregular table that have at most `width` fields, and how many have more.

    Refuse a quote that opens and does not close, or that closes only behind lines that look like rows.
    """
    out, raw = io.StringIO(), list[str]()

    def lines() -> Iterator[str]:
        for line in io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""):
            raw.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    rows, longer, bad, first = 0, 0, 0, ""
    while True:
        begin = reader.line_num + 1
        raw.clear()
        try:
            row = next(reader, None)
            between = raw[1:-1] if width > 1 else []
            if len(between) > 1 and all(one.count(delimiter) == width - 1 for one in between):
                raise csv.Error("only rows before it closes")
        except csv.Error as error:
            if len(raw) > 1 or "expected after" not in str(error):
                raise InputError(f"{where}, line {begin}: unclosed quote ({error})") from None
            row = next(csv.reader(raw, delimiter=delimiter), [])  # such as "a" b
        if row is None or (rows >= SAMPLE and 2 * bad > rows):
            break
        if not row or begin <= skip:
            continue
        rows += 1
        longer += len(row) > width
        if len(row) != width:
            bad += 1
            first = first or f"line {begin}: {len(row)} fields"
        if len(row) <= width:
            writer.writerow(row + [""] * (width - len(row)))
    if 2 * bad > rows:
        raise InputError(
            f"{where}, {first}, but {width} in the first line and most rows: set the delimiter"
        )
    return out.getvalue().encode(), longer


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the text of a file, plain or packed, with line ends as Unix has them."""
    return str(_utf8(_unpacked(path), encoding, shown(path), []), "utf-8").replace("\r\n", "\n")


def wrapped(what: str, table: Any) -> nw.DataFrame[Any]:
    """Return a table behind the one interface that all kinds share; lazy ones are computed."""
    import narwhals as nw

    try:
        frame = nw.from_native(table)
    except TypeError:
        raise InputError(
            f"{what} must be a table of pandas, polars or pyarrow, not {type(table).__name__}"
        ) from None
    except (ValueError, NotImplementedError) as error:  # a column twice, columns in levels
        raise InputError(f"{what}: this table cannot be read: {first_line(error)}") from None
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def kind_of(table: nw.DataFrame[Any]) -> str:
    """Return which of `KINDS` a table is; "pandas" for any other."""
    name = table.implementation.name.lower()
    return name if name in KINDS else "pandas"


def make(
    columns: Mapping[str, Sequence[Any]],
    kind: str = "pandas",
    types: Mapping[str, type] | None = None,
) -> Any:
    """Return a table ("pandas", "polars" or "pyarrow") of columns of equal lengths.

    `types` (str, int or float) are those of columns that are empty.
    """
    check_choice("the kind of a table", kind, KINDS)
    empty: dict[str, Any] = {n: (types or {}).get(n) for n, c in columns.items() if not len(c)}
    if kind == "pandas":
        return pd.DataFrame({n: pd.Series(c, dtype=empty.get(n)) for n, c in columns.items()})
    if kind == "pyarrow":
        arrow: dict[Any, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
        return pa.table({n: pa.array(c, arrow.get(empty.get(n))) for n, c in columns.items()})
    import polars as pl

    return pl.DataFrame({n: pl.Series(n, list(c), empty.get(n)) for n, c in columns.items()})
