"""Programs, scores and lists from a structured Gram matrix: a view of sparse co-occurrence counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel
from recsys.kernels.gram.structured import StructuredGram, add_row, computed, row_values, search
from recsys.kernels.plans import LINEAR
from recsys.optim.simplex_qp import TOLERANCE
from recsys.rankers._margin_programs import MAX_STEPS, solve_one
from recsys.utils.memory import check_memory
from recsys.utils.topn import offer, put_in_order

BLOCKS = 256  # of places beyond the head, whose best candidate is bounded at once
BOUNDED = 1024  # most popular items, whose long rows are bounded rather than walked
NEAR = 0.3  # of the score to beat: blocks that may come this near are scored whole
# What is known of a place while one user's list is made.
SEEN = 1  # it is listed
BANNED = 2


class Bounds(NamedTuple):
    """What bounds the scores of the items beyond the head, block of places by block.

    Attributes
    ----------
    edges : (blocks + 1,) int64
        First place of each block.
    block : (items,) int32
        Block of each place beyond the head.
    part : (bounded, blocks + 1) int64
        Where each block begins in the row of one of the most popular items.
    peak : (bounded, blocks) float64
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
        bounded = min(BOUNDED, popular)
        part, peak = np.empty((bounded, blocks + 1), np.int64), np.zeros((bounded, blocks))
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
    indptr, indices, together, head, classes = G.indptr, G.indices, G.together, G.head, G.classes
    table, diagonal, own, lookup = G.table, G.diagonal, G.own, G.lookup
    popular, depth, linear, single = len(head), lookup.shape[1], G.code == LINEAR, G.single
    filled = len(table) == len(diagonal)
    for a in range(n):
        place_of[items[a]] = a
        ci = classes[items[a]]
        for b in range(a + 1):
            K[a, b] = table[ci, classes[items[b]]] if filled else 0.0
        K[a, a] += diagonal[ci]
    for a in range(n):
        i = items[a]
        if i < popular:
            row = head[i]
            for b in range(a):
                if items[b] < popular:
                    K[a, b] += row[items[b]]
            continue
        # Each pair with a rarer item is looked for in its row, by walking or by searching it.
        begin, end = indptr[i], indptr[i + 1]
        walk = end - begin <= 10 * n
        for k in range(end - begin if walk else n):
            if walk:
                p = begin + k
                j = indices[p]
                b = place_of[j]
                if j > i:
                    break
                if b < 0:
                    continue
            else:
                b = k
                j = items[b]
                if j >= i:
                    continue
                p = search(indices, begin, end, j)
                if p == end or indices[p] != j:
                    continue
            s = together[p]
            if linear:
                v = s * (own[i] * own[j])
                v = np.float64(np.float32(v)) if single else v
            elif s < depth:
                v = np.float64(lookup[classes[i], np.int64(s), classes[j]])
            else:
                v = computed(G, classes[i], classes[j], s)
            if b < a:
                K[a, b] += v
            else:
                K[b, a] += v
    for a in range(n):
        place_of[items[a]] = -1
        for b in range(a):
            K[b, a] = K[a, b]


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
def _levels(begin, end, places, weights, classes, table, level):
    """What each class of items has from the table: Σ weights·table."""
    level[:] = 0.0
    if len(table) == len(level):
        for p in range(begin, end):
            row, w = table[classes[places[p]]], weights[p]
            for c in range(len(level)):
                level[c] += w * row[c]


@jit
def _add_head(G, begin, end, places, weights, acc):
    """Add the corrections of the items of the head."""
    head, indptr, indices = G.head, G.indptr, G.indices
    popular = len(head)
    for p in range(begin, end):
        i, w = places[p], weights[p]
        if i < popular:
            row = head[i]
            for j in range(popular):
                acc[j] += w * row[j]
        else:
            first = indptr[i]
            add_row(G, i, w, first, search(indices, first, indptr[i + 1], popular), acc)


@jit
def _scores(first, stride, G, order, indptr, places, weights, offset, scale, out):
    users, m = out.shape
    classes, table, diagonal, split = G.classes, G.table, G.diagonal, G.split
    rows, indices, popular = G.indptr, G.indices, len(split)
    acc, level = np.empty(m), np.empty(len(diagonal))
    for u in range(first, users, stride):
        begin, end = indptr[u], indptr[u + 1]
        _levels(begin, end, places, weights, classes, table, level)
        for j in range(m):
            acc[j] = level[classes[j]] - scale[u] * offset[j]
        _add_head(G, begin, end, places, weights, acc)
        for p in range(begin, end):
            i, w = places[p], weights[p]
            last = rows[i + 1]
            if i < popular:
                add_row(G, i, w, split[i], last, acc)
            else:
                add_row(G, i, w, search(indices, rows[i], last, popular), last, acc)
                acc[i] += w * diagonal[classes[i]]
        for j in range(m):
            out[u, order[j]] = acc[j]


