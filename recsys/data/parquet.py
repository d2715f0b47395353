"""Parquet files: columns as pyarrow reads them, after a look at what they say they unpack to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.data.delimited import MOST_COLUMNS
from recsys.data.rows import Rows, check_once
from recsys.errors import InputError, counted, first_line
from recsys.utils.files import check_file, check_growth

MOST_ROWS = 500_000_000
MOST_CHUNKS = 1_000_000  # columns times groups of rows
CELL_BYTES = 8  # of a reference or a number
SAMPLE = 1_000  # rows


class ParquetRows(Rows):
    """A Parquet file; texts stay what a dictionary has, so that a long one is in memory once."""

    def __init__(self, path: Path, what: str) -> None:
        import pyarrow.parquet as pq

        self.path, self.size = path, check_file(path)
        with _one_error(path), pq.ParquetFile(path) as file:
            self.metadata, self.schema = file.metadata, file.schema_arrow
        super().__init__(str(path), self.schema.names)
        if self.metadata.num_rows == 0:
            raise InputError(f"{path}: no {what}; the file is empty")
        self._check_rows(MOST_ROWS)
        groups = self.metadata.num_row_groups
        if len(self.names) > MOST_COLUMNS or self.metadata.num_columns * groups > MOST_CHUNKS:
            raise InputError(
                f"{path} has {len(self.names):,} columns in {counted(groups, 'group')} of rows; at most "
                f"{MOST_COLUMNS:,} columns and {MOST_CHUNKS:,} chunks are read"
            )

    def sample(self, k: int) -> NDArray[np.object_]:
        """Return the first cells of a column; none of a column of lists, or of one that is damaged."""
        import pyarrow.parquet as pq

        name = self.names[k]
        found: list[Any] = []
        if not self.nested(k) and self.names.count(name) == 1:
            check_growth(self.path, self.size, self._unpacked({name}, 1))
            texts = [name] if _is_text(self.schema.field(k).type) else []
            with suppress(InputError), _one_error(self.path):
                with pq.ParquetFile(self.path, read_dictionary=texts, buffer_size=1 << 16) as file:
                    batches = file.iter_batches(batch_size=SAMPLE, columns=[name], use_threads=False)
                    cells = next(batches).column(0)
                    cells.validate(full=True)
                    if hasattr(cells, "dictionary"):  # else each cell would have a copy of a long text
                        known = [*cells.dictionary.to_pylist(), None]
                        found = [known[code] for code in cells.indices.fill_null(-1).to_pylist()]
                    else:
                        found = cells.to_pylist()
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out

    def nested(self, k: int) -> bool:
        """Return whether the cells of a column are lists or the like."""
        return _is_nested(self.schema.field(k).type)

    def read(self, used: Sequence[int], kinds: Sequence[str], max_rows: int | None = None) -> list[Any]:
        """Return columns; as of `Rows`."""
        import pyarrow.parquet as pq

        if max_rows is not None:
            self._check_rows(max_rows)
        names = [self.names[k] for k in used]
        for k, name in zip(used, names, strict=True):
            check_once(str(self.path), name, self.names)
            if self.nested(k):
                raise InputError(
                    f"{self.path}: {name[:40]} holds {str(self.schema.field(k).type)[:40]}; each cell "
                    "must be one value: write several as text, joined by |"
                )
        groups = self.metadata.num_row_groups
        check_growth(self.path, self.size, self._unpacked(set(names), groups))
        texts = [
            name for k, name in zip(used, names, strict=True) if _is_text(self.schema.field(k).type)
        ]
        with _one_error(self.path), pq.ParquetFile(self.path, read_dictionary=texts) as file:
            table = file.read(columns=names, use_threads=True)
            table.validate(full=True)  # that codes are within their dictionaries, and texts UTF-8
        if table.num_rows != self.metadata.num_rows:
            raise InputError(
                f"{self.path} is no readable Parquet file: it does not have the rows that it says"
            )
        return [table.column(name) for name in names]

    def _check_rows(self, most: int) -> None:
        if not 0 < self.metadata.num_rows <= most:
            raise InputError(
                f"{self.path} has {self.metadata.num_rows:,} rows; from 1 to {most:,} are read: split "
                "it, or leave rows out"
            )

    def _unpacked(self, names: set[str], groups: int) -> int:
        """Return how many bytes columns take unpacked, as the file says, and their cells at least."""
        schema = self.metadata.schema
        places = [k for k in range(self.metadata.num_columns) if schema.column(k).path in names]
        total = 0
        for number in range(groups):
            group = self.metadata.row_group(number)
            for place in places:
                chunk = group.column(place)
                cells = max(group.num_rows, chunk.num_values)
                # bytes of one size are no texts to the library: it repeats them in each row
                width = max(CELL_BYTES, schema.column(place).length)
                total += max(chunk.total_uncompressed_size, width * cells)
        return total


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
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(f"{path} is no readable Parquet file: {first_line(error)}") from None
