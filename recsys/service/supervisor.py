"""Several processes that do the same: started, started again when they die, and stopped together."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from recsys.errors import RecsysError

SOON = 10.0  # seconds; a process that dies younger is started again only this long after its start


class Supervisor:
    """Parent of worker processes.

    They are spawned, never forked: threads of compiled code do not survive a fork. A worker that dies is
    replaced; one of the first that cannot start ends the service.

    Parameters
    ----------
    targets : sequence of callable
        What each worker runs; each can be pickled and returns an exit code.
    grace : float
        Seconds between the request to end and the end.
    died : callable
        Told the number of each process that died.
    """

    def __init__(
        self,
        targets: Sequence[Callable[[], int]],
        grace: float,
        died: Callable[[int], None] = lambda pid: None,
    ) -> None:
        self.targets, self.grace, self.died = list(targets), grace, died
        self._spawn = multiprocessing.get_context("spawn")
        self._workers: list[Any] = []
        self._started: list[float] = []
        self._replaced = [False] * len(self.targets)
        self._again = [0.0] * len(self.targets)  # when one that died is started again
        self._signal = 0
        self._stopping = threading.Event()

    def run(self) -> int:
        """Run until SIGTERM or SIGINT, and return the exit code."""
        waking, wake = os.pipe()
        os.set_blocking(wake, False)

        def stop(number: int, frame: Any) -> None:
            self._stopping.set()
            self._signal = number
            os.write(wake, b"x")

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        for k in range(len(self.targets)):
            self._workers.append(self._start(k))
            self._started.append(time.monotonic())
        code = 0
        while not self._stopping.is_set():
            waited = [one.sentinel for one in self._workers if one is not None]
            rest = [at - time.monotonic() for at in self._again if at]
            multiprocessing.connection.wait([waking, *waited], max(0.0, min(rest)) if rest else None)
            for k, worker in enumerate(self._workers):
                if self._stopping.is_set():
                    break
                if worker is None:
                    if time.monotonic() >= self._again[k]:
                        self._workers[k], self._started[k] = self._start(k), time.monotonic()
                        self._again[k] = 0.0
                    continue
                if worker.is_alive():
                    continue
                if worker.exitcode in REFUSED and not self._replaced[k]:
                    code = REFUSED[worker.exitcode]
                    self._stopping.set()
                    break
                print(
                    f"recsys: a worker ended with {worker.exitcode}; another one starts", file=sys.stderr
                )
                self.died(worker.pid)
                self._workers[k], self._replaced[k] = None, True
                self._again[k] = max(time.monotonic(), self._started[k] + SOON)
        self._end()
        return code or (130 if self._signal == signal.SIGINT else 0)

    def _start(self, k: int) -> Any:
        worker = self._spawn.Process(target=_work, args=(self.targets[k],), name=f"worker {k}")
        worker.start()
        return worker

    def _end(self) -> None:
        living = [worker for worker in self._workers if worker is not None]
        for worker in living:
            if worker.is_alive():
                worker.terminate()
        until = time.monotonic() + self.grace
        for worker in living:
            worker.join(max(0.0, until - time.monotonic()))
            if worker.is_alive():
                worker.kill()
                worker.join()


# Exit codes of workers that would fail again, and what the service then ends with.
REFUSED = {92: 2}


def _work(target: Callable[[], int]) -> None:
    """Run a worker; it ends when its parent has died."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        assert parent is not None
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        code = target()
    except RecsysError as error:
        print(f"recsys: {' '.join(str(error).split())}", file=sys.stderr)
        code = next(iter(REFUSED))
    sys.stderr.flush()
    os._exit(code)
