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
from recsys.data.tables import wrapped
from recsys.errors import InputError
from recsys.rankers import ModelPackage
from recsys.utils.dates import dated

SIDES = ("user", "item")


def updated(package: ModelPackage, add: Any, remove: Any, items: Any) -> Interactions:
    """Return the interactions of a model with new rows, without removed ones, with new attributes."""
    data, columns = package.interactions, package.columns or Columns()
    if add is not None or remove is not None:
        new = None
        if add is not None:
            weight = columns.weight if package.ranker.weighted else None
            new = add
            if not isinstance(add, Interactions):
                new = read_rows(add, {"weight": weight}, like=replace(columns, weight=weight))
            _check_new(data, new, columns)
        data = _changed(data, new, remove, columns)
    if items is not None:
        table = features_table(items, "item", columns.item, data.item_ids)
        known = data.item_features
        if known is not None:
            names = [*known.columns, *(name for name in table.columns if name not in known.columns)]
            table = table.combine_first(known)[names]
        data = data.with_features(items=table, cold_items=columns.cold_items)
    return data


def _check_new(data: Interactions, new: Interactions, columns: Columns) -> None:
    where = f" in the column {columns.time!r}" if columns.time else ""
    if data.time is not None and new.time is None:
        raise InputError(
            f"{new.name}: the interactions of this model have times; give each new row one{where}"
        )
    if data.time is not None and new.time is not None and dated(data.time) != dated(new.time):
        raise InputError(f"{new.name}: the times of the new rows are in another unit than the model's")
    if columns.min_rating is not None and new.rating is None:
        raise InputError(f"{new.name}: give each new row a rating, in the column {columns.rating!r}")


def _changed(
    data: Interactions, new: Interactions | None, remove: Any, columns: Columns
) -> Interactions:
    """Return the interactions of a fit on the old and new rows: the latest row of a pair decides."""
    known = [data] if data.excluded is None else [data, data.excluded]
    tables = known if new is None else [*known, new]
    weighted = any(one.weight is not None for one in tables)
    ids, index = {}, {}
    for side in SIDES:
        ids[side], index[side] = _ids(side, known, new, columns.cold_items)
    rows = pd.concat(
        [
            pd.DataFrame(
                {side: _codes(index[side], one, side) for side in SIDES}
                | {
                    "time": 0.0 if data.time is None else one.time,
                    "weight": 1.0 if one.weight is None else one.weight,
                    "liked": _liked(one, columns) if one is new else one is data,
                }
            )
            for one in tables
        ]
    ).sort_values("time", kind="stable")
    if columns.duplicates != "last":
        rows["weight"] = rows.groupby(list(SIDES))["weight"].transform("sum")
    rows = rows.drop_duplicates(list(SIDES), keep="last").sort_values(list(SIDES))
    cold = {side: ~np.isin(np.arange(len(ids[side])), rows[side]) for side in SIDES}
    if remove is not None:
        rows = rows[~_removed(rows, remove, index, columns)]
    liked, excluded = rows[rows["liked"]], rows[~rows["liked"]]
    if not len(liked):
        raise InputError("no interactions are left")
    parts: dict[str, Any] = {"rating": None}
    others: dict[str, Any] = {}
    for side in SIDES:
        table = getattr(data, f"{side}_features")
        if columns.cold_items and table is not None:
            cold[side] |= table.reindex(ids[side]).notna().any(axis=1).to_numpy()
        first = np.unique(liked[side])
        order = np.concatenate([first, np.setdiff1d(np.flatnonzero(cold[side]), first)])
        if not columns.cold_items:  # those of a matrix, whose place is their number
            order = np.sort(order)
        every = np.union1d(order, excluded[side])
        for part, pairs, places in ((parts, liked, order), (others, excluded, every)):
            part[f"{side}_ids"] = ids[side][places]
            numbers = pd.Index(places).get_indexer(pd.Index(pairs[side]))
            part[f"{side}s"] = numbers.astype(np.int32)
        if table is not None:
            parts[f"{side}_features"] = table.reindex(parts[f"{side}_ids"])
    for part, pairs in ((parts, liked), (others, excluded)):
        part["time"] = None if data.time is None else pairs["time"].to_numpy()
        part["weight"] = pairs["weight"].to_numpy() if weighted else None
    return replace(data, **parts, excluded=Interactions(**others) if len(excluded) else None)


def _liked(new: Interactions, columns: Columns) -> Any:
    if new.rating is None:
        return True
    return new.rating > 0 if columns.min_rating is None else new.rating >= columns.min_rating


def _ids(
    side: str, known: list[Interactions], new: Interactions | None, cold_items: bool
) -> tuple[NDArray[np.object_], dict[str, int]]:
    """Return all ids in the order of a fit on all rows, and their places by text.

    With `cold_items`, those that only a table has come last.
    """
    ids = every = list(getattr(known[-1], f"{side}_ids"))
    if cold_items:
        used = {
            str(name)
            for one in known
            for name in getattr(one, f"{side}_ids")[np.unique(getattr(one, f"{side}s"))]
        }
        ids = [name for name in every if str(name) in used]
    names: dict[str, Any] = {}
    for name in [*ids, *getattr(new, f"{side}_ids", ()), *getattr(known[0], f"{side}_ids")]:
        names.setdefault(str(name), name)
    out = np.empty(len(names), dtype=object)
    integers = all(isinstance(name, int) for name in every)
    out[:] = [_integer(name, side) if integers else name for name in names.values()]
    return out, {name: k for k, name in enumerate(names)}


def _integer(name: Any, side: str) -> int:
    if not str(name).lstrip("-").isdecimal() or str(int(name)) != str(name):
        raise InputError(f"{side} id {str(name)[:60]!r}: the ids of this model are integers")
    return int(name)


def _codes(index: dict[str, int], one: Interactions, side: str) -> NDArray[np.int64]:
    places = np.array([index[str(name)] for name in getattr(one, f"{side}_ids")], dtype=np.int64)
    return places[getattr(one, f"{side}s")]


def _removed(
    rows: pd.DataFrame, remove: Any, index: dict[str, dict[str, int]], columns: Columns
) -> NDArray[np.bool_]:
    """Return which pairs are in a table of users and items, of users alone, or of items alone."""
    if isinstance(remove, (str, os.PathLike)):
        read = read_rows(remove, like=columns)
        remove = pd.DataFrame(
            {columns.user: read.user_ids[read.users], columns.item: read.item_ids[read.items]}
        )
    table = wrapped("remove", remove)
    names = {"user": columns.user, "item": columns.item}
    sides = [side for side in SIDES if names[side] in table.columns]
    if not sides:
        raise InputError(f"remove needs a column {columns.user!r}, or {columns.item!r}, or both")
    removed = pd.DataFrame(
        {
            side: [index[side].get(str(name), -1) for name in table[names[side]].to_list()]
            for side in sides
        }
    )
    return pd.MultiIndex.from_frame(rows[sides]).isin(pd.MultiIndex.from_frame(removed))
