"""Load over HTTP from one thread: many keep-alive connections, raw requests, little time of its own.

A request costs the client some 30 µs, so that what is measured on shared cores is the server. Closed loop:
each connection sends its next request when it has an answer. Open loop: requests are sent at a rate,
whatever comes back.
"""

from __future__ import annotations

import heapq
import json
import select
import socket
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np


def post(path: str, body: object) -> bytes:
    """Return a request as it is sent."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def get(path: str) -> bytes:
    """Return a request as it is sent."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@dataclass
class Load:
    """What came back."""

    seconds: float = 0.0  # from the first request to the last answer that was waited for
    # by status, from sending to the whole answer; 0 is no answer: the connection was closed
    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    late: int = 0  # requests without an answer in the time that a client waits

    def count(self, status: int) -> int:
        """Answers of this status."""
        return len(self.times.get(status, ()))

    def rate(self, status: int = 200) -> float:
        """Answers a second."""
        return self.count(status) / self.seconds

    def ms(self, quantile: float, status: int = 200) -> float:
        """Milliseconds within which this share of the answers came."""
        given = self.times.get(status)
        return 1000 * float(np.quantile(given, quantile)) if given else float("nan")


class _Connection:
    def __init__(self, address: object, requests: Sequence[bytes], place: int) -> None:
        self.address, self.requests, self.place = address, requests, place
        self.sent = self.due = 0.0
        self.waiting = False
        self.got = b""
        self.needed = -1
        self.open()

    def open(self) -> None:
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.connect(self.address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)

    def send(self, now: float) -> None:
        self.sent, self.waiting, self.got, self.needed = now, True, b"", -1
        self.socket.send(self.requests[self.place % len(self.requests)])
        self.place += 1

    def receive(self) -> int | None:
        """Return the status of a whole answer, 0 of a closed connection, None where more is to come."""
        try:
            given = self.socket.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            given = b""
        if not given:
            return 0
        self.got += given
        if self.needed < 0:
            end = self.got.find(b"\r\n\r\n")
            if end < 0:
                return None
            head = self.got[:end].lower()
            start = head.find(b"content-length:")
            size = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            self.needed = end + 4 + size
        return int(self.got[9:12]) if len(self.got) >= self.needed else None

    def ended(self) -> bool:
        """Return whether the server closes the connection after this answer."""
        return b"\nconnection: close\r" in self.got.split(b"\r\n\r\n", 1)[0].lower() + b"\r"

    def after(self) -> float:
        """Seconds that the answer asks to wait."""
        start = self.got.lower().find(b"retry-after:")
        return float(self.got[start + 12 :].split(b"\r\n", 1)[0]) if start >= 0 else 0.0


def closed_loop(
    address: object, requests: Sequence[bytes], clients: int, seconds: float, *, patient: bool = False,
    wait: float = 30.0,
) -> Load:  # fmt: skip
    """Send from so many clients, each the next request when it has an answer.

    Patient ones begin within a second, and wait as long as Retry-After says and up to half as long
    again, as clients that are written with care do; otherwise all begin, and go on, at once. After
    `wait` seconds a client gives up, which is counted as late.
    """
    load = Load()
    poll = select.epoll()
    spread = len(requests) // clients or 1
    started = time.perf_counter()
    connections: dict[int, _Connection] = {}
    later: list[tuple[float, int]] = []
    chance = Random(clients)
    for k in range(clients):
        one = _Connection(address, requests, k * spread)
        connections[one.socket.fileno()] = one
        poll.register(one.socket, select.EPOLLIN)
        if patient and clients > 1:
            heapq.heappush(later, (started + chance.random(), one.socket.fileno()))
        else:
            one.send(time.perf_counter())
    until = started + seconds
    while (now := time.perf_counter()) < until:
        while later and later[0][0] <= now:
            one = connections[heapq.heappop(later)[1]]
            one.send(time.perf_counter())
        pause = min(until, later[0][0] if later else until) - now
        for number, _ in poll.poll(max(0.0, min(pause, 0.5))):
            one = connections[number]
            status = one.receive()
            if status is None:
                continue
            now = time.perf_counter()
            if one.waiting:
                load.times[status].append(now - one.sent)
                one.waiting = False
            rest = one.after() * (1 + chance.random() / 2) if patient and status else 0.0
            if status == 0 or one.ended():
                _again(poll, connections, one)
                number = one.socket.fileno()
            if rest or not status:
                heapq.heappush(later, (now + (rest or 0.05), number))
            else:
                one.send(time.perf_counter())
    load.seconds = time.perf_counter() - started
    for one in connections.values():
        load.late += one.waiting and time.perf_counter() - one.sent > wait
        one.socket.close()
    return load


def open_loop(
    address: object, requests: Sequence[bytes], rate: float, seconds: float, *, wait: float = 30.0
) -> Load:
    """Send so many requests a second, on a free connection or a new one, and wait for all answers."""
    load = Load()
    poll = select.epoll()
    connections: dict[int, _Connection] = {}
    free: list[_Connection] = []
    started = time.perf_counter()
    sent, total, busy = 0, int(rate * seconds), 0
    while sent < total or busy:
        now = time.perf_counter()
        if now - started > seconds + wait:
            break
        while sent < total and started + sent / rate <= now:
            if free:
                one = free.pop()
            else:
                one = _Connection(address, requests, 0)
                connections[one.socket.fileno()] = one
                poll.register(one.socket, select.EPOLLIN)
            one.place = sent
            one.send(time.perf_counter())
            sent, busy = sent + 1, busy + 1
        pause = started + sent / rate - now if sent < total else 0.5
        for number, _ in poll.poll(max(0.0, pause)):
            one = connections[number]
            status = one.receive()
            if status is None:
                continue
            if one.waiting:
                load.times[status].append(time.perf_counter() - one.sent)
                one.waiting, busy = False, busy - 1
            if status == 0 or one.ended():
                poll.unregister(one.socket)
                del connections[number]
                if one in free:
                    free.remove(one)
                one.socket.close()
            else:
                free.append(one)
    load.seconds = max(seconds, time.perf_counter() - started) if not busy else seconds
    load.late = busy + sum(t > wait for times in load.times.values() for t in times)
    for one in connections.values():
        one.socket.close()
    return load


def _again(poll: select.epoll, connections: dict[int, _Connection], one: _Connection) -> None:
    """Replace a connection that was closed."""
    del connections[one.socket.fileno()]
    poll.unregister(one.socket)
    one.socket.close()
    one.open()
    connections[one.socket.fileno()] = one
    poll.register(one.socket, select.EPOLLIN)
