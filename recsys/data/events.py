"""Events: interactions added or removed after a fit, and the net change of a series of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recsys.data.interactions import Interactions

ACTIONS = ("like", "unlike", "forget")


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    user: str
    item: str | None  # None of "forget", which empties the user's history
    time: float | None  # in the unit of the data; None until a database has received it
    action: str = "like"  # or "unlike" or "forget"


@dataclass(frozen=True)
class Changes:
    """The net change of a series of events: the last event on an interaction decides.

    Applying a series again, in whole or up to some event, therefore changes nothing.

    >>> milk = Event("ada", "milk", 2.0)
    >>> left = fold([Event("ada", "tea", 1.0), milk, Event("ada", "tea", 3.0, "unlike")])
    >>> left.likes, left.items
    ({'ada': {'tea': None, 'milk': 2.0}}, ['tea', 'milk'])
    """

    # when, by user and item; None for what is not liked any more
    likes: dict[str, dict[str, float | None]] = field(default_factory=dict)
    # users whose interactions before the series are forgotten
    emptied: set[str] = field(default_factory=set)
    # in order of first occurrence, as items; new ones are added
    users: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    # added to an interaction, by user and item; for a new one 1 where none is given
    weights: dict[str, dict[str, float]] = field(default_factory=dict)


def fold(events: Iterable[Event]) -> Changes:
    """Return the net change of a series of events, the oldest first."""
    left = Changes()
    users: dict[str, None] = {}
    items: dict[str, None] = {}
    for event in events:
        if event.action == "forget":
            left.emptied.add(event.user)
            left.likes[event.user] = {}
            continue
        assert event.item is not None and event.time is not None
        mine = left.likes.setdefault(event.user, {})
        if event.action == "like":
            users[event.user] = items[event.item] = None
            mine[event.item] = event.time
        else:
            mine[event.item] = None
    left.users.extend(users)
    left.items.extend(items)
    return left


def with_events(data: Interactions, changes: Changes) -> Interactions:
    """Return the interactions after some events: a fit on them gives the model of a service.

    Without times those of the events are ignored. Ratings are not kept, and new interactions have the
    weight 1.

    >>> likes = Interactions.from_ids(["ada", "bob"], ["tea", "tea"])
    >>> now = with_events(likes, fold([Event("bob", "milk", 5.0), Event("ada", None, 6.0, "forget")]))
    >>> now.matrix.toarray()
    array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    user_ids, user_index = _more(data.user_ids, changes.users)
    item_ids, item_index = _more(data.item_ids, changes.items)
    names, items = data.user_ids, data.item_ids
    told = {user_index[user] for user in changes.likes if user in user_index}
    keep = np.ones(len(data.users), dtype=bool)
    for k in np.flatnonzero(np.isin(data.users, list(told))):
        user, item = str(names[data.users[k]]), str(items[data.items[k]])
        keep[k] = user not in changes.emptied and item not in changes.likes[user]
    added = [
        (user_index[user], item_index[item], time)
        for user, mine in changes.likes.items()
        for item, time in mine.items()
        if time is not None
    ]
    users, which, times = (np.array([one[k] for one in added], dtype=np.float64) for k in range(3))
    out = replace(
        data, user_ids=user_ids, item_ids=item_ids, rating=None, user_features=None, item_features=None,
        held_out=None,
        users=np.concatenate([data.users[keep], users.astype(np.int32)]),
        items=np.concatenate([data.items[keep], which.astype(np.int32)]),
        time=None if data.time is None else np.concatenate([data.time[keep], times]),
        weight=None if data.weight is None else np.concatenate([data.weight[keep], np.ones(len(added))]),
    )  # fmt: skip
    features: dict[str, Any] = {}
    if data.user_features is not None:
        features["user_features"] = data.user_features.reindex(user_ids)
    if data.item_features is not None:
        features["item_features"] = data.item_features.reindex(item_ids)
    return replace(out, **features)


def _more(ids: np.ndarray, names: list[str]) -> tuple[np.ndarray, dict[str, int]]:
    """Return ids with the new ones among some names behind them, and the places of all by text."""
    index = {str(name): k for k, name in enumerate(ids)}
    new = [name for name in names if name not in index]
    index.update({name: len(ids) + k for k, name in enumerate(new)})
    out = np.empty(len(index), dtype=object)
    out[: len(ids)], out[len(ids) :] = ids, new
    return out, index
