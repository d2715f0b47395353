"""Programs, scores and lists from a structured Gram matrix: a view of sparse co-occurrence counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel
from recsys.kernels.gram.structured import StructuredGram, add_row, correction, entry, search
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import MAX_STEPS, solve_one
from recsys.utils.memory import check_memory
from recsys.utils.topn import offer, put_in_order

BLOCKS = 256  # of places beyond the head, whose best candidate is bounded at once
# What is known of a place while one user's list is made.
SEEN = 1  # a rarer liked item adds to it
BANNED = 2
OFFERED = 4


class Bounds(NamedTuple):
    """What bounds the scores of the items beyond the head, block of places by block.

    Attributes
    ----------
    edges : (blocks + 1,) int64
        First place of each block.
    block : (items,) int32
        Block of each place beyond the head.
    part : (popular, blocks + 1) int64
        Where each block begins in the row of an item of the head.
    peak : (popular, blocks) float64
        Largest correction of each such row in each block, at least 0.
    group_ptr, group_class, group_least
        The classes of items in each block, and the least offset among them.
    offset : (items,) float64
        By place.
    """

    edges: Any
    block: Any
    part: Any
    peak: Any
    group_ptr: Any
    group_class: Any
    group_least: Any
    offset: Any


class StructuredView:
    """A Gram matrix as a table over popularities and sparse co-occurrence counts."""

    def __init__(self, gram: StructuredGram) -> None:
        self.gram = gram
        self._bounds: tuple[NDArray[np.float64], Bounds] | None = None

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return whole rows."""
        return self.gram.rows(ids)

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        """Return the values between some items and one."""
        return self.gram.sub(rows, [item])[:, 0]

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[np.float64], offset: Any = None, scale: Any = None
    ) -> NDArray[np.floating]:
        """Return weighted sums of rows."""
        users, m = rows.shape
        out = np.empty((users, m), dtype=self.gram.dtype)
        offset = np.zeros(m) if offset is None else offset
        scale = np.zeros(users) if scale is None else scale
        shared = (
            self.gram.arrays, self.gram.order, rows.indptr, self.gram.place[rows.indices], weights,
            offset[self.gram.order], scale, out,
        )  # fmt: skip
        if users <= 1:
            _scores(0, 1, *shared)
        else:
            with parallel() as threads:
                _scores_parallel(threads, *shared)
        return out

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], lone: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Return weights and residuals of the rows' programs."""
        lengths = np.diff(rows.indptr)
        longest = int(lengths.max(initial=1))
        check_memory(8 * longest**2, f"the program of a user with {longest:,} items")
        alpha, residuals = np.empty(rows.nnz), np.zeros(rows.shape[0])
        shared = (
            np.argsort(-lengths, kind="stable"), rows.indptr, rows.indices, self.gram.place[rows.indices],
            self.gram.arrays, row_sums, lone, exact, ridge, omega, TOLERANCE, MAX_STEPS, longest, alpha,
            residuals,
        )  # fmt: skip
        if rows.shape[0] <= 1:
            _programs(0, 1, *shared)
        else:
            with parallel() as threads:
                _programs_parallel(threads, *shared)
        return alpha, residuals

    def top(
        self,
        rows: sp.csr_matrix,
        weights: NDArray[np.float64],
        offset: NDArray[np.float64],
        scale: NDArray[np.float64],
        skip_liked: bool,
        mask: NDArray[np.uint8],
        ids: NDArray[np.int32],
        best: NDArray[np.float32],
    ) -> None:
        """Fill ids and best as `recsys.utils.topn.top_n` would from `weighted`, to the bit.

        Weights and scales must be at least 0. Only items are scored whose scores might be among the
        best; the others are bounded, block by block: an item has no more than its class, its row sum
        and the largest values of the liked items' rows give it.
        """
        if self._bounds is None or self._bounds[0] is not offset:
            self._bounds = offset, self._bounded(offset)
        wide = best if best.dtype == self.gram.dtype else best.astype(self.gram.dtype)
        shared = (
            self.gram.arrays, self._bounds[1], self.gram.order, rows.indptr, self.gram.place[rows.indices],
            weights, scale, skip_liked, not mask.all(), mask, ids, wide,
        )  # fmt: skip
        if rows.shape[0] <= 1:
            _top(0, 1, *shared)
        else:
            with parallel() as threads:
                _top_parallel(threads, *shared)
        if wide is not best:
            best[:] = wide

    def _bounded(self, offset: NDArray[np.float64]) -> Bounds:
        a = self.gram.arrays
        m, popular = len(a.classes), len(a.head)
        edges = np.array([popular], dtype=np.int64)
        if popular < m:
            steps = np.geomspace(popular, m, min(BLOCKS, m - popular) + 1)
            edges = np.unique(np.rint(steps).astype(np.int64))
        blocks = len(edges) - 1
        block = np.zeros(m, dtype=np.int32)
        block[popular:] = np.repeat(np.arange(blocks), np.diff(edges))
        part, peak = np.empty((popular, blocks + 1), np.int64), np.zeros((popular, blocks))
        with parallel() as threads:
            _peaks(threads, a, edges, part, peak)
        key = block[popular:] * np.int64(len(a.sizes)) + a.classes[popular:]
        found, inverse = np.unique(key, return_inverse=True)
        by_place = offset[self.gram.order]
        least = np.full(len(found), np.inf)
        np.minimum.at(least, inverse, by_place[popular:])
        ptr = np.searchsorted(found // len(a.sizes), np.arange(blocks + 1))
        return Bounds(edges, block, part, peak, ptr, found % len(a.sizes), least, by_place)


# ---- kernels


@jit
def _gather(G, items, n, place_of, K):
    """Fill the symmetric (n, n) block of the liked items, by their places."""
    popular = len(G.head)
    filled = len(G.table) == len(G.sizes)
    for a in range(n):
        i = items[a]
        K[a, a] = G.diagonal[G.classes[i]] + (G.table[G.classes[i], G.classes[i]] if filled else 0.0)
        place_of[i] = a
    for a in range(n):
        i = items[a]
        if i < popular:
            for b in range(a):
                j = items[b]
                if j < popular:
                    v = np.float64(G.head[i, j])
                    v += G.table[G.classes[i], G.classes[j]] if filled else 0.0
                    K[a, b] = v
                    K[b, a] = v
            continue
        for b in range(n):  # each pair is looked for in the row of its rarer item
            j = items[b]
            if j < i:
                v = G.table[G.classes[i], G.classes[j]] if filled else 0.0
                K[a, b] = v
                K[b, a] = v
        begin, end = G.indptr[i], G.indptr[i + 1]
        if end - begin <= 10 * n:
            for p in range(begin, end):
                j = G.indices[p]
                if j >= i:
                    break
                b = place_of[j]
                if b >= 0:
                    v = K[a, b] + correction(G, i, j, G.together[p])
                    K[a, b] = v
                    K[b, a] = v
        else:
            for b in range(n):
                j = items[b]
                if j < i:
                    p = search(G, begin, end, j)
                    if p < end and G.indices[p] == j:
                        v = K[a, b] + correction(G, i, j, G.together[p])
                        K[a, b] = v
                        K[b, a] = v
    for a in range(n):
        place_of[items[a]] = -1


@jit
def _programs(
    first, stride, order, indptr, indices, places, G, row_sums, lone, exact, ridge_p, omega, tol,
    max_steps, longest, alpha, residuals,
):  # fmt: skip
    m = len(G.classes)
    block = np.empty(longest * longest, dtype=np.float32)
    small = np.empty(longest * longest, dtype=np.float32)
    work = np.empty((7, longest))
    sign, ridge = np.ones(longest), np.empty(longest)
    q, g, face = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.uint32)
    narrow = np.empty((2, longest), dtype=np.float32)
    place_of = np.full(m, -1, dtype=np.int32)
    for k in range(first, len(order), stride):
        u = order[k]
        items = indices[indptr[u] : indptr[u + 1]]
        n = len(items)
        if n == 0:
            continue
        K = block[: n * n].reshape(n, n)
        _gather(G, places[indptr[u] : indptr[u + 1]], n, place_of, K)
        g[:n] = 0.0
        for i in range(n):
            for j in range(n):
                g[j] += K[i, j]
        residuals[u] = solve_one(
            K, n, items, row_sums, lone, m, exact, sign, ridge_p, omega[indptr[u] : indptr[u + 1]],
            ridge, alpha[indptr[u] : indptr[u + 1]], q, g, face, small, work, narrow, tol, max_steps,
        )  # fmt: skip


