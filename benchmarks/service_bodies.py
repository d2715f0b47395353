"""Processor seconds that one body of up to 1 MiB takes in the event loop of the service, largest first.

The application runs under uvicorn in a thread, whose processor time is read before and after each request;
threads that compute are not in it. Each body is sent several times; the median is printed.
"""

from __future__ import annotations

import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package
from recsys.service import create_app, server

MOST = 1 << 20
BAR = 0.05  # processor seconds
TIMES = 5


def filled(start: str, part: str, end: str) -> bytes:
    """Return a body of at most 1 MiB with as many parts as fit; {k} is the part's number."""
    parts, size = [], len(start) + len(end)
    while size + len(one := part.format(k=len(parts))) + 1 <= MOST:
        parts.append(one)
        size += len(one) + 1
    return f"{start}{','.join(parts)}{end}".encode()


def bodies() -> Iterator[tuple[str, str, bytes]]:
    """Yield a name, a path and a body."""
    ids = [f"m{k:04d}" for k in range(1, 301)]
    long = [f"{k:04d}" + "x" * 196 for k in range(1000)]
    for path, rest in (
        ("/recommend", '"history":[]'),
        ("/similar", '"item":"m0001"'),
        ("/explain", '"item":"m0001"'),
        ("/rules", '"item":"m0001"'),
        ("/events", '"events":[]'),
    ):
        yield "unknown keys", path, filled("{" + rest + ",", '"{k:x}":1', "}")
        yield "an object in an unknown key", path, filled("{" + rest + ',"x":{', '"{k:x}":1', "}}")
        yield "white space", path, b"{" + b" " * (MOST - 2) + b"}"
        yield "nested arrays", path, b'{"history":' + b"[" * (MOST - 12)
        yield "one long text", path, b'{"user":"' + b"x" * (MOST - 11) + b'"}'
        yield "escapes", path, b'{"user":"' + b"\\u00e9" * ((MOST - 11) // 6) + b'"}'
        yield "no JSON", path, b"\xff" * MOST
        yield "keys that repeat", path, filled("{", '"n":{k}', "}")
    yield "histories without end", "/recommend", filled('{"history":[', '"m{k}"', "]}")
    yield "objects in a history", "/recommend", filled('{"history":[', "{{}}", "]}")
    known = {"history": ids, "n": 1000, "filter_items": long, "dislikes": long, "items": None}
    yield "valid, many long ids", "/recommend", json.dumps(known).encode()
    similar = {"item": "m0001", "filter_items": long}
    yield "valid, many long ids", "/similar", json.dumps(similar).encode()
    explain = {"item": "m0001", "history": [{"item": i, "time": 3} for i in ids]}
    yield "valid, a timed history", "/explain", json.dumps(explain).encode()
    events = [{"user": "u0001", "item": ids[k % 300], "time": "2004-01-31"} for k in range(10_000)]
    yield "valid, 10,000 events", "/events", json.dumps({"events": events}).encode()
    yield "10,000 empty events", "/events", b'{"events":[' + b",".join([b"{}"] * 10_000) + b"]}"
    yield (
        "10,000 events, the last one wrong", "/events",
        json.dumps({"events": [*events[:-1], {"user": "u0001", "item": 7}]}).encode(),
    )  # fmt: skip
    wrong = {f"key{k}": 1 for k in range(8)}
    yield "10,000 events of 8 wrong keys", "/events", json.dumps({"events": [wrong] * 8000}).encode()


def asked(address: tuple[str, int], path: str, body: bytes) -> int:
    """Return the status of one request on a connection of its own."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return int(answer[9:12])


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.recsys")
        fit_package(make_ranker("cf-komd"), load_dataset("sample"), show_progress=False).save(path)
        where = server.Listening(port=0)
        listener = server.listen(where)
        app = create_app(path, events=Path(folder, "events.db"))
        made = uvicorn.Server(server.settings(app, where))
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listener]})
        thread.start()
        while not made.started:
            time.sleep(0.01)
        assert thread.ident is not None
        clock = time.pthread_getcpuclockid(thread.ident)
        rows = []
        for name, route, body in bodies():
            assert len(body) <= MOST, name
            spent = []
            for _ in range(TIMES):
                before = time.clock_gettime(clock)
                status = asked(listener.getsockname(), route, body)
                spent.append(time.clock_gettime(clock) - before)
            rows.append((statistics.median(spent), route, name, len(body), status))
        made.should_exit = True
        thread.join()
    print(f"| processor s in the loop (at most {BAR:g}) | route | body | bytes | status |")
    print("|---|---|---|---|---|")
    for seconds, route, name, size, status in sorted(rows, reverse=True):
        print(f"| {seconds:.4f} | `{route}` | {name} | {size:,} | {status} |")


if __name__ == "__main__":
    main()
