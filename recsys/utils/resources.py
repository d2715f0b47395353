"""Memory and threads: what is free, refusing what does not fit, and threads for a compiled pass."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import threadpool_limits

from recsys.errors import InputError

UNITS = {"GB": 10**9, "MB": 10**6, "KB": 10**3}
WITHOUT_PAIRS = "use a ranker without it (popularity, als, bpr, lmf) or keep fewer items"
# Multiply-adds of one parallel region from which a second core pays: what it takes to wake a thread and
# to move the tables between caches is some tenths of a millisecond, more on a machine that is busy.
WORTH = 8_000_000
DENSE_ROWS = (1_000, 12_000)  # between which LAPACK factorizes on all threads


def free_memory() -> int:
    """Return the bytes that may still be allocated: free memory, or the address limit's rest."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            free = min(free, limit - psutil.Process().memory_info().vms)
    except ImportError:  # not on Windows
        pass
    return int(free)


def size_text(size: float) -> str:
    """Return a number of bytes in the largest unit of which there is one, up to GB."""
    for unit, least in UNITS.items():
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{max(size, 0):.0f} bytes"


def check_memory(need: float, what: str, remedy: str = WITHOUT_PAIRS) -> None:
    """Refuse before allocating bytes that are not free."""
    free = free_memory()
    if need > free:
        raise InputError(f"{what}: needs {size_text(need)} and {size_text(free)} are free: {remedy}")


def threads_for(work: float, wanted: int | None) -> int | None:
    """Return 1 for a pass of so little work, else what is wanted (None for all there are).

    The compiled passes give the same bits on any number of threads, so this is a matter of time alone.
    """
    return 1 if work < WORTH else wanted


def safe_blas(rows: int) -> AbstractContextManager[Any]:
    """Return a context in which LAPACK may factorize a dense matrix of `rows` rows.

    OpenBLAS 0.3.30 and 0.3.31 end the process, by a segmentation fault, in dpotrf of 16,121 rows on two
    threads; on one it is right, and 12,000 rows are right on two. Of few rows, a second thread that
    waits for a processor takes hundreds of times as long as the work.
    """
    least, most = DENSE_ROWS
    return nullcontext() if least < rows <= most else threadpool_limits(1, "blas")
