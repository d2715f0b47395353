"""Files in memory: mapped so that a process may write to its own copy of what it read."""

from __future__ import annotations

import mmap
import platform
import sys

# Not in Python's module before 3.13; the number of these processors' Linux.
NO_RESERVE = 0x4000 if platform.machine() in ("x86_64", "AMD64", "aarch64", "arm64") else 0


def mapped(descriptor: int) -> mmap.mmap:
    """Return all of an open file; what is written to it changes this process's copy only.

    Linux counts such a mapping as memory that may be needed, and refuses one above what there is, though
    hardly anything of it is ever written to: so none is reserved there.
    """
    if sys.platform == "linux" and NO_RESERVE:
        how = mmap.MAP_PRIVATE | NO_RESERVE
        return mmap.mmap(descriptor, 0, flags=how, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
