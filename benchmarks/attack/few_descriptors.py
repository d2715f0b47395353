"""More connections than the service has file descriptors: afterwards it answers and reads models again."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from random import Random

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.serving import HOST, WORKERS, Service, get, known, model_file, running
from recsys.service.background import TOO_FEW

LIMITS = (64, 100, 256)  # descriptors of each process
BESIDE = 100  # connections beyond these
PATIENCE = 20.0  # seconds in which the service must recover
LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))"


def crowd(service: Service, number: int, random: Random) -> list[socket.socket]:
    """Connect many times: to send nothing, half a request, or one that is answered and kept alive."""
    sent = (b"", b"POST /recommend HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{", get("/health"))
    found = []
    for _ in range(number):
        with contextlib.suppress(OSError):
            one = socket.create_connection(service.address, 2.0)
            found.append(one)
            one.sendall(random.choice(sent))
    return found


def recovered(service: Service) -> str:
    """Wait until every kind of request is answered again; return what is wrong otherwise."""
    until, asked = (
        time.monotonic() + PATIENCE,
        {"/health": get("/health"), "/recommend": known(1, Random(0))[0]},
    )
    for path, request in asked.items():
        while (status := service.ask(request, 5.0)[0]) != 200:
            if time.monotonic() > until:
                return f"{path} ends in {status} after {PATIENCE:.0f} s without these connections"
            time.sleep(0.1)
    return service.faults(TOO_FEW)


def run(seconds: float, seed: int) -> Result:
    """Exhaust the descriptors of a service again and again, with one worker and with two."""
    result = Result()
    for workers in WORKERS:
        for number, random in cases(seconds / len(WORKERS), seed):
            most = random.choice(LIMITS)
            with workspace() as folder:
                model = folder / "model"
                shutil.copy(model_file(), model)
                with running(model, folder, workers, before=LIMIT.format(most=most)) as service:
                    company = crowd(service, workers * most + BESIDE, random)
                    shutil.copy(model, folder / "fresh")  # a model arrives when none can be opened
                    os.replace(folder / "fresh", model)
                    time.sleep(random.uniform(0.0, 3.0))
                    for one in company:
                        one.close()
                    fault = recovered(service)
                    told = f"case {number}, {workers} workers, {most} descriptors, {len(company)} connections"
                    result.add(told, "recovered" if not fault else "not recovered", fault)
                    result.memory = max(result.memory, service.memory())
    return result
