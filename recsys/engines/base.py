"""The interface of engines: they map a function over tasks, in order."""

from __future__ import annotations

import functools
import platform
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any, Self, TypeVar

from threadpoolctl import threadpool_limits

from recsys.errors import InputError, first_line
from recsys.utils.version import __version__

Unit = TypeVar("Unit")
Found = TypeVar("Found")

_ONE = (
    threading.RLock()
)  # limits of BLAS are the process's: a process with two threads runs one task at once
SAME = ("recsys", "numpy", "scipy", "numba", "pyarrow")  # packages whose versions decide the bits


class Engine(ABC):
    """Runs tasks.

    A task is a function of a module, and a unit is small: paths, checksums, ranges and options. What is
    large is read from files that every worker sees, so that no model goes through the wire.

    Attributes
    ----------
    name : str
        As `engine` is given it.
    workers : int
        How many units run at once.
    seconds : float
        So far, what the workers' own work took, added up; the rest of what passed is overhead.

    Examples
    --------
    >>> from recsys.engines import Engine, engine
    >>> with engine("local") as here:
    ...     isinstance(here, Engine), here.workers, list(here.map(len, ["ab", "c"], threads=1))
    (True, 1, [2, 1])
    """

    name: str = "local"
    workers: int = 1
    seconds: float = 0.0

    def map(
        self, task: Callable[[Unit], Found], units: Sequence[Unit], *, threads: int | None = None
    ) -> Iterator[Found]:
        """Yield the result of a task for each unit, in the order of the units.

        Parameters
        ----------
        task : callable
            Of a module that the workers can import.
        units : sequence
            Small: tuples of texts, numbers and the like.
        threads : int ≥ 1, optional
            Of compiled code and BLAS in each worker; all that the worker has when not given.

        Raises
        ------
        InputError
            What a task raises, or if the engine's workers are gone.
        """
        for found, seconds in self._results(task, units, threads):
            self.seconds += seconds
            yield found

    def _in_order(
        self, running: Sequence[Any], result: Callable[[Any], tuple[Any, float]]
    ) -> Iterator[tuple[Any, float]]:
        """Yield the results of futures in their order; cancel the rest when the caller stops."""
        left = deque(running)
        try:
            while left:
                yield result(left.popleft())  # and let go of
        finally:
            with suppress(Exception):
                for one in left:
                    self._cancel(one)

    def _cancel(self, future: Any) -> None:
        future.cancel()

    @abstractmethod
    def _results(
        self, task: Callable[[Any], Any], units: Sequence[Any], threads: int | None
    ) -> Iterator[tuple[Any, float]]:
        """Yield `run_unit` of each unit, in order."""

    def close(self) -> None:  # noqa: B027 - an engine in this process holds nothing
        """Release resources; a cluster that this object did not start keeps running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()


def run_unit(task: Callable[[Any], Any], unit: Any, threads: int | None) -> tuple[Any, float]:
    """Run the task on one unit with `threads` threads; return its result and seconds.

    Threads are limited here: what a worker reads of the environment it has read when it was started.
    """
    if threads is None:
        start = time.perf_counter()
        return task(unit), time.perf_counter() - start
    import numba  # late: a model that compiles nothing does without it

    with _ONE:
        start, before = time.perf_counter(), numba.get_num_threads()
        numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
        try:
            with threadpool_limits(threads):
                return task(unit), time.perf_counter() - start
        finally:
            numba.set_num_threads(before)


def run_far(
    task: Callable[[Any], Any], unit: Any, threads: int | None, versions: dict[str, str]
) -> tuple[Any, float]:
    """Do one unit in a worker of a cluster, which may be anybody's: first of all it is compared."""
    check_same({socket.gethostname(): installed()}, versions)
    return run_unit(task, unit, threads)


def without_package(engine: str, error: Exception) -> InputError:
    """Return the message for a cluster whose worker lacks this package, or one that it needs."""
    why = first_line(error, 1000)
    return InputError(f"engine {engine}: a worker cannot run recsys {__version__}: {why}")


@functools.cache
def installed() -> dict[str, str]:
    """Return the versions that decide the bits of a result, and the Python, where this runs."""
    versions = {name: metadata.version(name) for name in SAME if name != "recsys"}
    return {"recsys": __version__} | versions | {"Python": platform.python_version()}


def check_same(workers: dict[str, dict[str, str]], wanted: dict[str, str] | None = None) -> None:
    """Refuse workers with other versions than who gives the work: their results may have other bits.

    The workers' `installed` is compared with `wanted`, that of this process when not given.
    """
    mine = installed() if wanted is None else wanted
    for worker, theirs in workers.items():
        other = [f"{name} {theirs.get(name, 'none')}" for name in SAME if theirs.get(name) != mine[name]]
        if other:
            here = ", ".join(f"{name} {mine[name]}" for name in SAME if theirs.get(name) != mine[name])
            raise InputError(
                f"worker {worker} has {', '.join(other)}, who gives the work {here}: install the same "
                "versions everywhere"
            )
