"""`recsys datasets`, `recsys compile` and `recsys doctor`: what there is, and the installation."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import DataDir


def datasets(data_dir: DataDir = None) -> None:
    """List the named datasets."""
    from recsys.datasets import list_datasets
    from recsys.datasets.fetch import DATASETS

    rows = []
    for name in list_datasets():
        entry = DATASETS.get(name)
        rows.append((name, entry.title, entry.licence or "", entry.where(data_dir)))
    terminal.table("", ("name", "what", "licence", "found"), rows)


def compile(
    models: Annotated[
        list[str] | None, typer.Argument(help="Models, such as ease or cf-komd; all by default.")
    ] = None,
) -> None:
    """Compile models ahead of their first use."""
    from recsys._jit import cache_dir
    from recsys.doctor import compile_models

    if cache_dir() is None:
        terminal.say(
            "note: no cache folder is writable, so compiled code is not kept: set NUMBA_CACHE_DIR"
        )
    total = 0.0
    for model, seconds in compile_models(models):
        total += seconds
        done = f"compiled in {seconds:.1f} s" if seconds else "already compiled"
        print(f"{model}: {done}", flush=True)
    print(f"{total:.1f} s in all; kept in {cache_dir() or 'memory only'}")


def doctor() -> None:
    """Print versions, threads, BLAS, cache and memory."""
    from recsys.doctor import findings

    terminal.table("", ("what", "value"), findings())
