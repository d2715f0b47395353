"""Excel's tables (.xlsx) as cells of text: the first sheet with anything in it."""

from __future__ import annotations

import importlib.util
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.files import check_file, check_growth

ENDINGS = (".xlsx",)
MOST_BYTES = 1_000_000_000  # unpacked: an .xlsx is a zip archive
MOST_PARTS = 10_000  # files in the archive
MOST_CELLS = 10_000_000  # from the first to the last row and column, which is what the reader makes
STRETCH = 1 << 20
OVERLAP = 256  # bytes of a stretch that are looked at again with the next: no pattern is longer
PLACE = re.compile(rb"""\br\s{0,9}=\s{0,9}["']([A-Za-z]{1,9})([0-9]{1,12})["']""")  # r="XFD1048576"
TEXT_END = re.compile(rb"</(?:\w{1,20}:)?si\s{0,9}>|<(?:\w{1,20}:)?si\s{0,9}/>")
VALUE = re.compile(rb"<(?:\w{1,20}:)?v(?:\s[^<>]{0,99})?>\s{0,9}([0-9]{1,9})\s{0,9}<")
SHARED = "sharedstrings.xml"  # the texts, each once; cells have their numbers


def read_sheet(path: Path, what: str) -> tuple[list[str], list[NDArray[np.object_]], NDArray[np.int64]]:
    """Return the names of the columns, the columns, and the number of each row in the sheet.

    Numbers that are whole are written without a point, dates as ISO has them. Rows without any cell
    are skipped; so are columns without a name and a cell.

    Parameters
    ----------
    path : Path
    what : str
        What messages miss in a sheet without rows.

    Raises
    ------
    InputError
        If python-calamine is not installed, the file is no workbook, its parts are larger than they
        say or than is read, or there is no row below the header.
    """
    if importlib.util.find_spec("python_calamine") is None:
        raise InputError(
            f"{path}: Excel files are read through python-calamine: pip install 'recsys[excel]', or "
            "save the sheet as CSV"
        )
    import pandas as pd

    _check_archive(path)
    try:
        with pd.ExcelFile(path, engine="calamine") as book:
            # one after the other: many may be one part of the archive
            frame = next((one for one in _frames(book) if len(one)), None)
    except Exception as error:  # the reader's own kinds, which differ from release to release
        raise InputError(
            f"{path} is no readable Excel file: {' '.join(str(error).split())[:120]}"
        ) from None
    if frame is None:
        raise InputError(f"{path}: no {what}; the file is empty")
    cells = [np.array([_text(cell) for cell in frame[column]], dtype=object) for column in frame.columns]
    cells = [column for column in cells if (column != "").any()]
    if not cells:
        raise InputError(f"{path}: no {what}; the file is empty")
    filled = np.flatnonzero(np.any([column != "" for column in cells], axis=0))
    names = [column[filled[0]].strip() for column in cells]
    if len(filled) == 1:
        raise InputError(f"{path}: no {what}; there is a header only")
    if "" in names:
        raise InputError(
            f"{path}, line {filled[0] + 1}: column {names.index('') + 1} has no name; the first row "
            "with a cell must name every column"
        )
    return names, [column[filled[1:]] for column in cells], np.asarray(filled[1:]) + 1


def _frames(book: Any) -> Iterator[Any]:
    import pandas as pd

    for name in book.sheet_names:
        yield pd.read_excel(book, sheet_name=name, header=None, dtype=object, na_filter=False)


def _check_archive(path: Path) -> None:
    """Look at every part once, in stretches: none is larger than it says, nor makes a larger table.

    The reader makes all cells up to the last row and column, and a text of its own for each cell; it
    ends the process where there is no memory for them.
    """
    size = check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            total = sum(part.file_size for part in parts)
            if len(parts) > MOST_PARTS or total > MOST_BYTES:
                raise InputError(
                    f"{path} unpacks to {total / 1e6:,.0f} MB in {len(parts):,} parts; at most "
                    f"{MOST_BYTES / 1e6:,.0f} MB in {MOST_PARTS:,} parts are read. Save it as CSV"
                )
            check_growth(path, size, total)
            lengths = np.zeros(0, dtype=np.int64)
            for part in parts:
                if part.filename.lower().endswith(SHARED):
                    with archive.open(part) as stream:
                        ends = [place for place, _ in _found(stream, TEXT_END)]
                    lengths = np.append(lengths, np.diff(ends, prepend=0))
            for part in parts:
                if not part.filename.lower().endswith(SHARED):
                    with archive.open(part) as stream:
                        _check_sheet(path, stream, lengths)
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError) as error:
        raise InputError(f"{path} is no readable Excel file: {str(error)[:120]}") from None


def _check_sheet(path: Path, stream: IO[bytes], lengths: NDArray[np.int64]) -> None:
    rows = columns = text = 0
    either = re.compile(PLACE.pattern + b"|" + VALUE.pattern)
    for _, match in _found(stream, either):
        letters, row, value = match.groups()
        if value is not None:  # a number, or that of a text: taken for a text if there is such a one
            text += int(lengths[int(value)]) if int(value) < len(lengths) else 0
        else:
            number = 0
            for letter in letters.upper():
                number = 26 * number + letter - ord("A") + 1
            rows, columns = max(rows, int(row)), max(columns, number)
        if rows * columns > MOST_CELLS:
            raise InputError(
                f"{path} has a sheet of {rows:,} rows and {columns:,} columns; at most {MOST_CELLS:,} "
                "cells are read. Save it as CSV"
            )
        if text > MOST_BYTES:
            raise InputError(
                f"{path} has cells of more than {MOST_BYTES / 1e6:,.0f} MB of text. Save it as CSV"
            )


def _found(stream: IO[bytes], pattern: re.Pattern[bytes]) -> Iterator[tuple[int, re.Match[bytes]]]:
    """Give the matches in a stream with the places of their ends; a part of UTF-16 is refused."""
    kept, before = b"", 0
    while stretch := stream.read(STRETCH):
        if before == 0 and stretch[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise zipfile.BadZipFile("a part is UTF-16 text")
        data = kept + stretch
        for match in pattern.finditer(data):
            if match.end() > len(kept):  # else it was there the last time
                yield before + match.end() - len(kept), match
        before += len(stretch)
        kept = data[-OVERLAP:]


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None or cell is np.nan:
        return ""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
