"""Tables of the objects of any number of blocks, and what rows sum to over them.

A row x = x_1 ⊕ … ⊕ x_B has A^m(x) = Σ A^t1(x_1) ⋯ A^tB(x_B). With all blocks but one held fixed a row
is linear in that block's A^1…A^m, whose coefficients C are the convolution of the other blocks' tables:
what a step on a block's features needs are sums of these over each object's rows. What the steps on one
block have changed is brought into the rows by the pass that gathers for the next.

Source: as `recsys.fm.blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.fm.blocks import Block
from recsys.multilinear.arrays import ALIKE
from recsys.multilinear.losses import loss_slope
from recsys.multilinear.pairs import fill_table

__all__ = ["NOTHING", "BlockTables", "Change", "Component"]

Vector = NDArray[np.float64]

MOST_CHUNKS = 16
CANCELS = 1e4  # size of an object's A^(m−1) that would cancel too much of its rows' sums
ROWS_OF_CHUNK = 16  # for each object, from which another chunk costs little


class Component(NamedTuple):
    """One component's tables.

    `table`, (objects, m + 1), holds A^0…A^m of each object; `lower`, (objects, m − 1), A^1…A^(m−1) close
    together, for they are read in the order of the rows. `by_totals`: whether what the other blocks have
    is taken from the rows' sums over all blocks, by (3.20), which cancels where an object's own part is
    large.
    """

    table: Vector
    lower: Vector
    by_totals: bool


class Change(NamedTuple):
    """A pending change: what steps on a block changed in its tables, not yet applied to the rows.

    Attributes
    ----------
    block : int
        −1 for nothing.
    tables : (objects of the block, m + m − 1) float64
        The change of A^1…A^m, then A^1…A^(m−1) before.
    component : Component or None
        In which.
    """

    block: int
    tables: Vector
    component: Component | None


class BlockTables:
    """The objects of blocks of the same rows in one table, block after block.

    Rows are taken in chunks, each chunk object by object, so that threads do not share what they write.
    The chunks depend on the rows alone, and so does every sum. `of`, (rows, blocks) uint32, holds the
    index of each row's objects in the table, and `slices` those of each block's objects.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        ends = np.cumsum([0] + [block.rows.shape[0] for block in blocks]).tolist()
        self.slices = [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
        # numba asks a signed index whether it counts from the end
        self._own = [block.of.astype(np.uint32) for block in blocks]
        self.of = np.stack([own + np.uint32(a) for own, a in zip(self._own, ends, strict=False)], axis=1)
        n = len(self.of)
        self.chunks = int(np.clip(n // (ROWS_OF_CHUNK * max(ends[-1], 1)), 2, MOST_CHUNKS))
        cuts = np.arange(self.chunks + 1) * n // self.chunks
        self._entries, self._ptr = [], []
        for block in blocks:
            objects = block.rows.shape[0]
            key = np.repeat(np.arange(self.chunks), np.diff(cuts)) * objects + block.of
            self._entries.append(np.argsort(key, kind="stable").astype(np.uint32))
            ends_of = np.cumsum(np.bincount(key, minlength=self.chunks * objects))
            self._ptr.append(np.concatenate([[0], ends_of]).astype(np.uint64))

    def component(self, m: int, p: Vector) -> Component:
        """Return the tables of one component's parameters, (features,)."""
        out = np.empty((self.slices[-1].stop, m + 1))
        for block, place in zip(self.blocks, self.slices, strict=True):
            rows = block.rows
            fill_table(rows.indptr, rows.indices, rows.data, p[block.features], out[place])
        sizes = np.abs(out[:, 1:m]).max(axis=0, initial=0.0) ** (1.0 / np.arange(1, m))
        by_totals = m < 3 or float(sizes.max()) ** (m - 1) < CANCELS
        return Component(out, out[:, 1:m].copy(), by_totals)

    def add(self, component: Component, out: Vector) -> None:
        """Add A^m of each row to `out`."""
        _add(self.of, component.table, out)

    def changed(self, b: int, component: Component, before: Vector) -> Change:
        """Return the change of block b's tables since `before`, and update its `lower`."""
        place = self.slices[b]
        component.lower[place] = component.table[place, 1:-1]
        parts = [component.table[place, 1:] - before[:, 1:], before[:, 1:-1]]
        return Change(b, np.concatenate(parts, axis=1), component)

    def state(self, m: int, y: Vector, pred: Vector) -> Vector:
        """Return the state of each row for passes of order m: prediction, target, A^1…A^(m−1)."""
        out = np.zeros((len(y), max(m + 1, 4)))
        out[:, 0], out[:, 1] = pred, y
        return out

    def gather(
        self, b: int, component: Component, pending: Change, sign: float, state: Vector, loss: Any,
        threads: int | None, row_weights: Vector = ALIKE,
    ) -> Vector:  # fmt: skip
        """Return Σ r·C and Σ C·Cᵀ over each object's rows, of block b, (objects, m + m·m).

        r is the derivative of the loss after the pending change, which is added to the predictions,
        times `sign`, on the way. Both sums are over the rows times their weights.
        """
        m, other = component.table.shape[1] - 1, pending.component
        if other is not None and other is not component and other.by_totals != component.by_totals:
            self.apply(pending, sign, state, threads)
            pending, other = NOTHING, None
        sums = np.empty((self.chunks, self.blocks[b].rows.shape[0], m + m * m))
        shared = (
            self._own[pending.block], pending.block, pending.tables, sign, self._ptr[b],
            self._entries[b], state, row_weights if len(row_weights) > 1 else None, loss, sums,
        )  # fmt: skip
        if component.by_totals:
            kernel = {1: _gather_one, 2: _gather_two, 3: _gather_three}.get(m, _gather_many)
            fresh, own = other is not component, component.lower[self.slices[b]]
            in_threads(threads, kernel, fresh, own, self.of, component.lower, *shared)
        else:
            held = component.lower if other is None else other.lower
            in_threads(threads, _gather, b, held, self.of, component.lower, *shared)
        return sums.sum(axis=0)

    def apply(self, pending: Change, sign: float, state: Vector, threads: int | None) -> None:
        """Add a pending change, with a sign, to what each row is predicted or lacks."""
        if pending.component is not None:
            in_threads(
                threads, _apply, pending.block, self._own[pending.block], pending.tables,
                pending.component.lower, self.of, sign, state,
            )  # fmt: skip


NOTHING = Change(-1, np.empty((0, 0)), None)


# ---- kernels: `last` is the block of the pending change, `lasts` its object in each row. `row_weights`
# is None where rows have none, so that numba compiles the loops without them.


@jit
def _beside(b, of, lower, i, c):
    """Fill c with A^0… of all blocks of row i but block b."""
    c[:] = 0.0
    c[0] = 1.0
    for a in range(of.shape[1]):
        if a != b:
            u = of[i, a]
            for t in range(len(c) - 1, 0, -1):
                total = c[t]
                for q in range(t):
                    total += c[q] * lower[u, t - q - 1]
                c[t] = total


@jit
def _gather_one(
    part, stride, fresh, own, of, lower, lasts, last, change, sign, ptr, entries, state, row_weights,
    loss, sums,
):  # fmt: skip
    """Do as `_gather`, of order 1."""
    objects = sums.shape[1]
    for chunk in range(part, sums.shape[0], stride):
        for u in range(objects):
            first, end = ptr[chunk * objects + u], ptr[chunk * objects + u + 1]
            g, count = 0.0, float(end - first)
            if row_weights is not None:
                count = 0.0
            for k in range(first, end):
                i = entries[k]
                p = state[i, 0]
                if last >= 0:
                    p += sign * change[lasts[i], 0]
                    state[i, 0] = p
                e = loss_slope(loss, p, state[i, 1])
                if row_weights is not None:
                    e *= row_weights[i]
                    count += row_weights[i]
                g += e
            sums[chunk, u, 0], sums[chunk, u, 1] = g, count


@jit
def _gather_two(
    part, stride, fresh, own, of, lower, lasts, last, change, sign, ptr, entries, state, row_weights,
    loss, sums,
):  # fmt: skip
    """Do as `_gather`, of order 2, with the rows' A^1 in the third column of the state."""
    objects = sums.shape[1]
    for chunk in range(part, sums.shape[0], stride):
        for u in range(objects):
            first, end = ptr[chunk * objects + u], ptr[chunk * objects + u + 1]
            mine = own[u, 0]
            g0 = g1 = h1 = h2 = 0.0
            count = float(end - first)
            if row_weights is not None:
                count = 0.0
            for k in range(first, end):
                i = entries[k]
                p, t = state[i, 0], state[i, 2]
                if last >= 0:
                    v = lasts[i]
                    p += sign * (change[v, 0] * (t - change[v, 2]) + change[v, 1])
                    t += change[v, 0]
                    state[i, 0], state[i, 2] = p, t
                if fresh:
                    t = 0.0
                    for a in range(of.shape[1]):
                        t += lower[of[i, a], 0]
                    state[i, 2] = t
                e, x = loss_slope(loss, p, state[i, 1]), t - mine
                wx = x  # the weight times x
                if row_weights is not None:
                    weight = row_weights[i]
                    e, wx = weight * e, weight * x
                    count += weight
                g0 += e * x
                g1 += e
                h1 += wx
                h2 += wx * x
            sums[chunk, u, 0], sums[chunk, u, 1] = g0, g1
            sums[chunk, u, 2], sums[chunk, u, 3] = h2, h1
            sums[chunk, u, 4], sums[chunk, u, 5] = h1, count


@jit
def _gather_three(
    part, stride, fresh, own, of, lower, lasts, last, change, sign, ptr, entries, state, row_weights,
    loss, sums,
):  # fmt: skip
    """Do as `_gather`, of order 3, with the rows' A^1 and A^2 in the last columns of the state."""
    objects = sums.shape[1]
    for chunk in range(part, sums.shape[0], stride):
        for u in range(objects):
            first, end = ptr[chunk * objects + u], ptr[chunk * objects + u + 1]
            mine, more = own[u, 0], own[u, 1]
            g0 = g1 = g2 = h00 = h01 = h11 = h0 = h1 = 0.0
            count = float(end - first)
            if row_weights is not None:
                count = 0.0
            for k in range(first, end):
                i = entries[k]
                p, t, r = state[i, 0], state[i, 2], state[i, 3]
                if last >= 0:
                    v = lasts[i]
                    x = t - change[v, 3]
                    z = r - change[v, 4] - change[v, 3] * x
                    p += sign * (change[v, 0] * z + change[v, 1] * x + change[v, 2])
                    t += change[v, 0]
                    r += change[v, 1] + change[v, 0] * x
                    state[i, 0], state[i, 2], state[i, 3] = p, t, r
                if fresh:
                    t = r = 0.0
                    for a in range(of.shape[1]):
                        v = of[i, a]
                        r += lower[v, 1] + t * lower[v, 0]
                        t += lower[v, 0]
                    state[i, 2], state[i, 3] = t, r
                e, x = loss_slope(loss, p, state[i, 1]), t - mine
                z = r - more - mine * x
                wx, wz = x, z  # the weight times x, and times z
                if row_weights is not None:
                    weight = row_weights[i]
                    e, wx, wz = weight * e, weight * x, weight * z
                    count += weight
                g0 += e * z
                g1 += e * x
                g2 += e
                h00 += wz * z
                h01 += wz * x
                h11 += wx * x
                h0 += wz
                h1 += wx
            sums[chunk, u, 0], sums[chunk, u, 1], sums[chunk, u, 2] = g0, g1, g2
            sums[chunk, u, 3], sums[chunk, u, 4], sums[chunk, u, 5] = h00, h01, h0
            sums[chunk, u, 6], sums[chunk, u, 7], sums[chunk, u, 8] = h01, h11, h1
            sums[chunk, u, 9], sums[chunk, u, 10], sums[chunk, u, 11] = h0, h1, count


@jit
def _gather_many(
    part, stride, fresh, own, of, lower, lasts, last, change, sign, ptr, entries, state, row_weights,
    loss, sums,
):  # fmt: skip
    """Do as `_gather`, with the rows' A^1…A^(m−1) in the last columns of the state."""
    objects, m = sums.shape[1], lower.shape[1] + 1
    c = np.empty(m)
    for chunk in range(part, sums.shape[0], stride):
        sums[chunk] = 0.0
        for u in range(objects):
            for k in range(ptr[chunk * objects + u], ptr[chunk * objects + u + 1]):
                i = entries[k]
                p = state[i, 0]
                if last >= 0:
                    v = lasts[i]
                    c[0] = 1.0
                    for t in range(1, m):
                        total = state[i, 1 + t]
                        for q in range(1, t + 1):
                            total -= change[v, m + q - 1] * c[t - q]
                        c[t] = total
                    total = 0.0
                    for t in range(m):
                        total += change[v, t] * c[m - 1 - t]
                    p += sign * total
                    state[i, 0] = p
                    for t in range(1, m):
                        total = state[i, 1 + t]
                        for q in range(1, t + 1):
                            total += change[v, q - 1] * c[t - q]
                        state[i, 1 + t] = total
                if fresh:
                    _beside(-1, of, lower, i, c)
                    for t in range(1, m):
                        state[i, 1 + t] = c[t]
                c[0] = 1.0
                for t in range(1, m):
                    total = state[i, 1 + t]
                    for q in range(1, t + 1):
                        total -= own[u, q - 1] * c[t - q]
                    c[t] = total
                e, weight = loss_slope(loss, p, state[i, 1]), 1.0
                if row_weights is not None:
                    weight = row_weights[i]
                    e *= weight
                for t in range(m):
                    sums[chunk, u, t] += e * c[m - 1 - t]
                    for q in range(t + 1):
                        sums[chunk, u, m + t * m + q] += weight * c[m - 1 - t] * c[m - 1 - q]
            for t in range(m):
                for q in range(t):
                    sums[chunk, u, m + q * m + t] = sums[chunk, u, m + t * m + q]


@jit
def _gather(
    part, stride, b, held, of, lower, lasts, last, change, sign, ptr, entries, state, row_weights, loss,
    sums,
):  # fmt: skip
    """Bring the last change into the rows, and sum r·C and C·Cᵀ over each object's.

    C_t is A^(m−1−t) of the other blocks.
    """
    objects, m = sums.shape[1], lower.shape[1] + 1
    c = np.empty(m)
    for chunk in range(part, sums.shape[0], stride):
        sums[chunk] = 0.0
        for u in range(objects):
            for k in range(ptr[chunk * objects + u], ptr[chunk * objects + u + 1]):
                i = entries[k]
                if last >= 0:
                    v = lasts[i]
                    _beside(last, of, held, i, c)
                    total = 0.0
                    for t in range(m):
                        total += change[v, t] * c[m - 1 - t]
                    state[i, 0] += sign * total
                e, weight = loss_slope(loss, state[i, 0], state[i, 1]), 1.0
                if row_weights is not None:
                    weight = row_weights[i]
                    e *= weight
                _beside(b, of, lower, i, c)
                for t in range(m):
                    sums[chunk, u, t] += e * c[m - 1 - t]
                    for q in range(t + 1):
                        sums[chunk, u, m + t * m + q] += weight * c[m - 1 - t] * c[m - 1 - q]
            for t in range(m):
                for q in range(t):
                    sums[chunk, u, m + q * m + t] = sums[chunk, u, m + t * m + q]


@jit
def _apply(part, stride, last, lasts, change, held, of, sign, state):
    """Add the last change, with a sign, to each row."""
    m, n = held.shape[1] + 1, len(state)
    c = np.empty(m)
    for i in range(part * n // stride, (part + 1) * n // stride):
        v = lasts[i]
        _beside(last, of, held, i, c)
        total = 0.0
        for t in range(m):
            total += change[v, t] * c[m - 1 - t]
        state[i, 0] += sign * total


@jit
def _add(of, table, out):
    """Add A^m of each row to `out`."""
    m = table.shape[1] - 1
    c = np.empty(m + 1)
    for i in range(len(out)):
        c[:] = 0.0
        c[0] = 1.0
        for a in range(of.shape[1]):
            u = of[i, a]
            for t in range(m, 0, -1):
                total = c[t]
                for q in range(t):
                    total += c[q] * table[u, t - q]
                c[t] = total
        out[i] += c[m]
