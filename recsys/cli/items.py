"""`recsys explain`, `similar` and `predict`: what a model says of single items and users."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from recsys.cli import terminal
from recsys.cli.options import (
    Count,
    Diversity,
    Filter,
    History,
    Json,
    Only,
    RankerFile,
    User,
    Without,
    filters_of,
    ids_or_file,
    item_ids,
    profile_of,
)
from recsys.errors import InputError, counted
from recsys.rankers import load_package
from recsys.recommender import Recommender
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


def similar(
    ranker: RankerFile,
    item: Annotated[str | None, typer.Option(help="Item id.")] = None,
    user: Annotated[str | None, typer.Option(help="User id, for similar users.")] = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    filter_by: Filter = None,
    diversity: Diversity = 0.0,
) -> None:
    """Print the items or users most similar to one."""
    if (item is None) == (user is None):
        raise InputError("pass exactly one of --item ID and --user ID")
    if user is not None and (items or filter_items or filter_by or diversity):
        raise InputError("--items, --filter-items, --filter and --diversity are for --item")
    filters = filters_of(filter_by)
    package = load_package(ranker, mapped=True)
    model = Recommender.of(package, "pandas")
    if user is not None:
        table = model.similar_users(user, number)
        title, names = f"Similar to {user}", ["rank", "user", "score"]
    else:
        only = item_ids(package, "--items", items)
        exclude = item_ids(package, "--filter-items", filter_items)
        table = model.similar(
            item, number, candidates=only, exclude=exclude, filters=filters, diversity=diversity
        )
        title = f"Similar to {package.titles[package.item_index[str(item)]]}"
        names = ["rank", "item", "title", "score"]
    names = [name for name in names if name in table]
    table["score"] = [f"{score:.4g}" for score in table["score"]]
    heads = {"item": "item_id", "user": "user_id", "score": "similarity"}
    rows = table[names].itertuples(index=False)
    terminal.table(title, [heads.get(name, name) for name in names], rows)


def predict(
    ranker: RankerFile,
    items: Annotated[str, typer.Option(help="Item ids: ID,ID, or @FILE with one id per line.")],
    user: User = None,
    history: History = None,
) -> None:
    """Print the scores of items for a user or for a history."""
    ids = ids_or_file(items)
    package = load_package(ranker, mapped=True)
    indices = package.items(ids)
    profile = profile_of(package, user, history)
    scores = package.ranker.scores(profile.userid, profile.row, **profile.options)[0]
    rows = [(package.item_ids[k], package.titles[k], f"{scores[k]:.6g}") for k in indices]
    terminal.item_table(package, rows, ("item_id", "title", "score"))
    who = None if profile.fold_in else np.array([profile.userid])
    if package.ranker.falls_back(who, profile.row)[0]:
        terminal.say("note: no known liked items; scores are numbers of users per item")
