"""Requests that no client should send: framing, heads, bodies, random bytes.

A complete request gets an answer, below 500 and with no line in the log; what is incomplete by
construction may get none. Whoever sent it, the service answers the next request.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import NamedTuple

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.serving import HOST, WORKERS, Service, get, model_file, post, running
from recsys.service.schemas import RecommendRequest

BODY = json.dumps({"history": ["i1", "i2"], "n": 5}).encode()
ANSWERS = 5.0  # seconds in which a complete request is answered
MOST = 8  # pipelined requests that are answered


class Made(NamedTuple):
    """A request made by hand."""

    content: bytes
    complete: bool = True  # so that it must be answered, if only by a refusal
    # the answers that are right; without any, every one below 500 that is no redirection
    statuses: tuple[int, ...] = ()
    half_close: bool = False  # the client says that it sends no more
    count: int = 1  # how many answers there must be


def framed(head: str, body: bytes = BODY) -> bytes:
    """Return a request of a head and a body."""
    return head.replace("\n", "\r\n").encode() + b"\r\n" + body


def head(more: str = "", size: int | None = None, path: str = "/recommend", method: str = "POST") -> str:
    """Return the head of a request with these additions."""
    length = f"Content-Length: {len(BODY) if size is None else size}\n" if size != -1 else ""
    return f"{method} {path} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\n{length}{more}"


def health(hosts: bytes = HOST, target: bytes = b"/health", method: bytes = b"GET") -> bytes:
    """Return a request without a body."""
    return method + b" " + target + b" HTTP/1.1\r\n" + hosts + b"\r\n"


REFUSED = (400,)
MADE = {
    "both lengths": Made(framed(head("Transfer-Encoding: chunked\n")), True, REFUSED),
    "two lengths": Made(framed(head("Content-Length: 3\n")), True, REFUSED),
    "negative length": Made(framed(head(size=-5)), True, REFUSED),
    "no length": Made(framed(head(size=-1), b"")),
    "length of 5,000 digits": Made(framed(head("", -1) + "Content-Length: " + "9" * 5000 + "\n")),
    "length with a plus": Made(framed(head("", -1) + f"Content-Length: +{len(BODY)}\n"), True, REFUSED),
    "less than declared": Made(framed(head(size=len(BODY) + 1)), False),
    "half a head": Made(framed(head())[:40], False),
    "bad chunk": Made(framed(head("Transfer-Encoding: chunked\n", -1), b"zz\r\nabc\r\n0\r\n\r\n"), True, REFUSED),
    "endless chunk": Made(framed(head("Transfer-Encoding: chunked\n", -1), b"f" * 40 + b"\r\n")),
    "half a chunk": Made(framed(head("Transfer-Encoding: chunked\n", -1), b"9\r\n{"), False),
    "chunk extension": Made(framed(head("Transfer-Encoding: chunked\n", -1), b"1;a=b\r\n{\r\n0\r\n\r\n")),
    "gzip, chunked": Made(
        framed(head("Transfer-Encoding: gzip, chunked\n", -1), b"1\r\n{\r\n0\r\n\r\n"), True, (400, 501)
    ),
    "folded header": Made(framed(head("X-A: 1\n 2\n"))),
    "header without a colon": Made(framed(head("nonsense\n")), True, REFUSED),
    "header with a NUL": Made(framed(head("X-A: \x00\n")), True, REFUSED),
    # The size of heads is the proxy's to limit (operate.md); httptools refuses targets of 64 KiB with 400.
    "20,000 headers": Made(framed(head("".join(f"X-{k}: 1\n" for k in range(20000)))), True, (200, 400, 431)),
    "1 MB header": Made(framed(head("X-A: " + "y" * 1_000_000 + "\n")), True, (200, 400, 431)),
    "target of 9,000 bytes": Made(framed(head(path="/" + "a" * 9_000)), True, (414,)),
    "target of 66,000 bytes": Made(framed(head(path="/" + "a" * 66_000)), True, (400, 414)),
    "target of 200,000 bytes": Made(framed(head(path="/" + "a" * 200_000)), True, (400, 414)),
    "path that is no ASCII": Made(health(target=b"/\xff\xfe")),
    "percent nonsense": Made(get("/users/%zz%00%ff/recommendations")),
    "dots": Made(get("/../../etc/passwd"), True, (400, 404)),
    "absolute": Made(get("http://other/health")),
    "OPTIONS *": Made(health(target=b"*", method=b"OPTIONS")),
    "GET *?/": Made(health(target=b"*?/")),
    "version 9": Made(b"GET /health HTTP/9.9\r\n" + HOST + b"\r\n", True, (400, 505)),
    "version 1.0": Made(b"GET /health HTTP/1.0\r\n\r\n", True, (200, 400)),
    "no host": Made(health(b""), True, REFUSED),
    "two hosts": Made(health(HOST + HOST), True, REFUSED),
    "a stranger's host": Made(health(b"Host: rebound.example\r\n"), True, (400, 403, 421)),
    "TLS": Made(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), False),
    "HTTP/2": Made(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)),
    "upgrade": Made(framed(head("Connection: Upgrade\nUpgrade: websocket\n"))),
    "expect": Made(framed(head("Expect: 100-continue\n"))),
    "CONNECT": Made(b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"),
    "unknown method": Made(framed(head(method="BREW"))),
    "HEAD": Made(health(target=b"/recommend", method=b"HEAD")),
    "gzip body": Made(framed(head("Content-Encoding: gzip\n"), b"\x1f\x8b" + BODY[2:])),
    "deep JSON": Made(framed(head(size=200_000), b"[" * 200_000)),
    "deep objects": Made(framed(head(size=120_000), b'{"a":' * 24_000)),
    "NaN": Made(post("/recommend", {"history": [], "diversity": float("nan")})),
    "infinity": Made(post("/recommend", {"history": [], "diversity": float("inf")})),
    "5,000 digits": Made(framed(head(size=5000 + 6), b'{"n":' + b"9" * 5000 + b"}")),
    "q_all surrogate": Made(framed(head(size=18), b'{"user":"\\ud800" }')),
    "NUL in an id": Made(framed(head(size=17), b'{"user":"\\u0000"}')),
    "wrong type": Made(post("/recommend", [1, 2])),
    "110,000 unknown keys": Made(post("/recommend", {f"{k:x}": 1 for k in range(110_000)}), True, (400, 413, 422)),
    "10,000 wrong events": Made(post("/events", {"events": [{}] * 10_000}), True, (400, 422)),
    "other content type": Made(framed(head("Content-Type: text/xml\n"))),
    "body of a GET": Made(b"GET /metrics HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"),
    "more than declared": Made(framed(head(size=3))),
    # Uvicorn ends a request whose client has closed its half; a proxy in front answers it (operate.md).
    "a half-close": Made(framed(head()), False, half_close=True),
    "a half-close, no body": Made(get("/health"), True, (200,), half_close=True),
    "100 pipelined": Made(get("/health") * 100, True, (200,), count=MOST),
}  # fmt: skip


def judged(made: Made, found: list[int]) -> str:
    """Return what is wrong with the answers to a request."""
    if not found and not made.complete:
        return ""
    if len(found) < made.count:
        return f"{len(found)} answers to {made.count} complete requests" if found else "no answer"
    for status in found[: made.count]:
        if status >= 500 and status not in made.statuses or 300 <= status < 400:
            return f"status {status}"
        if made.statuses and status not in made.statuses:
            return f"status {status}, not {' or '.join(map(str, made.statuses))}"
    return ""


def whole(request: bytes) -> bool:
    """Return whether there is a head with one sound length, and so many bytes after it.

    It is not asked whether the rest of the head is sound: a server refuses what is not.
    """
    top, end, body = request.partition(b"\r\n\r\n")
    lengths = re.findall(rb"\r\ncontent-length:\s*(\d{1,7})\r\n", top.lower() + b"\r\n")
    chunked = b"transfer-encoding" in top.lower()
    return bool(end) and len(lengths) == 1 and not chunked and len(body) >= int(lengths[0])


def mutated(random: Random) -> Made:
    """Return a good request with some bytes of it changed; in half of them the framing stays sound."""
    if random.random() < 0.5:
        content = bytearray(framed(head("Connection: close\n")))
        changed(content, random)
        return Made(bytes(content), whole(bytes(content)))
    parts = [bytearray(part) for part in (b"POST", b"/recommend", b"a", b"1", BODY)]
    changed(random.choice(parts), random)
    method, target, name, value, body = (bytes(part) for part in parts)
    lines = [re.sub(rb"[\r\n]", b"?", part) for part in (method, target, name, value)]
    first = b"%s %s HTTP/1.1\r\n%sConnection: close\r\n" % (*lines[:2], HOST)
    rest = b"Content-Type: application/json\r\nX-%s: %s\r\nContent-Length: %d\r\n\r\n"
    return Made(first + rest % (*lines[2:], len(body)) + body, True)


# What fields of `POST /recommend` may hold, and what any field or the body of an item set is given at random.
SOUND = {
    "user": "u1", "n": 5, "items": ["i1", "i2", "i3"], "filter_items": ["i4"], "item_set": "stock",
    "filter_item_set": "stock", "filters": {}, "filter_liked": False, "pinned": ["i2"], "boosts": {"i1": 2.0},
    "at_most": {}, "dislikes": ["i5"], "diversity": 0.3,
}  # fmt: skip
ODD = (
    None, True, -1, 0, 2, 2.5, 1e308, "", "i1", "\x00", "a/../b", "stock", [], ["i1", "i2", "i1"], ["nothing"], [["i1"]],
    {}, {"i1": 2.0}, {"i1": -1}, {"brand": 2}, {"brand": "b1"}, {"brand": ["b1", 3]}, {"brand": {"min": 9, "max": 1}},
    {"protected": {"brand": "b1"}, "p": 0.5}, {"protected": {}, "alpha": 2},
)  # fmt: skip
NAMES = ("stock", "0", "a b", "%2e%2e", "%00", "x" * 300)


def drawn(random: Random) -> Made:
    """Return a request for a list with drawn values in drawn fields, or one about a set of items."""
    if random.random() < 0.7:
        body = {name: SOUND[name] for name in random.sample(sorted(SOUND), 3)} | {"user": "u1"}
        for name in random.sample(RecommendRequest.__struct_fields__, random.randrange(3)):
            body[name] = random.choice(ODD)
        return Made(post("/recommend", body))
    name, method = random.choice(NAMES), random.choice(("PUT", "PUT", "GET", "DELETE"))
    items = SOUND["items"] if random.random() < 0.5 else random.choice(ODD)
    path = f"/item-sets/{'stock' if random.random() < 0.5 else name}"
    sent = json.dumps({"items": items}).encode() if method == "PUT" else b""
    return Made(framed(head(size=len(sent), path=path, method=method), sent))


def changed(content: bytearray, random: Random) -> None:
    """Change some bytes in place."""
    for _ in range(random.randint(1, 8)):
        position = random.randrange(len(content) + 1)
        how = random.random()
        if how < 0.5:
            content[position : position + 1] = random.randbytes(1)
        elif how < 0.75:
            del content[position : position + random.randint(1, 9)]
        else:
            content[position:position] = random.randbytes(random.randint(1, 9))


def send(result: Result, service: Service, name: str, made: Made) -> None:
    """Send one request, and judge its answers and what the service writes to its log."""
    wait = ANSWERS if made.complete else 0.3
    found = service.answers(made.content, wait, made.count, made.half_close)
    ending = f"{found[0] // 100}xx" if found else "no answer"
    said = service.faults()
    if said:
        service.said.write_text("")
    result.add(name, ending, judged(made, found) or said)


def run(seconds: float, seed: int) -> Result:
    """Send what is made by hand, then changed requests until the time is up."""
    result = Result()
    for workers in WORKERS:
        with workspace() as folder, running(model_file(), folder, workers) as service:
            told = f"{workers} worker{'s' * (workers > 1)}"
            for name, made in MADE.items():
                send(result, service, f"{told}, {name}", made)
            for number, random in cases(seconds / len(WORKERS) - 2, seed):
                made = drawn(random) if random.random() < 0.5 else mutated(random)
                send(result, service, f"{told}, changed request {number}", made)
                if number % 200 == 0 and not service.healthy():
                    result.add(told, "dead", "/health does not answer")
            alive = "" if service.healthy() else "/health does not answer"
            result.add(f"{told}, afterwards", "health", alive)
            result.memory = max(result.memory, service.memory())
    return result
