"""How a command ends: exit codes, one line for each fault, and signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from recsys.cli.terminal import say
from recsys.errors import RecsysError


def leave_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process within two seconds, also inside compiled code.

    Python's own handlers run between bytecodes only; a watcher woken by the signal itself
    gives the main thread a moment to clean up and then ends the process.
    """

    def stop(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def watch() -> None:
        number = os.read(reading, 1)[0]
        time.sleep(1.5)
        os._exit(128 + number)

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    signal.set_wakeup_fd(writing)
    threading.Thread(target=watch, daemon=True).start()


def leave_to_the_server() -> None:
    """Undo `leave_on_signals` for a server that stops by itself, in its own time.

    SIGTERM, which the server raises again once it has stopped, is then no news.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code: 0 done, 1 our fault, 2 the user's, 130 interrupted.

    Whatever went wrong is one line on stderr.
    """
    try:
        code = command()
        sys.stdout.flush()
    except RecsysError as error:
        code = _complain(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("interrupted", 130)
    except MemoryError:
        code = _complain("out of memory: keep fewer users or items, or choose another model", 1)
    except Exception as error:
        # What Typer says of wrong options. It does not export their base class, which is click's or,
        # in later versions, that of a copy of its own; each of them has this method.
        told = getattr(error, "format_message", None)
        if told is not None:
            return _complain(told(), 2)
        if os.environ.get("RECSYS_DEBUG"):
            traceback.print_exc()
        where = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        code = _complain(f"internal error, please report it: {where} (RECSYS_DEBUG=1 shows more)", 1)
    return int(code)


def _complain(message: str, code: int) -> int:
    say(f"recsys: {' '.join(message.split())}")
    return code
