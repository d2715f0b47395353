"""The engines of one machine: this process, or loky's processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pickle import PicklingError
from typing import Any

import psutil

from recsys.engines.base import Engine, run_unit
from recsys.errors import InputError

ENDED = (
    "a worker process ended before its work did (out of memory?); what is written stays: run it again, "
    "with fewer workers"
)
PATIENCE = 5.0  # seconds without a result until it is looked whether a worker was killed


class LocalEngine(Engine):
    """Runs units in this process, each when its result is asked for."""

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        for unit in units:
            yield run_unit(task, unit, threads)


class ProcessEngine(Engine):
    """Processes of this machine, of a pool of loky's that this engine has for itself."""

    def __init__(self, workers: int) -> None:
        from loky import ProcessPoolExecutor  # late: most calls start no process

        self.name, self.workers = f"local={workers}", workers
        self._pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(os.getpid(),))
        self._running: set[Future[Any]] = set()

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        try:
            futures = [self._pool.submit(run_unit, task, unit, threads) for unit in units]
            self._running.update(futures)
            for future in futures:
                future.add_done_callback(self._running.discard)
            yield from self._in_order(futures, self._result)
        except BrokenProcessPool:
            raise InputError(ENDED) from None
        except PicklingError as error:
            why = " ".join(str(error.__cause__ or error).split())[:200]
            raise InputError(
                f"a task cannot be sent to processes, or its result back ({why}): pass plain values"
            ) from None

    def _result(self, future: Future[Any]) -> tuple[Any, float]:
        while wait([future], PATIENCE).not_done:
            self._give_up_if_killed()
        result: tuple[Any, float] = future.result()
        return result

    def _give_up_if_killed(self) -> None:
        """Break the pool where a worker was killed.

        loky does so itself, unless the worker was killed while it wrote a result. Then loky waits for
        the rest of it for ever, and the other workers wait for the lock. When no process can write any
        more, loky reads the end of the pipe.
        """
        workers = list((self._pool._processes or {}).values())
        if any(worker.exitcode for worker in workers):
            for worker in workers:
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(worker.pid).kill()
            if self._pool._result_queue is not None:
                self._pool._result_queue._writer.close()

    def close(self) -> None:
        """End the processes when their present tasks are done.

        They are killed then: loky waits for ever for an idle process to end where another one was killed
        that held the lock of the queue of tasks.
        """
        while wait(list(self._running), PATIENCE).not_done:
            self._give_up_if_killed()
        self._pool.shutdown(wait=True, kill_workers=True)

    def __exit__(self, *raised: Any) -> None:
        """End the processes; those of a command that is interrupted also in the middle of a unit.

        What a unit writes is there whole or not at all.
        """
        kind = raised[0] if raised else None
        if kind is None or issubclass(kind, Exception):
            self.close()
        else:
            self._give_up_if_killed()
            self._pool.shutdown(wait=True, kill_workers=True)


def _begin(parent: int) -> None:
    """Let this worker end when its parent was killed, which could not say so, and else keep it.

    Ctrl-C goes to all processes of a terminal: it is the parent's to answer. loky replaces a worker that
    grows by 300 MB, pages of mapped models counted: it would read its model again for every task.
    """
    import loky.process_executor

    loky.process_executor._USE_PSUTIL = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        try:
            psutil.Process(parent).wait()
        finally:
            os._exit(1)

    threading.Thread(target=wait, daemon=True, name="parent").start()
