"""`recsys doctor`."""

from __future__ import annotations

from recsys import doctor as health
from recsys.cli import terminal


def doctor() -> None:
    """Print versions, threads, BLAS, cache and memory."""
    terminal.table("", ("what", "value"), health.findings())