@jit(parallel=True)
def _programs_parallel(
    threads, order, indptr, indices, places, G, row_sums, lone, exact, ridge_p, omega, tol, max_steps,
    longest, alpha, residuals,
):  # fmt: skip
    for t in numba.prange(threads):
        _programs(
            t, threads, order, indptr, indices, places, G, row_sums, lone, exact, ridge_p, omega, tol,
            max_steps, longest, alpha, residuals,
        )  # fmt: skip


@jit
def _levels(G, begin, end, places, weights, level):
    """What each class of items has from the table: Σ weights·table."""
    level[:] = 0.0
    if len(G.table) == len(G.sizes):
        for p in range(begin, end):
            row, w = G.table[G.classes[places[p]]], weights[p]
            for c in range(len(level)):
                level[c] += w * row[c]


@jit
def _add_head(G, begin, end, places, weights, acc):
    """Add the corrections of the items of the head."""
    popular = len(G.head)
    for p in range(begin, end):
        i, w = places[p], weights[p]
        if i < popular:
            row = G.head[i]
            for j in range(popular):
                acc[j] += w * row[j]
        else:
            first = G.indptr[i]
            add_row(G, i, w, first, search(G, first, G.indptr[i + 1], popular), acc)


@jit
def _scores(first, stride, G, order, indptr, places, weights, offset, scale, out):
    users, m = out.shape
    popular = len(G.head)
    acc, level = np.empty(m), np.empty(len(G.sizes))
    for u in range(first, users, stride):
        begin, end = indptr[u], indptr[u + 1]
        _levels(G, begin, end, places, weights, level)
        for j in range(m):
            acc[j] = level[G.classes[j]] - scale[u] * offset[j]
        _add_head(G, begin, end, places, weights, acc)
        for p in range(begin, end):
            i, w = places[p], weights[p]
            last = G.indptr[i + 1]
            if i < popular:
                add_row(G, i, w, G.split[i], last, acc)
            else:
                add_row(G, i, w, search(G, G.indptr[i], last, popular), last, acc)
                acc[i] += w * G.diagonal[G.classes[i]]
        for j in range(m):
            out[u, order[j]] = acc[j]


