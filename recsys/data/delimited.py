"""Delimited text: what its first lines say of its form, and its cells, which pyarrow takes apart.

pyarrow tells no line numbers. They are looked for in a second pass, through the standard library's csv,
where a message needs one.
"""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.rows import Rows
from recsys.data.sources import HEAD, Lent, Source, lines_of
from recsys.errors import InputError, counted
from recsys.utils.dates import number_of
from recsys.utils.files import shown
from recsys.utils.progress import heard, report

DELIMITERS = ("::", "\t", ";", "|", ",", " ")
MOST_COLUMNS = 200_000
MOST_HEAD = 200  # rows that the form is decided by
BLOCK = 1 << 23  # bytes that pyarrow takes apart at once
UNIT = "\x1f"  # stands for a delimiter of two characters: pyarrow takes one
EXCEL = re.compile(r'"?sep=(.)"?\s*')  # the line by which Excel is told the delimiter
ITEM_LINE = re.compile(r"[^,:]+:")  # Netflix: a line "123:" before the rows of a film
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ]|$)")
NETFLIX = ["item", "user", "rating", "date"]


@dataclass
class Form:
    """The dialect of a delimited text."""

    delimiter: str
    quoted: bool  # whether fields may be quoted
    skip: int  # lines before the first row, the header's among them
    names: list[str]
    header: bool  # whether the names are the first row's
    sample: list[list[str]]  # the first rows
    notes: list[str] = field(default_factory=list)


@dataclass
class IrregularRows:
    """Rows that are none of the table: how many."""

    ragged: int = 0
    comments: int = 0
    open_quote: bool = False


def form_of(
    source: Source,
    what: str,
    *,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    header: bool | None = None,
    known: frozenset[str] = frozenset(),
) -> Form:
    """Return how a text is read, decided by its first lines where it is not given.

    The delimiter is one character, or `::`; else the one of `DELIMITERS` that divides the first lines
    most alike. Names are those of the columns; the first row is then a header only if `header` says so.
    Else it is one unless one of its cells is a number, a date, empty or one that its column has again.
    `known` has names, in lower case, that only a header has.
    """
    text, _ = source.head()
    lines = text.split("\n")
    start, notes = 0, list(source.notes)
    while start < len(lines) and (not lines[start].strip() or lines[start].startswith("#")):
        start += 1
    if start < len(lines) and (excel := EXCEL.fullmatch(lines[start])):
        delimiter, start = delimiter or excel.group(1), start + 1
        while start < len(lines) and not lines[start].strip():
            start += 1
    if not any(line.strip() for line in lines[start:]):
        raise InputError(f"{shown(source.path)}: no {what}; the file is empty")
    below = next((line for line in lines[start + 1 :] if line.strip()), "")
    if (
        names is None
        and header is None
        and delimiter is None
        and below.count(",") == 2
        and ITEM_LINE.fullmatch(lines[start].strip())
    ):
        notes.append("a line that ends in a colon is the item of the rows below it")
        return Form(ITEMS, False, start, NETFLIX, False, [], notes)
    if delimiter is not None and (len(delimiter.encode()) != 1 and delimiter != "::"):
        raise InputError(f"delimiter must be one character or ::, not {delimiter[:20]!r}")
    body = [line for line in lines[start:] if line.strip()][:MOST_HEAD]
    delimiter = delimiter or _delimiter([line for line in body if not line.startswith("#")] or body)
    quoted = delimiter != "::"
    if (columns := body[0].count(delimiter) + 1) > MOST_COLUMNS:
        raise InputError(
            f"{shown(source.path)}: {columns:,} columns (delimiter {delimiter!r}); at most "
            f"{MOST_COLUMNS:,} are read"
        )
    rows, ends = _rows(lines[start:], delimiter, quoted)
    if not rows:
        raise InputError(f"{shown(source.path)}: no {what}; no row has a cell")
    first = [cell.strip() for cell in rows[0]]
    if header is None:
        header = names is None and is_header(first, rows[1:], known)
    if names is None:
        names = first if header else [str(k + 1) for k in range(len(first))]
    skip = start + (ends[0] if header else 0)
    sample = rows[1:] if header else rows
    return Form(delimiter, quoted, skip, list(names), header, sample, notes)


