"""`recsys recommend`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from recsys.cli import terminal
from recsys.cli.lists import print_items, write_lists
from recsys.cli.options import (
    AsOf,
    Count,
    Diversity,
    EngineName,
    History,
    Only,
    RankerFile,
    Threads,
    Without,
    Workers,
    ids_of,
    profile_of,
    use_threads,
    warn_as_of,
)
from recsys.errors import InputError, counted
from recsys.rankers import load_bundle
from recsys.recommender.everybody import Written, plain_options, read_model, write_everybody
from recsys.recommender.filters import left_out
from recsys.recommender.lists import COLUMNS, USERS, Asked, Lists
from recsys.utils.files import is_folder
from recsys.utils.progress import listening
from recsys.utils.validation import check_integer


def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None,
    as_of: AsOf = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    dislike: Annotated[
        str | None, typer.Option("--dislike", help="Item ids to keep away from, and what is like them.")
    ] = None,
    diversity: Diversity = 0.0,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="CSV file to write (.json, .parquet); with --all also a folder, top/, of one Parquet "
            "file a block of users: the same call goes on with one that was stopped.",
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
    engine: EngineName = "local",
    workers: Workers = None,
    block: Annotated[
        int | None, typer.Option("--block", help=f"Users a part of a folder, {USERS:,} by default.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            help="The folder of `recsys fit --partitions`, whose users get lists: --all --out top/.",
        ),
    ] = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    if work is not None:
        others = {
            "--user": user, "--history": history, "--as-of": as_of, "--items": items,
            "--filter-items": filter_items, "--dislike": dislike, "--diversity": diversity or None,
            "--raw": raw or None, "--threads": threads,
        }  # fmt: skip
        _check_work(out, everyone, [name for name, given in others.items() if given is not None])
        from recsys.partitioned.lists import write_lists as write_partitions

        with terminal.progress(True) as show, listening(show):
            done = write_partitions(
                ranker, work, str(out), number, None, engine, workers, USERS if block is None else block
            )
        terminal.say(_told(replace(done, folder=Path(str(out)))))
        return
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError(
            "name whom to recommend to by exactly one of --user ID, --all and --history ID,ID"
        )
    if items is not None and filter_items is not None:
        raise InputError("pass --items or --filter-items, not both")
    if out is not None and is_folder(out):
        if not everyone:
            raise InputError(f"{out} is a folder, of lists of all users; name a file")
        if raw:
            raise InputError(f"--raw is for CSV, and {out} is a folder of Parquet files: leave it out")
        _write_parts(
            ranker, out,
            plain_options(
                check_integer("-n", number, 1), None if items is None else ids_of(items),
                None if filter_items is None else ids_of(filter_items),
                [] if dislike is None else ids_of(dislike), diversity, None, as_of, text=True,
            ),
            engine, workers, threads, USERS if block is None else block,
        )  # fmt: skip
        return
    if engine != "local" or workers is not None or block is not None:
        raise InputError("--engine, --workers and --block are for --all with a folder: --out top/")
    use_threads(threads)
    bundle = load_bundle(ranker)
    if history is not None:
        asked = Asked.of_profile("new", profile_of(bundle, None, history, as_of))
    else:
        asked = Asked.of_users(bundle, user, as_of)
    lists = Lists(
        bundle, asked, check_integer("-n", number, 1),
        [] if dislike is None else bundle.items(ids_of(dislike)).tolist(), diversity,
        left_out(
            bundle, None if items is None else ids_of(items),
            None if filter_items is None else ids_of(filter_items), None,
        ),
    )  # fmt: skip
    lines = (lists.lines(block) for block in lists.blocks())
    if out is not None or everyone:
        write_lists(None if out is None else Path(out), lines, raw)
    else:
        shown = [(*line[:4], f"{line[4]:.4g}") for block in lines for line in block]
        print_items(bundle, shown, tuple(COLUMNS))
    _notes(lists.fallbacks, as_of)


def _check_work(out: str | None, everyone: bool, others: list[str]) -> None:
    """Refuse what lists from a work folder do not take."""
    if not everyone or out is None or not is_folder(out):
        raise InputError("--work is for lists of all users in a folder: --all --out top/")
    if others:
        raise InputError(
            f"lists of a work folder are made without {', '.join(others)}: leave "
            f"{'it' if len(others) == 1 else 'them'} out, or fit with --keep-users and leave out --work"
        )


def _write_parts(
    ranker: Path,
    out: str,
    options: dict[str, Any],
    engine: str,
    workers: int | None,
    threads: int | None,
    block: int,
) -> None:
    if engine == "local" and workers is None:
        use_threads(threads)
        threads = None
    bundle, digest = read_model(ranker)
    with terminal.progress(True) as show:
        done = write_everybody(
            out, bundle, options, model=ranker, digest=digest, on=engine, workers=workers,
            threads=threads, block=block, progress=lambda some, of: show("parts", some, of),
        )  # fmt: skip
    terminal.say(_told(done))
    _notes(done.fallbacks, options["as_of"])


def _told(done: Written) -> str:
    parts = f"{done.folder}: {counted(done.written, 'part')} written, {done.skipped:,} there before"
    if not done.written:
        return parts
    by = counted(done.workers, "worker")
    return (
        f"{parts}; lists of {counted(done.users, 'user')} in {done.seconds:.1f} s by {by}, whose own "
        f"work took {done.work:.1f} s (overhead {100 * done.overhead:.0f}%)"
    )


def _notes(fallbacks: int, as_of: str | None) -> None:
    warn_as_of(as_of)
    if fallbacks:
        get = "gets" if fallbacks == 1 else "get"
        who = counted(fallbacks, "user")
        lacks = "liked items" if as_of is None else f"a like before {as_of}"
        terminal.say(f"note: {who} without {lacks} {get} the most popular ones")
