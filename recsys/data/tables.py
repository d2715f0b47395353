"""Tables: a file or a frame of pandas, polars or pyarrow, as columns of arrow."""

from __future__ import annotations

import csv
import io
import json
import lzma
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from recsys.data.columns import ROLE_WORDS, absent, is_number, plain_name
from recsys.errors import InputError, first_line
from recsys.utils.extras import install_hint
from recsys.utils.files import MAX_BYTES, check_file, check_growth, shown
from recsys.utils.frames import kind_of, wrapped

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COLUMNS = 5_000
LONGEST_LINE = 1 << 24  # bytes
STRETCH = 1 << 22  # bytes that are unpacked at once
SAMPLE = 2_000  # lines of an irregular file that tell whether it is a table
DELIMITERS = ("\t", ";", "|", ",", "::")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass
class Table:
    """A table: the names of its columns, and each as arrow has it when asked for."""

    name: str  # in messages
    names: list[str]
    get: Callable[[str], Any]
    header: bool = True  # whether the first row has the names
    named: bool = True  # whether names were read or given
    file: bool = True
    kind: str = "pandas"
    ragged: int = 0  # rows of more fields than the header
    notes: list[str] = field(default_factory=list)
    index: list[str] = field(default_factory=list)  # columns that are levels of an index
    first: list[str] = field(default_factory=list)  # cells of the first row of delimited text

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column; of two of one name neither."""
        if name not in self.names:
            raise absent(self.name, name, self.names, self.header)
        if self.names.count(name) > 1:
            raise InputError(f"{self.name}: several columns are called {name[:60]!r}: rename them")
        return self.get(name)

    def texts(self, name: str) -> np.ndarray:
        """Return a column as text, missing cells empty."""
        column = self.column(name).to_pandas()
        return np.array(["" if pd.isna(cell) else str(cell) for cell in column], dtype=object)


def read_table(
    source: Any,
    *,
    wanted: Callable[[Table], Collection[str]] | None = None,
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
    wanted : callable, optional
        Takes the table before its cells are read, and returns the names of the columns to read.
    names, header, delimiter, encoding : optional
        Of delimited text; decided by the first lines when not given.
    name : str, optional
        Of the table in messages.
    """
    if isinstance(source, Table):
        return source
    if not isinstance(source, (str, os.PathLike)):
        for what, value in (
            ("names", names),
            ("header", header),
            ("delimiter", delimiter),
            ("encoding", encoding),
        ):
            if value is not None:
                raise InputError(f"{what} is for files; a table has its columns")
        return _of_frame(source, name or "interactions")
    path = Path(source)
    where = name or shown(path)
    ending = path.suffix.lower()
    if ending in PARQUET or path.is_dir():
        return _of_parquet(path, where)
    if ending in EXCEL:
        return _of_rows(_sheet(path), where, names, header)
    data, packed = _unpacked(path)
    text = _utf8(data, encoding, where)
    if not bytes(text[:64]).strip():
        raise InputError(f"{where}: the file is empty")
    if delimiter is None and names is None and bytes(text[:64]).lstrip()[:1] in (b"[", b"{"):
        return _of_json(text, where)
    return _of_text(text, where, wanted, names, header, delimiter, encoding is not None)


def _of_frame(frame: Any, where: str) -> Table:
    index: list[str] = []
    if isinstance(frame, pd.DataFrame):
        index = [str(level) for level in frame.index.names if level not in (None, *frame.columns)]
        frame = frame.reset_index(level=index) if index else frame
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"{where}: several columns are called {str(twice)[:60]!r}: rename them")
    table = wrapped(where, frame)
    names = list(table.columns)
    for one in names:
        if not isinstance(one, str):
            raise InputError(f"{where}: column {one!r} has no name of text; rename it")
    kind = kind_of(table)

    def get(name: str) -> Any:
        native = table[name].to_native()
        return as_arrow(where, name, native.to_arrow() if kind == "polars" else native)

    return Table(where, names, get, file=False, kind=kind, index=index)


