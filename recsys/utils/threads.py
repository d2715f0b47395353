"""How many threads a compiled pass is worth."""

from __future__ import annotations

# Multiply-adds of one parallel region from which a second core pays: what it takes to wake a thread and
# to move the tables between caches is some tenths of a millisecond, more on a machine that is busy.
WORTH = 8_000_000


def threads_for(work: float, wanted: int | None) -> int | None:
    """Return 1 for a pass of so little work, else what is wanted (None for all there are).

    The compiled passes give the same bits on any number of threads, so this is a matter of time alone.
    """
    return 1 if work < WORTH else wanted
