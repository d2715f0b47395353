"""Idle connections, half-sent bodies and clients that never read: others must not notice."""

from __future__ import annotations

import contextlib
import socket
import time

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.overload import apart, checked
from benchmarks.attack.serving import Service, bundle, heavy, known
from benchmarks.lab.http_load import closed_loop

IDLE, HALF, DEAF = 500, 200, 100


def idle(service: Service) -> list[socket.socket]:
    """Connect and send nothing."""
    return [socket.create_connection(service.address) for _ in range(IDLE)]


def half(service: Service) -> list[socket.socket]:
    """Send one byte of a body of nine."""
    found = [socket.create_connection(service.address) for _ in range(HALF)]
    for one in found:
        one.sendall(b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
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
    """Measure eight clients alone, then beside each kind of bad company."""
    result = Result()
    requests = known(400, next(cases(0, seed))[1])
    each = max(2.0, (seconds - 8) / 4)
    with workspace() as folder:
        bundle().save(folder / "m")
        with Service(folder / "m", folder) as service:
            closed_loop(service.address, requests, 8, 1.0)
            alone = apart(closed_loop, service.address, requests, 8, each, patient=True)
            result.notes.append(checked(result, "alone", service, alone, 0.0))
            for bad in (idle, half, deaf):
                company = bad(service)
                load = apart(closed_loop, service.address, requests, 8, each, patient=True)
                told = checked(result, f"beside {len(company)} {bad.__name__}", service, load, 0.0)
                result.notes.append(f"{told}, {load.ms(0.99) / alone.ms(0.99):.1f} times alone")
                for one in company:
                    one.close()
                time.sleep(0.2)
            result.add("afterwards", "health", "" if service.healthy() else "/health does not answer")
            result.memory = service.memory()
    return result