def as_arrow(where: str, name: str, cells: Any) -> pa.ChunkedArray:
    """Return a column of any kind as arrow has it; messages call it `name` of the table `where`."""
    import pyarrow as pa

    if isinstance(cells, pa.ChunkedArray):
        return cells
    if isinstance(cells, pa.Array):
        return pa.chunked_array([cells])
    try:
        found = pa.array(cells, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        plain = [None if _void(cell) else _plain(cell) for cell in cells]
        kinds = {type(cell) for cell in plain if cell is not None}
        if kinds == {int, float}:
            plain = [None if cell is None else float(cell) for cell in plain]
        elif len(kinds) > 1:
            kinds_named = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(
                f"{where}: {name[:60]} holds {kinds_named} mixed; make it one kind, as by .astype(str)"
            ) from None
        try:
            found = pa.array(plain)
        except (pa.ArrowInvalid, OverflowError):
            raise InputError(f"{where}: {name[:60]} holds a number beyond 64 bits") from None
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _void(cell: Any) -> bool:
    return cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and cell != cell)


def _plain(cell: Any) -> Any:
    """Return a cell as a scalar: several values joined by |, and other objects as text."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return "|".join(str(part) for part in cell)
    if isinstance(cell, (str, bool, int, float)):
        return cell
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict) else str(cell)


def _of_parquet(path: Path, where: str) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_dir():
        check_file(path)
    try:
        schema = pq.read_schema(path) if path.is_file() else pq.ParquetDataset(path).schema
        if path.is_file():
            meta = pq.read_metadata(path)
            grown = sum(meta.row_group(k).total_byte_size for k in range(meta.num_row_groups))
            check_growth(path, max(path.stat().st_size, 1) * 50, min(grown, MAX_BYTES * 2))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{where}: no Parquet table: {first_line(error)}") from None
    _check_width(where, len(schema.names))

    def get(name: str) -> Any:
        try:
            return pq.read_table(path, columns=[name]).column(name)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{where}: {name[:60]} cannot be read: {first_line(error)}") from None

    return Table(where, list(schema.names), get)


def _check_width(where: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise InputError(f"{where}: {columns:,} columns; at most {MOST_COLUMNS:,} are read")


def _sheet(path: Path) -> list[list[Any]]:
    check_file(path)
    try:
        with zipfile.ZipFile(path) as file:
            check_growth(path, path.stat().st_size, sum(part.file_size for part in file.infolist()))
    except zipfile.BadZipFile:
        pass  # an older kind of workbook
    try:
        frame = pd.read_excel(path, header=None, dtype=object, engine="calamine")
    except ImportError:
        raise InputError(f"Excel files need python-calamine: {install_hint('excel')}") from None
    except Exception as error:  # noqa: BLE001 - whatever calamine says of a broken workbook
        raise InputError(f"{shown(path)}: no workbook that can be read: {first_line(error)}") from None
    frame = frame.dropna(how="all").dropna(how="all", axis=1)
    return [[None if _void(cell) else cell for cell in row] for row in frame.itertuples(index=False)]


def _of_rows(
    rows: list[list[Any]], where: str, names: Sequence[str] | None, header: bool | None
) -> Table:
    if not rows:
        raise InputError(f"{where}: the sheet is empty")
    first = ["" if cell is None else str(cell) for cell in rows[0]]
    own = is_header(first) if header is None and names is None else bool(header)
    found = _names(where, first, names, own)
    columns = list(zip(*rows[own:], strict=True)) or [()] * len(found)
    cells = dict(zip(found, columns, strict=True))
    return Table(
        where,
        found,
        lambda name: as_arrow(where, name, list(cells[name])),
        own,
        own or names is not None,
    )


def _names(where: str, first: Sequence[str], names: Sequence[str] | None, own: bool) -> list[str]:
    _check_width(where, len(first))
    if names is not None:
        if isinstance(names, str) or len(set(names)) < len(list(names)):
            raise InputError("names must be names of columns, each once")
        if len(list(names)) != len(first):
            raise InputError(f"{where}: {len(list(names))} names for {len(first)} columns")
        return list(names)
    return [cell.strip() for cell in first] if own else [str(k + 1) for k in range(len(first))]


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a first row has names: a word of a role, or neither numbers nor empty cells."""
    if any(plain_name(cell) in ROLE_WORDS for cell in cells):
        return True
    return all(cell.strip() and not is_number(cell) for cell in cells)


