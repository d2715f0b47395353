"""How a command ends: exit codes, and one line for each fault."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

import typer

from recsys.cli import signals
from recsys.cli.terminal import say
from recsys.errors import RecsysError

REFUSED = 2


def open_streams() -> None:
    """Put something where stdin, stdout or stderr was closed by whoever started the command.

    A file that the command opens would else take the place of what is printed. Printing to a closed
    stdout is refused as by any other program; what goes to a closed stderr is lost.
    """
    for number in (0, 1, 2):  # upwards: what is opened takes the lowest number that is free
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: 0 done, 1 our fault, 2 the user's, 130 interrupted.

    Whatever went wrong is one line on stderr.
    """
    try:
        code = command()
        sys.stdout.flush()
    except RecsysError as error:
        code = _complain(str(error), REFUSED)
    except BrokenPipeError:
        _to_nowhere()
        code = 0
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
        told = getattr(error, "format_message", None)
        if told is not None:
            return _complain(told(), REFUSED)
        if signals.code_of(0):  # a module whose import was interrupted may say anything
            return _complain("interrupted", signals.code_of(0))
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
