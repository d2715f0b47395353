"""Requests that no client should send: framing, heads, bodies, random bytes; nothing but 4xx, and it lives."""

from __future__ import annotations

import json
from random import Random

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.serving import Service, bundle
from benchmarks.lab.http_load import get, post

BODY = json.dumps({"history": ["i1", "i2"], "n": 5}).encode()


def framed(head: str, body: bytes = BODY) -> bytes:
    """Return a request of a head and a body."""
    return head.replace("\n", "\r\n").encode() + b"\r\n" + body


def head(more: str = "", size: int | None = None, path: str = "/recommend", method: str = "POST") -> str:
    """Return the head of a request with these additions."""
    length = f"Content-Length: {len(BODY) if size is None else size}\n" if size != -1 else ""
    return f"{method} {path} HTTP/1.1\nHost: x\nContent-Type: application/json\n{length}{more}"


MADE = {
    "both lengths": framed(head("Transfer-Encoding: chunked\n")),
    "two lengths": framed(head("Content-Length: 3\n")),
    "negative length": framed(head(size=-5)),
    "no length": framed(head(size=-1), b""),
    "length of 5,000 digits": framed(head("", -1) + "Content-Length: " + "9" * 5000 + "\n"),
    "length with a plus": framed(head("", -1) + f"Content-Length: +{len(BODY)}\n"),
    "bad chunk": framed(head("Transfer-Encoding: chunked\n", -1), b"zz\r\nabc\r\n0\r\n\r\n"),
    "endless chunk": framed(head("Transfer-Encoding: chunked\n", -1), b"f" * 40 + b"\r\n"),
    "chunk extension": framed(head("Transfer-Encoding: chunked\n", -1), b"1;a=b\r\n{\r\n0\r\n\r\n"),
    "folded header": framed(head("X-A: 1\n 2\n")),
    "header without a colon": framed(head("nonsense\n")),
    "header with a NUL": framed(head("X-A: \x00\n")),
    "20,000 headers": framed(head("".join(f"X-{k}: 1\n" for k in range(20000)))),
    "1 MB header": framed(head("X-A: " + "y" * 1_000_000 + "\n")),
    "long path": framed(head(path="/" + "a" * 200_000)),
    "path that is no ASCII": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "percent nonsense": get("/users/%zz%00%ff/recommendations"),
    "dots": get("/../../etc/passwd"),
    "absolute": get("http://other/health"),
    "version 9": b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    "version 1.0": b"GET /health HTTP/1.0\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "upgrade": framed(head("Connection: Upgrade\nUpgrade: websocket\n")),
    "expect": framed(head("Expect: 100-continue\n")),
    "CONNECT": b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "unknown method": framed(head(method="BREW")),
    "HEAD": b"HEAD /recommend HTTP/1.1\r\nHost: x\r\n\r\n",
    "gzip body": framed(head("Content-Encoding: gzip\n"), b"\x1f\x8b" + BODY[2:]),
    "deep JSON": framed(head(size=200_000), b"[" * 200_000),
    "deep objects": framed(head(size=120_000), b'{"a":' * 24_000),
    "NaN": post("/recommend", {"history": [], "diversity": float("nan")}),
    "infinity": post("/recommend", {"history": [], "diversity": float("inf")}),
    "5,000 digits": framed(head(size=5000 + 6), b'{"n":' + b"9" * 5000 + b"}"),
    "lone surrogate": framed(head(size=18), b'{"user":"\\ud800" }'),
    "NUL in an id": framed(head(size=17), b'{"user":"\\u0000"}'),
    "wrong type": post("/recommend", [1, 2]),
    "other content type": framed(head("Content-Type: text/xml\n")),
    "body of a GET": b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    "more than declared": framed(head(size=3)),
}  # fmt: skip


def mutated(random: Random) -> bytes:
    """Return a good request with some bytes of it changed."""
    content = bytearray(framed(head("Connection: close\n")))
    for _ in range(random.randint(1, 8)):
        place = random.randrange(len(content))
        how = random.random()
        if how < 0.5:
            content[place] = random.randrange(256)
        elif how < 0.75:
            del content[place : place + random.randint(1, 9)]
        else:
            content[place:place] = random.randbytes(random.randint(1, 9))
    return bytes(content)


def run(seconds: float, seed: int) -> Result:
    """Send what is made by hand, then changed requests until the time is up."""
    result = Result()
    with workspace() as folder:
        bundle().save(folder / "m")
        with Service(folder / "m", folder) as service:

            def send(name: str, request: bytes, wait: float) -> None:
                status, spent = service.ask(request, wait)
                # No answer is right where the request is not complete: the service waits, we do not.
                ending = f"{status // 100}xx" if status else "no answer"
                fault = f"status {status}" if status >= 500 or 300 <= status < 400 else ""
                result.add(name, ending, fault or service.faults(), spent)
                if fault or service.faults():
                    service.said.write_text("")

            for name, request in MADE.items():
                send(name, request, 1.0)
            for number, random in cases(seconds - 10, seed):
                send(f"changed request {number}", mutated(random), 0.3)
                if number % 200 == 0 and not service.healthy():
                    result.add("health", "dead", "/health does not answer")
            result.add("afterwards", "health", "" if service.healthy() else "/health does not answer")
            result.memory = service.memory()
    return result
