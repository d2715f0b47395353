"""Memory: what is free, budgets written as text, and refusing before allocating what does not fit."""

from __future__ import annotations

from recsys.errors import InputError

UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
WITHOUT_PAIRS = "use a ranker without it (popularity, als, bpr, lmf) or keep fewer items"


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
    """Return a number of bytes in the largest unit of which there is one, up to GB.

    >>> size_text(36_000_000), size_text(4 * 20_000**2), size_text(999)
    ('36.0 MB', '1.6 GB', '999 bytes')
    """
    for unit in ("GB", "MB", "KB"):
        if size >= UNITS[unit.lower()]:
            return f"{size / UNITS[unit.lower()]:.1f} {unit}"
    return f"{max(size, 0):.0f} bytes"


def check_memory(need: int, what: str, budget: int | None = None, remedy: str = WITHOUT_PAIRS) -> None:
    """Refuse before allocating what does not fit in a budget, or in what is free."""
    if budget is None:
        free = free_memory()
        if need > free:
            raise InputError(f"{what} needs {size_text(need)} and {size_text(free)} are free: {remedy}")
    elif need > budget:
        raise InputError(f"{what} needs {size_text(need)}, the budget is {size_text(budget)}: {remedy}")


def check_fits(entries: float, what: str, remedy: str) -> None:
    """Refuse a float64 array for which memory is not free."""
    need, free = 8.0 * entries, free_memory()
    if need > free:
        raise InputError(f"{what} need {size_text(need)} and {size_text(free)} are free: {remedy}")
