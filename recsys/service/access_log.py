"""One line of JSON a request: what was asked in general, and how it ended; no ids unless asked for."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
TRACE = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
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
    when `ids` asks for them.

    Parameters
    ----------
    ids : bool
    stream : text file, optional
        Standard output.
    """

    def __init__(self, ids: bool = False, stream: TextIO | None = None) -> None:
        self.ids, self.stream = ids, stream

    def write(
        self,
        scope: Any,
        headers: dict[bytes, bytes],
        route: str,
        status: int,
        seconds: float,
        name: bytes,
    ) -> None:
        """Write one request's line; a log that cannot be written stops nobody."""
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
            stream = self.stream or sys.stdout
            stream.write(json.dumps(line) + "\n")
            stream.flush()
        except (OSError, ValueError):
            pass
