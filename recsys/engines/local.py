"""The engines of one machine: this process, or a few of its own."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any

from recsys.engines.base import Engine, run_unit
from recsys.errors import InputError

ENDED = (
    "a worker process ended before its work did (out of memory?); what is written stays: run it again, "
    "with fewer workers"
)


class LocalEngine(Engine):
    """Runs units in this process, each when its result is asked for."""

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        for unit in units:
            yield run_unit(task, unit, threads)


class ProcessEngine(Engine):
    """Processes of this machine, started by spawn: a fork would not keep the threads of compiled code.

    Parameters
    ----------
    workers : int ≥ 1
    """

    def __init__(self, workers: int) -> None:
        self.name, self.workers = f"local={workers}", workers
        self._pool = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_end_with_parent
        )

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        running: deque[Any] = deque()
        try:
            for unit in units:
                _check_sendable(task, unit)
                running.append(self._pool.submit(run_unit, task, unit, threads))
            while running:
                yield running.popleft().result()  # and let go of
        except BrokenProcessPool:
            # The pool's thread tells each unit so, one after another, and ends of one that was cancelled
            # meanwhile: the other processes would stay, and this one would wait for them.
            running.clear()
            raise InputError(ENDED) from None
        finally:
            for one in running:
                one.cancel()

    def close(self) -> None:
        """End the processes."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(cancel_futures=True)
        for one in processes:
            if one.is_alive():  # when the pool's thread could not: it ended before it came to that
                one.terminate()
                one.join()

    def __exit__(self, *raised: Any) -> None:
        """End the processes; those of a command that is interrupted also in the middle of a unit.

        To wait for it would take longer than a command has, and what it holds of the system would be
        left behind. What a unit writes is there whole or not at all.
        """
        kind = raised[0] if raised else None
        if kind is not None and not issubclass(kind, Exception):
            for one in list((self._pool._processes or {}).values()):
                one.terminate()
        self.close()


def _check_sendable(task: Callable[[Any], Any], unit: Any) -> None:
    try:
        ForkingPickler.dumps((task, unit))
    except Exception as error:  # of whatever cannot be pickled
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"a unit of work cannot be sent to processes ({why}): tasks are functions of a module, "
            "units plain values"
        ) from None


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: killed, it could not say so.

    Ctrl-C goes to all processes of a terminal: it is the parent's to answer.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True, name="parent").start()
