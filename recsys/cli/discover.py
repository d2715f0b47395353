"""`recsys discover`: rules of many users, of which a given share at most is expected to be false."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.data_options import DataOptions, takes_data
from recsys.cli.options import Json, Quiet, Seed, Threads, use_threads
from recsys.data import Interactions, read_features
from recsys.errors import InputError
from recsys.explain import Discoveries, discover_rules
from recsys.rankers import Ranker, load_package
from recsys.rankers.catalogue import texts_of
from recsys.utils.progress import bar, listening
from recsys.utils.rows import write_rows
from recsys.utils.validation import check_integer

TITLES = {"likes": "What users like", "ranker": "What {} puts first"}
MOST = 1000  # users whose rules are searched for, if nothing else is said


@takes_data
def discover(
    data: DataOptions,
    ranker: Annotated[
        Path | None,
        typer.Option(
            "--ranker",
            help="A file that `recsys fit` wrote: rules of its lists, too, over the interactions in it.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", help="With --ranker: its first so many against the rest; 50 by default."),
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option("--user", help="User id; repeat for more. All by default.")
    ] = None,
    most_users: Annotated[
        int, typer.Option("--most-users", help="Of more users so many are drawn.")
    ] = MOST,
    level: Annotated[
        float, typer.Option("--level", help="Share of the rules found that may be false, on average.")
    ] = 0.05,
    dependence: Annotated[
        str,
        typer.Option(
            "--dependence",
            help="Of the tests: any (Benjamini and Yekutieli), or positive (Benjamini and Hochberg).",
        ),
    ] = "any",
    number: Annotated[int, typer.Option("-n", "--number", help="Rules to print, of each kind.")] = 20,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the rules found: .parquet, .json, else CSV.")
    ] = None,
    json: Json = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Print rules of users' interactions and a ranker's lists, with controlled false discoveries."""
    use_threads(threads)
    check_integer("--number", number, 1)
    check_integer("--most-users", most_users, 1)
    if ranker is None and top is not None:
        raise InputError("--top is for --ranker FILE: leave it out")
    likes, model = (data.load(quiet), None) if ranker is None else _of_file(ranker, data)
    users = None if user is None else likes.lookup("user", likes.user_ids, user)
    with bar(not quiet) as progress, listening(progress):
        found = discover_rules(
            likes, users, most=most_users, ranker=model, top=50 if top is None else top, level=level,
            dependence=dependence, seed=seed,
        )  # fmt: skip
    if out is not None:
        columns, lines = found.table()
        write_rows(out, columns, [lines])
    if json is not None:
        terminal.write_json(json, found.as_dict())
    if json != "-":
        _print(found, number)


def _of_file(ranker: Path, data: DataOptions) -> tuple[Interactions, Ranker]:
    """Return the interactions in a ranker's file, with the item table that is given, and the ranker."""
    if replace(data, items=None, item_id=None) != DataOptions():
        raise InputError(
            "pass --ranker FILE, which has its interactions, or interactions by --dataset or "
            "--interactions, not both; --items goes with either"
        )
    if data.item_id is not None and data.items is None:
        raise InputError("--item-id names a column of --items FILE: give that, too")
    package = load_package(ranker, mapped=True)
    found = package.interactions
    # a file may keep ids as numbers: what is asked for, and the ids of a table, are text
    likes = replace(
        found, user_ids=texts_of(found.user_ids), item_ids=texts_of(found.item_ids), name=str(ranker)
    )
    if data.items is not None:
        likes = likes.with_features(items=read_features(data.items, data.item_id, "item"))
    return likes, package.ranker


def _print(found: Discoveries, number: int) -> None:
    for sentence in found.sentences():
        print(terminal.literal(sentence))
    if found.shown:
        print("\nThe surest first; q is the smallest level at which a rule is among those found.")
    for source in found.tested:
        some = [one for one in found.shown if one.found.source == source]
        if some and found.ranker is not None:
            print()
            print(terminal.literal(TITLES[source].format(found.ranker)))
        for one in some[:number]:
            print(terminal.literal(f"{found.sentence(one)} q = {one.q_value:.2g}"))
        if len(some) > number:
            print(f"{len(some) - number:,} more: raise --number, or write all with --out FILE.")
