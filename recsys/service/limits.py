"""Limits of requests: rate, token, size, deadlines, and the number at once."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
from typing import Any, NamedTuple

from recsys.service.access_log import AccessLog, request_id
from recsys.service.computing import Computing
from recsys.service.monitoring import Monitoring

MAX_BODY = 1 << 20
MAX_SET_BODY = 1 << 23  # of an item set
UPLOADS = 4  # of item sets at once, of a process: bodies are held in memory
ITEM_SETS = "/item-sets/"
MAX_TARGET = 1 << 13  # bytes of the path and the query
BODY_SECONDS = 5.0
OPEN = ("/health", "/ready")  # no token, no body, no limit: they tell of the service when it is full
# What has to be computed, by the end of the path.
WORK = {
    "recommend": "/recommend", "recommendations": "/recommend", "similar": "/similar",
    "explain": "/explain", "rules": "/rules", "scores": "/scores",
}  # fmt: skip

PLAIN = ("/recommend", "/similar", "/explain", "/rules", "/scores", "/events", "/metrics", *OPEN)
PATTERNS = {
    ("users", "recommendations"): "/users/{user:path}/recommendations",
    ("users", "similar"): "/users/{user:path}/similar",
    ("items", "similar"): "/items/{item:path}/similar",
}
Headers = list[tuple[bytes, bytes]]


class Refused(NamedTuple):
    """An answer in the place of the application's."""

    status: int
    text: str
    headers: Headers = []

    def as_text(self) -> dict[str, str]:
        """Return the headers as Starlette takes them."""
        return {name.decode(): value.decode() for name, value in self.headers}


CLOSE = (b"connection", b"close")
NO_HOST = Refused(400, "one Host header is needed", [CLOSE])
CODING = Refused(501, "of transfer encodings only chunked is supported", [CLOSE])
TOO_LONG = Refused(414, f"the target of the request is longer than {MAX_TARGET} bytes", [CLOSE])
TOO_LARGE = Refused(413, "the body is larger than 1 MiB, or 8 MiB of an item set")
TOO_SLOW = Refused(408, f"the body did not come within {BODY_SECONDS:g} seconds", [CLOSE])
GONE = Refused(499, "the client left before its request was whole")  # which has no receiver
# It closes the connection: what a client has sent behind a request that is refused is not computed.
TOO_MANY = Refused(503, "too many requests at once", [(b"retry-after", b"1"), CLOSE])


def known_route(path: str) -> str:
    """Return the pattern of a path that was refused before it was routed; "other" is none of ours."""
    if path in PLAIN:
        return path
    if path.startswith(ITEM_SETS):
        return f"{ITEM_SETS}{{name}}"
    first, last = path.removeprefix("/").partition("/")[0], path.rpartition("/")[2]
    return PATTERNS.get((first, last), "other")


class Rate:
    """So many requests a second from one address, as many at once; old addresses are forgotten."""

    def __init__(self, per_second: float, addresses: int = 10_000) -> None:
        self.per_second, self.addresses = per_second, addresses
        self._left: dict[str, tuple[float, float]] = {}  # what may still come, and when that was so

    def wait(self, address: str, now: float) -> float:
        """Count a request; return 0, or in how many seconds the next one may come."""
        most = max(1.0, self.per_second)
        left, then = self._left.pop(address, (most, now))
        left = min(most, left + (now - then) * self.per_second)
        short = left < 1.0
        self._left[address] = (left if short else left - 1.0, now)
        if len(self._left) > self.addresses:
            del self._left[next(iter(self._left))]
        return (1.0 - left) / self.per_second if short else 0.0


class RequestLimits:
    """ASGI middleware: the rate, the token, the size of the body and its time, and the queue's length.

    A request counts when it is whole: one whose body is still awaited holds nothing but its connection.
    """

    def __init__(
        self,
        app: Any,
        monitoring: Monitoring,
        computing: Computing,
        log: AccessLog | None = None,
        token: str | None = None,
        rate: float | None = None,
    ) -> None:
        self.app, self.monitoring, self.computing, self.log = app, monitoring, computing, log
        self.uploads = 0
        self.token = None if token is None else token.encode()
        self.rate = None if rate is None else Rate(rate)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        name = request_id(headers.get(b"x-request-id"))
        status = 500  # until an answer starts

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", name)]
            await send(message)

        upload = scope["method"] == "PUT" and scope["path"].startswith(ITEM_SETS)
        self.monitoring.in_flight += 1
        self.uploads += upload
        try:
            refused = self._refused(scope, headers, MAX_SET_BODY if upload else MAX_BODY)
            body = b""
            if refused is None and scope["path"] not in OPEN:
                read = await _body(receive, MAX_SET_BODY if upload else MAX_BODY)
                refused = read if isinstance(read, Refused) else self._full(scope)
                body = read if isinstance(read, bytes) else b""
            if refused is GONE:
                status = GONE.status
            elif refused is not None:
                await _answer(sending, refused)
            else:
                await self.app(scope, _replay(body, receive), sending)
        finally:
            self.monitoring.in_flight -= 1
            self.uploads -= upload
            route = getattr(scope.get("route"), "path", None) or known_route(scope["path"])
            spent = time.perf_counter() - started
            self.monitoring.seen(scope["method"], route, status, spent)
            if self.log is not None:
                self.log.write(scope, headers, route, status, spent, name)

    def _refused(self, scope: Any, headers: dict[bytes, bytes], most: int) -> Refused | None:
        """Return why a request is refused by its head alone."""
        # The parser of HTTP passes these on.
        if scope["http_version"] == "1.1" and sum(name == b"host" for name, _ in scope["headers"]) != 1:
            return NO_HOST
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            return CODING
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_TARGET:
            return TOO_LONG
        if scope["path"] in OPEN:
            return None
        if self.rate is not None:  # first: guessing tokens is limited, too
            wait = self.rate.wait((scope.get("client") or ("",))[0], time.monotonic())
            if wait > 0:
                after = str(math.ceil(wait)).encode()
                return Refused(429, "too many requests from this address", [(b"retry-after", after)])
        if self.token is not None:
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            if not hmac.compare_digest(given, self.token) or kind.lower() != b"bearer":
                return Refused(401, "a bearer token is needed", [(b"www-authenticate", b"Bearer")])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            return TOO_LARGE
        if most > MAX_BODY and self.uploads > UPLOADS:
            return TOO_MANY
        return self._full(scope)

    def _full(self, scope: Any) -> Refused | None:
        kind = WORK.get(scope["path"].rpartition("/")[2])
        if kind is None or not self.computing.full(kind):
            return None
        self.monitoring.shed(kind)
        return TOO_MANY


async def _body(receive: Any, most: int) -> bytes | Refused:
    """Read the whole body; streamed ones declare no length."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return GONE
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    return TOO_LARGE
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        return TOO_SLOW


def _replay(body: bytes, receive: Any) -> Any:
    given = False

    async def again() -> Any:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


async def _answer(send: Any, refused: Refused) -> None:
    body = json.dumps({"detail": refused.text}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send(
        {"type": "http.response.start", "status": refused.status, "headers": [*head, *refused.headers]}
    )
    await send({"type": "http.response.body", "body": body})
