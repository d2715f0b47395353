"""The engines of one machine: this process, or a few of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from recsys.engines.base import Engine, run_unit
from recsys.errors import InputError


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
        self._pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))

    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        running = [self._pool.submit(run_unit, task, unit, threads) for unit in units]
        try:
            for one in running:
                yield one.result()
        except BrokenProcessPool:
            raise InputError(
                "a worker process ended before its work did (out of memory?); what is written stays: "
                "run it again, with fewer workers"
            ) from None
        finally:
            for one in running:
                one.cancel()

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)
