"""New likes and forgotten users: exactly where the ranker can, else by a new fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.events import Changes
from recsys.data.tables import features_table, interactions_of
from recsys.errors import CapabilityError, InputError
from recsys.rankers import Bundle


def rows_of(bundle: Bundle, rows: Any) -> Interactions:
    """Return new rows as interactions, read as those of the fit were, whatever they are rated."""
    if isinstance(rows, Interactions):
        return rows
    columns = bundle.columns or Columns("", "")
    rating = None if columns.min_rating is None else columns.rating  # else nothing reads it
    time = None if bundle.times is None else columns.time
    return interactions_of(rows, replace(columns, rating=rating, time=time, min_rating=None))


def changes_of(bundle: Bundle, data: Interactions) -> Changes:
    """Return what new rows leave of the likes they are about.

    A row rated below what counted as a like at the fit takes the like back. A row that is older than the
    like that is known is left unread, as the fit keeps the latest.

    Raises
    ------
    InputError
        If times are needed and missing, or are in another unit.
    """
    least = None if bundle.columns is None else bundle.columns.min_rating
    when = data.time
    if bundle.times is not None:
        if when is None:
            name = None if bundle.columns is None else bundle.columns.time
            where = "" if name is None else f" in the column {name!r}"
            raise InputError(
                f"{data.name}: the likes of this model have times; give each new row one{where}"
            )
        for end in (float(when.min()), float(when.max())):
            if np.isfinite(end):
                bundle.time_of_event(end)  # refuses another unit
        when = np.where(np.isfinite(when), np.maximum(when - bundle.start, 0.0), 0.0)
    known = {} if when is None else _known_times(bundle, data)
    likes: dict[str, dict[str, float | None]] = {}
    users: dict[str, None] = {}
    items: dict[str, None] = {}
    for row, (u, i) in enumerate(zip(data.users.tolist(), data.items.tolist(), strict=True)):
        user, item = str(data.user_ids[u]), str(data.item_ids[i])
        mine = likes.setdefault(user, {})
        if when is not None and when[row] < known.get((user, item), 0.0):
            continue
        if least is not None and data.rating is not None and data.rating[row] < least:
            mine[item] = None
        else:
            users[user] = items[item] = None
            mine[item] = 0.0 if when is None else float(when[row])
    return Changes(likes, set(), list(users), list(items))


def _known_times(bundle: Bundle, data: Interactions) -> dict[tuple[str, str], float]:
    """Return when users of the rows liked what they like, by ids."""
    if bundle.times is None:
        return {}
    found: dict[tuple[str, str], float] = {}
    for name in data.user_ids:
        place = bundle.user_index.get(str(name))
        if place is not None:
            own = slice(*bundle.times.indptr[place : place + 2])
            pairs = zip(bundle.times.indices[own], bundle.times.data[own].tolist(), strict=True)
            found |= {(str(name), str(bundle.item_ids[k])): time for k, time in pairs}
    return found


def without_features(bundle: Bundle, users: list[str]) -> Bundle:
    """Return the bundle with nothing known of some users."""
    if bundle.user_features is None:
        return bundle
    table = bundle.user_features.astype(object)
    table.iloc[bundle.rows(users)[0]] = None
    return replace(bundle, user_features=table.infer_objects())


def with_items(bundle: Bundle, items: Any, data: Interactions) -> Bundle:
    """Return the bundle with what is known of items now; new ones wait for the update."""
    ids = np.concatenate([bundle.item_ids, data.item_ids])
    name = "item" if bundle.columns is None else bundle.columns.item
    table = features_table(items, "item", name, ids)
    known = bundle.interactions.item_features
    if known is not None:
        columns = [*known.columns, *(name for name in table.columns if name not in known.columns)]
        table = table.combine_first(known)[columns]
    return replace(bundle, item_features=table)


def changed(bundle: Bundle, changes: Changes) -> Bundle:
    """Return a bundle after changes: exactly where its ranker can, else fitted again."""
    try:
        bundle.check_events()
    except CapabilityError:  # a ranker, or a setting of one, without exact updates
        made = bundle.refitted(changes)
    else:
        made = bundle.updated(changes)
    return made if bundle.item_features is None else made.described(bundle.item_features)
