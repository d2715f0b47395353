"""Parquet files as columns of cells: what they unpack to is known before, and read a batch at a time.

A few hundred bytes can stand for gigabytes: a long text once in a dictionary and a number for each row.
Here texts stay what a dictionary has, cells refer to them, and what the cells would have as text is
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.columns import absent, some
from recsys.data.delimited import MOST_COLUMNS, MOST_REMEMBERED, Cells
from recsys.data.parquet_pages import unpacked_bytes
from recsys.errors import InputError, counted
from recsys.utils.files import check_file, check_growth

MOST_ROWS = 500_000_000
MOST_CHUNKS = 1_000_000  # columns times groups of rows
CELL_BYTES = 8  # of a reference or a number
BATCH = 1 << 16  # rows
Column = NDArray[Any]


def read_parquet(
    path: Path,
    what: str,
    *,
    wanted: Callable[[list[str]], Sequence[str]] | None = None,
    strict: bool = True,
    max_rows: int | None = None,
) -> Cells:
    """Return the cells of a Parquet file: floating point as it is, anything else as text.

    Parameters and errors are those of `read_table`; a missing cell is empty text where it is not
    refused, or NaN in a column of floating point.
    """
    import pyarrow.parquet as pq

    size = check_file(path)
    with _one_error(path), pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    names = list(schema.names)
    if metadata.num_rows == 0:
        raise InputError(f"{path}: no {what}; the file is empty")
    most = MOST_ROWS if max_rows is None else max_rows
    if metadata.num_rows > most or metadata.num_rows < 0:
        raise InputError(
            f"{path} has {metadata.num_rows:,} rows; from 1 to {most:,} are read: split it, or leave "
            "rows out"
        )
    if len(names) > MOST_COLUMNS or metadata.num_columns * metadata.num_row_groups > MOST_CHUNKS:
        raise InputError(
            f"{path} has {len(names):,} columns in {counted(metadata.num_row_groups, 'group')} of rows; "
            f"at most {MOST_COLUMNS:,} columns and {MOST_CHUNKS:,} chunks are read"
        )
    used = names if wanted is None else list(dict.fromkeys(wanted(names)))
    notes: tuple[str, ...] = ()
    for name in used:
        if name not in names:
            raise absent(str(path), name, names)
        if names.count(name) > 1:
            raise InputError(
                f"{path}: {names.count(name)} columns are called {name!r}; rename all but one"
            )
    nested = [name for name in used if _is_nested(schema.field(name).type)]
    if nested and not strict:
        used = [name for name in used if name not in nested]
        notes = (f"{counted(len(nested), 'column')} of several values a cell left out: {some(nested)}",)
    elif nested:
        raise InputError(
            f"{path}: {nested[0][:40]} holds {str(schema.field(nested[0]).type)[:40]}; each cell must "
            "be one value: write several as text, joined by |"
        )
    if not used:
        raise InputError(f"{path}: no {what}; no column has one value a cell")
    check_growth(path, size, _decoded_bytes(metadata, set(used)))
    with _one_error(path):
        check_growth(path, size, unpacked_bytes(path, _chunks(metadata, set(used))))
    texts = [name for name in used if _is_text(schema.field(name).type)]
    with _one_error(path), pq.ParquetFile(path, read_dictionary=texts, buffer_size=1 << 20) as file:
        columns = _columns(path, file, used, strict, size)
    return Cells(used, columns, range(1, metadata.num_rows + 1), (), notes)


def _columns(path: Path, file: Any, used: list[str], strict: bool, size: int) -> list[Column]:
    import pyarrow as pa

    rows, row, grown = file.metadata.num_rows, 0, 0
    floating = [pa.types.is_floating(file.schema_arrow.field(name).type) for name in used]
    columns: list[Column] = [np.empty(rows, dtype=np.float64 if kind else object) for kind in floating]
    known: dict[str, str] = {}
    for batch in file.iter_batches(batch_size=BATCH, columns=used, use_threads=False):
        if batch.schema.names != used and sorted(batch.schema.names) != sorted(used):
            raise InputError(f"{path}: columns {some(used)} cannot be told from parts of others")
        end = row + batch.num_rows
        if end > rows:
            break
        for column, name, kind in zip(columns, used, floating, strict=True):
            cells = batch.column(name)
            if cells.null_count and strict:
                first = row + int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
                raise InputError(f"{path}, row {first + 1}: {name} is missing")
            if kind:
                column[row:end] = cells.to_numpy(zero_copy_only=False)
                continue
            entries, codes = _entries(path, name, cells)
            lengths = np.array([len(entry) for entry in entries], dtype=np.int64)
            grown += int(lengths[codes].sum())
            check_growth(path, size, grown)
            entries = [known.setdefault(entry, entry) for entry in entries]
            if len(known) > MOST_REMEMBERED:
                known.clear()
            column[row:end] = np.array(entries, dtype=object)[codes]
        row = end
    if row != rows:
        raise InputError(f"{path} is no readable Parquet file: it does not have the rows that it says")
    return columns


def _entries(path: Path, name: str, cells: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts of a batch, and which of them each cell is; missing ones are empty."""
    import pyarrow as pa

    if isinstance(cells.type, pa.BaseExtensionType):
        found = [_text(path, name, value) for value in cells.to_pylist()]
        places = {text: k for k, text in enumerate(dict.fromkeys(found))}
        return list(places), np.array([places[text] for text in found], dtype=np.int64)
    if pa.types.is_null(cells.type):
        return [""], np.zeros(len(cells), dtype=np.int64)
    coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    distinct, codes = np.unique(codes, return_inverse=True)
    absent_ones = int((distinct < 0).sum())
    values = coded.dictionary.take(pa.array(distinct[absent_ones:])).to_pylist()
    return [""] * absent_ones + [_text(path, name, value) for value in values], codes


def _text(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: {name[:40]} holds bytes that are no UTF-8 text, such as {value[:20]!r}; write "
                "it as text"
            ) from None
    return "" if value is None else str(value)


def _is_nested(kind: Any) -> bool:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _is_nested(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _is_nested(kind.value_type)
    return bool(pa.types.is_nested(kind) or kind.num_fields)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kinds = (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.binary_view(),
    )  # fmt: skip
    return any(kind.equals(one) for one in kinds)


def _chunks(metadata: Any, used: set[str]) -> Iterator[tuple[int, int]]:
    """Give where the columns' chunks begin and how long they are."""
    places = [k for k in range(metadata.num_columns) if metadata.schema.column(k).path in used]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in places:
            chunk = group.column(place)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            yield start, chunk.total_compressed_size


def _decoded_bytes(metadata: Any, used: set[str]) -> int:
    """Return how many bytes the columns take unpacked, and their cells at least."""
    places = [k for k in range(metadata.num_columns) if metadata.schema.column(k).path in used]
    # bytes of one size are no texts to the library: it repeats them in each row
    widths = {place: max(CELL_BYTES, metadata.schema.column(place).length) for place in places}
    total = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in places:
            chunk = group.column(place)
            cells = max(group.num_rows, chunk.num_values)
            total += max(chunk.total_uncompressed_size, widths[place] * cells)
    return max(total, CELL_BYTES * metadata.num_rows * len(used))


@contextmanager
def _one_error(path: Path) -> Iterator[None]:
    """Turn what the library raises for damaged files into an InputError of one line."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"{path} needs more memory than is free; split it, or leave columns out"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is no readable Parquet file: text that is no UTF-8: {error.reason}"
        ) from None
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise InputError(f"{path} is no readable Parquet file: {told}") from None
