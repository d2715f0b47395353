"""`recsys fit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, takes_data
from recsys.cli.options import Quiet, Threads, Workers, use_threads
from recsys.data.event_database import EventDatabase
from recsys.data.events import fold, with_events
from recsys.errors import InputError, counted
from recsys.explain import text
from recsys.rankers import Ranker, fit_package, load_package
from recsys.rankers.catalogue import fit_notes
from recsys.rankers.registry import ranker_of
from recsys.utils.atomic import is_stdout
from recsys.utils.progress import bar, listening


@takes_data
def fit(
    out: Annotated[Path, typer.Option("--out", help="The ranker file to write.")],
    data: DataOptions,
    model: Annotated[str, typer.Option("--model", help="NAME[:key=value,…]")] = "cf-komd",
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            help="Events that `recsys serve --events` kept, applied to the data: a file or a URL.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A ranker file of which --model takes the counts of pairs: another kernel, no new fit.",
        ),
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            "--partitions",
            help="A folder or pattern of Parquet files, read a part at a time; needs --work.",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option("--work", help="The folder in which --partitions are counted; all workers see it."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", help="local, local=N, dask[=ADDRESS], ray[=ADDRESS]: with --partitions."
        ),
    ] = "local",
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="What each worker may take, as 4GB: with --partitions."),
    ] = None,
    keep_users: Annotated[
        bool | None,
        typer.Option(
            "--keep-users/--no-keep-users",
            help="Keep ids and histories of users in the file; up to a million of them by default: with "
            "--partitions.",
        ),
    ] = None,
    workers: Workers = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Fit a ranker and write it, with ids, titles and histories, to one file."""
    use_threads(threads)
    ranker = ranker_of(model)
    say = terminal.say if is_stdout(out) else print
    if partitions is not None:
        if source is not None or events is not None:
            raise InputError("--partitions are fitted alone: leave out --from and --events")
        if work is None:
            raise InputError(
                "--partitions are counted in a folder that every worker sees: name it by --work"
            )
        if threads is not None:
            raise InputError(
                "workers of --partitions compute with one thread each: name how many by --workers, "
                "not --threads"
            )
        _fit_partitions(
            ranker, partitions, work, out, engine, workers, memory, keep_users, data,
            None if quiet else say,
        )  # fmt: skip
        return
    if (work, memory, engine, workers, keep_users) != (None, None, "local", None, None):
        raise InputError(
            "--work, --memory, --engine, --workers and --keep-users go with --partitions FOLDER"
        )
    if source is not None:
        if data != DataOptions() or events is not None:
            raise InputError(
                "--from takes the data of its ranker file: leave out options of data and --events"
            )
        start = time.perf_counter()
        load_package(source).viewed(ranker).save(out)
        if not quiet:
            say(
                f"{ranker.name} made from the counts of {terminal.literal(source)} in "
                f"{time.perf_counter() - start:.1f} s, written to {terminal.literal(out)}"
            )
        return
    found = data.load(quiet)
    if events is not None:
        with EventDatabase(events, create=False) as database:
            found = with_events(found, fold(event for _, event in database.after(0)))
    if not quiet:
        for note in fit_notes(ranker, found):
            say(f"note: {note}")
    start = time.perf_counter()
    with bar(not quiet) as progress, listening(progress):
        progress(f"fitting {ranker.name}", 0, None)
        package = fit_package(ranker, found, show_progress=False)
    package.save(out)
    if not quiet:
        on = f"{counted(found.n_users, 'user')} and {counted(found.n_items, 'item')}"
        say(
            f"{ranker.name} fitted on {on} in {time.perf_counter() - start:.1f} s, written to "
            f"{terminal.literal(out)}"
        )
        if hasattr(package.ranker, "choice"):  # of `auto`
            say(terminal.literal(package.ranker.choice()))
        for line in (text.parts(package.ranker), *text.left_out(package.ranker).splitlines()):
            if line:
                say(terminal.literal(line))


def _fit_partitions(
    ranker: Ranker,
    partitions: str,
    work: Path,
    out: Path,
    engine: str,
    workers: int | None,
    memory: str | None,
    keep_users: bool | None,
    data: DataOptions,
    say: Callable[[str], None] | None,
) -> None:
    named = replace(data, user_col=None, item_col=None, rating_col=None, time_col=None, min_rating=None)
    if named != DataOptions():
        raise InputError(
            "--partitions go with --user-col, --item-col, --rating-col, --time-col and --min-rating: "
            "leave out other options of data"
        )
    from recsys.partitioned import fit_partitions

    start = time.perf_counter()
    with bar(say is not None) as progress, listening(progress):
        found = fit_partitions(
            ranker, partitions, out=out, work=work, engine=engine, user=data.user_col,
            item=data.item_col, rating=data.rating_col, time=data.time_col, min_rating=data.min_rating,
            memory=memory, workers=workers, keep_users=keep_users,
        )  # fmt: skip
    if say is not None:
        say(
            f"{ranker.name} fitted on {counted(found.users, 'user')} and {counted(found.items, 'item')} "
            f"in {time.perf_counter() - start:.1f} s, written to "
            f"{terminal.literal(out)}"
        )
        for note in found.notes:
            say(terminal.literal(note))
        if not found.keeps_users:
            say(
                f"without its users: recsys recommend --ranker {terminal.literal(out)} --all "
                f"--work {terminal.literal(work)} --out top/ makes their lists"
            )
