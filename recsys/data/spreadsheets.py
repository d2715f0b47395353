"""Excel's tables (.xlsx): the first sheet with anything in it."""

from __future__ import annotations

import importlib.util
import zipfile
import zlib
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.delimited import is_header
from recsys.data.rows import Rows
from recsys.errors import InputError
from recsys.utils.extras import install_hint
from recsys.utils.files import check_file, check_growth

ENDINGS = (".xlsx",)
MOST_BYTES = 1_000_000_000  # unpacked: an .xlsx is a zip archive
MOST_PARTS = 10_000  # files in the archive
MOST_CELLS = 10_000_000  # from the first to the last row and column, which is what the reader makes
SHARED = "sharedstrings.xml"  # the texts, each once; cells have their numbers


class SheetRows(Rows):
    """A sheet. Numbers that are whole are text without a point, dates as ISO has them.

    Rows without any cell are skipped; so are columns without one.
    """

    def __init__(
        self, path: Path, what: str, names: Sequence[str] | None = None, header: bool | None = None,
        known: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        if importlib.util.find_spec("python_calamine") is None:
            raise InputError(
                f"{path}: Excel files are read through python-calamine: {install_hint('excel')}, or "
                "save the sheet as CSV"
            )
        _check_archive(path)
        cells = _cells(path)
        cells = [column for column in cells if (column != "").any()]
        if not cells:
            raise InputError(f"{path}: no {what}; the file is empty")
        filled = np.flatnonzero(np.any([column != "" for column in cells], axis=0))
        first = [column[filled[0]].strip() for column in cells]
        if header is None:
            rows = [[column[k] for column in cells] for k in filled[1:200]]
            header = names is None and ("" in first or is_header(first, rows, known))
        self.header = header or names is not None
        if names is None:
            names = first if header else [str(k + 1) for k in range(len(first))]
        if header and "" in names:
            raise InputError(
                f"{path}, line {filled[0] + 1}: column {first.index('') + 1} has no name; the first row "
                "with a cell must name every column"
            )
        if header and len(filled) == 1:
            raise InputError(f"{path}: no {what}; there is a header only")
        super().__init__(str(path), names)
        filled = filled[1:] if header else filled
        self._lines = filled + 1
        self._columns = [column[filled] for column in cells]

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return the first cells of a column."""
        return self._columns[k][:1000]

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return columns; as of `Rows`."""
        if max_rows is not None and len(self._lines) > max_rows:
            raise InputError(f"{self.name} has {len(self._lines):,} rows; at most {max_rows:,} are read")
        return [pd.Series(self._columns[k], dtype=object) for k in used]

    def where(self, rows: Sequence[int]) -> dict[int, str]:
        """Return where rows are."""
        return {row: f"line {self._lines[row]}" for row in rows}


def _cells(path: Path) -> list[NDArray[np.object_]]:
    """Return the columns of the first sheet with a cell."""
    from python_calamine import CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(str(path))
        for name in book.sheet_names:  # one after the other: many may be one part of the archive
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            if rows:
                out = np.empty((len(rows), max(map(len, rows))), dtype=object)
                out[:] = ""
                for k, row in enumerate(rows):
                    out[k, : len(row)] = [_text(cell) for cell in row]
                return list(out.T)
    except Exception as error:  # the reader's own kinds, which differ from release to release
        raise InputError(
            f"{path} is no readable Excel file: {' '.join(str(error).split())[:120]}"
        ) from None
    return []


def _check_archive(path: Path) -> None:
    """Look at every part once, parsed as it comes: none makes a larger table than is read.

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
            texts: list[int] = []
            for part in sorted(parts, key=lambda part: not part.filename.lower().endswith(SHARED)):
                if part.filename.lower().endswith(".xml"):
                    with archive.open(part) as stream:
                        _Part(path, texts).parse(stream)
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError, expat.ExpatError) as error:
        raise InputError(f"{path} is no readable Excel file: {str(error)[:120]}") from None


class _Part:
    """A part of the archive as it is parsed: how far its cells reach, and how much text they have."""

    def __init__(self, path: Path, texts: list[int]) -> None:
        self.path, self.texts = path, texts
        self.rows = self.columns = self.text = 0
        self.inside = ""  # "v" in the value of a cell, "t" in a shared text
        self.shared = False
        self.value = ""

    def parse(self, stream: IO[bytes]) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.ParseFile(stream)

    def _begin(self, tag: str, given: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "c":
            self.shared = given.get("t") == "s"
            self._reach(given.get("r", ""))
        elif tag == "si":
            self.texts.append(0)
            self.inside = "t"
        elif tag == "v":
            self.inside, self.value = "v", ""

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "v":
            place = self.value.strip()
            if self.shared and place.isdecimal() and int(place[:9]) < len(self.texts):
                self.text += self.texts[int(place[:9])]
                if self.text > MOST_BYTES:
                    raise InputError(
                        f"{self.path} has cells of more than {MOST_BYTES / 1e6:,.0f} MB of text. Save "
                        "it as CSV"
                    )
        if tag in ("v", "si"):
            self.inside = ""

    def _data(self, text: str) -> None:
        if self.inside == "t":
            self.texts[-1] += len(text)
        elif self.inside == "v":
            self.value += text[:20]

    def _reach(self, place: str) -> None:
        letters = place.rstrip("0123456789")
        number = 0
        for letter in letters.upper()[:9]:
            number = 26 * number + ord(letter) - ord("A") + 1
        self.columns = max(self.columns, number)
        self.rows = max(self.rows, int(place[len(letters) :][:12] or 0))
        if self.rows * self.columns > MOST_CELLS:
            raise InputError(
                f"{self.path} has a sheet of {self.rows:,} rows and {self.columns:,} columns; at most "
                f"{MOST_CELLS:,} cells are read. Save it as CSV"
            )


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None:
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