@jit(parallel=True)
def _scores_parallel(threads, G, order, indptr, places, weights, offset, scale, out):
    for t in numba.prange(threads):
        _scores(t, threads, G, order, indptr, places, weights, offset, scale, out)


@jit
def _peaks_part(first, stride, G, edges, part, peak):
    popular, blocks = peak.shape
    for i in range(first, popular, stride):
        p, end = G.split[i], G.indptr[i + 1]
        for k in range(blocks):
            part[i, k] = p
            while p < end and G.indices[p] < edges[k + 1]:
                peak[i, k] = max(peak[i, k], correction(G, i, G.indices[p], G.together[p]))
                p += 1
        part[i, blocks] = p


@jit(parallel=True)
def _peaks(threads, G, edges, part, peak):
    for t in numba.prange(threads):
        _peaks_part(t, threads, G, edges, part, peak)


@jit
def _floor(s, size):
    """Return what a score must be at least to enter the heap s, rounding to its precision allowed for."""
    if size < len(s):
        return -np.inf
    worst = np.float64(s[0])
    return worst - 1.2e-7 * abs(worst) - 1e-45 if s.itemsize == 4 else worst


@jit
def _scan(acc, low, high, barred, mark, restricted, mask, order, s, top, size):
    """Offer the places low…high that are not marked with any of the bits barred."""
    floor = _floor(s, size)
    for j in range(low, high):
        if acc[j] < floor or mark[j] & barred or (restricted and mask[order[j]] == 0):
            continue
        size = offer(s, top, size, acc[j], order[j])
        floor = _floor(s, size)
    return size


@jit
def _exact(G, j, begin, end, places, weights, start):
    """Return the score of one place, added up in the order of the liked items."""
    total = start
    for p in range(begin, end):
        total += weights[p] * entry(G, places[p], j)
    return total


@jit
def _score_block(G, B, k, begin, end, places, weights, level, scale, acc):
    """Score all places of a block, as `_scores` does."""
    popular = len(G.head)
    low, high = B.edges[k], B.edges[k + 1]
    for j in range(low, high):
        acc[j] = level[G.classes[j]] - scale * B.offset[j]
    for p in range(begin, end):
        i, w = places[p], weights[p]
        if i < popular:
            add_row(G, i, w, B.part[i, k], B.part[i, k + 1], acc)
        else:
            last = G.indptr[i + 1]
            at = search(G, G.indptr[i], last, low)
            add_row(G, i, w, at, search(G, at, last, high), acc)
            if low <= i < high:
                acc[i] += w * G.diagonal[G.classes[i]]