ITEMS = ":"  # the delimiter of Netflix' form


def _rows(lines: list[str], delimiter: str, quoted: bool) -> tuple[list[list[str]], list[int]]:
    """Return the first rows, and how many lines each of them ends behind."""
    rows: list[list[str]] = []
    ends: list[int] = []
    if not quoted:
        for k, line in enumerate(lines[:MOST_HEAD]):
            if line.strip():
                rows.append(line.split(delimiter))
                ends.append(k + 1)
        return rows, ends
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
                ends.append(reader.line_num)
            if len(rows) == MOST_HEAD:
                break
    except csv.Error:
        pass
    return rows, ends


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter that divides the first lines most alike, and the first line most often."""
    plain = [re.sub(r'"[^"]*"', "", line) for line in lines[:50]]
    found = [mark for mark in DELIMITERS if mark in plain[0].strip()]
    if found != [" "]:
        found = [mark for mark in found if mark != " "]  # a blank is one only where nothing else is
    elif len({line.strip().count(" ") for line in plain}) > 1:
        return ","
    if not found:
        return ","

    def alike(mark: str) -> float:
        return sum(line.count(mark) == plain[0].count(mark) for line in plain) / len(plain)

    best = max(map(alike, found))
    return max((mark for mark in found if alike(mark) == best), key=plain[0].count)


def is_header(first: list[str], rows: list[list[str]], known: frozenset[str]) -> bool:
    """Return whether a first row has the names of the columns, and no cells."""
    if any(cell.lower() in known for cell in first):
        return True
    below = [[cell.strip() for cell in row] for row in rows if len(row) == len(first)]
    again = sum(row == first for row in below)  # a header that is repeated
    if len({cell for cell in first if cell}) < len([cell for cell in first if cell]):
        return False
    for k, cell in enumerate(first):
        if number_of(cell.replace(",", ".")) == number_of(cell.replace(",", ".")) or DATE.match(cell):
            return False
        column = [row[k] for row in below]
        if cell and column.count(cell) > again:
            return False
        shape = _shape(cell)
        if column and "9" in shape and sum(_shape(one) == shape for one in column) > len(column) / 2:
            return False
    return any(first)


def _shape(cell: str) -> str:
    """Return the shape of an id: `u0012` is `a9`."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell))


def read_columns(
    source: Source, form: Form, used: Sequence[int], kinds: Sequence[str], *, max_rows: int | None = None
) -> tuple[list[Any], IrregularRows]:
    """Return columns of a text as pyarrow's, and what rows are none of the table.

    Their kinds: "ids" become a dictionary of texts, "numbers" float64, or texts where one is none;
    "text" stays text.
    """
    import pyarrow as pa

    if form.delimiter == ITEMS:
        irregular = IrregularRows()
        table = _netflix(source, irregular)
        return [table.column(k) for k in used], irregular
    numeric, multiline = True, False
    while True:
        irregular = IrregularRows()
        try:
            table = _parsed(
                source,
                form,
                used,
                kinds if numeric else ["text" if k == "numbers" else k for k in kinds],
                multiline,
                irregular,
                max_rows,
            )
        except pa.ArrowInvalid as error:
            told = str(error)
            if "UTF8" in told or "UTF-8" in told:
                source.redecided()
                form.notes += source.notes
            elif "out of sync" in told or "newlines_in_values" in told:
                if multiline:
                    raise InputError(
                        f"{shown(source.path)}: a quoted field does not end; {_one_line(told)}"
                    ) from None
                multiline = True
            elif numeric and "onversion error" in told:
                numeric = False
            elif "straddling" in told:
                raise InputError(
                    f"{shown(source.path)} has a line of more than {BLOCK:,} bytes; it is no table"
                ) from None
            elif "Empty CSV" in told:
                return [pa.chunked_array([pa.array([], pa.string())]) for _ in used], irregular
            else:
                raise InputError(f"{shown(source.path)}: {_one_line(told)}") from None
            continue
        if irregular.open_quote and form.quoted:
            form.quoted = False  # a quotation mark that is one of the text
            continue
        return [table.column(k) for k in range(len(used))], irregular


