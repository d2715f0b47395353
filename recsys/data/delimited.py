"""Delimited text as columns of cells, taken apart a block at a time: memory is that of the cells."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError, counted
from recsys.utils.files import text_blocks

SEPARATORS = ("::", "\t", ";", "|", ",")
MOST_COLUMNS = 200_000
MOST_REMEMBERED = 1 << 20  # texts: a cell that was there before takes no memory of its own
ROWS = 1 << 14  # with quotes, kept before they become columns


class Cells(NamedTuple):
    """A table of text.

    Attributes
    ----------
    names : list of str
    columns : list of (rows,) object
    lines : (rows,) int64 or range
        On which each row began.
    ragged : sequence of int
        Lines of the rows that have another number of fields.
    notes : tuple of str
        What became of lines that begin with #.
    """

    names: list[str]
    columns: list[NDArray[np.object_]]
    lines: NDArray[np.int64] | range
    ragged: Sequence[int]
    notes: tuple[str, ...]


def read_delimited(
    path: Path,
    what: str,
    *,
    separator: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
    strict: bool = True,
    max_rows: int | None = None,
) -> Cells:
    """Return the cells of a text file, plain or gzip; parameters and errors as in `read_table`.

    Quoted fields, which may span lines, are known where the separator is one character. Lines without
    a letter are skipped, and so are those before the header that begin with #; after it such a line is
    a row if it has as many fields as the header, else a comment.
    """
    blocks, head = text_blocks(path, encoding), []
    first: list[str] = []
    for block in blocks:
        head.append(block)
        first += _counted(block, 2 - len(first))
        if len(first) == 2:
            break
    if not first and names is None:
        raise InputError(f"{path}: no {what}; the file is empty")
    separator = separator or (_separator(first) if first else ",")
    rows = _Rows(path, separator, None if names is None else list(names), strict, max_rows)
    # once there is a quote, a row may go on in the next line, and in the next block
    every = chain(head, blocks)
    for block in every:
        if len(separator) == 1 and '"' in block:
            rows.take_quoted(chain([block], every))
            break
        rows.take(block)
    return rows.finished(what)


def _counted(block: str, most: int) -> list[str]:
    """Return the first lines of a block that are neither blank nor comments."""
    out: list[str] = []
    start = 0
    while start < len(block) and len(out) < most:
        end = block.find("\n", start)
        end = len(block) if end < 0 else end
        line = block[start:end]
        if line.strip() and not line.startswith("#"):
            out.append(line)
        start = end + 1
    return out


def _separator(lines: Sequence[str]) -> str:
    """Return what parts the first line: oftenest, of those that part the second line alike."""
    plain = [re.sub(r'"[^"]*"', "", line) for line in lines]
    found = [mark for mark in SEPARATORS if mark in plain[0]]
    if not found:
        return ","
    alike = [mark for mark in found if plain[0].count(mark) == plain[-1].count(mark)]
    return max(alike or found, key=plain[0].count)  # of two alike the one that is earlier in SEPARATORS


def _lines(block: str) -> list[str]:
    """Return the lines of a block, which ends with a line end but for the last one of a file."""
    lines = block.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


@dataclass
class _Rows:
    """Rows as they come, kept as columns."""

    path: Path
    separator: str
    header: list[str] | None
    strict: bool
    max_rows: int | None
    columns: list[list[str]] = field(default_factory=list)
    parts: list[list[NDArray[np.object_]]] = field(default_factory=list)
    spans: list[NDArray[np.int64] | range] = field(default_factory=list)
    ragged: array[int] = field(default_factory=lambda: array("q"))
    number: int = 0  # of the last line that was taken
    rows: int = 0
    comments: int = 0
    hashed: int = 0
    known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.named = self.header is not None
        # a line that is a row by itself: fields are quoted from end to end, or hold no quote
        mark = re.escape(self.separator)
        one = rf'(?:"(?:[^"]|"")*"|[^"{mark}]*)' if len(self.separator) == 1 else ""
        self.well_formed = re.compile(rf"{one}(?:{mark}{one})*")
        if self.header is not None:
            self._begin(self.header)

    def _begin(self, header: list[str]) -> None:
        if len(header) > MOST_COLUMNS:
            raise InputError(
                f"{self.path}: {len(header):,} columns (separator {self.separator!r}); at most "
                f"{MOST_COLUMNS:,} are read"
            )
        self.header = header if self.named else [name.strip() for name in header]
        self.columns = [[] for _ in header]
        self.parts = [[] for _ in header]

    def take(self, block: str) -> None:
        """Take the lines of a block without quotes."""
        lines = _lines(block)
        start = self.number + 1
        self.number += len(lines)
        numbers: Sequence[int] = range(start, start + len(lines))
        if self.header is None:
            row = next((k for k, line in enumerate(lines) if line.strip() and line[0] != "#"), None)
            if row is None:
                return
            self._begin(lines[row].split(self.separator))
            lines, numbers = lines[row + 1 :], numbers[row + 1 :]
        if not all(map(str.strip, lines)) or block.startswith("#") or "\n#" in block:
            kept = [(n, line) for n, line in zip(numbers, lines, strict=True) if line.strip()]
            kept = [(n, line) for n, line in kept if not line.startswith("#") or self._is_row(line)]
            numbers, lines = [n for n, _ in kept], [line for _, line in kept]
        self._take([line.split(self.separator) for line in lines], numbers)

    def take_quoted(self, blocks: Iterator[str]) -> None:
        """Take all that is left, in which a row may have several lines."""
        source = _Lines(blocks, self)
        reader = csv.reader(source, delimiter=self.separator, strict=True)
        rows: list[list[str]] = []
        numbers: list[int] = []
        try:
            while True:
                source.fresh = True
                row = next(reader)
                if self.header is None:
                    self._begin(row)
                    continue
                rows.append(row)
                numbers.append(source.start)
                if len(rows) == ROWS:
                    self._take(rows, numbers)
                    rows, numbers = [], []
        except StopIteration:
            self._take(rows, numbers)
        except csv.Error as error:
            raise InputError(f"{self.path}, line {source.start}: {error}") from None

    def _is_row(self, line: str) -> bool:
        """Return whether a line that begins with # is a row and no comment, and count it."""
        if self.header is None:
            return False
        if '"' in line and len(self.separator) == 1:
            whole = self.well_formed.fullmatch(line) is not None
            fields = len(next(csv.reader([line], delimiter=self.separator))) if whole else 0
        else:
            fields = line.count(self.separator) + 1
        found = fields == len(self.header)
        self.hashed += found
        self.comments += not found
        return found

    def _take(self, rows: list[list[str]], numbers: Sequence[int]) -> None:
        width = len(self.columns)
        if set(map(len, rows)) != {width}:
            rows, numbers = self._fitting(rows, numbers, width)
        if not rows:
            return
        self.rows += len(rows)
        if self.max_rows is not None and self.rows > self.max_rows:
            raise InputError(
                f"{self.path} has more than {self.max_rows:,} rows; at most so many are read"
            )
        for column, cells in zip(self.columns, zip(*rows, strict=True), strict=True):
            column.extend(map(self.known.setdefault, cells, cells))
        if len(self.columns[0]) >= ROWS:
            self._to_arrays()
        if len(self.known) > MOST_REMEMBERED:
            self.known.clear()
        contiguous = numbers[-1] - numbers[0] == len(rows) - 1
        span = range(numbers[0], numbers[-1] + 1) if contiguous else np.array(numbers, dtype=np.int64)
        before = self.spans[-1] if self.spans else None
        if isinstance(span, range) and isinstance(before, range) and before.stop == span.start:
            self.spans[-1] = range(before.start, span.stop)
        else:
            self.spans.append(span)

    def _to_arrays(self) -> None:
        """Make arrays of the cells: Python's collector of garbage goes through lists again and again."""
        for column, parts in zip(self.columns, self.parts, strict=True):
            parts.append(np.array(column, dtype=object))
            column.clear()

    def _fitting(
        self, rows: list[list[str]], numbers: Sequence[int], width: int
    ) -> tuple[list[list[str]], Sequence[int]]:
        fits = [len(row) == width for row in rows]
        if self.strict and not all(fits):
            bad = fits.index(False)
            raise InputError(
                f"{self.path}, line {numbers[bad]}: {len(rows[bad])} fields where "
                f"{'there should be' if self.named else 'the header has'} {width} "
                f"(separator {self.separator!r})"
            )
        self.ragged.extend(n for n, fit in zip(numbers, fits, strict=True) if not fit)
        return (
            [row for row, fit in zip(rows, fits, strict=True) if fit],
            [n for n, fit in zip(numbers, fits, strict=True) if fit],
        )

    def finished(self, what: str) -> Cells:
        """Return the cells; there is a row."""
        if self.ragged and not self.rows:
            raise InputError(
                f"{self.path}: no {what}; none of {counted(len(self.ragged), 'row')} has the "
                f"{len(self.columns)} fields of the header (separator {self.separator!r})"
            )
        if not self.rows:
            only = "the file is empty" if self.named else "there is a header only"
            raise InputError(f"{self.path}: no {what}; {only}")
        self.known.clear()
        self._to_arrays()
        columns = []
        while self.parts:  # one after the other, so that no two copies of all are there
            columns.append(np.concatenate(self.parts.pop()))
        lines = self.spans[0] if len(self.spans) == 1 else np.concatenate(self.spans)
        assert self.header is not None
        return Cells(self.header, columns[::-1], lines, self.ragged, self._notes())

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.comments:
            one = self.comments == 1
            notes.append(
                f"{counted(self.comments, 'line')} that {'begins' if one else 'begin'} with # "
                f"{'is a comment' if one else 'are comments'}: another number of fields than the header"
            )
        if self.hashed:
            one = self.hashed == 1
            notes.append(
                f"{counted(self.hashed, 'row')} that {'begins' if one else 'begin'} with # "
                f"{'is' if one else 'are'} read: as many fields as the header"
            )
        return tuple(notes)


class _Lines:
    """Lines for csv.reader; blank ones and comments are left out where a row begins."""

    def __init__(self, blocks: Iterator[str], rows: _Rows) -> None:
        self._lines = (line for block in blocks for line in _lines(block))
        self.rows = rows
        self.fresh = True
        self.start = rows.number + 1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while True:
            line = next(self._lines)
            self.rows.number += 1
            if self.fresh:
                if not line.strip() or (line.startswith("#") and not self.rows._is_row(line)):
                    continue
                self.fresh, self.start = False, self.rows.number
            return line + "\n"