@jit(parallel=True)
def _scores_parallel(threads, G, order, indptr, places, weights, offset, scale, out):
    for t in numba.prange(threads):
        _scores(t, threads, G, order, indptr, places, weights, offset, scale, out)


@jit
def _peaks_part(first, stride, G, edges, part, peak):
    bounded, blocks = peak.shape
    indptr, indices, split, values = G.indptr, G.indices, G.split, np.empty(len(G.classes))
    for i in range(first, bounded, stride):
        p, begin, end = split[i], split[i], indptr[i + 1]
        row_values(G, i, begin, end, values)
        for k in range(blocks):
            part[i, k] = p
            while p < end and indices[p] < edges[k + 1]:
                peak[i, k] = max(peak[i, k], values[p - begin])
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
def _score_block(G, B, k, begin, end, places, weights, level, scale, acc):
    """Score all places of a block, as `_scores` does."""
    classes, diagonal, offset, part = G.classes, G.diagonal, B.offset, B.part
    rows, indices, bounded = G.indptr, G.indices, len(part)
    low, high = B.edges[k], B.edges[k + 1]
    for j in range(low, high):
        acc[j] = level[classes[j]] - scale * offset[j]
    for p in range(begin, end):
        i, w = places[p], weights[p]
        if i < bounded:
            if part[i, k] < part[i, k + 1]:
                add_row(G, i, w, part[i, k], part[i, k + 1], acc)
            continue
        last = rows[i + 1]
        at = search(indices, rows[i], last, low)
        if at < last and indices[at] < high:
            add_row(G, i, w, at, search(indices, at, last, high), acc)
        if low <= i < high:
            acc[i] += w * diagonal[classes[i]]


@jit
def _collect(G, i, weight, begin, end, cut, partial, mark, found, count):
    """Add weight·correction[i, j] to partial[j] over entries of row i; list what comes to the cut."""
    indices, together, own, classes, lookup = G.indices, G.together, G.own, G.classes, G.lookup
    linear, single, ci, depth = G.code == LINEAR, G.single, classes[i], lookup.shape[1]
    wi = own[i]
    for p in range(begin, end):
        j, s = indices[p], together[p]
        if linear:
            v = s * (wi * own[j])
            v = np.float64(np.float32(v)) if single else v
        elif s < depth:
            v = np.float64(lookup[ci, np.int64(s), classes[j]])
        else:
            v = computed(G, ci, classes[j], s)
        total = partial[j] + weight * v
        partial[j] = total
        if total >= cut and mark[j] & SEEN == 0:
            mark[j] |= SEEN
            found[count] = j
            count += 1
    return count


@jit
def _value_at(G, i, j):
    """Return correction[i, j], j beyond the head: searched for in the row of the rarer of the two."""
    classes = G.classes
    if i == j:
        return np.float64(G.diagonal[classes[j]])
    indptr, indices = G.indptr, G.indices
    late, early = max(i, j), min(i, j)
    end = indptr[late + 1]
    p = search(indices, indptr[late], end, early)
    if p == end or indices[p] != early:
        return 0.0
    s = G.together[p]
    if G.code == LINEAR:
        v = s * (G.own[i] * G.own[j])
        return np.float64(np.float32(v)) if G.single else v
    ci, cj = classes[i], classes[j]
    return np.float64(G.lookup[ci, np.int64(s), cj]) if s < G.lookup.shape[1] else computed(G, ci, cj, s)


@jit
def _offer_found(
    G, B, begin, end, places, weights, level, scale, rest, scored, found, count, partial, mark,
    restricted, mask, order, s, top, size,
):  # fmt: skip
    """Offer what the rarer liked items bring near the best, but what the popular ones cannot carry there."""
    classes, block, offset, peak = G.classes, B.block, B.offset, B.peak
    bounded = len(peak)
    rounding = 2.3e-16 * (end - begin + 8)
    floor = _floor(s, size)
    for e in range(count):
        j = found[e]
        k = block[j]
        if scored[k] or mark[j] & BANNED or (restricted and mask[order[j]] == 0):
            continue
        own, taken = level[classes[j]], scale * offset[j]
        room = rounding * (abs(own) + abs(taken) + partial[j] + 2.0 * rest[k])
        most = own - taken + partial[j] + rest[k] + room
        # What bounds it is replaced by what it has, one popular item after the other.
        for p in range(begin, end):
            if most < floor:
                break
            if places[p] < bounded:
                most += weights[p] * (_value_at(G, places[p], j) - peak[places[p], k])
        if most < floor:
            continue
        score = own - taken  # in the order and with the roundings of a pass over all items
        for p in range(begin, end):
            score += weights[p] * _value_at(G, places[p], j)
        size = offer(s, top, size, score, order[j])
        floor = _floor(s, size)
    return size


