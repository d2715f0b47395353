"""One line of JSON a request: what was asked in general, and how it ended; no ids unless asked for."""

from __future__ import annotations

import itertools
import json
import queue
import re
import secrets
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any, TextIO

from recsys.service.background import Background

ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
TRACE = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
WAITING = 10_000  # lines
_process = secrets.token_hex(6)
_numbers = itertools.count(1)


def request_id(given: bytes | None) -> bytes:
    """Return the id that a request came with, if it is one, or a new one."""
    if given is not None and ID.fullmatch(given):
        return given
    return b"%s-%x" % (_process.encode(), next(_numbers))


class AccessLog:
    """Lines of JSON: time, request_id, method, route, status, ms; trace_id where the request has one.

    The route is the pattern and not the path, which names users and items; path and client are there
    when `ids` asks for them. A thread writes: a reader of the lines may stop reading without stopping
    the service. Lines beyond `WAITING` are dropped, and the next one that is written says how many.
    The background is told what the loop of the thread raised.
    """

    def __init__(
        self, ids: bool = False, stream: TextIO | None = None, background: Background | None = None
    ) -> None:
        self.ids, self.stream = ids, stream
        self.background = background or Background()
        self.dropped = 0
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue(WAITING)
        threading.Thread(target=self._write, daemon=True, name="access log").start()

    def write(
        self,
        scope: Any,
        headers: dict[bytes, bytes],
        route: str,
        status: int,
        seconds: float,
        name: bytes,
    ) -> None:
        """Let one request's line be written."""
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request_id": name.decode(),
            "method": scope["method"],
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 3),
        }
        trace = TRACE.fullmatch(headers.get(b"traceparent", b""))
        if trace:
            line["trace_id"] = trace[1].decode()
        if self.ids:
            line |= {"path": scope["path"], "client": (scope.get("client") or (None,))[0]}
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def flush(self, seconds: float = 1.0) -> None:
        """Wait until all is written, but not for long."""
        until = time.monotonic() + seconds
        while self._lines.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.01)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if self.dropped:
                line["dropped"], self.dropped = self.dropped, 0
            with self.background.guard("access log"):  # such as of a full disk
                stream = self.stream or sys.stdout
                stream.write(json.dumps(line) + "\n")
                if self._lines.empty():
                    stream.flush()
            self._lines.task_done()
