"""`recsys fit`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, takes_data
from recsys.cli.options import Quiet, Threads, use_threads, writable
from recsys.errors import counted
from recsys.explain import text
from recsys.rankers import fit_package
from recsys.rankers.package import fit_notes
from recsys.rankers.registry import ranker_of
from recsys.utils.progress import bar, listening


@takes_data
def fit(
    out: Annotated[Path, typer.Option(help="The ranker file to write.", callback=writable)],
    data: DataOptions,
    model: Annotated[str, typer.Option(help="NAME[:key=value,…]")] = "cf-komd",
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Fit a ranker and write it with ids, titles and histories to one file."""
    use_threads(threads)
    ranker = ranker_of(model)
    loaded = data.load(quiet)
    if not quiet:
        for note in fit_notes(ranker, loaded):
            print(f"note: {note}")
    start = time.perf_counter()
    with bar(not quiet) as progress, listening(progress):
        progress(f"fitting {ranker.name}", 0, None)
        package = fit_package(ranker, loaded, show_progress=False)
    package.save(out)
    if not quiet:
        on = f"{counted(loaded.n_users, 'user')} and {counted(loaded.n_items, 'item')}"
        print(
            f"{ranker.name} fitted on {on} in {time.perf_counter() - start:.1f} s, written to "
            f"{terminal.literal(out)}"
        )
        if hasattr(package.ranker, "choice"):  # of `auto`
            print(terminal.literal(package.ranker.choice()))
        for line in (text.parts(package.ranker), *text.left_out(package.ranker).splitlines()):
            if line:
                print(terminal.literal(line))
