"""The interactions of a model after rows are added and removed, with the decisions of the fit kept."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.reading import features_table, read_rows
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.utils import frames
from recsys.utils.dates import dated


def updated(package: ModelPackage, add: Any, remove: Any, items: Any) -> Interactions:
    """Return the interactions of a model with new rows, without removed ones, with new attributes."""
    data, columns = package.interactions, package.columns or Columns()
    if add is not None:
        weight = columns.weight if package.ranker.weighted else None
        new = add
        if not isinstance(add, Interactions):
            new = read_rows(add, {"weight": weight}, like=replace(columns, weight=weight))
        data = merged(data, new, columns)
    if remove is not None:
        removed = _removed(data, remove, columns)
        before = data.excluded
        data = _of_pairs(data, data.users, data.items, ~removed, data.time, data.weight)
        data = replace(data, excluded=_without(before, remove, columns, data))
    if items is not None:
        table = features_table(items, "item", columns.item, data.item_ids)
        known = data.item_features
        if known is not None:
            names = [*known.columns, *(name for name in table.columns if name not in known.columns)]
            table = table.combine_first(known)[names]
        data = replace(data, item_features=table.reindex(data.item_ids))
    return data


def merged(data: Interactions, new: Interactions, columns: Columns) -> Interactions:
    """Return the interactions of a fit on the rows of both: the latest row of a pair decides."""
    where = f" in the column {columns.time!r}" if columns.time else ""
    if data.time is not None and new.time is None:
        raise InputError(
            f"{new.name}: the interactions of this model have times; give each new row one{where}"
        )
    if data.time is not None and new.time is not None and dated(data.time) != dated(new.time):
        raise InputError(f"{new.name}: the times of the new rows are in another unit than the model's")
    if columns.min_rating is not None and new.rating is None:
        raise InputError(f"{new.name}: give each new row a rating, in the column {columns.rating!r}")
    known = [data] if data.excluded is None else [data, data.excluded]
    user_ids, users = _index(_id_order(known, new, "user"), "user")
    item_ids, items = _index(_id_order(known, new, "item"), "item")
    new_liked = np.ones(len(new.users), dtype=bool)
    if new.rating is not None:
        least = columns.min_rating
        new_liked = new.rating > 0 if least is None else new.rating >= least
    tables = [*known, new]
    u = np.concatenate([_places(users, one.user_ids)[one.users] for one in tables])
    i = np.concatenate([_places(items, one.item_ids)[one.items] for one in tables])
    liked = np.concatenate(
        [
            np.ones(len(data.users), dtype=bool),
            *(np.zeros(len(one.users), bool) for one in known[1:]),
            new_liked,
        ]
    )
    time = None if data.time is None else np.concatenate([one.time for one in tables])
    order = np.arange(len(u)) if time is None else np.argsort(time, kind="stable")
    pairs, pair_of = np.unique(u.astype(np.int64) * len(item_ids) + i, return_inverse=True)
    latest = np.zeros(len(pairs), dtype=np.int64)
    latest[pair_of[order]] = order
    weight = None
    if any(one.weight is not None for one in tables):
        weight = np.concatenate(
            [np.ones(len(one.users)) if one.weight is None else one.weight for one in tables]
        )
        if columns.duplicates == "last":
            weight = weight[latest]
        else:
            weight = np.bincount(pair_of, weight)
    data = replace(data, user_ids=user_ids, item_ids=item_ids)
    return _of_pairs(
        data, u[latest], i[latest], liked[latest], None if time is None else time[latest], weight
    )


def _id_order(known: list[Interactions], new: Interactions, what: str) -> list[NDArray[np.object_]]:
    """Return ids in the order of a fit on all rows, where those that only a table has stand last."""
    if known[0].columns is None or not known[0].columns.cold_items:
        return [*(getattr(one, f"{what}_ids") for one in reversed(known)), getattr(new, f"{what}_ids")]
    every = getattr(known[-1], f"{what}_ids")
    used = {
        str(name)
        for one in known
        for name in getattr(one, f"{what}_ids")[np.unique(getattr(one, f"{what}s"))]
    }
    first = np.array([name for name in every if str(name) in used], dtype=object)
    return [first, getattr(new, f"{what}_ids"), getattr(known[0], f"{what}_ids")]


def _index(parts: list[NDArray[np.object_]], what: str) -> tuple[NDArray[np.object_], dict[str, int]]:
    """Return all ids, those of the first part first, and their places by text."""
    index: dict[str, int] = {}
    ids: list[Any] = []
    integers = all(isinstance(name, int) for name in parts[0])
    for name in (name for part in parts for name in part):
        if str(name) not in index:
            index[str(name)] = len(index)
            ids.append(_integer(name, what) if integers else name)
    out = np.empty(len(ids), dtype=object)
    out[:] = ids
    return out, index


def _places(index: dict[str, int], ids: NDArray[np.object_]) -> NDArray[np.int64]:
    return np.array([index[str(name)] for name in ids], dtype=np.int64)


def _integer(name: Any, what: str) -> int:
    if not str(name).lstrip("-").isdecimal() or str(int(name)) != str(name):
        raise InputError(f"{what} id {str(name)[:60]!r}: the ids of this model are integers")
    return int(name)


def _of_pairs(
    data: Interactions, users: Any, items: Any, keep: NDArray[np.bool_], time: Any, weight: Any
) -> Interactions:
    """Return interactions of the pairs to keep, the others excluded; an id goes whose pairs all go."""
    if not keep.any():
        raise InputError("no interactions are left")
    user_ids, users_kept = _remaining(users, keep, data, "user")
    item_ids, items_kept = _remaining(items, keep, data, "item")
    excluded = None
    if not keep.all():
        excluded = Interactions(
            users[~keep].astype(np.int32),
            items[~keep].astype(np.int32),
            data.user_ids,
            data.item_ids,
            time=None if time is None else time[~keep],
            weight=None if weight is None else weight[~keep],
        )
    return replace(
        data,
        users=users_kept,
        items=items_kept,
        user_ids=user_ids,
        item_ids=item_ids,
        rating=None,
        time=None if time is None else time[keep],
        weight=None if weight is None else weight[keep],
        user_features=_reindexed(data.user_features, user_ids),
        item_features=_reindexed(data.item_features, item_ids),
        excluded=excluded,
    )


def _remaining(
    index: Any, keep: NDArray[np.bool_], data: Interactions, what: str
) -> tuple[NDArray[np.object_], NDArray[np.int32]]:
    """Return the ids with a pair that is kept or none at all, and the kept indices."""
    ids, table = getattr(data, f"{what}_ids"), getattr(data, f"{what}_features")
    cold = np.ones(len(ids), dtype=bool)
    cold[index] = False
    liked = np.zeros(len(ids), dtype=bool)
    liked[index[keep]] = True
    order = np.flatnonzero(liked | cold)
    if data.columns is not None and data.columns.cold_items and table is not None:
        cold |= table.reindex(ids).notna().any(axis=1).to_numpy()
        order = np.concatenate([np.flatnonzero(liked), np.flatnonzero(cold & ~liked)])
    places = np.zeros(len(ids), dtype=np.int32)
    places[order] = np.arange(len(order))
    return ids[order], places[index[keep]]


def _reindexed(table: pd.DataFrame | None, ids: NDArray[np.object_]) -> pd.DataFrame | None:
    return None if table is None else table.reindex(ids)


def _without(
    excluded: Interactions | None, remove: Any, columns: Columns, data: Interactions
) -> Interactions | None:
    """Return the excluded pairs that are not removed, over the ids that are left."""
    if excluded is None:
        return None
    keep = ~_removed(excluded, remove, columns)
    index = []
    for what in ("user", "item"):
        ids, pairs = getattr(excluded, f"{what}_ids"), getattr(excluded, f"{what}s")[keep]
        left = set(map(str, getattr(data, f"{what}_ids"))) | {str(name) for name in ids[pairs]}
        stay = np.array([str(name) in left for name in ids])
        index.append(((np.cumsum(stay) - 1)[pairs].astype(np.int32), ids[stay]))
    (users, user_ids), (items, item_ids) = index
    columns_of: dict[str, Any] = {
        name: None if values is None else values[keep]
        for name, values in (("time", excluded.time), ("weight", excluded.weight))
    }
    return Interactions(users, items, user_ids, item_ids, **columns_of)


def _removed(data: Interactions, remove: Any, columns: Columns) -> NDArray[np.bool_]:
    """Return which pairs are in a table of users and items, of users alone, or of items alone."""
    if isinstance(remove, (str, os.PathLike)):
        rows = read_rows(remove, like=columns)
        remove = pd.DataFrame(
            {columns.user: rows.user_ids[rows.users], columns.item: rows.item_ids[rows.items]}
        )
    table = frames.wrapped("remove", remove)
    keys = {}
    for name, index, ids in (
        (columns.user, data.users, data.user_ids),
        (columns.item, data.items, data.item_ids),
    ):
        if name in table.columns:
            keys[name] = np.array([str(one) for one in ids], dtype=object)[index]
    if not keys:
        raise InputError(f"remove needs a column {columns.user!r}, or {columns.item!r}, or both")
    removed = set(zip(*(map(str, table[name].to_list()) for name in keys), strict=True))
    return np.array([pair in removed for pair in zip(*keys.values(), strict=True)], dtype=np.bool_)
