"""`recsys doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys import doctor as health
from recsys.cli import terminal


def doctor(
    warmup: Annotated[bool, typer.Option("--warmup", help="Compile everything ahead.")] = False,
) -> None:
    """Print versions, threads, BLAS, cache and memory."""
    terminal.table("", ("what", "value"), health.findings())
    if warmup:
        with terminal.progress(True) as progress:
            seconds = health.warm_up(progress)
        print(f"compiled in {seconds:.1f} s")
