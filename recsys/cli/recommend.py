"""`recsys recommend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.lists import COLUMNS, Line, print_items, write_lists
from recsys.cli.options import (
    AsOf,
    Count,
    Diversity,
    History,
    Only,
    RankerFile,
    Threads,
    Without,
    ids_of,
    profile_of,
    use_threads,
    warn_as_of,
)
from recsys.errors import InputError, counted
from recsys.rankers import Recommendations, load_bundle
from recsys.recommender.filters import left_out
from recsys.recommender.lists import Asked, Lists
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
        Path | None, typer.Option("--out", help="CSV file to write (.json, .parquet).")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    use_threads(threads)
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError(
            "name whom to recommend to by exactly one of --user ID, --all and --history ID,ID"
        )
    if items is not None and filter_items is not None:
        raise InputError("pass --items or --filter-items, not both")
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
    lines = (_lines(lists, block) for block in lists.blocks())
    if out is not None or everyone:
        write_lists(out, lines, raw)
    else:
        shown = [(*line[:4], f"{line[4]:.4g}") for block in lines for line in block]
        print_items(bundle, shown, tuple(COLUMNS))
    warn_as_of(as_of)
    if lists.fallbacks:
        get = "gets" if lists.fallbacks == 1 else "get"
        who = counted(lists.fallbacks, "user")
        lacks = "liked items" if as_of is None else f"a like before {as_of}"
        terminal.say(f"note: {who} without {lacks} {get} the most popular ones")


def _lines(lists: Lists, block: list[tuple[int, Recommendations]]) -> list[Line]:
    """Return the lines of a block of users; ids are text here, whatever they were."""
    bundle, labels = lists.bundle, lists.asked.labels
    return [
        (str(labels[k]), place, str(bundle.item_ids[i]), str(bundle.titles[i]), float(score))
        for k, found in block
        for place, (i, score) in enumerate(zip(found.ids, found.scores, strict=True), 1)
    ]
