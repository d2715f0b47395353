"""`recsys doctor` and `recsys datasets`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys import doctor as health
from recsys.cli import terminal
from recsys.cli.app import app
from recsys.cli.options import DataDir
from recsys.datasets import list_datasets
from recsys.datasets.base import DATASETS


@app.command()
def doctor(
    warmup: Annotated[bool, typer.Option("--warmup", help="Compile everything ahead.")] = False,
) -> None:
    """Print versions, threads, BLAS, cache and memory."""
    terminal.table("", ("what", "value"), health.findings())
    if warmup:
        with terminal.progress(True) as progress:
            seconds = health.warm_up(progress)
        print(f"compiled in {seconds:.1f} s")


@app.command()
def datasets(data_dir: DataDir = None) -> None:
    """List the named datasets."""
    rows = []
    for name in list_datasets():
        entry = DATASETS.get(name)
        rows.append((name, entry.title, entry.licence or "", entry.where(data_dir)))
    terminal.table("", ("name", "what", "licence", "found"), rows)
