"""The token, the rate and the log of the service: nobody gets past, nothing private is written down."""

from __future__ import annotations

import json
import time
from random import Random

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.serving import HOST, WORKERS, Service, get, model_file, post, running

TOKEN = "right-token-7x"
ROUTES = {
    "recommend": post("/recommend", {"user": "u7"}), "recommend to a user": get("/users/u7/recommendations"),
    "similar": post("/similar", {"item": "i3"}), "similar to an item": get("/items/i3/similar"),
    "explain": post("/explain", {"user": "u7", "item": "i3"}), "events": post("/events", {"events": []}),
    "metrics": get("/metrics"), "pages": get("/docs"), "schema": get("/openapi.json"), "no route": get("/u7/nothing"),
    "a double slash": get("//recommend"), "a dot": get("/./metrics"), "open with more": get("/health/../metrics"),
    "escaped": get("/%6detrics"),
    "a new line": get("/users/u7%0a%7b%22status%22:1%7d/recommendations"),
}  # fmt: skip
PRIVATE = ("u7", "i3", TOKEN, "127.0.0.1")
RATE = 5.0


def headed(request: bytes, *lines: bytes) -> bytes:
    """Return a request with more lines in its head."""
    return request.replace(HOST, HOST + b"".join(line + b"\r\n" for line in lines), 1)


def wrong(random: Random) -> bytes:
    """Return a line that holds no right token."""
    right = TOKEN.encode()
    return b"Authorization: " + random.choice((
        b"", b"Bearer", b"Bearer ", b"Basic " + right, right, b"Bearer " + right[:-1], b"Bearer " + right + b"x",
        b"Bearer " + right.upper(), b"Bearer  " + right, b"Bearer " + right + b", x", b"Bearer \xff\xfe", b"Bearer " + b"x" * 5000,
        b"Bearer None", b"Bearer *", b"Bearer\t" + right, b"Token " + right, b"Bearer " + right + b"\x00",
    ))  # fmt: skip


def tokens(result: Result, service: Service, told: str, seconds: float, seed: int) -> int:
    """Ask every route with and without the token; return how many requests reached the limits."""
    right = b"Authorization: Bearer " + TOKEN.encode()
    asked = 0
    for name, request in ROUTES.items():
        bare, known = service.ask(request)[0], service.ask(headed(request, right))[0]
        fault = "" if bare in (400, 401) else f"status {bare} without a token"
        fault = fault or ("" if known and known not in (401, 500) else f"status {known} with the token")
        result.add(f"{told}, {name}", "routes", fault)
        asked += 2
    for path in ("/health", "/ready"):
        status = service.ask(get(path))[0]
        result.add(f"{told}, {path}", "open", "" if status == 200 else f"status {status}")
        asked += 1
    for number, random in cases(seconds, seed):
        name, line = random.choice(sorted(ROUTES)), wrong(random)
        status = service.ask(headed(ROUTES[name], line))[0]
        fault = "" if status in (400, 401, 431) else f"status {status} for {line[:40]!r}"
        result.add(f"{told}, case {number}, {name}", "wrong tokens", fault)
        asked += status == 401
    return asked


def log(result: Result, service: Service, told: str, least: int) -> None:
    """Read the access log: a line of JSON for each request, without ids, token and address."""
    until = time.monotonic() + 10
    while (lines := service.told.read_text(encoding="utf-8").splitlines()) is not None:
        if len(lines) >= least or time.monotonic() > until:
            break
        time.sleep(0.1)
    fault = "" if len(lines) >= least else f"{len(lines)} lines for at least {least} requests"
    for line in lines:
        try:
            found = json.loads(line)
            sound = {"time", "request_id", "method", "route", "status", "ms"} <= set(found)
        except (ValueError, TypeError):
            sound = False
        fault = fault or ("" if sound else f"no line of the log: {line[:80]}")
        private = [word for word in PRIVATE if word in line]
        fault = fault or (f"{private[0]} stands in {line[:120]}" if private else "")
    result.add(f"{told}, the log of {len(lines)} lines", "logs", fault or service.faults())


def rate(result: Result, service: Service, told: str, workers: int) -> None:
    """Ask faster than the rate, also by another name of the client."""
    began, statuses = time.monotonic(), []
    for number in range(100):
        more = b"X-Forwarded-For: 10.0.0.%d" % number
        statuses.append(service.ask(headed(ROUTES["recommend"], more))[0])
    # Each process counts for itself, and lets as many through at once as a second has.
    most = workers * (RATE + RATE * (time.monotonic() - began) + 1)
    taken = statuses.count(200)
    fault = f"{taken} answers, at most {most:.0f} are due" if taken > most else ""
    strange = set(statuses) - {200, 429}
    fault = (
        fault or (f"statuses {strange}" if strange else "") or ("" if taken else "nothing was answered")
    )
    slow = most >= len(statuses)  # a busy machine asks no faster than the rate
    result.add(f"{told}, the rate", "not fast enough to tell" if slow and not fault else "rates", fault)
    result.add(f"{told}, /health", "open", "" if service.healthy() else "/health does not answer")


def run(seconds: float, seed: int) -> Result:
    result = Result()
    for workers in WORKERS:
        told = f"{workers} workers"
        own = {"RECSYS_TOKEN": TOKEN}
        with (
            workspace() as folder,
            running(model_file(), folder, workers, "--access-log", env=own) as service,
        ):
            log(result, service, told, tokens(result, service, told, seconds / len(WORKERS) / 2, seed))
        with (
            workspace() as folder,
            running(model_file(), folder, workers, "--rate", str(RATE)) as service,
        ):
            rate(result, service, told, workers)
    return result
