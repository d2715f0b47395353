"""Exit of a command: exit codes, and one line for each fault."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable

import typer

from recsys.cli.terminal import say
from recsys.errors import RecsysError

REFUSED = 2


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
