"""Options that several commands share; those about data are in `data_options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal

Threads = Annotated[int | None, typer.Option("--threads", help="Processors to use, all by default.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes.")]
Json = Annotated[str | None, typer.Option("--json", help="Write JSON to a file, or to stdout for -.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder of datasets, looked in first.")]
RankerFile = Annotated[Path, typer.Option("--ranker", help="A file that `recsys fit` wrote.")]
Count = Annotated[int, typer.Option("-n", "--number", help="How many.")]
History = Annotated[str | None, typer.Option("--history", help="Item ids a new user likes: ID,ID.")]
Only = Annotated[str | None, typer.Option("--items", help="Rank these item ids only: ID,ID.")]
Without = Annotated[str | None, typer.Option("--filter-items", help="Item ids to leave out: ID,ID.")]
Diversity = Annotated[
    float, typer.Option("--diversity", help="From 0 (best first) to 1 (unlike first).")
]


def ids_of(given: str) -> list[str]:
    """Return the ids of a text like ID,ID."""
    return [part.strip() for part in given.split(",") if part.strip()]


def use_threads(threads: int | None) -> None:
    """Set the number of processors; more than there are is capped, with a note."""
    if threads is None:
        return
    import numba

    from recsys.utils.validation import check_integer

    most = numba.config.NUMBA_NUM_THREADS
    check_integer("--threads", threads, 1)
    if threads > most:
        terminal.say(f"note: --threads {threads} is more than this machine has; using {most}")
    numba.set_num_threads(min(threads, most))
