"""Idle connections, half-sent bodies and clients that never read: others must not notice."""

from __future__ import annotations

import contextlib
import socket
import time

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.overload import apart, checked
from benchmarks.attack.serving import HOST, WORKERS, Service, heavy, known, model_file, running
from benchmarks.lab.http_load import closed_loop

IDLE, HALF, DEAF = 500, 200, 100


def idle(service: Service) -> list[socket.socket]:
    """Connect and send nothing."""
    return [socket.create_connection(service.address) for _ in range(IDLE)]


def half(service: Service) -> list[socket.socket]:
    """Send one byte of a body of nine."""
    found = [socket.create_connection(service.address) for _ in range(HALF)]
    for one in found:
        one.sendall(b"POST /recommend HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{")
    return found


def deaf(service: Service) -> list[socket.socket]:
    """Send 60 requests at once, and read no answer."""
    requests = b"".join(heavy(60, next(cases(0, 1))[1]))
    found = []
    for _ in range(DEAF):
        one = socket.create_connection(service.address)
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.send(requests)
        found.append(one)
    return found


def run(seconds: float, seed: int) -> Result:
    """Measure eight clients alone, then beside each kind of bad company, with one worker and with two."""
    result = Result()
    requests = known(400, next(cases(0, seed))[1])
    for workers in WORKERS:
        with workspace() as folder, running(model_file(), folder, workers) as service:
            beside(result, service, requests, seconds / len(WORKERS), f"{workers} workers, ")
            result.memory = max(result.memory, service.memory())
    return result


def beside(result: Result, service: Service, requests: list[bytes], seconds: float, told: str) -> None:
    """Measure eight clients alone, and beside each kind."""
    each = max(0.8, seconds / 5)
    closed_loop(service.address, requests, 8, each)
    alone = apart(closed_loop, service.address, requests, 8, each, patient=True)
    result.notes.append(checked(result, f"{told}alone", service, alone, 0.0))
    for bad in (idle, half, deaf):
        company = bad(service)
        load = apart(closed_loop, service.address, requests, 8, each, patient=True)
        name = f"{told}beside {len(company)} {bad.__name__}"
        figures = checked(result, name, service, load, 0.0)
        result.notes.append(f"{figures}, {load.ms(0.99) / alone.ms(0.99):.1f} times alone")
        for one in company:
            one.close()
        time.sleep(0.2)
    fault = "" if service.healthy() else "/health does not answer"
    result.add(f"{told}afterwards", "health", fault)
