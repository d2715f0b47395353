"""Memory: what is free, and refusing before allocating what does not fit."""

from __future__ import annotations

from recsys.errors import InputError

UNITS = {"GB": 10**9, "MB": 10**6, "KB": 10**3}
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
