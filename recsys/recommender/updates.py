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
from recsys.data.reading import features_table, read
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.utils import frames
from recsys.utils.dates import dated


def updated(package: ModelPackage, add: Any, remove: Any, items: Any) -> Interactions:
    """Return the interactions of a model with new rows, without removed ones, with new attributes."""
    data, columns = package.interactions, package.columns or Columns()
    if add is not None:
        new = add if isinstance(add, Interactions) else read(add, like=columns, keep_zero=True)
        data = merged(data, new, columns)
    if remove is not None:
        removed = _removed(data, remove, columns)
        data = _of_pairs(data, data.users, data.items, ~removed, data.time, data.weight)
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
    if data.time is not None and dated(data.time) != dated(new.time):
        raise InputError(f"{new.name}: the times of the new rows are in another unit than the model's")
    user_ids, users = _index(data.user_ids, new.user_ids, "user")
    item_ids, items = _index(data.item_ids, new.item_ids, "item")
    new_liked = np.ones(len(new.users), dtype=bool)
    if new.rating is not None:
        least = columns.min_rating
        new_liked = new.rating > 0 if least is None else new.rating >= least
    u = np.concatenate([data.users, users[new.users]])
    i = np.concatenate([data.items, items[new.items]])
    liked = np.concatenate([np.ones(len(data.users), dtype=bool), new_liked])
    time = None if data.time is None else np.concatenate([data.time, new.time])
    weight = None
    if data.weight is not None or new.weight is not None:
        weight = np.concatenate([_weights(data), _weights(new)])
    order = np.arange(len(u)) if time is None else np.argsort(time, kind="stable")
    pairs, pair_of = np.unique(u.astype(np.int64) * len(item_ids) + i, return_inverse=True)
    latest = np.zeros(len(pairs), dtype=np.int64)
    latest[pair_of[order]] = order
    if weight is not None:
        weight = np.bincount(pair_of, weight)
    data = replace(data, user_ids=user_ids, item_ids=item_ids)
    return _of_pairs(
        data, u[latest], i[latest], liked[latest], None if time is None else time[latest], weight
    )


def _weights(data: Interactions) -> NDArray[np.float64]:
    return np.ones(len(data.users)) if data.weight is None else data.weight


def _index(
    known: NDArray[np.object_], new: NDArray[np.object_], what: str
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the known ids with the new ones behind them, and the place of each new one."""
    index = {str(name): k for k, name in enumerate(known)}
    integers = all(isinstance(name, int) for name in known)
    added: list[Any] = []
    for name in new:
        if str(name) not in index:
            index[str(name)] = len(index)
            added.append(name if not integers else _integer(name, what))
    ids = np.concatenate([known, np.array(added, dtype=object)]) if added else known
    return ids, np.array([index[str(name)] for name in new], dtype=np.int64)


def _integer(name: Any, what: str) -> int:
    if not str(name).lstrip("-").isdecimal() or str(int(name)) != str(name):
        raise InputError(f"{what} id {str(name)[:60]!r}: the ids of this model are integers")
    return int(name)


def _of_pairs(
    data: Interactions, users: Any, items: Any, keep: NDArray[np.bool_], time: Any, weight: Any
) -> Interactions:
    """Return interactions of the pairs to keep; an id goes whose pairs all go."""
    user_ids, users_kept = _remaining(users, keep, data.user_ids)
    item_ids, items_kept = _remaining(items, keep, data.item_ids)
    if not keep.any():
        raise InputError("no interactions are left")
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
    )


def _remaining(
    index: Any, keep: NDArray[np.bool_], ids: NDArray[np.object_]
) -> tuple[NDArray[np.object_], NDArray[np.int32]]:
    stay = np.ones(len(ids), dtype=bool)
    stay[index[~keep]] = False
    stay[index[keep]] = True
    places = np.cumsum(stay) - 1
    return ids[stay], places[index[keep]].astype(np.int32)


def _reindexed(table: pd.DataFrame | None, ids: NDArray[np.object_]) -> pd.DataFrame | None:
    return None if table is None else table.reindex(ids)


def _removed(data: Interactions, remove: Any, columns: Columns) -> NDArray[np.bool_]:
    """Return which pairs are in a table of users and items, of users alone, or of items alone."""
    if isinstance(remove, (str, os.PathLike)):
        rows = read(remove, like=columns, keep_zero=True)
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
    rows = set(zip(*(map(str, frames.column(table, name)) for name in keys), strict=True))
    return np.array([pair in rows for pair in zip(*keys.values(), strict=True)], dtype=bool)
