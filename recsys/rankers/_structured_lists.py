"""The best N of each row from a structured Gram matrix, without a score for every item: by bounds.

Only items are scored whose scores might be among the best. The others are bounded, block by block of
positions: an item has no more than its class, its row sum and the largest values of the liked items'
rows give it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, in_parts, jit, over_rows, parallel
from recsys.kernels.gram.structured import (
    StructuredGram,
    add_head,
    add_row,
    levels,
    row_values,
    search,
    value_of,
)
from recsys.utils.topn import offer, put_in_order

BLOCKS = 256  # of positions beyond the head, whose best candidate is bounded at once
BOUNDED = 4096  # most popular items, whose long rows may be bounded rather than walked
FAR = 0.6  # of the score to beat is what bounded rows may add up to
# What is known of a position while one user's list is made.
SEEN = 1  # it is listed
BANNED = 2


class Bounds(NamedTuple):
    """Bounds on the scores of the items beyond the head, by block of positions."""

    edges: Any  # first position of each block
    block: Any  # of each position beyond the head
    part: Any  # where each block begins in the row of one of the most popular items
    peak: Any  # largest correction of each such row in each block, at least 0
    least: Any  # least of all beyond the head, at most 0
    group_ptr: Any  # the classes of items in each block, and the least offset among them
    group_class: Any
    group_least: Any
    offset: Any  # by position
    offset_most: float  # its largest magnitude


def bounds_of(gram: StructuredGram, offset: NDArray[np.float64]) -> Bounds:
    """Return bounds on scores less a multiple of `offset`, (items,)."""
    a = gram.arrays
    m, popular = len(a.classes), len(a.head)
    edges = np.array([popular], dtype=np.int64)
    if popular < m:
        steps = np.geomspace(popular, m, min(BLOCKS, m - popular) + 1)
        edges = np.unique(np.rint(steps).astype(np.int64))
    blocks = len(edges) - 1
    block = np.zeros(m, dtype=np.int32)
    block[popular:] = np.repeat(np.arange(blocks), np.diff(edges))
    bounded = min(BOUNDED, m)
    part, peak = np.empty((bounded, blocks + 1), np.int64), np.zeros((bounded, blocks))
    low = np.zeros(bounded)
    with parallel() as threads:
        in_parts(threads, _peaks, a, edges, part, peak, low)
    key = block[popular:] * np.int64(len(a.sizes)) + a.classes[popular:]
    found, inverse = np.unique(key, return_inverse=True)
    by_place = offset[gram.order]
    least = np.full(len(found), np.inf)
    np.minimum.at(least, inverse, by_place[popular:])
    ptr = np.searchsorted(found // len(a.sizes), np.arange(blocks + 1))
    return Bounds(
        edges, block, part, peak, low, ptr, found % len(a.sizes), least, by_place,
        float(np.abs(by_place).max()),
    )  # fmt: skip


def fill_best(
    gram: StructuredGram,
    bounds: Bounds,
    rows: sp.csr_matrix,
    weights: NDArray[np.float64],
    scale: NDArray[np.float64],
    skip_liked: bool,
    mask: NDArray[np.uint8],
    ids: NDArray[np.int32],
    best: NDArray[np.float32],
) -> None:
    """Fill ids and best as `recsys.utils.topn.top_n` would from all scores, to the bit.

    Weights and scales must be at least 0.
    """
    wide = best if best.dtype == gram.dtype else best.astype(gram.dtype)
    shared = (
        gram.arrays, bounds, gram.order, rows.indptr, gram.place[rows.indices], weights, scale,
        skip_liked, not mask.all(), mask, ids, wide,
    )  # fmt: skip
    over_rows(rows.shape[0], _top, *shared)
    if wide is not best:
        best[:] = wide


# ---- kernels


@jit
def _peaks(first, stride, G, edges, part, peak, low):
    G = borrowed(G)
    bounded, blocks = peak.shape
    indptr, indices, split, values = G.indptr, G.indices, G.split, np.empty(len(G.classes))
    for i in range(first, bounded, stride):
        p, begin, end = split[i], split[i], indptr[i + 1]
        row_values(G, i, begin, end, values)
        for k in range(blocks):
            part[i, k] = p
            while p < end and indices[p] < edges[k + 1]:
                peak[i, k] = max(peak[i, k], values[p - begin])
                low[i] = min(low[i], values[p - begin])
                p += 1
        part[i, blocks] = p


@jit
def _floor(s, size):
    """Return the least score that enters the heap s, with a margin for rounding."""
    if size < len(s):
        return -np.inf
    worst = np.float64(s[0])
    return worst - 1.2e-7 * abs(worst) - 1e-45 if s.itemsize == 4 else worst


@jit
def _scan(acc, low, high, barred, mark, restricted, mask, order, s, top, size):
    """Offer the positions low…high that are not marked with any of the bits barred."""
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
        else:
            last = rows[i + 1]
            at = search(indices, rows[i], last, low)
            if at < last and indices[at] < high:
                add_row(G, i, w, at, search(indices, at, last, high), acc)
        if low <= i < high:
            acc[i] += w * diagonal[classes[i]]


@jit
def _collect(
    G, i, weight, begin, end, cut, far, most, least, block, scored, partial, mark, restricted, mask,
    order, found, count, lower, lowest, known,
):  # fmt: skip
    """Add weight·correction[i, j] to partial[j] over entries of row i; list what comes to the cut.

    What is listed has at least what it came to and `least`: the worst of the best of these is a floor,
    and the cut, which is what a floor exceeds `most` and its own share `far` by, rises with it.
    """
    G = borrowed(G)
    indices, together, values = G.indices, G.together, G.values
    kept, w = len(values) > 0, np.float32(weight)
    for p in range(begin, end):
        j = indices[p]
        v = np.float32(values[p] if kept else value_of(G, together[p], i, j))
        total = partial[j] + w * v
        partial[j] = total
        if total >= cut and mark[j] == 0:
            mark[j] = SEEN
            if scored[block[j]] or (restricted and mask[order[j]] == 0):
                continue
            found[count] = j
            count += 1
            if known == len(lower) and total + least <= lower[0]:
                continue
            known = offer(lower, lowest, known, total * (1.0 - 1e-4) + least, j)
            floor = _floor(lower, known)
            if floor > -np.inf:
                cut = max(cut, np.float32((floor - max(far * floor, most)) * (1.0 - 1e-4)))
    return count, known, cut


@jit
def _bound_rows(begin, places, weights, by_place, peak, high, goal, rest):
    """Choose liked items whose rows are bounded, not walked, popular ones first; return their number.

    What their largest entries add up to, block by block, is `rest`: with `high`, the most that positions
    have of themselves, it stays below the goal. They come to the front of `by_place`, the others behind
    them in order.
    """
    bounded, kept = len(peak), 0
    rest[:] = 0.0
    for e in range(len(by_place)):
        p = begin + by_place[e]
        if places[p] >= bounded:
            break
        w, row = weights[p], peak[places[p]]
        top = -np.inf
        for k in range(len(rest)):
            top = max(top, high[k] + rest[k] + w * row[k])
        if top <= goal:
            for k in range(len(rest)):
                rest[k] += w * row[k]
            for q in range(e, kept, -1):
                by_place[q] = by_place[q - 1]
            by_place[kept] = p - begin
            kept += 1
    return kept


@jit(inline="always")
def _value_at(G, i, j):
    """Return correction[i, j], j beyond the head: searched for in the row of the rarer of the two."""
    late, early = max(i, j), min(i, j)
    end = G.indptr[late + 1]
    p = search(G.indices, G.indptr[late], end, early)
    if i == j:
        v = np.float64(G.diagonal[G.classes[j]])
    elif p == end or G.indices[p] != early:
        v = 0.0
    elif len(G.values) and late == i:  # to the bit: a value is that of its own row
        v = np.float64(G.values[p])
    else:
        v = value_of(G, G.together[p], i, j)
    return v


@jit
def _offer_found(
    G, B, begin, end, places, weights, level, scale, rest, by_place, kept, scored, found, count, partial,
    cut, order, spare, lower, lowest, s, top, size,
):  # fmt: skip
    """Offer the items found on walked rows whose scores may be among the best with the bounded rows."""
    G, B = borrowed(G), borrowed(B)
    classes = G.classes
    block, offset, peak = B.block, B.offset, B.peak
    rounding = 1.2e-7 * (end - begin + 8)  # of sums in float32
    # First what all of them came to, then what they have of the bounded rows, one by one: the rarest
    # item's first, whose part is the largest. Both times the best known ones make a floor.
    floor = _floor(s, size)
    for again in range(2):
        known = size
        lower[:size], lowest[:size] = s[:size], top[:size]
        left = 0
        for e in range(count):
            j = found[e]
            if partial[j] < cut:  # which has risen since
                continue
            k = block[j]
            if scored[k]:
                continue
            mine, taken = level[classes[j]], scale * offset[j]
            room = rounding * (abs(partial[j]) + rest[k]) + 1e-9 * rounding * (abs(mine) + abs(taken))
            reached, more = mine - taken + partial[j] - room, rest[k] + 2.0 * room
            if again == 0:
                known = offer(lower, lowest, known, reached + spare, j)
            elif reached + more >= floor:
                for q in range(kept - 1, -1, -1):
                    p = begin + by_place[q]
                    v = _value_at(G, places[p], j)
                    reached += weights[p] * v
                    more -= weights[p] * peak[places[p], k]
                    if reached + more < floor:
                        break
                if reached + more >= floor:
                    known = offer(lower, lowest, known, reached, j)
                    floor = max(floor, _floor(lower, known))
            if reached + more >= floor:
                found[left] = j
                left += 1
        count = left
        floor = max(floor, _floor(lower, known))
    for e in range(count):
        j = found[e]
        score = level[classes[j]] - scale * offset[j]  # as a pass over all items adds it up
        for p in range(begin, end):
            v = _value_at(G, places[p], j)
            score += weights[p] * v
        size = offer(s, top, size, score, order[j])
    return size


@jit
def _top(
    first, stride, G, B, order, indptr, places, weights, scale, skip_liked, restricted, mask,
    ids, best,
):  # fmt: skip
    G, B = borrowed(G), borrowed(B)
    order, places, weights, mask, ids, best = borrowed((order, places, weights, mask, ids, best))
    classes, table, diagonal, rows, indices = G.classes, G.table, G.diagonal, G.indptr, G.indices
    offset, edges, peak, split = B.offset, B.edges, B.peak, G.split
    group_ptr, group_class, group_least = B.group_ptr, B.group_class, B.group_least
    m, popular, blocks = len(classes), len(G.head), len(edges) - 1
    acc, level = np.empty(m), np.empty(len(diagonal))
    partial = np.zeros(m, dtype=np.float32)
    mark, found = np.zeros(m, dtype=np.uint8), np.empty(m, dtype=np.int32)
    high, rest, scored = np.empty(blocks), np.empty(blocks), np.empty(blocks, dtype=np.bool_)
    lower, lowest = np.empty(ids.shape[1]), np.empty(ids.shape[1], dtype=np.int32)
    for u in range(first, len(ids), stride):
        begin, end = indptr[u], indptr[u + 1]
        if begin == end:  # whose list is another matter
            continue
        s, top, c = best[u], ids[u], scale[u]
        if skip_liked:
            for p in range(begin, end):
                mark[places[p]] |= BANNED
        levels(begin, end, places, weights, classes, table, level)
        for j in range(popular):
            acc[j] = level[classes[j]] - c * offset[j]
        add_head(G, begin, end, places, weights, acc)
        size = np.int64(0)
        size = _scan(acc, size, popular, BANNED, mark, restricted, mask, order, s, top, size)
        # Beyond the head: what the places of a block have at most without any row.
        rest[:] = 0.0
        for k in range(blocks):
            high[k], width = -np.inf, 0.0
            for e in range(group_ptr[k], group_ptr[k + 1]):
                own, taken = level[group_class[e]], c * group_least[e]
                high[k], width = max(high[k], own - taken), max(width, abs(own) + abs(taken))
            high[k] += 2.3e-16 * (end - begin + 8) * width
            scored[k] = False
        # Beyond it, first the rows of rarer items are walked: what they come to makes a floor. The
        # higher that is, the more rows of popular items need not be walked, but are bounded.
        by_place = np.argsort(places[begin:end])
        first_rare, spare = np.int64(0), 0.0
        while first_rare < end - begin and places[begin + by_place[first_rare]] < len(peak):
            p = begin + by_place[first_rare]
            spare += weights[p] * B.least[places[p]]
            first_rare += 1
        lower[:size], lowest[:size] = s[:size], top[:size]
        floor, most, least = _floor(s, size), -np.inf, np.inf
        for k in range(blocks):
            most = max(most, high[k])
        for k in range(len(level)):
            least = min(least, level[k])
        least += spare - c * B.offset_most - 1e-9 * (abs(least) + c * B.offset_most)
        known, count, entries, kept, last = size, np.int64(0), 0, first_rare, end - begin
        cut = (
            np.float32((floor - max(FAR * floor, most)) * (1.0 - 1e-4)) if size else np.float32(-np.inf)
        )
        for p in range(begin, end):  # a liked item itself, where it may be listed
            i = places[p]
            if i >= popular and mark[i] == 0:
                partial[i] = np.float32(weights[p] * diagonal[classes[i]])
                mark[i] = SEEN
                if not restricted or mask[order[i]] == 1:
                    found[count] = i
                    count += 1
        for far in (FAR, 0.0):
            if far == 0.0:
                last = first_rare
                floor = max(_floor(s, size), _floor(lower, known))
                goal = FAR * floor if floor > 0.0 else -np.inf
                kept = _bound_rows(begin, places, weights, by_place[:last], peak, high, goal, rest)
                # Blocks that bounded rows alone may bring among the best are scored whole.
                while True:
                    k = -1
                    for b in range(blocks):
                        if not scored[b] and (k < 0 or high[b] + rest[b] > high[k] + rest[k]):
                            k = b
                    if k < 0:
                        break
                    most = high[k] + rest[k] * (1.0 + 2.3e-16 * (end - begin + 8))
                    if most < max(_floor(s, size), _floor(lower, known)):
                        break
                    scored[k] = True
                    _score_block(G, B, k, begin, end, places, weights, level, c, acc)
                    size = _scan(
                        acc, edges[k], edges[k + 1], BANNED, mark, restricted, mask, order, s, top, size
                    )
                if k < 0:
                    break
                floor = max(_floor(s, size), _floor(lower, known))
                cut = max(cut, np.float32((floor - most) * (1.0 - 1e-4)))
            for q in range(last - 1, kept - 1, -1):  # the rarest first: it lifts most
                i, w = places[begin + by_place[q]], weights[begin + by_place[q]]
                entries += rows[i + 1] - split[i]
                count, known, cut = _collect(
                    G, i, w, split[i], rows[i + 1], cut, far, most, least, B.block, scored, partial,
                    mark, restricted, mask, order, found, count, lower, lowest, known,
                )  # fmt: skip
        listed = found[:count].copy()
        size = _offer_found(
            G, B, begin, end, places, weights, level, c, rest, by_place, kept, scored, listed, count,
            partial, cut, order, spare, lower, lowest, s, top, size,
        )  # fmt: skip
        for e in range(count):
            mark[found[e]] = 0
        if entries > m // 4:
            partial[:] = 0.0
            mark[:] = 0
        else:
            for q in range(end - begin - 1, kept - 1, -1):
                i = places[begin + by_place[q]]
                for e in range(split[i], rows[i + 1]):
                    partial[indices[e]] = 0.0
                    mark[indices[e]] = 0
            for p in range(begin, end):
                partial[places[p]] = 0.0
        put_in_order(s, top, size)
        for p in range(begin, end):
            mark[places[p]] = 0
