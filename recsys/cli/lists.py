"""Lists of items: of many users, written a block at a time so that memory stays; of one, as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recsys.cli import terminal
from recsys.rankers import Bundle
from recsys.utils.export import csv_text, json_text
from recsys.utils.files import replacing

COLUMNS = ("user_id", "rank", "item_id", "title", "score")
Line = tuple[str, int, str, str, float]


def write_lists(path: Path | None, blocks: Iterable[Sequence[Line]], raw: bool) -> None:
    """Write blocks of lines as the path's ending says (.parquet, .json, else CSV), or CSV to stdout.

    A file is there whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    if path is None:
        header: Sequence[str] | None = COLUMNS
        for block in blocks:
            sys.stdout.write(csv_text(header, block, raw))
            header = None
        return
    writer = {".parquet": _parquet, ".json": _json}.get(path.suffix, _csv)
    with replacing(path) as file:
        writer(file, blocks, raw)


def _csv(file: Any, blocks: Iterable[Sequence[Line]], raw: bool) -> None:
    header: Sequence[str] | None = COLUMNS
    for block in blocks:
        file.write(csv_text(header, block, raw).encode("utf-8", errors="surrogatepass"))
        header = None


def _json(file: Any, blocks: Iterable[Sequence[Line]], raw: bool) -> None:
    between = "[\n"
    for block in blocks:
        text = ""
        for line in block:
            text += between + json_text(dict(zip(COLUMNS, line, strict=True))).strip()
            between = ",\n"
        file.write(text.encode("utf-8", errors="surrogatepass"))
    file.write(b"\n]\n" if between[0] == "," else b"[]\n")


def _parquet(file: Any, blocks: Iterable[Sequence[Line]], raw: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    with pq.ParquetWriter(file, schema) as writer:
        for block in blocks:
            cells = list(zip(*block, strict=True)) if block else [()] * len(COLUMNS)
            arrays = [pa.array(cell, kind) for cell, kind in zip(cells, kinds, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def print_items(bundle: Bundle, lines: list[Any], columns: tuple[str, ...], title: str = "") -> None:
    """Print a table, without the titles where they only repeat the ids."""
    if "title" in columns and all(a == b for a, b in zip(bundle.titles, bundle.item_ids, strict=True)):
        drop = columns.index("title")
        lines = [line[:drop] + line[drop + 1 :] for line in lines]
        columns = columns[:drop] + columns[drop + 1 :]
    terminal.table(title, columns, lines)