def _of_json(text: Any, where: str) -> Table:
    def constant(_: str) -> None:
        return None  # NaN and Infinity are empty cells

    content = bytes(text).decode()
    try:
        if content.lstrip()[0] == "[":
            rows = json.loads(content, parse_constant=constant)
        else:
            rows = [
                json.loads(line, parse_constant=constant)
                for line in content.splitlines()
                if line.strip()
            ]
    except (ValueError, RecursionError) as error:
        try:
            rows = json.loads(content, parse_constant=constant)
        except (ValueError, RecursionError):
            raise InputError(f"{where}: no JSON, neither lines nor an array: {error}") from None
    if isinstance(rows, list) and len(rows) == 1 and _of_columns(rows[0]):
        rows = rows[0]
    if _of_columns(rows):
        return _of_frame_of_lists(rows, where)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where}: JSON of a table is objects, one a row, in lines or in an array")
    columns: dict[str, list[Any]] = {}
    for k, row in enumerate(rows):
        for key, cell in row.items():
            if key not in columns:
                _check_width(where, len(columns) + 1)
                columns[key] = [None] * len(rows)
            columns[key][k] = cell
    return _of_frame_of_lists(columns, where)


def _of_columns(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and len(found) > 1
        and all(isinstance(cells, list) for cells in found.values())
        and len({len(cells) for cells in found.values()}) == 1
    )


def _of_frame_of_lists(columns: dict[str, list[Any]], where: str) -> Table:
    def get(name: str) -> Any:
        cells = columns[name]
        if any(isinstance(cell, (list, dict)) for cell in cells):
            cells = [None if cell is None else _plain(cell) for cell in cells]
        return as_arrow(where, name, cells)

    return Table(where, list(columns), get)


# ---- text


