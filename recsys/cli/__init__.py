"""The command line."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["call", "run"]


def call(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from recsys.cli import terminal
    from recsys.cli.commands import app

    return terminal.guarded(lambda: app(arguments, standalone_mode=False) or 0)


def run() -> NoReturn:
    """Run the command line and exit: 130 after Ctrl-C, 143 after SIGTERM, both after cleaning up."""
    # While modules are imported there is nothing to clean up, and some imports lose an exception.
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:  # not where Ctrl-C is ignored, as under nohup
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    from recsys.cli import commands, terminal  # noqa: F401

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        signal.signal(signal.SIGINT, interrupted)
        terminal.escape_unprintable()
        code = call()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
