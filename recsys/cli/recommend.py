"""`recsys recommend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.lists import print_items, write_lists
from recsys.cli.options import (
    AsOf,
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
    ids_or_file,
    item_ids,
    numbers_of,
    profile_of,
    use_threads,
    warn_as_of,
)
from recsys.errors import InputError, counted
from recsys.rankers import load_package
from recsys.recommender.filters import left_out, merchandising
from recsys.recommender.lists import ListRequest, Lists
from recsys.utils.progress import bar, listening
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
    filter_by: Filter = None,
    pin: Annotated[
        str | None,
        typer.Option(
            "--pin", help="Item ids that come first, in this order: ID,ID, or @FILE, an id a line."
        ),
    ] = None,
    boost: Annotated[
        list[str] | None,
        typer.Option("--boost", help="Factor of an item's scores: ID=1.5; repeat for more."),
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            help="How many items of one value a list may hold, by what is known of items: brand=2; "
            "repeat for more.",
        ),
    ] = None,
    protected: Annotated[
        list[str] | None,
        typer.Option(
            "--protected",
            help="Enough items of this group among the first k, for each k: genres=Drama; repeat for "
            "conditions that all hold.",
        ),
    ] = None,
    fair_p: Annotated[
        float | None, typer.Option("--fair-p", help="Wanted share of --protected items; 0.5.")
    ] = None,
    fair_alpha: Annotated[
        float | None, typer.Option("--fair-alpha", help="Significance of the test for --protected; 0.1.")
    ] = None,
    diversity: Diversity = 0.0,
    keep_liked: Annotated[
        bool, typer.Option("--keep-liked", help="List the user's own items, too.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="CSV file to write (.json, .jsonl, .parquet).",
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError(
            "name whom to recommend to by exactly one of --user ID, --all and --history ID,ID"
        )
    if items is not None and filter_items is not None:
        raise InputError("pass --items or --filter-items, not both")
    filters, pinned = filters_of(filter_by), [] if pin is None else ids_or_file(pin)
    boosts = numbers_of("--boost", boost, "ID=1.5", float)
    limits = numbers_of("--at-most", at_most, "brand=2", int)
    group = filters_of(protected, "--protected")
    shares = {name: one for name, one in (("p", fair_p), ("alpha", fair_alpha)) if one is not None}
    if group is None and shares:
        raise InputError("--fair-p and --fair-alpha are of a group of items: name it by --protected")
    fair = None if group is None else {"protected": group, **shares}
    use_threads(threads)
    package = load_package(ranker, mapped=True)
    if history is not None:
        request = ListRequest.of_profile("new", profile_of(package, None, history, as_of))
    else:
        request = ListRequest.of_users(package, user, as_of)
    lists = Lists(
        package, request, check_integer("-n", number, 1),
        [] if dislike is None else package.items(ids_of(dislike)).tolist(), diversity,
        left_out(
            package, item_ids(package, "--items", items),
            item_ids(package, "--filter-items", filter_items), filters,
        ),
        not keep_liked,
        merchandising(package, pinned, boosts, limits, fair),
    )  # fmt: skip
    lines = (lists.lines(block) for block in lists.blocks())
    if out is not None or everyone:
        with bar(out is not None) as show, listening(show):
            write_lists(None if out is None else Path(out), lists.columns, lines, raw)
    else:
        shown = [(*line[:4], f"{line[4]:.4g}", *line[5:]) for block in lines for line in block]
        print_items(package, shown, tuple(lists.columns))
    _notes(lists.fallbacks, as_of)
    if note := lists.note():
        terminal.say(f"note: {note}")


def _notes(fallbacks: int, as_of: str | None) -> None:
    warn_as_of(as_of)
    if fallbacks:
        get = "gets" if fallbacks == 1 else "get"
        who = counted(fallbacks, "user")
        lacks = "liked items" if as_of is None else f"interactions before {as_of}"
        terminal.say(f"note: {who} without {lacks} {get} the most popular ones")
