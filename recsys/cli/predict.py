"""`recsys predict`."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from recsys.cli import terminal
from recsys.cli.lists import print_items
from recsys.cli.options import History, RankerFile, ids_or_file, profile_of
from recsys.errors import InputError
from recsys.rankers import load_package


def predict(
    ranker: RankerFile,
    items: Annotated[
        str, typer.Option("--items", help="Item ids: ID,ID, or @FILE with an id on each line.")
    ],
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None,
) -> None:
    """Print the scores of items for a user, or for a history given by item ids."""
    if (user is None) == (history is None):
        raise InputError("name whom by exactly one of --user ID and --history ID,ID")
    package = load_package(ranker, mapped=True)
    asked = package.items(ids_or_file(items))
    profile = profile_of(package, user, history)
    scores = package.ranker.scores(
        profile.userid, profile.row, recalculate_user=profile.fold_in, times=profile.new_times
    )[0]
    lines = [(package.item_ids[k], package.titles[k], f"{scores[k]:.6g}") for k in asked]
    print_items(package, lines, ("item_id", "title", "score"))
    who = None if profile.fold_in else np.array([profile.userid])
    if package.ranker.falls_back(who, profile.row)[0]:
        terminal.say("note: nothing liked is known; scores are numbers of users who like the items")
