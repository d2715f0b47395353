"""`recsys fit` and `recsys export`: a fitted ranker in a file, and its vectors in others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import DataOptions, Quiet, RankerFile, Threads, takes_data, use_threads, writable
from recsys.embeddings import embeddings, export_embeddings
from recsys.errors import InputError, counted
from recsys.explain import text
from recsys.rankers import fit_package, load_package
from recsys.rankers.package import fit_notes
from recsys.rankers.registry import ranker_of
from recsys.utils.progress import bar, listening

ENDINGS = ".npy or .parquet"


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


def export(
    ranker: RankerFile,
    users: Annotated[
        Path | None, typer.Option("--users-out", help=f"User vectors, {ENDINGS}.", callback=writable)
    ] = None,
    items: Annotated[
        Path | None, typer.Option("--items-out", help=f"Item vectors, {ENDINGS}.", callback=writable)
    ] = None,
    factors: Annotated[int, typer.Option(help="Rank, for models without vectors.")] = 64,
) -> None:
    """Write user and item vectors whose inner products are the scores."""
    if users is None and items is None:
        raise InputError("name a file to write with --users-out or --items-out")
    for target in (users, items):
        if target is not None and target.suffix not in (".npy", ".parquet"):
            raise InputError(f"{target}: the ending must be {ENDINGS}")
    package = load_package(ranker)
    vectors = embeddings(package.ranker, package.user_items, factors)
    for target, ids, rows in (
        (users, package.user_ids, vectors.users),
        (items, package.item_ids, vectors.items),
    ):
        if target is not None:
            export_embeddings(target, ids, rows)
    print(f"vector length: {vectors.items.shape[1]}, relative error of the scores: {vectors.error:.2%}")
