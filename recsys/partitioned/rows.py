"""Buckets of users as rows: each user's items once, ascending; and which users and items remain."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.ids import distinct, packed, ranked, unpacked
from recsys.partitioned.shuffle import PAIRS, named_items
from recsys.partitioned.work import Work
from recsys.utils.validation import MOST

ROWS, CATALOGUE = "rows", "catalogue"


class Rows(NamedTuple):
    """The rows of a bucket."""

    first: int  # number of its first user
    users: Any  # (n,) ids, ascending
    indptr: NDArray[np.int64]  # (n + 1,)
    items: NDArray[np.int32]  # (interactions,) numbers of items of the catalogue, ascending in each row


def rows_of_bucket(unit: tuple[int, str]) -> None:
    """Write the rows of a bucket's users, of those who have any like."""
    bucket, folder = unit
    work = Work.opened(folder)
    source = work.source
    users, items, rating, time = _gathered(work, bucket)
    names, user = ranked(users) if len(users) else (users, np.zeros(0, np.int64))
    count = max(1, len(named_items(work)))
    key = user * count + items
    rated = rating is not None and source.min_rating is not None
    if time is None and not rated:
        key = distinct(key)
    else:  # of a repeated pair the latest row counts: by time, else by position
        order = np.arange(len(key)) if time is None else np.argsort(time, kind="stable")
        order = order[np.argsort(key[order], kind="stable")]
        key = key[order]
        last = np.append(key[1:] != key[:-1], True) if len(key) else np.zeros(0, bool)
        if rated:
            last &= rating[order] >= source.min_rating
        key = key[last]
        time = None if time is None else time[order][last]
    user = key // count
    lengths = np.bincount(user, minlength=len(names))
    kept = np.flatnonzero(lengths)
    if len(kept) < len(names):
        names = names[kept] if isinstance(names, np.ndarray) else names.take(kept)
    indptr = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(lengths[kept], out=indptr[1:])
    arrays = {"indptr": indptr, "items": (key - user * count).astype(np.int32)}
    if time is not None:
        arrays["times"] = seconds(time, source.time_kind)
    write_arrays(work.part(ROWS, bucket), arrays | packed("users", names))


def seconds(time: NDArray[Any], kind: str | None) -> NDArray[np.float64]:
    """Return timestamps as seconds since 1970, numbers as they are."""
    if kind is not None and kind.startswith("timestamp"):
        return time / {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind[10:-1]]
    if np.isposinf(time).any():
        raise InputError("times hold infinity: give finite numbers, or −inf for the oldest")
    return time.astype(np.float64)


def make_catalogue(work: Work) -> None:
    """Write which items remain, with their popularity, and how many users each bucket has."""
    named = len(named_items(work))
    popularity = np.zeros(named, dtype=np.int64)
    users, likes = np.zeros(work.buckets, dtype=np.int64), np.zeros(work.buckets, dtype=np.int64)
    digest = hashlib.sha256()
    oldest, newest, unknown = np.inf, -np.inf, False
    for bucket in range(work.buckets):
        arrays = read_arrays(work.part(ROWS, bucket))
        if "times" in arrays:
            known = arrays["times"][np.isfinite(arrays["times"])]
            oldest = min(oldest, float(known.min(initial=np.inf)))
            newest = max(newest, float(known.max(initial=-np.inf)))
            unknown |= len(known) < len(arrays["times"])
        popularity += np.bincount(arrays["items"], minlength=named)
        users[bucket], likes[bucket] = len(arrays["indptr"]) - 1, len(arrays["items"])
        _add_digest(digest, arrays)
    if not likes.sum():
        raise InputError(
            f"no interactions left; all {work.source.rows:,} rows are rated below "
            f"{work.source.min_rating:g}"
        )
    if users.sum() > MOST:
        raise InputError(f"{users.sum():,} users are more than {MOST:,}, which can be numbered")
    kept = popularity > 0
    number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    items = named_items(work)
    items = items[kept] if isinstance(items, np.ndarray) else items.take(np.flatnonzero(kept))
    ids = packed("ids", items)
    _add_digest(digest, ids)
    arrays = {
        "popularity": popularity[kept], "number": number, "users": users, "likes": likes,
        "digest": np.frombuffer(digest.digest(), np.uint8),
    }  # fmt: skip
    if work.source.time is not None:  # as `recsys.data.side_information.time_matrix` has them
        start = 0.0 if oldest > 0 else oldest - 1.0
        differ = oldest < newest or (unknown and np.isfinite(oldest))
        arrays["times"] = np.array([start, float(differ)])
    write_arrays(work.part(CATALOGUE, "all"), arrays | ids)


def _add_digest(digest: Any, arrays: dict[str, NDArray[Any]]) -> None:
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {len(array)}\n".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")


def read_catalogue(work: Work) -> dict[str, NDArray[Any]]:
    """Return the arrays of `make_catalogue`: `popularity`, `number`, `users`, `likes`, and packed `ids`.

    `digest` is that of all rows with the ids of their users and items. Where there are times, `times` is
    what is taken from them so that all are above 0, and whether they tell any interactions apart.
    """
    return read_arrays(work.part(CATALOGUE, "all"))


def read_rows(work: Work, bucket: int) -> Rows:
    """Return the rows of a bucket."""
    catalogue, arrays = read_catalogue(work), read_arrays(work.part(ROWS, bucket))
    items, number = arrays["items"], catalogue["number"]
    if len(number) > len(catalogue["popularity"]):
        items = number[items]
    first = int(catalogue["users"][:bucket].sum())
    return Rows(first, unpacked("users", arrays), arrays["indptr"], items)


def read_times(work: Work, bucket: int) -> NDArray[np.float64] | None:
    """Return the times of a bucket's interactions: above 0, or 0 if unknown; None without times."""
    arrays = read_arrays(work.part(ROWS, bucket))
    if "times" not in arrays:
        return None
    times, start = arrays["times"], read_catalogue(work)["times"][0]
    return np.where(np.isfinite(times), times - start, 0.0)


def _gathered(work: Work, bucket: int) -> tuple[Any, NDArray[np.int64], Any, Any]:
    """Return a bucket's pairs in the order of files and rows: users, items, ratings, times."""
    import pyarrow as pa

    found = []
    for number in range(len(work.source.units)):
        with pa.memory_map(str(work.part(PAIRS, number))) as file, pa.ipc.open_file(file) as content:
            schema = content.schema
            found += [
                content.get_batch(k) for k in range(bucket, content.num_record_batches, work.buckets)
            ]
    table = pa.Table.from_batches(found, schema)
    users = table["user"].combine_chunks()
    if isinstance(users, pa.ChunkedArray):  # of none
        users = pa.concat_arrays(users.chunks) if users.num_chunks else pa.array([], users.type)
    others = [
        table[name].to_numpy() if name in table.column_names else None for name in ("rating", "time")
    ]
    if not work.source.user_text:
        users = users.to_numpy()
    return users, table["item"].to_numpy().astype(np.int64), *others
