"""`recsys similar` and `recsys predict`: what a model says of single items and users."""

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
    Only,
    RankerFile,
    User,
    Without,
    filters_of,
    ids_or_file,
    item_ids,
    profile_of,
)
from recsys.errors import InputError
from recsys.rankers import load_package
from recsys.recommender import Recommender


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
