"""Sparse EASE from counts on disk: each worker regresses a block of items on their neighbours."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.engines import Engine
from recsys.errors import InputError
from recsys.partitioned.arrays import read_arrays, write_arrays
from recsys.partitioned.counts import SHARES, Counted, count, refined
from recsys.partitioned.layout import order_of
from recsys.partitioned.rows import read_catalogue
from recsys.partitioned.work import Work
from recsys.rankers.ease import EASE, TOP_K
from recsys.rankers.sparse_inverse import check_ridge, kept_lengths, regressions
from recsys.utils.memory import size_text
from recsys.utils.model_file import Pieces

WEIGHT_BYTES = 40  # that a weight takes while it is put to its row
BLOCK_BYTES = 24  # of an entry of a matrix: with a copy, and a factor


def regressed(ranker: EASE, work: Work, engine: Engine, memory: int) -> Counted:
    """Return the weights of sparse EASE, on disk, by blocks of rows in the order of items.

    They are those of `sparse_inverse_weights`, to the bit; `top_k` is 200 where it is not given. A
    worker may take `memory` bytes for a block. FitError is raised as there.
    """
    popularity = read_catalogue(work)["popularity"]
    items, order = len(popularity), order_of(popularity, "rare")
    top_k = min(int(ranker.top_k or TOP_K), items)
    votes = float(ranker.votes)
    counted = count(work, "rare", engine, memory, votes=votes, diagonal=True)
    others = counted.lengths() - 1
    most = items - 1 if top_k >= items - 1 else int(others.max(initial=0))
    k = min(top_k, most)
    ridges = (ranker.regularization, ranker.ridge_power, ranker.dropout)
    told = [votes, top_k, *map(float, ridges)]
    name = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    stage, turned = f"regressions-{name}", f"weights-{name}"
    if BLOCK_BYTES * k * k > memory and not work.done(turned):
        raise InputError(
            f"ease with top_k={top_k} needs {size_text(3 * BLOCK_BYTES * k * k)} a worker and has "
            f"{size_text(3 * memory)}: lower top_k, or raise the memory of a worker"
        )
    own = np.empty(items)
    own[order] = counted.own()
    ridge = ranker._ridge(own)
    check_ridge(own, ridge, k)
    above = _above(work, counted)
    if not work.done(turned):
        plan = work.part(stage, "plan")
        if not plan.exists():
            (work.folder / stage).mkdir(exist_ok=True)
            lengths = kept_lengths(others, top_k)
            edges = _edges(work, counted, above, lengths, engine.workers, memory)
            arrays = {"edges": edges, "lengths": lengths, "own": own[order], "ridge": ridge[order]}
            write_arrays(plan, arrays | {"counted": counted.edges})
        edges = read_arrays(plan)["edges"]
        units = [
            (block, str(work.folder), stage, counted.stage, above) for block in range(len(edges) - 1)
        ]
        work.run(stage, regressions_of_block, units, engine)
        _plan_rows(work, stage, turned, len(edges) - 1, items, memory)
    rows = read_arrays(work.part(turned, "edges"))["edges"].copy()
    if not work.done(turned):
        parts = len(read_arrays(work.part(stage, "plan"))["edges"]) - 1
        work.run(
            turned, rows_of_block,
            [
                (block, str(work.folder), stage, turned, parts, int(rows[block]), int(rows[block + 1]))
                for block in range(len(rows) - 1)
            ],
            engine,
        )  # fmt: skip
    work.forget(stage)
    return Counted(work, turned, "number", rows)


def regressions_of_block(unit: tuple[int, str, str, str, str]) -> None:
    """Write the regressions of a block of positions: an item, which one on it, and the weight."""
    block, folder, stage, counts, above = unit
    work = Work.opened(folder)
    plan = read_arrays(work.part(stage, "plan"))
    low, high = plan["edges"][block : block + 2].tolist()
    part = int(np.searchsorted(plan["counted"], low, side="right")) - 1
    found = read_arrays(work.part(counts, part))
    skipped = low - int(plan["counted"][part])
    ends = np.concatenate(([0], np.cumsum(found["lengths"])))
    begin, end = ends[skipped], ends[skipped + high - low]
    rows = (
        ends[skipped : skipped + high - low + 1] - begin, found["indices"][begin:end],
        found["data"][begin:end],
    )  # fmt: skip
    order = order_of(read_catalogue(work)["popularity"], "rare")
    lengths = plan["lengths"][low:high]
    every = read_arrays(work.part(above, "rows"))
    near, weights = regressions(
        low, rows, (every["indptr"], every["indices"], every["data"]), plan["own"], plan["ridge"],
        order, np.cumsum(lengths) - lengths, lengths,
    )  # fmt: skip
    by_item = np.argsort(near, kind="stable")
    write_arrays(
        work.part(stage, block),
        {
            "item": near[by_item], "column": np.repeat(order[low:high], lengths)[by_item],
            "weight": weights[by_item],
        },
    )  # fmt: skip


def rows_of_block(unit: tuple[int, str, str, str, int, int, int]) -> None:
    """Write the rows of the items low…high of the weights, gathered from all regressions."""
    block, folder, stage, turned, parts, low, high = unit
    work = Work.opened(folder)
    found: list[dict[str, NDArray[Any]]] = []
    for number in range(parts):
        part = read_arrays(work.part(stage, number))
        begin, end = np.searchsorted(part["item"], [low, high])
        found.append({name: array[begin:end].copy() for name, array in part.items()})
    item, column, weight = (
        np.concatenate([part[name] for part in found]) for name in ("item", "column", "weight")
    )
    ordered = np.lexsort((column, item))
    write_arrays(
        work.part(turned, block),
        {
            "lengths": np.bincount(item - low, minlength=high - low), "indices": column[ordered],
            "data": weight[ordered],
        },
    )  # fmt: skip


def above_diagonal(first: int, part: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which entries of a block of counts are above the diagonal, given its first position."""
    rows = np.arange(first, first + len(part["lengths"]), dtype=np.int32)
    return np.asarray(part["indices"] > np.repeat(rows, part["lengths"]))


