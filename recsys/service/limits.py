"""What every request passes: its token, its rate, its size, and how many there are at once."""

from __future__ import annotations

import hmac
import json
import math
import time
from typing import Any

from recsys.service.monitoring import Monitoring

MAX_BODY = 1 << 20


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
    """ASGI middleware: the token, the rate, one MiB of body, so many requests at once at most."""

    def __init__(
        self,
        app: Any,
        monitoring: Monitoring,
        token: str | None,
        at_once: int,
        rate: float | None = None,
    ) -> None:
        self.app, self.monitoring, self.token, self.at_once = app, monitoring, token, at_once
        self.rate = None if rate is None else Rate(rate)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500  # until an answer starts

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.monitoring.in_flight += 1
        try:
            refusal = self._refusal(scope)
            if refusal is None:
                body = await _body(receive)
                if body is None:
                    refusal = (413, "the body is larger than 1 MiB", [])
            if refusal is not None:
                await _answer(sending, *refusal)
            else:
                await self.app(scope, _replay(body or b"", receive), sending)
        finally:
            self.monitoring.in_flight -= 1
            route = getattr(scope.get("route"), "path", "other")
            self.monitoring.seen(route, status, time.perf_counter() - started)

    def _refusal(self, scope: Any) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        headers = dict(scope["headers"])
        if scope["path"] == "/health":
            return None
        if self.token is not None:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, b"Bearer " + self.token.encode()):
                return 401, "a bearer token is needed", [(b"www-authenticate", b"Bearer")]
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            return 413, "the body is larger than 1 MiB", []
        if self.rate is not None:
            wait = self.rate.wait((scope.get("client") or ("",))[0], time.monotonic())
            if wait > 0:
                after = str(math.ceil(wait)).encode()
                return 429, "too many requests from this address", [(b"retry-after", after)]
        if self.monitoring.in_flight > self.at_once:
            return 503, "too many requests at once", [(b"retry-after", b"1")]
        return None


async def _body(receive: Any) -> bytes | None:
    """Read the whole body, or None beyond the limit: streamed bodies declare no length."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Any) -> Any:
    given = False

    async def again() -> Any:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


async def _answer(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = json.dumps({"detail": text}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head + headers})
    await send({"type": "http.response.body", "body": body})
