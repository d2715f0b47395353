"""What every request passes: size, number in flight, token; and what is counted."""

from __future__ import annotations

import hmac
import json
import math
import time
from collections import Counter
from typing import Any

MAX_BODY = 1 << 20
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    """Requests by route and status, and how long they took, as Prometheus reads them."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.slower: Counter[float] = Counter()
        self.seconds = 0.0
        self.in_flight = 0

    def seen(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests[route, status] += 1
        self.seconds += seconds
        for bound in BUCKETS:
            if seconds <= bound:
                self.slower[bound] += 1

    def text(self) -> str:
        """Return the exposition format."""
        total = sum(self.requests.values())
        lines = ["# TYPE recsys_requests_total counter"]
        lines += [
            f'recsys_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE recsys_request_seconds histogram")
        lines += [f'recsys_request_seconds_bucket{{le="{b:g}"}} {self.slower[b]}' for b in BUCKETS]
        lines += [
            f'recsys_request_seconds_bucket{{le="+Inf"}} {total}',
            f"recsys_request_seconds_sum {self.seconds:.6f}",
            f"recsys_request_seconds_count {total}",
            "# TYPE recsys_in_flight gauge",
            f"recsys_in_flight {self.in_flight}",
        ]
        return "\n".join(lines) + "\n"


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


class Guard:
    """ASGI middleware: the token, the rate, one MiB of body, so many requests at once at most."""

    def __init__(
        self, app: Any, metrics: Metrics, token: str | None, at_once: int, rate: float | None = None
    ) -> None:
        self.app, self.metrics, self.token, self.at_once = app, metrics, token, at_once
        self.rate = None if rate is None else Rate(rate)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = [500]

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        self.metrics.in_flight += 1
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
            self.metrics.in_flight -= 1
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.seen(route, status[0], time.perf_counter() - started)

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
        if self.metrics.in_flight > self.at_once:
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
    given = [False]

    async def again() -> Any:
        if not given[0]:
            given[0] = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


async def _answer(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = json.dumps({"detail": text}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head + headers})
    await send({"type": "http.response.body", "body": body})
