"""Output of the command line: lines, tables, files; exit codes, and one line for each fault."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from recsys.errors import RecsysError
from recsys.utils.export import json_text, literal
from recsys.utils.files import replacing

if TYPE_CHECKING:
    from recsys.rankers import ModelPackage

REFUSED = 2


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


class Interrupted(Exception):
    """Ctrl-C, of which there is more to say than that; Typer lets it pass, unlike KeyboardInterrupt."""


def escape_unprintable() -> None:
    """Print characters that the encoding of a stream lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: 0 done, 1 our fault, 2 the user's, 130 interrupted.

    Whatever went wrong is one line on stderr.
    """
    try:
        code = command()
        if code == 130:  # Typer has caught the interrupt
            raise KeyboardInterrupt
        sys.stdout.flush()
    except RecsysError as error:
        code = _complain(str(error), REFUSED)
    except BrokenPipeError:
        _to_nowhere()
        code = 0
    except Interrupted as error:
        code = _complain(str(error), 130)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("interrupted", 130)
    except MemoryError:
        code = _complain("out of memory: keep fewer users or items, or choose another model", 1)
    except OSError as error:
        _to_nowhere()
        where = error.filename or "standard output, or a file,"
        code = _complain(f"{where} cannot be written or read: {error.strerror or error}", REFUSED)
        _trace()
    except Exception as error:
        # What Typer says of wrong options. It does not export their base class, which is click's or,
        # in later versions, that of a copy of its own; each of them has this method.
        message = getattr(error, "format_message", None)
        if message is not None:
            return _complain(message(), REFUSED)
        _trace()
        where = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        code = _complain(f"internal error, please report it: {where} (RECSYS_DEBUG=1 shows more)", 1)
    return int(code)


def _to_nowhere() -> None:
    """Send what cannot be printed nowhere: at its end Python tries once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _trace() -> None:
    if os.environ.get("RECSYS_DEBUG"):
        traceback.print_exc()


def _complain(message: str, code: int) -> int:
    say(f"recsys: {' '.join(message.split())}")
    return code
