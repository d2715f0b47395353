"""Output of the command line: lines, tables, progress, files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recsys.utils.export import json_text, literal
from recsys.utils.files import replacing

if TYPE_CHECKING:
    from recsys.rankers import ModelPackage


def say(text: str) -> None:
    """Print one line to stderr, where it cannot mix with data."""
    print(literal(text), file=sys.stderr)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; cells are shown literally, numbers right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [[cell if isinstance(cell, Text) else literal(cell) for cell in row] for row in rows]
    out = Table(title=Text(literal(title)), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for position, name in enumerate(columns):
        right = bool(rows) and all(_numeric(row[position]) for row in rows)
        out.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        out.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    wide = None if sys.stdout.isatty() else 160  # and never wrapped to 80 columns
    Console(file=sys.stdout, width=wide, highlight=False, emoji=False, markup=False).print(out)


def _numeric(cell: object) -> bool:
    start = str(cell).lstrip("-+−").replace(",", "")[:1]
    return start.isdigit() or str(cell) in ("", "–")


def item_table(
    package: ModelPackage, rows: list[Any], columns: tuple[str, ...], title: str = ""
) -> None:
    """Print a table of items, without the titles where they only repeat the ids."""
    if "title" in columns and not package.titled:
        drop = columns.index("title")
        rows = [row[:drop] + row[drop + 1 :] for row in rows]
        columns = columns[:drop] + columns[drop + 1 :]
    table(title, columns, rows)


def write_json(target: str, value: Any) -> None:
    """Write JSON to a file, or to stdout for `-`; NaN and infinity become null."""
    text = json_text(value)
    if target == "-":
        sys.stdout.write(text)
        return
    with replacing(target) as file:
        file.write(text.encode("utf-8", errors="surrogatepass"))