def _one_line(text: str) -> str:
    return " ".join(text.split())[:160]


def _parsed(
    source: Source, form: Form, used: Sequence[int], kinds: Sequence[str], multiline: bool,
    irregular: IrregularRows, max_rows: int | None,
) -> Any:  # fmt: skip
    import pyarrow as pa
    from pyarrow import csv as arrow

    names = [str(k) for k in range(len(form.names))]
    delimiter = UNIT if len(form.delimiter) > 1 else form.delimiter
    types = {"ids": pa.dictionary(pa.int32(), pa.string()), "numbers": pa.float64(), "text": pa.string()}
    plain = source.encoding == "utf-8" and not source.packing and delimiter == form.delimiter
    with Lent() as lent:
        given = str(source.path) if plain else lent.file(_with_delimiter(source, form, delimiter))
        options = dict(
            read_options=arrow.ReadOptions(
                column_names=names, skip_rows=form.skip, block_size=BLOCK, use_threads=True
            ),
            parse_options=arrow.ParseOptions(
                delimiter=delimiter, quote_char='"' if form.quoted else False,
                newlines_in_values=multiline, invalid_row_handler=lent.function(_skipped(irregular)),
            ),
            convert_options=arrow.ConvertOptions(
                include_columns=[names[k] for k in used], null_values=[""],
                strings_can_be_null=False,
                column_types={names[k]: types[kind] for k, kind in zip(used, kinds, strict=True)},
            ),
        )  # fmt: skip
        try:
            if max_rows is None and not heard():  # all at once, on all threads
                return arrow.read_csv(given, **options)
            return _by_blocks(arrow.open_csv(given, **options), source, plain, max_rows)
        finally:
            del given, options  # with them goes what is lent


def _by_blocks(reader: Any, source: Source, plain: bool, max_rows: int | None) -> Any:
    """Return the table of a reader of blocks, each of which is reported."""
    import pyarrow as pa

    batches, rows = [], 0
    try:
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            done = len(batches) * BLOCK if plain else source.position
            report(f"reading {source.path.name}", min(done, source.size), source.size)
            if max_rows is not None and rows > max_rows:
                raise InputError(
                    f"{shown(source.path)} has more than {max_rows:,} rows; at most so many are read"
                )
        return pa.Table.from_batches(batches, reader.schema)
    finally:
        reader.close()
        del reader


def _skipped(irregular: IrregularRows) -> Callable[[Any], str]:
    """Return what pyarrow calls with each row of another number of cells: it is counted."""
    one_at_a_time = threading.Lock()  # it is called by several threads

    def skip(row: Any) -> str:
        text = row.text
        with one_at_a_time:
            if not text.strip():
                return "skip"
            if text.startswith("#"):
                irregular.comments += 1
                return "skip"
            irregular.ragged += 1
            irregular.open_quote = irregular.open_quote or text.count("\n") > 1
        return "skip"

    return skip


def _with_delimiter(source: Source, form: Form, delimiter: str) -> Iterator[bytes]:
    blocks = source.blocks()
    return blocks if delimiter == form.delimiter else _replaced(blocks, form.delimiter)


def _replaced(blocks: Iterator[bytes], delimiter: str) -> Iterator[bytes]:
    """Give blocks with one character for the delimiter."""
    mark, kept = delimiter.encode(), b""
    for block in blocks:
        block = kept + block
        kept = b""
        if (len(block) - len(block.rstrip(mark[:1]))) % 2:  # half of a delimiter, maybe
            block, kept = block[:-1], block[-1:]
        yield block.replace(mark, UNIT.encode())
    if kept:
        yield kept