def _unpacked(path: Path) -> tuple[Any, bool]:
    """Return the bytes of a file, mapped where it is not packed, and whether it is packed."""
    import pyarrow as pa

    check_file(path)
    with path.open("rb") as file:
        begin = file.read(6)
    packing = next((kind for mark, kind in PACKED.items() if begin.startswith(mark)), None)
    if begin == b"\xfd7zXZ\x00":
        packing = "xz"
    elif begin[:4] == b"PK\x03\x04":
        packing = "zip"
    if packing is None:
        size = path.stat().st_size
        return (pa.memory_map(str(path)).read_buffer() if size else b""), False
    size, grown, line, parts = path.stat().st_size, 0, 0, []
    try:
        for part in _parts(path, packing):
            grown += len(part)
            check_growth(path, size, grown)
            end = part.rfind(b"\n")
            line = line + len(part) if end < 0 else len(part) - end - 1
            if line > LONGEST_LINE:
                raise InputError(f"{shown(path)}: a line has more than {LONGEST_LINE:,} bytes")
            parts.append(part)
    except (
        OSError,
        EOFError,
        lzma.LZMAError,
        zipfile.BadZipFile,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise InputError(f"{shown(path)}: damaged {packing} file: {first_line(error)}") from None
    return b"".join(parts), True


def _parts(path: Path, packing: str) -> Iterator[bytes]:
    import pyarrow as pa

    if packing == "zip":
        with zipfile.ZipFile(path) as archive:
            files = [
                one for one in archive.infolist() if not one.is_dir() and "__MACOSX" not in one.filename
            ]
            if len(files) != 1:
                raise InputError(f"{shown(path)}: {len(files)} files in the archive; one is read")
            check_growth(path, path.stat().st_size, files[0].file_size)
            with archive.open(files[0]) as stream:
                while part := stream.read(STRETCH):
                    yield part
    elif packing == "xz":
        with lzma.open(path) as stream:
            while part := stream.read(STRETCH):
                yield part
    else:
        with pa.input_stream(str(path), compression=packing) as stream:
            while part := stream.read(STRETCH):
                yield part


def _utf8(data: Any, encoding: str | None, where: str) -> Any:
    """Return text as UTF-8 without a byte-order mark."""
    begin = bytes(data[:4])
    if encoding is None and begin[:2] in UTF16:
        encoding = "utf-16"
    elif encoding is None and begin[:3] == b"\xef\xbb\xbf":
        return data[3:]
    if encoding is None or encoding.lower().replace("-", "") in ("utf8", "utf8sig"):
        return data
    try:
        return bytes(data).decode(encoding).removeprefix("\ufeff").encode()
    except LookupError:
        raise InputError(f"{where}: unknown encoding {encoding!r}, such as utf-8 and cp1252") from None
    except UnicodeError:
        raise InputError(f"{where}: the text is not {encoding}: name its encoding") from None


def _of_text(
    text: Any,
    where: str,
    wanted: Any,
    names: Sequence[str] | None,
    header: bool | None,
    delimiter: str | None,
    encoded: bool,
) -> Table:
    head = _lines(text, where, 3)
    notes = []
    try:
        head[0].decode()
    except UnicodeDecodeError:
        text, encoded = _cp1252(text), True
        notes.append("the text is read as cp1252: another is named with encoding=")
        head = _lines(text, where, 3)
    skip = 0
    first = head[0].decode(errors="replace")
    if delimiter is None and re.fullmatch(r'"?sep=(.|\t)"?', first.strip("\r\n")):
        delimiter, skip = first.strip('"\r\n')[-1], 1
        first = head[1].decode(errors="replace") if len(head) > 1 else ""
    if delimiter is None:
        counts = {mark: first.count(mark) for mark in DELIMITERS}
        counts[","] = max(counts[","], 0)
        delimiter = max(DELIMITERS, key=lambda mark: counts[mark] * len(mark))
        if not counts[delimiter]:
            delimiter = " " if " " in first.strip() else ","
    if delimiter == "::":
        text, delimiter = bytes(text).replace(b"::", b"\x1f"), "\x1f"
        first = first.replace("::", "\x1f")
    if not isinstance(delimiter, str) or len(delimiter.encode()) != 1:
        raise InputError(f"delimiter must be one character or '::', not {delimiter!r}")
    cells = next(csv.reader([first.rstrip("\r\n")], delimiter=delimiter), [])
    own = is_header(cells) if header is None and names is None else bool(header)
    found = _names(where, cells, names, own)
    table = Table(
        where, found, lambda name: by_name[name], own, own or names is not None, notes=notes, first=cells
    )
    several = _check_quotes(text, where, delimiter, len(found))
    chosen = found if wanted is None else list(wanted(table))
    places = [found.index(name) for name in chosen]
    body = skip + own
    try:
        columns = _read(text, delimiter, body, len(found), places, several)
    except _Irregular as error:
        if "UTF8" in str(error):
            if encoded:
                raise InputError(f"{where}: the text is not UTF-8: name its encoding") from None
            notes.append("the text is read as cp1252: another is named with encoding=")
            text = _cp1252(text)
        columns, table.ragged = _read_irregular(text, where, delimiter, body, len(found), places)
    by_name = dict(zip(chosen, columns, strict=True))
    if own and chosen and len(next(iter(by_name.values()))) == 0:
        raise InputError(f"{where}: no interactions; there is a header only")
    return table


def _cp1252(text: Any) -> bytes:
    return bytes(text).decode("cp1252", errors="replace").encode()


def _lines(text: Any, where: str, count: int) -> list[bytes]:
    out, size = [], 1 << 16
    head = bytes(text[:size])
    while head.count(b"\n") < count and size < len(text) and size < LONGEST_LINE:
        size *= 4
        head = bytes(text[:size])
    if size < len(text) and b"\n" not in head:
        raise InputError(f"{where}: the first line has more than {LONGEST_LINE:,} bytes")
    for line in head.split(b"\n")[:count]:
        out.append(line)
    return out


class _Irregular(Exception):
    """What the fast reader cannot read."""


def _read(
    text: Any, delimiter: str, skip: int, width: int, places: list[int], several: bool
) -> list[Any]:
    """Return columns as text, coded; numbers are told apart later, by the whole column."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = [str(k) for k in range(width)]
    kind = pa.dictionary(pa.int32(), pa.string())
    used = list(dict.fromkeys(names[k] for k in places))
    try:
        found = pc.read_csv(
            pa.BufferReader(text if isinstance(text, pa.Buffer) else pa.py_buffer(text)),
            read_options=pc.ReadOptions(column_names=names, skip_rows=skip, block_size=1 << 22),
            parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=several),
            convert_options=pc.ConvertOptions(
                include_columns=used, column_types=dict.fromkeys(used, kind), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        if "Empty CSV" in str(error):
            return [pa.chunked_array([], pa.string()) for _ in places]
        raise _Irregular(str(error)) from None
    return [found.column(names[k]) for k in places]


def _read_irregular(
    text: Any, where: str, delimiter: str, skip: int, width: int, places: list[int]
) -> tuple[list[Any], int]:
    """Return columns of a file of which some rows have more fields, and how many these are."""
    import pyarrow as pa

    data = bytes(text)
    head = [
        line.decode(errors="replace") for line in data.split(b"\n", SAMPLE + skip)[skip : SAMPLE + skip]
    ]
    sizes = [
        (k, len(row)) for k, row in enumerate(csv.reader(head, delimiter=delimiter), skip + 1) if row
    ]
    bad = [(line, size) for line, size in sizes if size != width]
    if 2 * len(bad) > len(sizes):
        raise InputError(
            f"{where}, line {bad[0][0]}: {bad[0][1]} fields where the first line has {width}, as "
            "in most rows: name the delimiter"
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            frame = pd.read_csv(
                io.BytesIO(_first_row(width, delimiter) + data),
                sep=delimiter,
                header=0,
                skiprows=range(1, skip + 1),
                dtype=str,
                engine="c",
                keep_default_na=False,
                on_bad_lines="warn",
                index_col=False,
                encoding_errors="replace",
            )
        except (pd.errors.ParserError, ValueError) as error:
            raise InputError(f"{where}: {first_line(error)}") from None
    ragged = sum(len(re.findall(r"Skipping line \d+", str(one.message))) for one in told)
    columns = [
        pa.chunked_array([pa.array(frame.iloc[:, k], pa.string(), from_pandas=True)]) for k in places
    ]
    return columns, ragged


def _first_row(width: int, delimiter: str) -> bytes:
    return delimiter.join(str(k) for k in range(width)).encode() + b"\n"


def _check_quotes(text: Any, where: str, delimiter: str, width: int) -> bool:
    """Refuse a quote that opens and does not close; return whether cells hold line ends.

    A cell that closes only behind lines that all look like rows is one, too.
    """
    array = np.frombuffer(text, dtype=np.uint8)
    mark = re.escape(delimiter.encode())
    opening = re.compile(rb"(?:^|" + mark + rb')"((?:[^"]|"")*)("?)')
    ends: list[Any] = []
    odd: list[Any] = []
    line = 0
    quotes_before = 0
    for start in range(0, len(array), 1 << 26):
        part = array[start : start + (1 << 26)]
        quotes = np.flatnonzero(part == 34)
        if not len(quotes) and not odd and quotes_before == 0:
            ends.append(None)
            continue
        lines = np.flatnonzero(part == 10)
        ends.append((start, lines))
        quotes_before += len(quotes)
    if quotes_before == 0:
        return False
    breaks = np.flatnonzero(array == 10)
    quotes = np.flatnonzero(array == 34)
    of = np.searchsorted(breaks, quotes)
    numbers, counts = np.unique(of, return_counts=True)
    odd = numbers[counts % 2 == 1].tolist()

    def at(line: int) -> bytes:
        begin = 0 if line == 0 else int(breaks[line - 1]) + 1
        end = int(breaks[line]) if line < len(breaks) else len(array)
        return bytes(text[begin:end]).rstrip(b"\r")

    def opens(content: bytes) -> bool:
        position, found = 0, None
        while (found := opening.search(content, position)) is not None:
            if not found.group(2):
                return True
            position = max(found.end(), position + 1)
        return False

    opened, several = None, False
    for line in odd:
        content = at(line)
        if opened is None:
            opened = line if opens(content) else None
            continue
        rest = re.match(rb'(?:[^"]|"")*"(?!")(.?)', content)
        closes = rest is not None and rest.group(1) in (b"", delimiter.encode())
        between = [at(k) for k in range(opened + 1, min(line, opened + 50))]
        rows = len(between) >= 2 and all(one.count(delimiter.encode()) == width - 1 for one in between)
        if not closes or (rows and width > 1):
            raise InputError(f"{where}, line {opened + 1}: a quote opens and is not closed")
        several, opened = True, None
    if opened is not None:
        raise InputError(f"{where}, line {opened + 1}: a quote opens and is not closed")
    return several


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the text of a file, plain or packed, with line ends as Unix has them."""
    text = bytes(_utf8(_unpacked(path)[0], encoding, shown(path)))
    try:
        return text.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return text.decode("cp1252", errors="replace").replace("\r\n", "\n")
