"""Rows written a block at a time, so that memory stays: CSV, JSON, JSON lines or Parquet.

A file is there whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.utils.export import csv_text, json_text
from recsys.utils.files import replacing

Block = Sequence[Sequence[Any]]
# Of files that programs open by their ending, and would find damaged with CSV in them.
OTHERS = frozenset(
    ".xlsx .xls .ods .html .xml .pdf .feather .arrow .npz .npy .pkl .gz .bz2 .xz .zst .zip .db .sqlite "
    ".recsys".split()
)


def write_rows(
    path: Path,
    columns: Mapping[str, type],
    blocks: Iterable[Block],
    raw: bool = False,
) -> None:
    """Write blocks of rows in the format of the suffix: .parquet, .json, .jsonl, else CSV.

    The columns' types are str, int or float. `raw` omits the apostrophe before spreadsheet formulas in
    CSV. On an error, an old file does not change.
    """
    if path.suffix.lower() in OTHERS:
        raise InputError(
            f"{path}: {path.suffix} is not written; the ending must be .csv, .parquet, .json or .jsonl"
        )
    writer = {".parquet": _parquet, ".json": _json, ".jsonl": _json_lines}.get(path.suffix, _csv)
    with replacing(path) as file:
        writer(file, columns, blocks, raw)


def _csv(file: Any, columns: Mapping[str, type], blocks: Iterable[Block], raw: bool) -> None:
    header: Sequence[str] | None = tuple(columns)
    for block in blocks:
        file.write(csv_text(header, block, raw).encode("utf-8", errors="surrogatepass"))
        header = None


def _json(file: Any, columns: Mapping[str, type], blocks: Iterable[Block], raw: bool) -> None:
    between = "[\n"
    for block in blocks:
        text = ""
        for row in block:
            text += between + json_text(dict(zip(columns, row, strict=True))).strip()
            between = ",\n"
        file.write(text.encode("utf-8", errors="surrogatepass"))
    file.write(b"\n]\n" if between[0] == "," else b"[]\n")


def _json_lines(file: Any, columns: Mapping[str, type], blocks: Iterable[Block], raw: bool) -> None:
    for block in blocks:
        for row in block:
            line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, allow_nan=False)
            file.write(line.encode("utf-8", errors="surrogatepass") + b"\n")


def _parquet(file: Any, columns: Mapping[str, type], blocks: Iterable[Block], raw: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(file, schema) as writer:
        for block in blocks:
            cells = {name: [row[k] for row in block] for k, name in enumerate(columns)}
            writer.write_table(pa.Table.from_pydict(cells, schema))
