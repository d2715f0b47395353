"""Work that may fail, over many inputs in one process or several: its results, or why in one line."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from recsys._jit import max_threads
from recsys.errors import FitError, InputError, RecsysError, one_line
from recsys.utils.validation import check_integer

Unit = TypeVar("Unit")
Result = TypeVar("Result")
LONGEST = 300  # characters of a reason


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


class Dropped(NamedTuple):
    """Why a candidate is left out."""

    reason: str  # one line
    wrong_input: bool  # an InputError: what was asked for cannot be done with these data


def attempt(work: Callable[[], Result]) -> Result | Dropped:
    """Return the result of the work, or why it failed; KeyboardInterrupt and its like pass."""
    try:
        return work()
    except Exception as error:
        return Dropped(why(error), isinstance(error, InputError))


def why(error: Exception) -> str:
    """Return an error in one line; of one that is not ours, its kind first."""
    if isinstance(error, RecsysError):
        return one_line(str(error), LONGEST)
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return one_line(": ".join(filter(None, (kind, str(error)))), LONGEST)


def check_some_left(what: str, labels: Collection[str], failed: Mapping[str, Dropped]) -> None:
    """Raise one error with every reason, if each candidate has failed."""
    if len(failed) < len(labels):
        return
    text = f"{what}: " + "; ".join(f"{label}: {one.reason}" for label, one in failed.items())
    raise InputError(text) if all(one.wrong_input for one in failed.values()) else FitError(text)
