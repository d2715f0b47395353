"""kill -9 of the process that leads others, and of one that is led: no orphan, and the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.attack.common import Result, cases, members, noted, workspace
from benchmarks.attack.full_disk import ratings_file
from benchmarks.attack.serving import Service, get, known, model_file, running
from recsys.service.server import HEALTHCHECK_SECONDS

ENDS = 25.0  # seconds in which those that are led notice that their parent is gone


def ended(group: int) -> list[int]:
    """Return which processes of a group still live when they should have ended."""
    until = time.monotonic() + ENDS
    while (left := members(group)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def led(service: Service) -> list[int]:
    """Return the processes that answer requests."""
    found = []
    for number in service.processes():
        with open(f"/proc/{number}/cmdline", "rb") as file:
            if number != service.process.pid and b"spawn_main" in file.read():
                found.append(number)
    return found


def worker_killed(result: Result, service: Service) -> None:
    """Kill one of two workers: the other one answers, and after a while there are two again.

    Uvicorn notices at once that a worker has died, unless it waits for that worker's first answer to a
    health check: then after the time that it gives a check.
    """
    before = led(service)
    os.kill(before[0], signal.SIGKILL)
    statuses = [service.ask(get("/health"))[0] for _ in range(100)]
    fault = (
        "" if set(statuses[1:]) == {200} else f"answers {set(statuses)}"
    )  # one it had taken may be lost
    until = time.monotonic() + HEALTHCHECK_SECONDS + 40
    while len(led(service)) < len(before) and time.monotonic() < until:
        time.sleep(0.1)
    after = led(service)
    fault = fault or ("" if len(after) == len(before) else f"{len(after)} workers afterwards")
    result.add("a worker killed", "replaced", fault)


def supervisor_killed(result: Result, number: int, wait: float, how: int) -> None:
    """End the first process of a service in a moment of its life: none of it stays."""
    with workspace() as folder, running(model_file(), folder, 2) as service:
        for request in known(5, next(cases(0, number))[1]):
            service.ask(request)
        if number == 0:
            worker_killed(result, service)
        time.sleep(wait)
        os.kill(service.process.pid, how)
        code = service.process.wait(60)
        left = ended(service.process.pid)
        fault = f"{len(left)} processes stay" if left else ""
        if not fault and how == signal.SIGTERM and code:
            fault = f"exit {code} after SIGTERM"
        result.add(f"case {number}, supervisor, {signal.Signals(how).name}", "ended", fault)


def command_killed(
    result: Result, number: int, wait: float, arguments: Callable[[str], list[str]]
) -> None:
    """Kill a command that has started processes: they end too."""
    with workspace() as folder:
        ratings_file(folder / "ratings.csv")
        command = [sys.executable, "-c", "from recsys.cli import run; run()", *arguments(str(folder))]
        child = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        noted(child.pid)
        until = time.monotonic() + 30
        while len(members(child.pid)) < 3 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        parts = len(members(child.pid)) - 1
        time.sleep(wait / 4)
        child.kill()
        child.wait()
        left = ended(child.pid)
        for one in left:
            os.kill(one, signal.SIGKILL)
        noted(child.pid, False)
        ending = "ended" if parts > 0 else "had no others"
        result.add(f"case {number}, {command[3]}", ending, f"{len(left)} processes stay" if left else "")


def evaluate(folder: str) -> list[str]:
    """Return a command that has workers."""
    model = ["--model", "slim", "--model", "als", "--model", "ease", "--model", "cf-komd"]
    return ["evaluate", "--interactions", f"{folder}/ratings.csv", "--quiet", "--workers", "2", *model]


def run(seconds: float, seed: int) -> Result:
    result = Result()
    for number, random in cases(seconds, seed):
        wait = random.uniform(0.0, 1.0)
        supervisor_killed(result, number, wait, (signal.SIGKILL, signal.SIGTERM)[number % 2])
        command_killed(result, number, wait, evaluate)
    return result
