"""More requests than can be computed: what is taken is answered soon, the rest refused at once.

Bars: p99 of accepted requests at most 5 times that of one client, refusals within 50 ms, /health within
100 ms, the first answer at most 2 s after the end; at 4 times the capacity at least 80% of it is answered.
Figures and whether they meet the bars are told; what fails the fuzz test is a wrong or a missing answer.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

from benchmarks.attack.common import Result, cases, workspace
from benchmarks.attack.serving import WORKERS, Probe, Service, heavy, model_file, running
from benchmarks.lab.http_load import Load, closed_loop, open_loop

LEVELS = (16, 64, 256, 500)
RECOVERS = 1.0  # seconds: what Retry-After tells a client to wait


def apart(load: Callable[..., Load], *arguments: Any, **more: Any) -> Load:
    """Make a load in a process of its own, so that what looks on meanwhile is not held up by it."""
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        return pool.apply(load, arguments, more)


def checked(result: Result, name: str, service: Service, load: Load, longest: float) -> str:
    """Count the answers of one load; return its figures."""
    strange = {status: len(t) for status, t in load.times.items() if status not in (200, 503)}
    fault = f"answers {strange}" if strange else ""
    fault = fault or (f"{load.late} without an answer" if load.late else "")
    fault = fault or ("" if load.count(200) else "nothing was answered")
    fault = fault or service.faults()
    for status, times in load.times.items():
        result.counts[str(status)] += len(times)
    result.tried += sum(map(len, load.times.values())) - 1
    result.add(name, "loads", fault, longest)
    return (
        f"{name}: {load.rate():.0f}/s, p99 {load.ms(0.99):.0f} ms, "
        f"503 {load.count(503)} within {load.ms(0.99, 503):.0f} ms (p99), /health {1000 * longest:.0f} ms"
    )


def run(seconds: float, seed: int) -> Result:
    """Run levels of clients, then a rate of four times the capacity, with one worker and with two."""
    result = Result()
    requests = heavy(400, next(cases(0, seed))[1])
    for workers in WORKERS:
        with workspace() as folder, running(model_file(), folder, workers) as service:
            loaded(result, service, requests, seconds / len(WORKERS), f"{workers} workers, ")
            result.memory = max(result.memory, service.memory())
    return result


def loaded(result: Result, service: Service, requests: list[bytes], seconds: float, told: str) -> None:
    """Measure one client, levels of clients, the first answer afterwards, and an open loop."""
    each = max(1.0, seconds / (4 + 2 * len(LEVELS)))  # 500 clients take half a second to connect
    closed_loop(service.address, requests, 4, each)
    one = apart(closed_loop, service.address, requests, 1, each)
    result.notes.append(checked(result, f"{told}1 client", service, one, 0.0))
    for patient in (True, False):
        for level in LEVELS:
            with Probe(service) as probe:
                load = apart(closed_loop, service.address, requests, level, each, patient=patient)
            name = f"{told}{level} clients that {'wait' if patient else 'do not wait'}"
            figures = checked(result, name, service, load, max(probe.times))
            times = load.ms(0.99) / one.ms(0.99)
            late = load.count(503) and load.ms(0.99, 503) > 50
            missed = times > 5 or late or max(probe.times) > 0.1
            result.notes.append(
                f"{figures}, {times:.1f} times one client's: {'missed' if missed else 'met'}"
            )
            if probe.failed:
                result.add(name, "health", f"{probe.failed} probes of /health failed")
    began = time.perf_counter()
    status, _ = service.ask(requests[0])
    while status == 503 and time.perf_counter() - began < RECOVERS:
        time.sleep(0.01)  # what was let in before its clients left is still done
        status, _ = service.ask(requests[0])
    after = time.perf_counter() - began
    fault = "" if status == 200 else f"status {status}"
    result.add(f"{told}after the load", "recovered", fault, after)
    capacity = apart(closed_loop, service.address, requests, 4, each).rate()
    with Probe(service) as probe:
        load = apart(open_loop, service.address, requests, 4 * capacity, each)
    figures = checked(result, f"{told}4 times the capacity", service, load, max(probe.times))
    share = 100 * load.rate() / capacity if capacity else 0.0
    result.notes.append(
        f"{figures}, goodput {share:.0f}% of {capacity:.0f}/s: {'met' if share >= 80 else 'missed'}"
    )
