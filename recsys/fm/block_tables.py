"""Tables of the objects of any number of blocks, and what rows sum to over them.

A row x = x_1 ⊕ … ⊕ x_B has A^m(x) = Σ A^t1(x_1) ⋯ A^tB(x_B). With all blocks but one held fixed a row
is linear in that block's A^1…A^m, whose coefficients C are the convolution of the other blocks' tables:
what a step on a block's features needs are sums of these over each object's rows.

Source: as `recsys.fm.blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.fm.blocks import Block
from recsys.multilinear.pairs import fill_table

__all__ = ["BlockTables", "in_threads"]

Vector = NDArray[np.float64]


class BlockTables:
    """The blocks' objects in one table, block after block.

    Parameters
    ----------
    blocks : sequence of Block
        Of the same rows.

    Attributes
    ----------
    of : (blocks, rows) int64
        The place of each row's objects in the table.
    slices : list of slice
        The places of each block's objects.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        ends = np.cumsum([0] + [block.rows.shape[0] for block in blocks]).tolist()
        self.slices = [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
        self.of = np.array(
            [block.of.astype(np.int64) + a for block, a in zip(blocks, ends, strict=False)]
        )

    def tables(self, m: int, p: Vector) -> Vector:
        """Return A^0…A^m of every object for one component, (objects, m + 1)."""
        out = np.empty((self.slices[-1].stop, m + 1))
        for block, place in zip(self.blocks, self.slices, strict=True):
            rows = block.rows
            fill_table(rows.indptr, rows.indices, rows.data, p[block.features], out[place])
        return out

    def add(self, table: Vector, out: Vector) -> None:
        """Add A^m of each row to `out`."""
        _add(self.of, table, out)

    def gather(self, b: int, table: Vector, r: Vector, sums: Vector, threads: int | None) -> None:
        """Fill sums, (objects, m + m·m), with Σ r·C and Σ C·Cᵀ over each object's rows, of block b."""
        block = self.blocks[b]
        in_threads(threads, _gather, b, self.of, table, block.ptr, block.entries, r, sums)

    def apply(
        self, b: int, table: Vector, change: Vector, sign: float, out: Vector, threads: int | None
    ) -> None:
        """Add a change of block b's tables, with a sign, to what each row is predicted or lacks."""
        in_threads(threads, _apply, b, self.of, table, change, self.slices[b].start, sign, out)


def in_threads(threads: int | None, function: Any, *args: Any) -> None:
    """Call a function of `in_parts`, here for one thread."""
    if threads == 1:
        function(0, 1, *args)
        return
    with parallel(threads) as granted:
        in_parts(granted, function, *args)


# ---- kernels


@jit
def _others(b, of, table, i, top, c, room):
    """Fill c with A^0…A^top of all blocks of row i but block b."""
    first = True
    for a in range(of.shape[0]):
        if a == b:
            continue
        own = table[of[a, i]]
        if first:
            for t in range(top + 1):
                c[t] = own[t]
            first = False
        else:
            for t in range(top + 1):
                total = 0.0
                for q in range(t + 1):
                    total += c[q] * own[t - q]
                room[t] = total
            for t in range(top + 1):
                c[t] = room[t]
    if first:
        c[: top + 1] = 0.0
        c[0] = 1.0


@jit
def _gather(first, stride, b, of, table, ptr, entries, r, sums):
    """Sum r·C and C·Cᵀ over each object's rows, C_t the others' A^(m−1−t)."""
    m = table.shape[1] - 1
    c, room = np.empty(m), np.empty(m)
    for u in range(first, len(ptr) - 1, stride):
        if m == 1:
            g = 0.0
            for k in range(ptr[u], ptr[u + 1]):
                g += r[entries[k]]
            sums[u, 0], sums[u, 1] = g, ptr[u + 1] - ptr[u]
            continue
        if m == 2:
            g0 = g1 = h1 = h2 = 0.0
            for k in range(ptr[u], ptr[u + 1]):
                i = entries[k]
                x = 0.0
                for a in range(of.shape[0]):
                    if a != b:
                        x += table[of[a, i], 1]
                e = r[i]
                g0 += e * x
                g1 += e
                h1 += x
                h2 += x * x
            sums[u, 0], sums[u, 1] = g0, g1
            sums[u, 2], sums[u, 3], sums[u, 4], sums[u, 5] = h2, h1, h1, ptr[u + 1] - ptr[u]
            continue
        sums[u] = 0.0
        for k in range(ptr[u], ptr[u + 1]):
            i = entries[k]
            _others(b, of, table, i, m - 1, c, room)
            e = r[i]
            for t in range(m):
                sums[u, t] += e * c[m - 1 - t]
                for q in range(t + 1):
                    sums[u, m + t * m + q] += c[m - 1 - t] * c[m - 1 - q]
        for t in range(m):
            for q in range(t):
                sums[u, m + q * m + t] = sums[u, m + t * m + q]


@jit
def _apply(first, stride, b, of, table, change, start, sign, out):
    """Add what a sweep changed, with a sign, to each row."""
    m, n = table.shape[1] - 1, len(out)
    c, room = np.empty(m), np.empty(m)
    for i in range(first * n // stride, (first + 1) * n // stride):
        mine = change[of[b, i] - start]
        if m == 2:
            x = 0.0
            for a in range(of.shape[0]):
                if a != b:
                    x += table[of[a, i], 1]
            out[i] += sign * (mine[1] * x + mine[2])
            continue
        _others(b, of, table, i, m - 1, c, room)
        total = 0.0
        for t in range(1, m + 1):
            total += mine[t] * c[m - t]
        out[i] += sign * total


@jit
def _add(of, table, out):
    """Add A^m of each row to `out`."""
    m = table.shape[1] - 1
    c, room = np.empty(m + 1), np.empty(m + 1)
    for i in range(len(out)):
        _others(-1, of, table, i, m, c, room)
        out[i] += c[m]
