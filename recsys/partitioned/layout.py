"""All rows in one numbering of items, in one file that workers map, and item by item in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.engines import Engine
from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.rows import ROWS, read_catalogue, read_rows
from recsys.partitioned.work import Work
from recsys.utils.digests import row_digests
from recsys.utils.model_file import Pieces

ORDERS = ("popular", "number", "rare")


def order_of(popularity: NDArray[np.int64], name: str) -> NDArray[np.int32]:
    """Return which item has each position: popular ones first, as numbered, or rare ones first."""
    if name == "number":
        return np.arange(len(popularity), dtype=np.int32)
    key = -popularity if name == "popular" else popularity
    return np.argsort(key, kind="stable").astype(np.int32)


def make_layout(work: Work, name: str, engine: Engine) -> None:
    """Write the rows with items by position, and the interactions of each bucket item by item."""
    stage = f"places-{name}"
    units = [(bucket, str(work.folder), name) for bucket in range(work.buckets)]
    work.run(stage, places_of_bucket, units, engine)
    if not work.part(stage, "rows").exists():
        _join(work, stage)


def places_of_bucket(unit: tuple[int, str, str]) -> None:
    """Write a bucket's interactions by position."""
    bucket, folder, name = unit
    work = Work.opened(folder)
    catalogue, rows = read_catalogue(work), read_rows(work, bucket)
    popularity = catalogue["popularity"]
    order = order_of(popularity, name)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    places = place[rows.items]
    shape = (len(rows.indptr) - 1, len(order))
    by_item = sp.csr_matrix((np.zeros(len(places), np.uint8), places, rows.indptr), shape).tocsc()
    lengths = np.diff(by_item.indptr)
    write_arrays(
        work.part(f"places-{name}", bucket),
        {
            "places": places,
            "item": np.repeat(np.arange(len(order), dtype=np.int32), lengths),
            "user": by_item.indices.astype(np.int32) + np.int32(rows.first),
            "digests": row_digests(
                sp.csr_matrix((np.zeros(len(places), np.uint8), rows.items, rows.indptr), shape)
            ),
        },
    )


def joined(work: Work, name: str) -> dict[str, NDArray[Any]]:
    """Return the rows of all users: `indptr`, `indices` by position; and `cost` of each position's item.

    The cost of an item is how many interactions its users have.
    """
    return read_arrays(work.part(f"places-{name}", "rows"))


def part_of(work: Work, name: str, bucket: int) -> dict[str, NDArray[Any]]:
    """Return the arrays that `places_of_bucket` wrote."""
    return read_arrays(work.part(f"places-{name}", bucket))


def users_of(work: Work, name: str, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the users of items at positions low…high, ascending: (positions + 1,), (interactions,)."""
    items, users = [], []
    for bucket in range(work.buckets):
        part = part_of(work, name, bucket)
        begin, end = np.searchsorted(part["item"], [low, high])
        items.append(part["item"][begin:end].copy())  # so that the file is let go of
        users.append(part["user"][begin:end].copy())
    every = np.concatenate(items)
    indptr = np.zeros(high - low + 1, dtype=np.int64)
    np.cumsum(np.bincount(every - low, minlength=high - low), out=indptr[1:])
    out = np.empty(len(every), dtype=np.int32)
    _group(every, np.concatenate(users), low, indptr[:-1].copy(), out)
    return indptr, out


def digests(work: Work, name: str) -> Iterator[NDArray[np.int64]]:
    """Yield the digests of all users' rows, bucket by bucket."""
    for bucket in range(work.buckets):
        yield part_of(work, name, bucket)["digests"]


def _join(work: Work, stage: str) -> None:
    catalogue = read_catalogue(work)
    users, likes = int(catalogue["users"].sum()), int(catalogue["likes"].sum())
    indptr, cost = np.zeros(users + 1, dtype=np.int64), np.zeros(len(catalogue["popularity"]), np.int64)
    first = start = 0
    for bucket in range(work.buckets):
        own = read_arrays(work.part(ROWS, bucket))["indptr"]
        indptr[first + 1 : first + len(own)] = own[1:] + start
        _add_cost(own, read_arrays(work.part(stage, bucket))["places"], cost)
        first, start = first + len(own) - 1, start + int(own[-1])
    indices = Pieces(
        (likes,), np.dtype(np.int32),
        lambda: (read_arrays(work.part(stage, b))["places"] for b in range(work.buckets)),
    )  # fmt: skip
    write_arrays(work.part(stage, "rows"), {"indptr": indptr, "cost": cost, "indices": indices})


# ---- kernels


@jit
def _group(items, users, low, at, out):
    """Put users to their items, in the order in which they come."""
    for k in range(len(items)):
        i = items[k] - low
        out[at[i]] = users[k]
        at[i] += 1


@jit
def _add_cost(indptr, places, cost):
    for u in range(len(indptr) - 1):
        for p in range(indptr[u], indptr[u + 1]):
            cost[places[p]] += indptr[u + 1] - indptr[u]
