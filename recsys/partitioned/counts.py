"""Co-occurrence counts by blocks of items, computed independently by the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.engines import Engine
from recsys.kernels.gram.blocks import block_of_counts
from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.layout import joined, make_layout, users_of
from recsys.partitioned.rows import read_catalogue
from recsys.partitioned.work import Work
from recsys.utils.model_file import Pieces

ENTRY_BYTES = 8  # of a number and an item
VISIT = 8  # cost of visiting a user's row, in interactions
SHARES = 8  # least number of blocks per worker, so that all finish at about the same time


@dataclass(frozen=True)
class Counted:
    """Counts on disk."""

    work: Work
    stage: str
    order: str  # of items, as in `recsys.partitioned.layout`
    edges: NDArray[np.int64]  # (blocks + 1,) first position of each block

    def part(self, block: int) -> dict[str, NDArray[Any]]:
        """Return a block's `lengths`, `indices`, `data` and `own`."""
        return read_arrays(self.work.part(self.stage, block))

    def lengths(self) -> NDArray[np.int64]:
        """Return how many entries each row has."""
        return self._joined("lengths")

    def own(self) -> NDArray[np.float64]:
        """Return the sums of votes of each position's item."""
        return self._joined("own")

    def _joined(self, name: str) -> NDArray[Any]:
        """Return a short array of all blocks, copied: what is left in a file keeps all of it mapped."""
        return np.concatenate([self.part(b)[name].copy() for b in range(len(self.edges) - 1)])

    def pieces(
        self,
        name: str,
        entries: int,
        dtype: Any,
        change: Callable[[int, dict[str, NDArray[Any]]], NDArray[Any]] | None = None,
    ) -> Pieces:
        """Return `indices` or `data` of all blocks, `entries` in all, to be written.

        `change` returns what to write of a block instead, from its first position and its arrays.
        """

        def parts() -> Iterator[NDArray[Any]]:
            for block, first in enumerate(self.edges[:-1].tolist()):
                part = self.part(block)
                found = part[name] if change is None else change(first, part)
                yield found.astype(dtype, copy=False)

        return Pieces((entries,), np.dtype(dtype), parts)


def count(
    work: Work,
    order: str,
    engine: Engine,
    memory: int,
    dtype: type = np.float32,
    votes: float = 0.0,
    diagonal: bool = False,
) -> Counted:
    """Count the pairs of all items, in an `order` of them.

    A worker may take `memory` bytes for a block. The dtype is of counts that nothing weighs; users count
    |profile|^−votes; `diagonal` is as in `block_of_counts`.
    """
    make_layout(work, order, engine)
    exponent = repr(float(votes)).removesuffix(".0")  # all digits: other votes are another stage
    stage = f"counts-{order}-{exponent}-{'own' if diagonal else 'pairs'}"
    plan = work.part(stage, "edges")
    if not plan.exists():
        (work.folder / stage).mkdir(exist_ok=True)
        write_arrays(plan, {"edges": blocks_of(work, order, engine.workers, memory)})
    edges = read_arrays(plan)["edges"]
    if votes and not work.part(stage, "votes").exists():
        lengths = np.diff(joined(work, order)["indptr"])
        write_arrays(
            work.part(stage, "votes"),
            {"votes": np.maximum(lengths, 1).astype(np.float64) ** -votes},
        )
    units = [
        (
            block, str(work.folder), order, stage, int(edges[block]), int(edges[block + 1]),
            np.dtype(dtype).str, bool(votes), diagonal,
        )
        for block in range(len(edges) - 1)
    ]  # fmt: skip
    work.run(stage, counts_of_block, units, engine)
    return Counted(work, stage, order, edges)


def counts_of_block(unit: tuple[int, str, str, str, int, int, str, bool, bool]) -> None:
    """Write the counts of a block of items."""
    block, folder, order, stage, low, high, kind, voted, diagonal = unit
    work = Work.opened(folder)
    rows = joined(work, order)
    items = len(rows["cost"])
    most = int(np.minimum(rows["cost"][low:high], items).sum())
    votes = read_arrays(work.part(stage, "votes"))["votes"] if voted else None
    found = block_of_counts(
        low, rows["indptr"], rows["indices"], items, *users_of(work, order, low, high), most,
        np.dtype(kind).type, votes, diagonal,
    )  # fmt: skip
    arrays = found._asdict()
    if found.data.dtype.kind == "u":  # most blocks have small counts only: a file of bytes
        arrays["data"] = found.data.astype(np.min_scalar_type(int(found.data.max(initial=0))))
    write_arrays(work.part(stage, block), arrays)


def blocks_of(work: Work, order: str, workers: int, memory: int) -> NDArray[np.int64]:
    """Divide the items, by position, into blocks of equal work whose counts fit the memory."""
    rows, popularity = joined(work, order), read_catalogue(work)["popularity"]
    cost = rows["cost"]
    entries = np.cumsum(np.minimum(cost, len(cost)))
    load = np.cumsum(cost + VISIT * np.sort(popularity)[::-1] if order == "popular" else cost)
    blocks = max(SHARES * workers, -(-int(entries[-1]) * ENTRY_BYTES // max(1, memory)))
    edges = np.searchsorted(load, np.linspace(0, load[-1], min(blocks, len(cost)) + 1)[1:-1])
    return refined(np.concatenate(([0], edges, [len(cost)])), entries, memory // ENTRY_BYTES)


def refined(edges: NDArray[np.integer], entries: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Divide blocks, by their edges, further, so that each has at most `most` entries, or one row.

    `entries`, (rows,), are those of all rows up to each one.
    """
    edges = np.unique(edges)
    out = [int(edges[0])]
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        while low < high:
            before = entries[low - 1] if low else 0
            fits = int(np.searchsorted(entries, before + max(1, most), side="right"))
            low = min(max(fits, low + 1), high)
            out.append(int(low))
    return np.array(out, dtype=np.int64)
