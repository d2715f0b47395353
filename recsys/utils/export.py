"""Results as text for other programs: CSV that no spreadsheet runs, JSON without NaN, harmless lines."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")  # what a spreadsheet takes for the start of one


def csv_text(columns: Sequence[str] | None, rows: Iterable[Sequence[object]], raw: bool = False) -> str:
    r"""Return CSV, without a header if columns is None; floats have nine digits.

    Text that a spreadsheet would run as a formula gets an apostrophe, unless raw.
    """
    lines: list[str] = []
    # Text is quoted that holds a character of the line end: \r ends a line for spreadsheets, too.
    out = SimpleNamespace(write=lambda line: lines.append(f"{line[:-2]}\n"))
    writer = csv.writer(out, lineterminator="\r\n")
    if columns is not None:
        writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(cell, raw) for cell in row])
    return "".join(lines)


def json_text(value: Any) -> str:
    """Return indented JSON with a line end; NaN and infinity become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False) + "\n"


def _cell(cell: object, raw: bool) -> object:
    if isinstance(cell, float):
        return f"{cell:.9g}"
    return f"'{cell}" if not raw and isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def literal(value: object) -> str:
    """Return text with control characters made visible: titles must not drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
