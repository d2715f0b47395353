"""Dual programs and scores straight from the rows of interactions, without a stored item Gram matrix.

The scores of the linear kernel are D Xᵀ(X(D α)), where D holds the items' weights. Other kernels need
the co-occurrences with the items of a user. These are counted once for a block of users and then
discarded. Only the pairs of the most popular items are stored, since most requests are for them.

A user's own block of K has the same bits as in the structured form, and so have the scores of kernels of
counts. The linear kernel works in float64, without rounding K to float32, so that its row sums and
scores differ slightly. As the programs are solved to 1e-6, scores differ by up to 1e-6 where K has a
unit diagonal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, in_parts, jit, over_rows, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.kernels.gram.counts import columns, renumbered, sort_touched
from recsys.kernels.gram.rows import ItemRows, without_pairs
from recsys.kernels.gram.structured import LOOKUP, StructuredGram, fill_lookup, levels, search, value_of
from recsys.kernels.plans import LINEAR
from recsys.rankers._margin_programs import solve_one
from recsys.rankers._structured_view import begin_block, end_block, solve_programs
from recsys.utils.sparse import owners

HEAD = 4096  # largest number of popular items whose pairs are kept
BLOCK_BYTES = 64_000_000  # bytes of the sums of a block of users


class Likes(NamedTuple):
    """The interactions by row and by item; items are numbered by position, popular ones first."""

    indptr: Any
    indices: Any  # positions of the items in each row, ascending
    item_ptr: Any
    item_rows: Any  # rows of each position, ascending
    votes: Any  # weight of each row
    weighed: bool  # whether weights differ: their sums are then rounded to float32, as where stored


class RowView:
    """A Gram matrix whose entries are computed from the interactions on demand."""

    def __init__(self, counts: ItemRows, kernel: Kernel) -> None:
        # Classes of popularity, the table of pairs without a common user, and the diagonal.
        base = StructuredGram(without_pairs(counts), kernel, centring=True)
        self.order, self.place, self.offsets = base.order, base.place, base.offsets
        self.dtype = base.dtype
        X = renumbered(counts.rows, self.place)
        layout = columns(X)
        self.likes = Likes(
            X.indptr.astype(np.int64), X.indices, layout.indptr.astype(np.int64), layout.indices,
            counts.weights(), bool(counts.votes),
        )  # fmt: skip
        a = base.arrays
        m, few = len(a.classes), len(a.sizes)
        popular = head_size(counts.rows.nnz, m)
        with parallel() as threads:
            if a.code != LINEAR:
                most = int(counts.sizes.max(initial=0)) + 1
                lookup: NDArray[Any] = np.zeros(
                    (few, max(1, min(LOOKUP // few**2, most)), few), self.dtype
                )
                in_parts(threads, fill_lookup, a, counts.vectors, lookup)
                a = a._replace(lookup=lookup)
            head: NDArray[Any] = np.zeros((popular, popular), self.dtype)
            in_parts(threads, _head, a, self.likes, head)
            self.arrays = a = a._replace(head=head)
            sums = np.zeros(m)
            if a.code == LINEAR:
                _linear_sums(self.likes, a.own, sums)
            else:
                in_parts(threads, _row_sums, a, self.likes, sums)
                if len(a.table) == few:
                    sums += (a.table @ np.bincount(a.classes, minlength=few))[a.classes]
        if not (np.isfinite(sums).all() and np.isfinite(a.table).all()):
            raise InputError(f"{kernel} leaves the range of {self.dtype} on these items: normalise it")
        self._sums = sums

    def row_sums(self) -> NDArray[np.float64]:
        """Return Σ_j K[i, j], summed in float64."""
        return self._sums[self.place]

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.floating]:
        at = self.place[np.asarray(ids)]
        out = np.empty((len(at), len(self.place)), dtype=self.dtype)
        over_rows(len(at), _rows, self.arrays, self.likes, at, self.order, out)
        return out

    def entries(self, rows: NDArray[np.int32], item: int) -> NDArray[np.float64]:
        out = np.empty(len(rows))
        _entries(self.arrays, self.likes, self.place[rows], self.place[item], out)
        return out

    def weighted(
        self, rows: sp.csr_matrix, weights: NDArray[Any], offset: NDArray[Any], scale: NDArray[Any]
    ) -> NDArray[np.floating]:
        users, m = rows.shape
        out = np.empty((users, m), dtype=self.dtype)
        places, indptr = self.place[rows.indices], rows.indptr.astype(np.int64)
        shared = (
            self.arrays, self.likes, self.order, indptr, places, weights, offset[self.order], scale, out,
        )  # fmt: skip
        if self.arrays.code == LINEAR:
            over_rows(users, _linear_scores, *shared)
            return out
        # Sort by item within each block of users, so that each row is counted once for all of them.
        width = max(1, min(BLOCK_BYTES // (8 * m), -(-users // 2)))
        owner = owners(rows)
        by_item = np.lexsort((owner, rows.indices, owner // width))
        blocks = -(-users // width)
        edges = np.searchsorted(owner[by_item] // width, np.arange(blocks + 1))
        over_rows(blocks, _block_scores, width, by_item, edges, owner, *shared)
        return out

    def solve(
        self, rows: sp.csr_matrix, row_sums: NDArray[np.float64], q_all: NDArray[np.float64],
        exact: bool, ridge: float, omega: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        view = self.place, self.arrays, self.likes
        return solve_programs(_programs, rows, *view, row_sums, q_all, exact, ridge, omega)


def head_size(likes: int, items: int) -> int:
    """Return for how many popular items all pairs are kept: about twice the bytes of interactions."""
    return int(min(HEAD, items, max(64, (4 * likes) ** 0.5)))


# ---- kernels


@jit
def _count(R, i, last, total, touched):
    """Sum in `total` the weights of the rows that i shares with positions before `last`; count these."""
    R = borrowed(R)
    indptr, indices, votes = R.indptr, R.indices, R.votes
    size = np.int64(0)
    for k in range(R.item_ptr[i], R.item_ptr[i + 1]):
        u = R.item_rows[k]
        vote = votes[u]
        for p in range(indptr[u], indptr[u + 1]):
            j = indices[p]
            if j >= last:
                break
            if total[j] == 0.0:
                touched[size] = j
                size += 1
            total[j] += vote
    return size


@jit(inline="always")
def _kept(R, s):
    """Return a sum of weights, rounded as where it is stored."""
    return np.float64(np.float32(s)) if R.weighed else s


@jit
def _head(first, stride, G, R, head):
    G, R = borrowed(G), borrowed(R)
    popular = len(head)
    total, touched = np.zeros(popular), np.empty(popular, dtype=np.int32)
    for i in range(first, popular, stride):
        size = _count(R, i, popular, total, touched)
        for k in range(size):
            j = touched[k]
            head[i, j] = value_of(G, _kept(R, total[j]), i, j)
            total[j] = 0.0
        head[i, i] = G.diagonal[G.classes[i]]


@jit
def _linear_sums(R, own, out):
    """Fill `out` with the row sums of the linear kernel; a cold item is similar only to itself."""
    R = borrowed(R)
    indptr, indices, votes = R.indptr, R.indices, R.votes
    for u in range(len(indptr) - 1):
        total = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            total += own[indices[p]]
        total *= votes[u]
        for p in range(indptr[u], indptr[u + 1]):
            out[indices[p]] += total
    for j in range(len(out)):
        out[j] = out[j] * own[j] if own[j] > 0.0 else 1.0


@jit
def _row_sums(first, stride, G, R, out):
    """Sum corrections in the order of positions, as the structured form does."""
    G, R = borrowed(G), borrowed(R)
    m = len(out)
    total, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    bits, words = np.zeros((m >> 6) + 1, np.uint64), np.zeros((m >> 12) + 1, np.uint64)
    for i in range(first, m, stride):
        size = _count(R, i, m, total, touched)
        sort_touched(touched, size, bits, words)
        row = np.float64(G.diagonal[G.classes[i]])
        for k in range(size):
            j = touched[k]
            if j != i:
                row += value_of(G, _kept(R, total[j]), i, j)
            total[j] = 0.0
        out[i] = row


@jit
def _rows(first, stride, G, R, at, order, out):
    G, R = borrowed(G), borrowed(R)
    m = out.shape[1]
    classes, table, diagonal = G.classes, G.table, G.diagonal
    filled = len(table) == len(diagonal)
    total, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    for k in range(first, len(at), stride):
        i = at[k]
        for j in range(m):
            out[k, order[j]] = table[classes[i], classes[j]] if filled else 0.0
        size = _count(R, i, m, total, touched)
        for e in range(size):
            j = touched[e]
            if j != i:
                base = table[classes[i], classes[j]] if filled else 0.0
                out[k, order[j]] = base + value_of(G, _kept(R, total[j]), i, j)
            total[j] = 0.0
        base = table[classes[i], classes[i]] if filled else 0.0
        out[k, order[i]] = base + diagonal[classes[i]]


@jit
def _entries(G, R, places, i, out):
    """Fill `out` with entries of one column, each as in the row of the rarer item."""
    G, R = borrowed(G), borrowed(R)
    m = len(G.classes)
    classes, table, diagonal = G.classes, G.table, G.diagonal
    filled = len(table) == len(diagonal)
    total, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    _count(R, i, m, total, touched)
    for k in range(len(places)):
        j = places[k]
        out[k] = table[classes[j], classes[i]] if filled else 0.0
        if i == j:
            out[k] += diagonal[classes[i]]
        elif total[j] > 0.0:
            out[k] += value_of(G, _kept(R, total[j]), max(i, j), min(i, j))


@jit
def _gather(G, R, items, n, place_of, shared, K):
    """Fill the symmetric (n, n) block of the liked items, by their positions."""
    G, R = borrowed(G), borrowed(R)
    indptr, indices, votes = R.indptr, R.indices, R.votes
    popular = len(G.head)
    begin_block(G, items, n, place_of, K)
    for a in range(n):
        i = items[a]
        if i < popular:
            continue
        # The rows of this item are walked, or searched for each item that is more popular.
        shared[:n] = 0.0
        for k in range(R.item_ptr[i], R.item_ptr[i + 1]):
            u = R.item_rows[k]
            begin, end = indptr[u], indptr[u + 1]
            if end - begin <= 10 * n:
                for p in range(begin, end):
                    j = indices[p]
                    if j >= i:
                        break
                    if place_of[j] >= 0:
                        shared[place_of[j]] += votes[u]
                continue
            for b in range(n):
                if items[b] < i:
                    p = search(indices, begin, end, items[b])
                    if p < end and indices[p] == items[b]:
                        shared[b] += votes[u]
        for b in range(n):
            if shared[b] > 0.0:
                v = value_of(G, _kept(R, shared[b]), i, items[b])
                if b < a:
                    K[a, b] += v
                else:
                    K[b, a] += v
    end_block(items, n, place_of, K)


@jit
def _programs(
    first, stride, order, indptr, indices, places, G, R, row_sums, q_all, exact, ridge_p, omega, tol,
    longest, alpha, residuals,
):  # fmt: skip
    G, R = borrowed(G), borrowed(R)
    indices, places, row_sums, q_all, omega, alpha = borrowed(
        (indices, places, row_sums, q_all, omega, alpha)
    )
    m = len(G.classes)
    block = np.empty(longest * longest, dtype=np.float32)
    small = np.empty(longest * longest, dtype=np.float32)
    work = np.empty((7, longest))
    sign, ridge = np.ones(longest), np.empty(longest)
    q, g, face = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.uint32)
    narrow, shared = np.empty((2, longest), dtype=np.float32), np.empty(longest)
    place_of = np.full(m, -1, dtype=np.int32)
    for k in range(first, len(order), stride):
        u = order[k]
        items = indices[indptr[u] : indptr[u + 1]]
        n = len(items)
        if n == 0:
            continue
        K = block[: n * n].reshape(n, n)
        _gather(G, R, places[indptr[u] : indptr[u + 1]], n, place_of, shared, K)
        g[:n] = 0.0
        for i in range(n):
            for j in range(n):
                g[j] += K[i, j]
        residuals[u] = solve_one(
            K, n, items, row_sums, q_all, m, exact, sign, ridge_p, omega[indptr[u] : indptr[u + 1]],
            ridge, alpha[indptr[u] : indptr[u + 1]], q, g, face, small, work, narrow, tol,
        )  # fmt: skip


@jit
def _linear_scores(first, stride, G, R, order, indptr, places, weights, offset, scale, out):
    """Compute D Xᵀ(X(D α)) user by user, with the stored pairs of the popular items.

    Most interactions are of popular items, so Xᵀ is applied only for the others.
    """
    G, R = borrowed(G), borrowed(R)
    own, head, popular = G.own, G.head, len(G.head)
    rows, indices, votes = R.indptr, R.indices, R.votes
    item_ptr, item_rows = R.item_ptr, R.item_rows
    users, m = out.shape
    acc, y = np.empty(m), np.empty(len(votes))
    for u in range(first, users, stride):
        acc[:popular] = 0.0
        y[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i, w = places[p], weights[p]
            mine = w * own[i]
            for k in range(item_ptr[i], item_ptr[i + 1]):
                y[item_rows[k]] += mine
            if i < popular:
                row = head[i]
                for j in range(popular):
                    acc[j] += w * row[j]
                continue
            for k in range(item_ptr[i], item_ptr[i + 1]):
                r = item_rows[k]
                more = mine * votes[r]
                for q in range(rows[r], rows[r + 1]):
                    j = indices[q]
                    if j >= popular:
                        break
                    acc[j] += more * own[j]
        if R.weighed:
            for r in range(len(votes)):
                y[r] *= votes[r]
        for j in range(popular, m):
            total = 0.0
            for k in range(item_ptr[j], item_ptr[j + 1]):
                total += y[item_rows[k]]
            acc[j] = total * own[j]
        for p in range(indptr[u], indptr[u + 1]):
            if places[p] >= popular and own[places[p]] == 0.0:  # a cold item
                acc[places[p]] += weights[p]
        for j in range(m):
            out[u, order[j]] = acc[j] - scale[u] * offset[j]


@jit
def _block_scores(
    first, stride, width, by_item, edges, owner, G, R, order, indptr, places, weights, offset, scale, out
):
    """Score a block of users; the row of each item that one of them has is counted once."""
    G, R = borrowed(G), borrowed(R)
    users, m = out.shape
    classes, table, diagonal = G.classes, G.table, G.diagonal
    acc, level = np.empty((min(width, users), m)), np.empty(len(diagonal))
    total, touched, values = np.zeros(m), np.empty(m, dtype=np.int32), np.empty(m)
    for block in range(first, len(edges) - 1, stride):
        low = block * width
        high = min(users, low + width)
        for u in range(low, high):
            levels(indptr[u], indptr[u + 1], places, weights, classes, table, level)
            for j in range(m):
                acc[u - low, j] = level[classes[j]] - scale[u] * offset[j]
        e = edges[block]
        while e < edges[block + 1]:
            i = places[by_item[e]]
            size = _count(R, i, m, total, touched)
            for k in range(size):
                j = touched[k]
                values[k] = diagonal[classes[i]] if j == i else value_of(G, _kept(R, total[j]), i, j)
                total[j] = 0.0
            if size == 0:  # a cold item
                touched[0], values[0], size = i, diagonal[classes[i]], 1
            while e < edges[block + 1] and places[by_item[e]] == i:
                w, row = weights[by_item[e]], acc[owner[by_item[e]] - low]
                for k in range(size):
                    row[touched[k]] += w * values[k]
                e += 1
        for u in range(low, high):
            for j in range(m):
                out[u, order[j]] = acc[u - low, j]
