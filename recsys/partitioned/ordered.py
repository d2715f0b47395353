"""Counts of what follows what, by blocks of items: of histories in the order of their times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.engines import Engine
from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.counts import Counted, blocks_of
from recsys.partitioned.layout import joined, make_layout, users_of
from recsys.partitioned.rows import read_catalogue, read_rows, read_times
from recsys.partitioned.work import Work
from recsys.rankers.directed_cosine import Ordered, followed_by, steps_of
from recsys.rankers.sequences import sequences
from recsys.utils.model_file import Pieces

ORDER = "number"  # of items


def has_times(work: Work) -> bool:
    """Return whether there are times that tell any interactions apart."""
    return bool(read_catalogue(work).get("times", np.zeros(2))[1])


def stage_name(seed: int) -> str:
    """Return a seed as it may stand in the name of a folder: of any size."""
    plain = str(int(seed))
    return plain if len(plain) <= 20 else hashlib.sha256(plain.encode()).hexdigest()[:32]


def make_sequences(work: Work, seed: int, engine: Engine) -> str:
    """Write all histories in their order to one file, which workers map; return its stage.

    The seed orders interactions of equal times.
    """
    make_layout(work, ORDER, engine)
    stage = f"ordered-{stage_name(seed)}"
    likes = read_catalogue(work)["likes"]
    units = [
        (bucket, str(work.folder), stage, seed, int(likes[:bucket].sum()))
        for bucket in range(work.buckets)
    ]
    work.run(stage, sequences_of_bucket, units, engine)
    if not work.part(stage, "rows").exists():
        total, longest = int(likes.sum()), 0
        for bucket in range(work.buckets):
            gaps = read_arrays(work.part(stage, bucket))["gaps"]
            longest = max(longest, int(gaps.max(initial=0)))

        def pieces(name: str) -> Pieces:
            def parts() -> Iterator[NDArray[Any]]:
                return (read_arrays(work.part(stage, b))[name] for b in range(work.buckets))

            return Pieces((total,), np.dtype(np.int32), parts)

        arrays = {"items": pieces("items"), "gaps": pieces("gaps"), "longest": np.array([longest])}
        write_arrays(work.part(stage, "rows"), arrays)
    return stage


def sequences_of_bucket(unit: tuple[int, str, str, int, int]) -> None:
    """Write a bucket's interactions from oldest to newest per user, with the gap to the one before."""
    bucket, folder, stage, seed, before = unit
    work = Work.opened(folder)
    rows = read_rows(work, bucket)
    shape = (len(rows.indptr) - 1, len(read_catalogue(work)["popularity"]))
    liked = sp.csr_matrix((np.ones(len(rows.items), np.uint8), rows.items, rows.indptr), shape)
    times = read_times(work, bucket) if has_times(work) else None
    found = sequences(liked, times, seed, before)
    write_arrays(work.part(stage, bucket), {"items": found.items, "gaps": found.gaps.astype(np.int32)})


def count_followed(
    work: Work,
    engine: Engine,
    memory: int,
    seed: int,
    votes: float,
    law: tuple[str, NDArray[np.float64], NDArray[np.float64]],
    backward: float,
) -> Counted:
    """Sum what users vote for each item after each other one, as `followed` does.

    A worker may take `memory` bytes for a block. The seed orders interactions of equal times, users
    count |profile|^−votes, `law` is that of the gap (name, rates and coefficients of its exponentials),
    and an item before another one counts `backward`.
    """
    ordered = make_sequences(work, seed, engine)
    told, rates, coefficients = law
    stage = f"followed-{seed}-{told}-{backward!r}-{votes!r}"
    plan = work.part(stage, "plan")
    if not plan.exists():
        (work.folder / stage).mkdir(exist_ok=True)
        edges = blocks_of(work, ORDER, engine.workers, memory)
        lengths = np.diff(joined(work, ORDER)["indptr"])
        longest = int(read_arrays(work.part(ordered, "rows"))["longest"][0])
        write_arrays(
            plan,
            {
                "edges": edges, "votes": np.maximum(lengths, 1.0) ** -votes, "law": coefficients,
                "steps": steps_of(longest, rates),
            },
        )  # fmt: skip
    edges = read_arrays(plan)["edges"].copy()
    units = [
        (block, str(work.folder), ordered, stage, int(edges[block]), int(edges[block + 1]), backward)
        for block in range(len(edges) - 1)
    ]
    work.run(stage, followed_of_block, units, engine)
    return Counted(work, stage, ORDER, edges)


def followed_of_block(unit: tuple[int, str, str, str, int, int, float]) -> None:
    """Write the sums of a block of items."""
    block, folder, ordered, stage, low, high, backward = unit
    work = Work.opened(folder)
    plan, rows = read_arrays(work.part(stage, "plan")), read_arrays(work.part(ordered, "rows"))
    layout = joined(work, ORDER)
    histories = Ordered(layout["indptr"], rows["items"], rows["gaps"], plan["steps"], plan["votes"])
    lengths, indices, data = followed_by(
        low, *users_of(work, ORDER, low, high), histories, len(layout["cost"]), plan["law"], backward
    )
    write_arrays(work.part(stage, block), {"lengths": lengths, "indices": indices, "data": data})


def kept_times(work: Work) -> Callable[[], Iterator[NDArray[np.float64]]]:
    """Return a function that yields the times of all interactions, bucket by bucket."""

    def parts() -> Iterator[NDArray[np.float64]]:
        for bucket in range(work.buckets):
            times = read_times(work, bucket)
            assert times is not None
            yield times

    return parts
