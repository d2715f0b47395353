"""Background work of the service, which must not end by an exception."""

from __future__ import annotations

import asyncio
import errno
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

TOLD = 200  # characters of what was raised
NO_FILE = (errno.EMFILE, errno.ENFILE)
QUIET = 60.0  # seconds after a line on descriptors in which none follows
TOO_FEW = (
    "recsys: there are more connections than file descriptors, and new ones wait: allow more open files "
    "(ulimit -n)"
)


class Background:
    """The failures of a service's loops: each pass of a loop runs in `guard`, which catches them.

    A loop that fails goes on with its next pass. `/health` tells what it raised until a pass succeeds
    (`failing`, by the loop's name), the metrics count it (`failed` is told the name of the loop), and
    the first of a run of equal failures is written to standard error.

    >>> background = Background()
    >>> with background.guard("model watcher"):
    ...     pass
    >>> background.failing
    {}
    """

    def __init__(self, failed: Callable[[str], Any] = lambda name: None) -> None:
        self.failed = failed
        self.failing: dict[str, str] = {}
        self._quiet_until = 0.0

    def loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what an event loop could not do; used as an exception handler of the loop.

        Without a descriptor for a connection, asyncio calls this and accepts again a second later. That
        is one line a minute, and counted; all else is told as usual.
        """
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in NO_FILE:
            loop.default_exception_handler(context)
            return
        with suppress(Exception):
            self.failed("connections")
        if loop.time() >= self._quiet_until and sys.stderr is not None:
            self._quiet_until = loop.time() + QUIET
            print(TOO_FEW, file=sys.stderr, flush=True)

    @contextmanager
    def guard(self, name: str) -> Iterator[None]:
        """Run one pass of a loop; an exception is recorded and not raised."""
        try:
            yield
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())[:TOLD]
            if self.failing.get(name) != told and sys.stderr is not None:
                traceback.print_exc()
            self.failing[name] = told
            with suppress(Exception):
                self.failed(name)
        else:
            self.failing.pop(name, None)
