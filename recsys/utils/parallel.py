"""A function over many inputs: in this process, or in several by joblib."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from recsys._jit import max_threads
from recsys.errors import RecsysError
from recsys.utils.validation import check_integer

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def count_jobs(n_jobs: int | None) -> int:
    """Return a number of processes: as given, or all processors for None and −1."""
    if n_jobs is None or (isinstance(n_jobs, int) and n_jobs == -1):
        import joblib  # late: one process does without it

        return int(joblib.cpu_count())
    return check_integer("n_jobs", n_jobs, 1)


def picklable(value: Any) -> bool:
    """Return whether a process can be sent a value."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(value)
    except Exception:
        return False
    return True


def run_tasks(
    task: Callable[[Unit], Result], units: Iterable[Unit], n_jobs: int = 1
) -> Generator[Result]:
    """Yield task(unit) of each unit: in order in this process, else as soon as each is done.

    Several jobs are processes of joblib's backend with one thread each; large arrays are memory-mapped.
    """
    if n_jobs == 1:
        yield from map(task, units)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    pool = Parallel(
        n_jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered", mmap_mode="c"
    )
    results: Any = pool(delayed(_in_worker)(task, unit) for unit in units)
    try:
        yield from results
    except BrokenProcessPool:
        raise RecsysError("a worker process died (out of memory?): use fewer n_jobs") from None
    finally:
        results.close()


def _in_worker(task: Callable[[Unit], Result], unit: Unit) -> Result:
    with suppress(ValueError):  # a thread of Dask
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    token = max_threads.set(1)
    try:
        with threadpool_limits(1):
            return task(unit)
    finally:
        max_threads.reset(token)