@jit
def _touch(G, i, start, last, mark, touched, partial, count):
    """Note the places that a row beyond the head has entries at, and start their sums."""
    for e in range(start, last):
        j = G.indices[e]
        if mark[j] & SEEN == 0:
            mark[j] |= SEEN
            partial[j] = 0.0
            touched[count] = j
            count += 1
    if mark[i] & SEEN == 0:
        mark[i] |= SEEN
        partial[i] = 0.0
        touched[count] = i
        count += 1
    return count


@jit
def _top(
    first, stride, G, B, order, indptr, places, weights, scale, skip_liked, restricted, mask, ids, best
):  # fmt: skip
    m, popular, blocks = len(G.classes), len(G.head), len(B.edges) - 1
    acc, partial, level = np.empty(m), np.empty(m), np.empty(len(G.sizes))
    mark, touched = np.zeros(m, dtype=np.uint8), np.empty(m, dtype=np.int32)
    rest, bound = np.empty(blocks), np.empty(blocks)
    for u in range(first, len(ids), stride):
        begin, end = indptr[u], indptr[u + 1]
        s, top, c = best[u], ids[u], scale[u]
        rounding = 2.3e-16 * (end - begin + 8)
        if skip_liked:
            for p in range(begin, end):
                mark[places[p]] |= BANNED
        _levels(G, begin, end, places, weights, level)
        for j in range(popular):
            acc[j] = level[G.classes[j]] - c * B.offset[j]
        _add_head(G, begin, end, places, weights, acc)
        size = _scan(acc, 0, popular, BANNED, mark, restricted, mask, order, s, top, 0)
        # Beyond the head, what rarer liked items add is summed, and what popular ones add is bounded.
        count = 0
        rest[:] = 0.0
        for p in range(begin, end):
            i, w = places[p], weights[p]
            if i < popular:
                for k in range(blocks):
                    rest[k] += w * B.peak[i, k]
                continue
            start = search(G, G.indptr[i], G.indptr[i + 1], popular)
            count = _touch(G, i, start, G.indptr[i + 1], mark, touched, partial, count)
            add_row(G, i, w, start, G.indptr[i + 1], partial)
            partial[i] += w * G.diagonal[G.classes[i]]
        floor = _floor(s, size)
        for e in range(count):
            j = touched[e]
            if mark[j] & BANNED or (restricted and mask[order[j]] == 0):
                continue
            k, own, taken = B.block[j], level[G.classes[j]], c * B.offset[j]
            room = rounding * (abs(own) + abs(taken) + partial[j] + 2.0 * rest[k])
            most = own - taken + partial[j] + rest[k] + room
            if most < floor:
                continue
            for p in range(begin, end):  # what bounds it is replaced by what it has, one by one
                i = places[p]
                if i < popular:
                    most += weights[p] * (entry(G, i, j) - B.peak[i, k])
                    if most < floor:
                        break
            else:
                score = _exact(G, j, begin, end, places, weights, own - taken)
                size = offer(s, top, size, score, order[j])
                floor = _floor(s, size)
                mark[j] |= OFFERED
        for k in range(blocks):
            high, width = -np.inf, 0.0
            for e in range(B.group_ptr[k], B.group_ptr[k + 1]):
                own, taken = level[B.group_class[e]], c * B.group_least[e]
                high, width = max(high, own - taken), max(width, abs(own) + abs(taken))
            bound[k] = high + rest[k] + rounding * (width + rest[k])
        while True:
            k = -1
            for b in range(blocks):
                if bound[b] > -np.inf and (k < 0 or bound[b] > bound[k]):
                    k = b
            if k < 0 or bound[k] < _floor(s, size):
                break
            bound[k] = -np.inf
            _score_block(G, B, k, begin, end, places, weights, level, c, acc)
            size = _scan(
                acc, B.edges[k], B.edges[k + 1], BANNED | OFFERED, mark, restricted, mask, order, s, top,
                size,
            )  # fmt: skip
        put_in_order(s, top, size)
        for e in range(count):
            mark[touched[e]] = 0
        for p in range(begin, end):
            mark[places[p]] = 0


@jit(parallel=True)
def _top_parallel(
    threads, G, B, order, indptr, places, weights, scale, skip_liked, restricted, mask, ids, best
):  # fmt: skip
    for t in numba.prange(threads):
        _top(
            t, threads, G, B, order, indptr, places, weights, scale, skip_liked, restricted, mask, ids,
            best,
        )  # fmt: skip
