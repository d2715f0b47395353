"""Lists of items: of many users, written a block at a time so that memory stays; of one, as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recsys.cli import terminal
from recsys.rankers import ModelPackage
from recsys.utils.export import csv_text
from recsys.utils.rows import write_rows


def write_lists(
    path: Path | None,
    columns: Mapping[str, type],
    blocks: Iterable[Sequence[tuple[Any, ...]]],
    raw: bool,
) -> None:
    """Write blocks of lines as the path's ending says (.parquet, .json, else CSV), or CSV to stdout.

    A file is there whole or not at all.
    """
    if path is None:
        header: Sequence[str] | None = tuple(columns)
        for block in blocks:
            sys.stdout.write(csv_text(header, block, raw))
            header = None
        return
    write_rows(path, columns, blocks, raw)


def print_items(
    package: ModelPackage, lines: list[Any], columns: tuple[str, ...], title: str = ""
) -> None:
    """Print a table, without the titles where they only repeat the ids."""
    if "title" in columns and all(a == b for a, b in zip(package.titles, package.item_ids, strict=True)):
        drop = columns.index("title")
        lines = [line[:drop] + line[drop + 1 :] for line in lines]
        columns = columns[:drop] + columns[drop + 1 :]
    terminal.table(title, columns, lines)
