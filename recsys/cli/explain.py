"""`recsys explain`: an item's score from the liked items."""

from __future__ import annotations

from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import Count, History, Json, RankerFile, User, profile_of
from recsys.errors import counted
from recsys.rankers import load_package
from recsys.recommender.explained import ROUNDING, Why, explained


def explain(
    ranker: RankerFile,
    item: Annotated[str, typer.Option(help="Item id to explain.")],
    user: User = None,
    history: History = None,
    number: Count = 10,
    changes: Annotated[
        int, typer.Option(help="Number of liked items to remove one at a time, largest effects first.")
    ] = 0,
    json: Json = None,
) -> None:
    """Print the liked items behind a score, and a rule of other users."""
    package = load_package(ranker, mapped=True)
    why = explained(package, profile_of(package, user, history), item, number, changes=changes)
    if json is not None:
        terminal.write_json(json, why.as_dict())
    if json == "-":
        return
    title, heads, rows = _table(why)
    terminal.item_table(package, rows, heads, title)
    if why.reasons.kind == "nearest":
        print(f"Score: {why.score:.4g}. {why.ranker} has no contributions.")
    if why.parts:
        parts = [(name, f"{adds:+.4g}") for name, _, adds in why.parts]
        terminal.table("The score by models", ("model", "adds to the score"), parts)
    for line in why.sentences:
        print(terminal.literal(line))
    for one in (why.changes or {"listed": []})["listed"]:
        line = f"Without {one['title']}: rank {one['rank']:,}, score {one['score']:.4g}."
        print(terminal.literal(line))


def _table(why: Why) -> tuple[str, tuple[str, ...], list[tuple[str, str, str]]]:
    """Return the title, the heads and the rows of the liked items."""
    lines = [(str(name), title, f"{value:+.4g}") for name, title, value in why.rows]
    result = why.reasons
    nearest = result.kind == "nearest"
    if result.unlisted:
        share = "" if nearest else f"{result.others:+.4g}"
        lines.append(("", counted(result.unlisted, "other liked item"), share))
    if nearest:
        heads = ("item_id", "similar to what you like", "similarity")
        return f"Why {why.title}: the liked items most similar to it", heads, lines
    base = "base value"
    if not lines:
        base = "popularity: nothing is liked" if result.unit == "users" else "no liked item is read"
    constant = result.base if abs(result.base) > ROUNDING * abs(result.score) else 0.0
    lines += [("", base, f"{constant:+.4g}"), ("", "score", f"{result.score:.4g}")]
    heads = ("item_id", "because you like", "adds to the score")
    return f"Why {why.title}: what adds up to its score", heads, lines
