"""`recsys predict`."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from recsys.cli import terminal
from recsys.cli.lists import print_items
from recsys.cli.options import AsOf, History, RankerFile, ids_or_file, profile_of, warn_as_of
from recsys.errors import InputError
from recsys.rankers import load_bundle


def predict(
    ranker: RankerFile,
    items: Annotated[
        str, typer.Option("--items", help="Item ids: ID,ID, or @FILE with an id on each line.")
    ],
    user: Annotated[str | None, typer.Option("--user", help="User id.")] = None,
    history: History = None,
    as_of: AsOf = None,
) -> None:
    """Print the scores of items for a user, or for a history given by item ids."""
    if (user is None) == (history is None):
        raise InputError("name whom by exactly one of --user ID and --history ID,ID")
    bundle = load_bundle(ranker, mapped=True)
    asked = bundle.items(ids_or_file(items))
    profile = profile_of(bundle, user, history, as_of)
    scores = bundle.ranker.scores(
        profile.userid, profile.row, recalculate_user=profile.fold_in, times=profile.new_times
    )[0]
    lines = [(bundle.item_ids[k], bundle.titles[k], f"{scores[k]:.6g}") for k in asked]
    print_items(bundle, lines, ("item_id", "title", "score"))
    who = None if profile.fold_in else np.array([profile.userid])
    if bundle.ranker.falls_back(who, profile.row)[0]:
        terminal.say("note: nothing liked is known; scores are numbers of users who like the items")
    warn_as_of(as_of)
