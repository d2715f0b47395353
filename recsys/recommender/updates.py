"""New interactions and forgotten users: exactly where the ranker can, else by a new fit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.events import Changes
from recsys.data.reading import features_table, read
from recsys.errors import CapabilityError, InputError
from recsys.rankers import ModelPackage
from recsys.rankers.catalogue import takes_weights

LOG = logging.getLogger(__name__)


def rows_of(
    package: ModelPackage, rows: Any, decimal: str | None = None, day_first: bool | None = None
) -> Interactions:
    """Return new rows as interactions, read as those of the fit were, whatever they are rated."""
    if isinstance(rows, Interactions):
        return rows
    columns = package.columns or Columns("", "")
    time = None if package.times is None else columns.time
    weight = columns.weight if takes_weights(package.ranker) else None
    data = read(
        rows, weight=weight, like=replace(columns, time=time, weight=None), keep_zero=True,
        decimal=decimal, day_first=day_first,
    )  # fmt: skip
    dropped = data.counts is not None and data.counts.left_out
    for note in data.notes:
        doubtful = "thousands separators" in note or (dropped and "left out" in note)
        LOG.log(logging.WARNING if doubtful else logging.INFO, "%s", note)
    return data


def changes_of(package: ModelPackage, data: Interactions) -> Changes:
    """Return the changes of interactions by new rows.

    A row rated below what counted as an interaction at the fit takes the interaction back. A row older
    than the known interaction is ignored, as the fit keeps the latest. Weights are added to those that
    are known, also those of older rows. Refused are missing times where they are needed, times in
    another unit, and a new id that is a known one without its leading zeros.
    """
    for role, known_ids, new_ids in (
        ("user", package.user_index, data.user_ids),
        ("item", package.item_index, data.item_ids),
    ):
        check_zeros(data.name, role, known_ids, new_ids)
    least = None if package.columns is None else package.columns.min_rating
    when = data.time
    if package.times is not None:
        if when is None:
            name = None if package.columns is None else package.columns.time
            where = "" if name is None else f" in the column {name!r}"
            raise InputError(
                f"{data.name}: the interactions of this model have times; give each new row one{where}"
            )
        for end in (float(when.min()), float(when.max())):
            if np.isfinite(end):
                package.time_of_event(end)  # refuses another unit
        when = np.where(np.isfinite(when), np.maximum(when - package.start, 0.0), 0.0)
    known = {} if when is None else _known_times(package, data)
    likes: dict[str, dict[str, float | None]] = {}
    users: dict[str, None] = {}
    items: dict[str, None] = {}
    weights: dict[str, dict[str, float]] = {}
    weighted = takes_weights(package.ranker)
    for row, (u, i) in enumerate(zip(data.users.tolist(), data.items.tolist(), strict=True)):
        user, item = str(data.user_ids[u]), str(data.item_ids[i])
        mine = likes.setdefault(user, {})
        latest = 0.0 if when is None else max(float(when[row]), known.get((user, item), 0.0))
        if data.weight is None and when is not None and when[row] < latest:
            continue
        if data.rating is not None and not _counts(data.rating[row], least):
            mine[item] = None
        else:
            users[user] = items[item] = None
            mine[item] = latest
            if data.weight is not None and weighted:
                weights.setdefault(user, {})[item] = float(data.weight[row])
    return Changes(likes, set(), list(users), list(items), weights)


def check_zeros(where: str, role: str, known: Mapping[str, int], ids: Iterable[Any]) -> None:
    """Refuse a new id that is a known one with fewer or more leading zeros."""
    new = [name for name in map(str, ids) if name not in known and name.isdecimal()]
    if not new:
        return
    bare = {name.lstrip("0"): name for name in known if name.isdecimal()}
    for name in new:
        other = bare.get(name.lstrip("0"))
        if other is not None:
            raise InputError(
                f"{where}: {role} {name!r} is new, but {other!r} is known: write ids as at the fit, as "
                "text with their leading zeros"
            )


def _counts(rating: float, least: float | None) -> bool:
    """Return whether a row of a rating is an interaction."""
    return bool(rating > 0 if least is None else rating >= least)


def _known_times(package: ModelPackage, data: Interactions) -> dict[tuple[str, str], float]:
    """Return when users of the rows liked what they like, by ids."""
    if package.times is None:
        return {}
    found: dict[tuple[str, str], float] = {}
    for name in data.user_ids:
        place = package.user_index.get(str(name))
        if place is not None:
            own = slice(*package.times.indptr[place : place + 2])
            pairs = zip(package.times.indices[own], package.times.data[own].tolist(), strict=True)
            found |= {(str(name), str(package.item_ids[k])): time for k, time in pairs}
    return found


def without_features(package: ModelPackage, users: list[str]) -> ModelPackage:
    """Return the model package without the features of some users."""
    if package.user_features is None:
        return package
    table = package.user_features.astype(object)
    table.iloc[package.rows(users)[0]] = None
    return replace(package, user_features=table.infer_objects())


def with_items(package: ModelPackage, items: Any, data: Interactions) -> ModelPackage:
    """Return the model package with new features of items; new items wait for the update."""
    ids = np.concatenate([package.item_ids, data.item_ids])
    name = "item" if package.columns is None else package.columns.item
    table = features_table(items, "item", name, ids)
    known = package.interactions.item_features
    if known is not None:
        columns = [*known.columns, *(name for name in table.columns if name not in known.columns)]
        table = table.combine_first(known)[columns]
    return replace(package, item_features=table)


def changed(package: ModelPackage, changes: Changes) -> ModelPackage:
    """Return a model package after changes: exactly where its ranker can, else fitted again."""
    try:
        package.check_events()
    except CapabilityError as error:  # a ranker, or a setting of one, without exact updates
        LOG.info("fitting again on everything: %s", error)
        made = package.refitted(changes)
    else:
        made = package.updated(changes)
    return made if package.item_features is None else made.described(package.item_features)