def _above(work: Work, counted: Counted) -> str:
    """Write the counts above the diagonal to one file, which workers map; return its stage.

    A regression reads rows of items anywhere, and of each only the counts with more popular items.
    """
    stage = f"{counted.stage}-above"
    if work.part(stage, "rows").exists():
        return stage
    (work.folder / stage).mkdir(exist_ok=True)
    lengths = []
    for block, first in enumerate(counted.edges[:-1].tolist()):
        part = counted.part(block)
        ends = np.cumsum(part["lengths"])
        inside = np.concatenate(([0], np.cumsum(above_diagonal(first, part))))
        lengths.append(inside[ends] - inside[ends - part["lengths"]])
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    entries = int(indptr[-1])

    def pieces(name: str, kind: type) -> Pieces:
        return counted.pieces("", entries, kind, lambda b, p: p[name][above_diagonal(b, p)])

    write_arrays(
        work.part(stage, "rows"),
        {"indptr": indptr, "indices": pieces("indices", np.int32), "data": pieces("data", np.float32)},
    )
    return stage


def _edges(
    work: Work, counted: Counted, above: str, lengths: NDArray[np.int64], workers: int, memory: int
) -> NDArray[np.int64]:
    """Divide the blocks of counts into blocks of equal work whose regressions fit the memory."""
    tails = np.diff(read_arrays(work.part(above, "rows"))["indptr"]).mean()
    k = lengths.astype(np.float64)
    load = np.cumsum(counted.lengths() + k * tails + k**3 / 6.0)
    even = np.searchsorted(load, np.linspace(0, load[-1], SHARES * workers + 1)[1:-1])
    edges = np.concatenate((counted.edges, even))
    return refined(edges, np.cumsum(lengths), memory // WEIGHT_BYTES)


def _plan_rows(work: Work, stage: str, turned: str, parts: int, items: int, memory: int) -> None:
    """Divide the rows of the weights into blocks that fit the memory."""
    if work.part(turned, "edges").exists():
        return
    (work.folder / turned).mkdir(exist_ok=True)
    lengths = np.zeros(items, dtype=np.int64)
    for number in range(parts):
        lengths += np.bincount(read_arrays(work.part(stage, number))["item"], minlength=items)
    entries = np.cumsum(lengths)
    even = np.searchsorted(entries, np.linspace(0, entries[-1], SHARES + 1)[1:-1])
    edges = np.concatenate(([0], np.minimum(even, items), [items]))
    write_arrays(work.part(turned, "edges"), {"edges": refined(edges, entries, memory // WEIGHT_BYTES)})
