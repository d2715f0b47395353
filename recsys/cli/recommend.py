"""`recsys recommend`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import (
    Count,
    Diversity,
    Filter,
    History,
    Only,
    RankerFile,
    Threads,
    Without,
    filters_of,
    ids_of,
    item_ids,
    profile_of,
    use_threads,
    writable,
)
from recsys.errors import InputError, counted
from recsys.rankers import load_package
from recsys.recommender.lists import POPULAR, ListOptions, Users, any_popular, row_blocks, write_rows
from recsys.utils.export import csv_text
from recsys.utils.progress import bar, listening
from recsys.utils.validation import check_integer

COLUMNS = {"user_id": str, "rank": int, "item_id": str, "title": str, "score": float}


def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option(help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    dislike: Annotated[
        str | None, typer.Option(help="Item ids to leave out; similar items rank lower.")
    ] = None,
    filter_by: Filter = None,
    diversity: Diversity = 0.0,
    keep_liked: Annotated[
        bool, typer.Option("--keep-liked", help="Also list the user's own items.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write (.json, .jsonl, .parquet).", callback=writable)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users or for a history."""
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError("pass exactly one of --user ID, --all and --history ID,ID")
    if items is not None and filter_items is not None:
        raise InputError("pass --items or --filter-items, not both")
    check_integer("-n", number, 1)
    filters = filters_of(filter_by)
    use_threads(threads)
    package = load_package(ranker, mapped=True)
    if history is not None:
        users = Users.new("new", profile_of(package, None, history))
    else:
        users = Users.known(package, user)
    options = ListOptions(
        items=item_ids(package, "--items", items),
        exclude=item_ids(package, "--filter-items", filter_items),
        filters=filters,
        dislikes=[] if dislike is None else ids_of(dislike),
        diversity=diversity,
        filter_liked=not keep_liked,
    )
    columns = COLUMNS | ({"source": str} if any_popular(package, users) else {})
    popular: set[str] = set()

    def lines(row: tuple) -> tuple:
        label, rank, item, title, score, source, _ = row
        if source == POPULAR:
            popular.add(str(label))
        return (str(label), rank, str(item), title, score, source)[: len(columns)]

    blocks = (
        [lines(row) for row in block] for block in row_blocks(package, users, number, options, why=False)
    )
    if out is not None:
        with bar(True) as progress, listening(progress):
            write_rows(out, columns, blocks, raw)
    elif everyone:
        sys.stdout.write(csv_text(tuple(columns), (), raw))
        for block in blocks:
            sys.stdout.write(csv_text(None, block, raw))
    else:
        shown = [(*row[:4], f"{row[4]:.4g}", *row[5:]) for block in blocks for row in block]
        terminal.item_table(package, shown, tuple(columns))
    if popular:
        who = counted(len(popular), "user")
        terminal.say(f"note: most popular items for {who} without liked items")
