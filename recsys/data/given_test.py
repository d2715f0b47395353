"""A test half that is given: matched by ids with the interactions, and marked in them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.data.interactions import Interactions
from recsys.errors import InputError

OF_TEST = "test half: "  # begins what is noted of one


def with_test(data: Interactions, test: Any, min_rating: float | None = None) -> Interactions:
    """Return the interactions with a test half marked: `Interactions.with_test`."""
    if not isinstance(test, Interactions):
        test = _read(test, data.columns, min_rating)
    rows = np.arange(len(test.users))
    if test.held_out is not None:  # of a folder, or of data with a test half of their own, that half
        rows = np.flatnonzero(test.held_out)
    users, _ = _matched(data, test, "user")
    _, item_ids = _matched(data, test, "item")
    known = rows[users[test.users[rows]] >= 0]
    # Items of users who are left out are none of the catalogue.
    new = pd.Index(item_ids[np.unique(test.items[known])], dtype=object)
    every = pd.Index(data.item_ids).append(new).unique()
    u = users[test.users[known]]
    i = every.get_indexer(pd.Index(item_ids[test.items[known]], dtype=object))
    have = data.users.astype(np.int64) * len(every) + data.items
    pairs = u.astype(np.int64) * len(every) + i
    inside, added = np.isin(have, pairs), ~np.isin(pairs, have)
    columns: dict[str, Any] = {
        "users": np.concatenate([data.users, u[added]]).astype(np.int32),
        "items": np.concatenate([data.items, i[added]]).astype(np.int32),
        "held_out": np.concatenate([inside, np.ones(int(added.sum()), dtype=bool)]),
        "item_ids": every.to_numpy(dtype=object),
    }
    # Of one that is replaced, nothing is said any more.
    notes = [note for note in data.notes if not note.startswith(OF_TEST)]
    notes += [f"{OF_TEST}{note}" for note in test.notes if test.held_out is None]
    notes.append(f"{OF_TEST}pairs: {len(pairs):,}, users: {len(np.unique(u)):,}")
    if len(known) < len(rows):
        absent = len(np.unique(test.users[rows])) - len(np.unique(u))
        notes.append(
            f"{OF_TEST}not among the interactions, left out: users {absent:,}, with pairs "
            f"{len(rows) - len(known):,}"
        )
    if len(every) > data.n_items:
        notes.append(f"{OF_TEST}items that only it has, ranked, too: {len(every) - data.n_items:,}")
    for name in ("rating", "time"):
        ours, theirs = getattr(data, name), getattr(test, name)
        if ours is not None and added.any():
            columns[name] = None if theirs is None else np.concatenate([ours, theirs[known][added]])
            if theirs is None:
                notes.append(f"{name}s are left out: the test half has none")
    if data.weight is not None:  # what is tested weighs 1: it does not train
        columns["weight"] = np.concatenate([data.weight, np.ones(int(added.sum()))])
    if data.item_features is not None and len(every) > data.n_items:
        columns["item_features"] = data.item_features.reindex(every)
    return replace(data, notes=tuple(notes), **columns)


def _read(given: Any, columns: Columns | None, min_rating: float | None) -> Interactions:
    """Read a test half with the column names of the interactions, or usual names."""
    from recsys.data.reading import read

    name = None if isinstance(given, (str, os.PathLike)) else "test"
    least = columns.min_rating if min_rating is None and columns is not None else min_rating
    test = read(given, like=columns, name=name, keep_zero=least is not None)
    return test if least is None or test.rating is None else test.rated(least)


def _matched(
    data: Interactions, test: Interactions, what: str
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return the positions of the test half's ids in the data, −1 for unknown ones, and the ids."""
    known, ids = getattr(data, f"{what}_ids"), getattr(test, f"{what}_ids")
    kind = type(known[0])
    if type(ids[0]) is not kind:  # text or integers, whichever the interactions have
        ids = np.array([_converted(kind, one, what) for one in ids], dtype=object)
    positions = pd.Index(known).get_indexer(pd.Index(ids, dtype=object))
    if (positions < 0).all():
        raise InputError(
            f"{test.name}: no {what} id occurs in {data.name}; ids are such as {ids[0]!r} "
            f"here and {known[0]!r} there"
        )
    return positions, ids


def _converted(kind: type, one: Any, what: str) -> Any:
    try:
        converted = kind(one)
    except ValueError:
        converted = None
    if str(converted) != str(one):
        raise InputError(
            f"test: {what} id {str(one)[:60]!r} is text, but ids of the interactions are "
            "integers: use one type"
        )
    return converted