@jit
def _top(
    first, stride, G, B, order, indptr, places, weights, scale, skip_liked, restricted, mask, ids, best
):  # fmt: skip
    classes, table, diagonal, rows, indices = G.classes, G.table, G.diagonal, G.indptr, G.indices
    offset, edges, peak, split = B.offset, B.edges, B.peak, G.split
    group_ptr, group_class, group_least = B.group_ptr, B.group_class, B.group_least
    m, popular, bounded, blocks = len(classes), len(split), len(peak), len(edges) - 1
    acc, partial, level = np.empty(m), np.zeros(m), np.empty(len(diagonal))
    mark, found = np.zeros(m, dtype=np.uint8), np.empty(m, dtype=np.int32)
    rest, bound, scored = np.empty(blocks), np.empty(blocks), np.empty(blocks, dtype=np.bool_)
    for u in range(first, len(ids), stride):
        begin, end = indptr[u], indptr[u + 1]
        s, top, c = best[u], ids[u], scale[u]
        if skip_liked:
            for p in range(begin, end):
                mark[places[p]] |= BANNED
        _levels(begin, end, places, weights, classes, table, level)
        for j in range(popular):
            acc[j] = level[classes[j]] - c * offset[j]
        _add_head(G, begin, end, places, weights, acc)
        size = _scan(acc, 0, popular, BANNED, mark, restricted, mask, order, s, top, 0)
        # Beyond the head: what the most popular liked items add to a block of places is bounded.
        rest[:] = 0.0
        for p in range(begin, end):
            if places[p] < bounded:
                w, row = weights[p], peak[places[p]]
                for k in range(blocks):
                    rest[k] += w * row[k]
        rounding = 2.3e-16 * (end - begin + 8)
        for k in range(blocks):
            high, width = -np.inf, 0.0
            for e in range(group_ptr[k], group_ptr[k + 1]):
                own, taken = level[group_class[e]], c * group_least[e]
                high, width = max(high, own - taken), max(width, abs(own) + abs(taken))
            bound[k] = high + rest[k] + rounding * (width + rest[k])
            scored[k] = False
        # Blocks that they alone may bring among the best, or near, are scored whole.
        most = -np.inf
        while True:
            k = -1
            for b in range(blocks):
                if not scored[b] and (k < 0 or bound[b] > bound[k]):
                    k = b
            if k < 0:
                most = -np.inf
                break
            floor = _floor(s, size)
            most = bound[k]
            if most < floor - NEAR * abs(floor):
                break
            scored[k] = True
            _score_block(G, B, k, begin, end, places, weights, level, c, acc)
            size = _scan(
                acc, edges[k], edges[k + 1], BANNED, mark, restricted, mask, order, s, top, size
            )
        # In the others only those places matter that the rarer liked items lift by what is missing.
        if most > -np.inf:
            cut = _floor(s, size) - most
            count = entries = 0
            for p in range(begin, end):
                i, w = places[p], weights[p]
                if i < bounded:
                    continue
                last = rows[i + 1]
                start = split[i] if i < popular else search(indices, rows[i], last, popular)
                entries += last - start
                count = _collect(G, i, w, start, last, cut, partial, mark, found, count)
                if i >= popular:
                    partial[i] += w * diagonal[classes[i]]
                    if partial[i] >= cut and mark[i] & SEEN == 0:
                        mark[i] |= SEEN
                        found[count] = i
                        count += 1
            size = _offer_found(
                G, B, begin, end, places, weights, level, c, rest, scored, found, count, partial, mark,
                restricted, mask, order, s, top, size,
            )  # fmt: skip
            for e in range(count):
                mark[found[e]] = 0
            if entries > m // 4:
                partial[:] = 0.0
            else:
                for p in range(begin, end):
                    i = places[p]
                    if i >= bounded:
                        start = split[i] if i < popular else rows[i]
                        for e in range(start, rows[i + 1]):
                            partial[indices[e]] = 0.0
                        partial[i] = 0.0
        put_in_order(s, top, size)
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