def _netflix(source: Source, irregular: IrregularRows) -> Any:
    """Return the table of a text in which a line "item:" stands before the rows of an item."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = "\n".join(line.strip() for line in lines_of(source)).split("\n")
    lines = pa.array([line for line in whole if line], pa.string())
    heads = pc.ends_with(lines, ":")
    items = pc.fill_null_forward(pc.if_else(heads, pc.utf8_rtrim(lines, ":"), None))
    cells = pc.split_pattern(lines, ",")
    fine = pc.and_(pc.invert(heads), pc.equal(pc.list_value_length(cells), 3))
    irregular.ragged = len(lines) - pc.sum(heads).as_py() - pc.sum(fine).as_py()
    flat = pc.list_flatten(cells.filter(fine))
    columns = [items.filter(fine), *(flat.take(pa.array(np.arange(k, len(flat), 3))) for k in range(3))]
    return pa.table([pa.chunked_array([c]) for c in columns], names=NETFLIX)


def line_numbers(source: Source, form: Form, rows: Sequence[int]) -> dict[int, int]:
    """Return on which line each of some rows begins: a slow pass, for messages."""
    wanted, out = sorted(set(rows)), {}
    at, last = 0, wanted[-1] if wanted else -1
    for line, cells in _all_rows(source, form):
        if len(cells) != len(form.names):
            continue
        if at in wanted:
            out[at] = line
        at += 1
        if at > last:
            break
    return out


def first_ragged(source: Source, form: Form) -> tuple[int, int]:
    """Return the line and the number of fields of the first row that has another number of them."""
    for line, cells in _all_rows(source, form):
        if len(cells) != len(form.names) and not cells[0].startswith("#"):
            return line, len(cells)
    return form.skip + 1, 0


def _all_rows(source: Source, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Give each row that is not blank, with the line on which it begins."""
    lines = lines_of(source)
    for _ in range(form.skip):
        next(lines, None)
    number = form.skip
    if not form.quoted or form.delimiter == ITEMS:
        mark = "," if form.delimiter == ITEMS else form.delimiter
        for line in lines:
            number += 1
            cells = line.removesuffix("\n").split(mark)
            if form.delimiter == ITEMS and len(cells) == 3:
                cells = ["", *cells]
            if line.strip():
                yield number, cells
        return
    csv.field_size_limit(HEAD * 64)
    reader = csv.reader(lines, delimiter=form.delimiter)
    before = 0
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield number + before + 1, row
            before = reader.line_num
    except csv.Error:
        return


def notes_of(irregular: IrregularRows) -> list[str]:
    """Return notes on lines that begin with #."""
    if not irregular.comments:
        return []
    one = irregular.comments == 1
    return [
        f"{counted(irregular.comments, 'line')} that {'begins' if one else 'begin'} with # "
        f"{'is a comment' if one else 'are comments'}: another number of fields than the header"
    ]


class DelimitedRows(Rows):
    """A delimited text file; parameters and errors of `form_of`."""

    def __init__(self, source: Source, what: str, **given: Any) -> None:
        self.source, self.form = source, form_of(source, what, **given)
        super().__init__(shown(source.path), self.form.names)
        named = given.get("names") is not None or self.form.delimiter == ITEMS
        self.header, self.irregular = self.form.header or named, IrregularRows()
        self.notes = self.form.notes
        if self.form.delimiter == ITEMS:
            self.form.sample = [
                list(row)
                for row in zip(
                    *(c[:MOST_HEAD].to_pylist() for c in _netflix(source, IrregularRows()).columns),
                    strict=True,
                )
            ]

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return the first cells of a column."""
        out = [row[k] for row in self.form.sample if len(row) == len(self.names)]
        return np.array(out, dtype=object)

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return columns; as of `Rows`."""
        columns, self.irregular = read_columns(self.source, self.form, used, kinds, max_rows=max_rows)
        self.ragged, self.comments = self.irregular.ragged, self.irregular.comments
        self.notes = [*self.form.notes, *notes_of(self.irregular)]
        return columns

    def where(self, rows: Sequence[int]) -> dict[int, str]:
        """Return on which lines rows begin, in a second pass through the file."""
        return {row: f"line {line}" for row, line in line_numbers(self.source, self.form, rows).items()}

    def ragged_at(self) -> str:
        """Return the line of the first row of another number of fields, and how many it has."""
        line, fields = first_ragged(self.source, self.form)
        there = "the header has" if self.form.header else "there should be"
        return (
            f"line {line}: {fields} fields where {there} {len(self.names)} (delimiter "
            f"{self.form.delimiter!r})"
        )
