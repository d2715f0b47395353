"""`recsys compile`."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys import doctor
from recsys._jit import cache_dir
from recsys.cli import terminal


def compile(
    models: Annotated[
        list[str] | None, typer.Argument(help="Models, such as ease or cf-komd; all when none is named.")
    ] = None,
) -> None:
    """Compile models ahead of their first use."""
    if cache_dir() is None:
        terminal.say("note: no folder can be written, so compiled code is not kept: set NUMBA_CACHE_DIR")
    total = 0.0
    for model, functions, seconds in doctor.compile_models(models):
        total += seconds
        what = f"{functions} functions compiled in {seconds:.1f} s" if functions else "already compiled"
        print(f"{model}: {what}", flush=True)
    print(f"{total:.1f} s in all; kept in {cache_dir() or 'memory only'}")
