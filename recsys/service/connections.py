"""Connections that nobody can keep for nothing: deadlines, and so many at most, on top of uvicorn's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BETWEEN, HEAD, BODY = range(3)
# Seconds to begin a request, to send its head, and to send all of it. After an answer uvicorn waits for
# fewer, and the application refuses a slow body sooner.
LONGEST = (10.0, 10.0, 15.0)
READ_SECONDS = 20.0  # to read of an answer what the system does not keep for a client
MAX_HEAD = 1 << 16  # bytes
PIPELINED = 8  # requests that are sent before the answer to the first
SWEEP_SECONDS = 1.0


def plain(status: str, text: str, more: str = "connection: close\r\n") -> bytes:
    """Return an answer, which ends the connection."""
    body = f'{{"detail": "{text}"}}'
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"{more}\r\n{body}"
    ).encode()


REFUSAL = plain("503 Service Unavailable", "too many requests at once", "retry-after: 1\r\n")
REFUSAL_AND_CLOSE = plain(
    "503 Service Unavailable", "too many requests at once", "retry-after: 1\r\nconnection: close\r\n"
)


class Sweeper:
    """The connections of one server, looked through every second, in the event loop's thread.

    Parameters
    ----------
    most : int ≥ 1
        Connections at once. One more takes the place of the one that has been idle for longest; where
        none is idle it gets 503.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.open: dict[GuardedConnection, None] = {}  # the longest open first
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: GuardedConnection) -> bool:
        """Take a connection; False where there are too many."""
        if len(self.open) >= self.most:
            idle = [one for one in self.open if one.idle]
            if not idle:
                return False
            longest = min(idle, key=lambda one: one.since)
            self.remove(longest)  # the loop tells it later, and others may come before
            longest.transport.abort()
        self.open[connection] = None
        if self._timer is None:
            self._timer = connection.loop.call_later(SWEEP_SECONDS, self._sweep)
        return True

    def remove(self, connection: GuardedConnection) -> None:
        """Forget a connection that is closed."""
        self.open.pop(connection, None)

    def _sweep(self) -> None:
        now = time.monotonic()
        self._timer = None
        for connection in list(self.open):
            if self._timer is None:
                self._timer = connection.loop.call_later(SWEEP_SECONDS, self._sweep)
            connection.check(now)


class GuardedConnection(HttpToolsProtocol):
    """An HTTP/1.1 connection that is closed when its client is too slow, asks for too much or is idle.

    Attributes
    ----------
    stage : int
        What it waits for: `BETWEEN` requests, the `HEAD` of one or its `BODY`.
    since : float
        When it began to wait for that.
    """

    def __init__(self, config: Any, server_state: Any, *args: Any, **more: Any) -> None:
        super().__init__(config, server_state, *args, **more)
        if not hasattr(server_state, "sweeper"):
            server_state.sweeper = Sweeper(config.limit_connections)
        self.sweeper: Sweeper = server_state.sweeper
        self.stage, self.since = BETWEEN, time.monotonic()
        self.full: Callable[[str], bool] = config.full
        self._refusing = False
        self._head = self._incomplete = 0  # bytes of the head of the request that is read
        self._refused = 0  # requests of what came last
        self._unread: float | None = None  # since when the client reads nothing

    @property
    def idle(self) -> bool:
        """Whether no answer is being made: it can be closed without a loss but to a slow client."""
        if self.pipeline:
            return False
        return self._answered or (self.stage == BODY and not self._refusing)

    @property
    def _answered(self) -> bool:
        """Whether all requests before the one that is being read have their answers."""
        return self.cycle is None or self.cycle.response_complete

    def check(self, now: float) -> None:
        """Close it where it has been waited for too long."""
        if not self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self._unread = None
        elif self._unread is None:
            self._unread = now
        elif now - self._unread > READ_SECONDS:
            self.transport.abort()
            return
        if self.transport.is_closing():
            return
        if self.idle and now - self.since > LONGEST[self.stage]:
            self._end("408 Request Timeout", "the request did not come in time")

    def shutdown(self) -> None:
        """Finish the answer that is being made, if any; who has not asked yet is not waited for."""
        if self.idle:
            self._end("503 Service Unavailable", "the service is stopping")
        else:
            super().shutdown()

    def connection_made(self, transport: Any) -> None:
        """Take the connection, or refuse it."""
        super().connection_made(transport)
        if not self.sweeper.add(self):
            transport.write(plain("503 Service Unavailable", "too many connections"))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.sweeper.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head has its limit."""
        self._refused = 0
        super().data_received(data)
        # A field is told when it is complete: one that never is counts by what came of it.
        self._incomplete = self._incomplete + len(data) if self.stage == HEAD else 0
        if max(self._head, self._incomplete) > MAX_HEAD:
            self._end("431 Request Header Fields Too Large", "the head of the request is too large")

    def on_message_begin(self) -> None:
        """Note that a request begins; it is not parsed where the connection ends."""
        if self.transport.is_closing() or max(len(self.pipeline), self._refused) > PIPELINED:
            raise ValueError("too many requests before the first answer")
        self.stage, self.since, self._head = HEAD, time.monotonic(), 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._head += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head, while it is not too large; those behind a body are of no use."""
        if self.stage == BODY:
            raise ValueError("a field behind the body")
        self._head += len(name) + len(value)
        if self._head <= MAX_HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that its head is here, and whether there is a place in the queue."""
        self.stage = BODY
        self._refusing = self._head > MAX_HEAD or (
            self._answered
            and self.parser.get_method() in (b"GET", b"POST")
            and self.full(self.url.partition(b"?")[0].decode("ascii", "replace"))
        )
        if not self._refusing:
            super().on_headers_complete()
        elif (
            self.expect_100_continue and self._head <= MAX_HEAD
        ):  # the body is not sent before a word of ours
            self.transport.write(REFUSAL_AND_CLOSE)
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, of a request that has a place."""
        if not self._refusing:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that all of it is here; refuse it here and now, where it has no place.

        That is a tenth of the work of passing it on to be refused, and there is much of it exactly when
        there is no time for it.
        """
        self.stage, self.since = BETWEEN, time.monotonic()
        if self._refusing:
            self._refusing = False
            self._refused += 1
            if self.transport.is_closing() or self._head > MAX_HEAD:
                return
            lasting = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            self.transport.write(REFUSAL if lasting else REFUSAL_AND_CLOSE)
            if not lasting:
                self.transport.close()
            self.on_response_complete()
            return
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note that its answer is with the system."""
        if self.stage == BETWEEN:
            self.since = time.monotonic()
        super().on_response_complete()

    def _end(self, status: str, text: str) -> None:
        """Close it, with a word to a client that has sent a part of a request, where it is its turn."""
        if self.transport.is_closing():
            return
        # In the body of a request the cycle is its own; before, it is that of the request before.
        own = self.stage == BODY and not self._refusing and not self.pipeline
        if self.stage != BETWEEN and (self._answered or (own and not self.cycle.response_started)):
            self.transport.write(plain(status, text))
        self.transport.close()
