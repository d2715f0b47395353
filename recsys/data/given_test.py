"""A test half that is given: matched by ids with the interactions, and marked in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data.columns import Columns
from recsys.data.interactions import Interactions, times_in_test
from recsys.errors import InputError, counted

OF_TEST = "test half: "  # begins what is noted of one


def with_test(
    data: Interactions, test: Any, min_rating: float | None = None, repeats: bool = False
) -> Interactions:
    """Return the interactions with a test half marked: `Interactions.with_test`."""
    if not isinstance(test, Interactions):
        test = _read(test, data.columns or Columns(), min_rating)
    if test.held_out is not None:  # of a folder, or of data with a test half of their own, that half
        test = replace(_only(test, test.held_out), notes=())
    (users, _), (_, item_ids) = matched("test", data, test)
    keep = users[test.users] >= 0
    asked = np.unique(test.items[keep])  # items of users who are left out are none of the catalogue
    every = pd.Index(data.item_ids).append(pd.Index(item_ids[np.sort(asked)], dtype=object)).unique()
    u, i = users[test.users[keep]], every.get_indexer(pd.Index(item_ids, dtype=object))[test.items[keep]]
    return _marked(data, test, keep, u, i, every.to_numpy(dtype=object), repeats)


def _read(given: Any, columns: Columns, min_rating: float | None) -> Interactions:
    """Read a test half; its columns are called as those of the interactions, or by a usual name."""
    from recsys.data.reading import read

    name = None if isinstance(given, (str, os.PathLike)) else "test"
    least = columns.min_rating if min_rating is None else min_rating
    test = read(given, like=columns, name=name, keep_zero=least is not None)
    return test if least is None or test.rating is None else test.rated(least)


def _only(data: Interactions, keep: NDArray[np.bool_]) -> Interactions:
    """Return some of the pairs, with the ids that are in them."""
    (users, u), (items, i) = (
        np.unique(places[keep], return_inverse=True) for places in (data.users, data.items)
    )
    columns = {name: getattr(data, name) for name in ("rating", "weight")}
    columns["time"] = None if data.time is None else times_in_test(data)
    columns = {name: None if column is None else column[keep] for name, column in columns.items()}
    return replace(
        data, users=u.astype(np.int32), items=i.astype(np.int32), user_ids=data.user_ids[users],
        item_ids=data.item_ids[items], user_features=None, item_features=None, held_out=None,
        repeat_time=None, **columns,
    )  # fmt: skip


def of_kind(
    name: str, what: str, known: NDArray[np.object_], ids: NDArray[np.object_]
) -> NDArray[np.object_]:
    """Return ids as text, or as integers, whichever the interactions have."""
    kind = type(known[0])
    if type(ids[0]) is kind:
        return ids
    out = np.empty(len(ids), dtype=object)
    for k, one in enumerate(ids):
        try:
            out[k] = kind(one)
        except ValueError:
            out[k] = None
        if str(out[k]) != str(one):
            raise InputError(
                f"{name}: {what} id {str(one)[:60]!r} is text and those of the interactions are "
                f"integers, such as {known[0]!r}; make them one kind"
            )
    return out


def matched(
    name: str, data: Interactions, test: Interactions
) -> list[tuple[NDArray[np.int64], NDArray[np.object_]]]:
    """Return the positions of other users and items in the data, −1 for unknown ones, and their ids."""
    found = []
    for what in ("user", "item"):
        known = getattr(data, f"{what}_ids")
        ids = of_kind(name, what, known, getattr(test, f"{what}_ids"))
        positions = pd.Index(known).get_indexer(pd.Index(ids, dtype=object))
        if (positions < 0).all():
            raise InputError(
                f"{test.name}: no {what} of it is in {data.name}; its ids are such as {ids[0]!r}, those "
                f"of {data.name} such as {known[0]!r}"
            )
        found.append((positions, ids))
    return found


def _marked(
    data: Interactions,
    test: Interactions,
    keep: NDArray[np.bool_],
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    item_ids: NDArray[np.object_],
    repeats: bool,
) -> Interactions:
    """Return the pairs of both, those tested marked, with notes that count."""
    have = data.users.astype(np.int64) * len(item_ids) + data.items
    asked = users.astype(np.int64) * len(item_ids) + items
    inside = np.isin(have, asked)
    new = ~np.isin(asked, have)
    columns: dict[str, Any] = {
        "users": np.concatenate([data.users, users[new]]).astype(np.int32),
        "items": np.concatenate([data.items, items[new]]).astype(np.int32),
        "held_out": np.concatenate([inside, np.ones(int(new.sum()), dtype=bool)]),
        "repeat_time": None,
    }
    notes = list(_counts(data, test, keep, len(users), int(inside.sum()), len(item_ids), repeats))
    earlier = [note for note in data.notes if not note.startswith(OF_TEST)]  # of one that is replaced
    for name in ("rating", "time"):
        ours, theirs = getattr(data, name), getattr(test, name)
        if ours is not None and theirs is None and (new.any() or (repeats and name == "time")):
            columns[name] = None
            notes.append(f"{name}s are left out: the test half has none")
        elif ours is not None and new.any():
            columns[name] = np.concatenate([ours, theirs[keep][new]])
    if repeats and inside.any():
        columns["repeat_time"] = again = np.full(len(columns["users"]), np.nan)
        order = np.argsort(asked)
        row = order[np.searchsorted(asked[order], have[inside])]  # of the test half
        known = test.time is not None and data.time is not None
        again[: len(have)][inside] = test.time[keep][row] if known else 0.0  # type: ignore[index]
    if data.weight is not None:  # what is tested weighs 1: it does not train
        columns["weight"] = np.concatenate([data.weight, np.ones(int(new.sum()))])
    if data.item_features is not None and len(item_ids) > data.n_items:
        columns["item_features"] = data.item_features.reindex(item_ids)
    return replace(data, item_ids=item_ids, notes=(*earlier, *notes), **columns)


def _counts(
    data: Interactions, test: Interactions, keep: NDArray[np.bool_], pairs: int, inside: int, items: int,
    repeats: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield notes on the test half."""
    who = counted(len(np.unique(test.users[keep])), "user")
    read = "" if test.counts is None else test.counts.description
    yield from (f"{OF_TEST}{note}" for note in test.notes if note != read)
    if data.held_out is not None:
        yield "the test half that came with them is replaced: what else was in it trains"
    yield f"{OF_TEST}{counted(pairs, 'pair')} of {who}, tested by the protocol published"
    one = inside == 1
    if inside and (repeats or inside < pairs):
        too = f", and {'trains' if one else 'train'}, too" if repeats else ", too"
        are = "is" if one else "are"
        yield f"{OF_TEST}{counted(inside, 'pair')} of it {are} among the interactions{too}"
    absent = len(np.unique(test.users[~keep]))
    if absent:
        whom = counted(absent, "user")
        rows = counted(int((~keep).sum()), "pair")
        yield f"{OF_TEST}{whom} not among the interactions left out, with {rows}"
    if items > data.n_items:
        extra = counted(items - data.n_items, "item")
        yield f"{OF_TEST}{extra} that only it has: ranked, too"
