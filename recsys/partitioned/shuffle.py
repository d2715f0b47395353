"""From Parquet to buckets of users: each worker reads one file's rows and sorts them by bucket."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.ids import buckets, numbers, packed, sorted_distinct, unpacked
from recsys.partitioned.source import batches
from recsys.partitioned.work import Work
from recsys.utils.atomic import replacing

ITEMS, PAIRS = "items", "pairs"


def items_of_unit(unit: tuple[int, str]) -> None:
    """Write which items a unit's rows name."""
    number, folder = unit
    work = Work.opened(folder)
    found: list[Any] = []
    for batch in batches(work.source, work.source.units[number], "items"):
        found = [sorted_distinct([*found, batch.items])]
    write_arrays(work.part(ITEMS, number), packed("items", found[0]) if found else {})


def number_items(work: Work) -> None:
    """Write all items that occur, in ascending order: an item's number is its position."""
    found: list[Any] = []
    for number in range(len(work.source.units)):
        arrays = read_arrays(work.part(ITEMS, number))
        if arrays:
            found = [sorted_distinct([*found, unpacked("items", arrays)])]
    write_arrays(work.part(ITEMS, "all"), packed("items", found[0]))


def named_items(work: Work) -> Any:
    """Return the ids of all items that are named."""
    return unpacked("items", read_arrays(work.part(ITEMS, "all")))


def pairs_of_unit(unit: tuple[int, str]) -> None:
    """Write a unit's rows, batch by batch, a part of each batch for each bucket of users.

    Record batch k·buckets + b of the file has what batch k has for bucket b, in the order of rows.
    """
    import pyarrow as pa

    number, folder = unit
    work = Work.opened(folder)
    source, count = work.source, work.buckets
    known = named_items(work)
    fields = [
        ("user", pa.large_string() if source.user_text else pa.int64()), ("item", pa.int32()),
    ]  # fmt: skip
    if source.rating:
        fields.append(("rating", pa.float64()))
    if source.time:
        fields.append(("time", pa.float64() if source.time_kind == "float64" else pa.int64()))
    schema = pa.schema(fields)
    with replacing(work.part(PAIRS, number)) as file, pa.ipc.new_file(file, schema) as out:
        for batch in batches(source, source.units[number]):
            bucket = buckets(batch.users, count)
            order = np.argsort(bucket, kind="stable")
            ends = np.cumsum(np.bincount(bucket, minlength=count))
            users = (
                batch.users.take(pa.array(order)) if source.user_text else pa.array(batch.users[order])
            )
            columns = [users, pa.array(numbers(batch.items, known)[order])]
            columns += [pa.array(c[order]) for c in (batch.rating, batch.time) if c is not None]
            whole = pa.record_batch(columns, schema=schema)
            for b in range(count):
                begin = int(ends[b - 1]) if b else 0
                out.write_batch(whole.slice(begin, int(ends[b]) - begin))
