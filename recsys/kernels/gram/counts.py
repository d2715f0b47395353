"""Co-occurrences of items: all that a kernel over items reads of a user × item matrix.

Every kernel here is a function of ⟨x,z⟩, |x|, |z| and n. So a model keeps these numbers, as integers of
the smallest type that holds them, and makes kernel values where they are used: one set of counts serves
every kernel and degree, and rows that come, go or change are added and taken out exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_parts, jit, parallel
from recsys.errors import InputError
from recsys.utils.memory import check_memory
from recsys.utils.sparse import binary


@dataclass(frozen=True)
class ItemCounts:
    """Co-occurrences of items as vectors over users, their sizes, and the dimension.

    Attributes
    ----------
    together : (items, items) array, or CSR
        In how many vectors two different items are both; symmetric, its diagonal empty. Dense it is in
        the order of items; CSR is in the order of positions, with sorted indices and no zero stored.
        Unsigned integers of the smallest type, or float32 where the vectors weigh differently.
    sizes : (items,) int64
        In how many vectors each item is; float64 where they weigh differently.
    vectors : int
        n: how many were counted, empty ones included.
    order : (items,) int32, optional
        Which item has each position, where `together` is CSR: popular ones first when it was counted.
    """

    together: Any
    sizes: NDArray[Any]
    vectors: int
    order: NDArray[np.int32] | None = None

    @property
    def dense(self) -> bool:
        """Whether the co-occurrences are an array."""
        return not sp.issparse(self.together)

    @property
    def place(self) -> NDArray[np.int32]:
        """The place of each item."""
        assert self.order is not None
        return positions(self.order)

    def toarray(self) -> NDArray[Any]:
        """Return the co-occurrences of all pairs in the order of items, sizes on the diagonal."""
        out = self.together.copy() if self.dense else self.together.toarray()
        if not self.dense:
            place = self.place
            out = out[np.ix_(place, place)]
        out = out.astype(self.sizes.dtype)
        np.fill_diagonal(out, self.sizes)
        return out

    def changed(self, taken: sp.csr_matrix, added: sp.csr_matrix, vectors: int) -> ItemCounts:
        """Return the counts of `vectors` rows, some of them removed and others added."""
        sizes = self.sizes + np.bincount(added.indices, minlength=len(self.sizes))
        sizes -= np.bincount(taken.indices, minlength=len(self.sizes))
        kind = count_type(sizes)
        if not self.dense:
            place = self.place
            taken, added = renumbered(taken, place), renumbered(added, place)
        plus, minus = binary(added, np.int64), binary(taken, np.int64)
        change = sp.csr_matrix(plus.T @ plus - minus.T @ minus)
        change.setdiag(0)
        change.eliminate_zeros()
        change.sort_indices()
        together: Any
        if self.dense:
            together = self.together.astype(kind)  # a copy
            least = _add_dense(together, change.indptr, change.indices, change.data)
        else:
            least, together = _merged(self.together, change, kind)
        if least < 0 or sizes.min(initial=0) < 0:
            raise InputError("a row to be taken out holds items that were never counted together")
        return replace(self, together=together, sizes=sizes, vectors=vectors)

    def extended(self, items: int) -> ItemCounts:
        """Return the counts with cold items appended, up to `items` items."""
        old = len(self.sizes)
        sizes = np.concatenate([self.sizes, np.zeros(items - old, self.sizes.dtype)])
        if self.dense:
            together = np.zeros((items, items), dtype=self.together.dtype)
            together[:old, :old] = self.together
            return replace(self, together=together, sizes=sizes)
        t = self.together
        indptr = np.concatenate([t.indptr, np.full(items - old, t.indptr[-1])])
        together = sp.csr_matrix((t.data, t.indices, indptr), (items, items))
        order = np.concatenate([self.order, np.arange(old, items, dtype=np.int32)])
        return replace(self, together=together, sizes=sizes, order=order)


def positions(order: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the position of each item in an order."""
    out = np.empty_like(order)
    out[order] = np.arange(len(out), dtype=np.int32)
    return out


def check_counts(counts: ItemCounts, items: int) -> None:
    """Refuse counts that no rows have: a file may hold any, and kernels look up tables by counts."""
    t, sizes = counts.together, counts.sizes
    data = t if counts.dense else t.data
    weighed = data.dtype == np.float32
    kinds = (np.float64,) if weighed else (np.int64,)
    if sizes.shape != (items,) or sizes.dtype not in kinds or t.shape != (items, items):
        raise ValueError("together_ and sizes_ do not fit the items")
    if not weighed and data.dtype not in (np.uint8, np.uint16, np.uint32):
        raise ValueError("together_ should be unsigned integers, or float32")
    if sizes.min() < 0 or (not weighed and sizes.max() > counts.vectors):
        raise ValueError("sizes_ should be from 0 to vectors_")
    if not counts.dense:
        order = counts.order
        if order is None or order.shape != (items,) or order.dtype != np.int32:
            raise ValueError("order_ should name every item once")
        if not np.array_equal(np.sort(order), np.arange(items)):
            raise ValueError("order_ should name every item once")
        sizes = sizes[order]
    if weighed:
        if not (data >= 0).all():
            raise ValueError("together_ holds values below 0")
        return
    good = np.ones(items, dtype=np.bool_)
    with parallel() as threads:
        if counts.dense:
            in_parts(threads, _possible_rows, t, sizes, counts.vectors, good)
        else:
            in_parts(
                threads, _possible_entries, t.indptr, t.indices, t.data, sizes, counts.vectors, good
            )
    if not good.all():
        raise ValueError("together_ holds counts that items of these sizes cannot have")


def count_type(sizes: NDArray[Any]) -> type:
    """Return the smallest unsigned type that holds every co-occurrence of items of these sizes."""
    if len(sizes) < 2:
        return np.uint8
    second = int(np.partition(sizes, -2)[-2])  # no pair occurs more often than its rarer item
    return next(t for t in (np.uint8, np.uint16, np.uint32) if second <= np.iinfo(t).max)


def dense_counts(user_items: sp.csr_matrix) -> ItemCounts:
    """Count all pairs of items of a binary canonical CSR as an array, if it fits the free memory."""
    items = user_items.shape[1]
    layout = columns(user_items)
    sizes = np.diff(layout.indptr).astype(np.int64)
    kind = count_type(sizes)
    check_memory(np.dtype(kind).itemsize * items * items, f"the item × item matrix of {items:,} items")
    if _count_dense.small(
        int(np.square(np.diff(user_items.indptr), dtype=np.int64).sum()) + items * items
    ):
        ones = sp.csr_matrix(
            (np.ones(user_items.nnz, dtype=np.uint32), user_items.indices, user_items.indptr),
            user_items.shape,
        )
        together = (ones.T @ ones).toarray().astype(kind)
        np.fill_diagonal(together, 0)
        return ItemCounts(together, sizes, user_items.shape[0])
    together = np.zeros((items, items), dtype=kind)
    with parallel() as threads:
        in_parts(
            threads, _count_dense, user_items.indptr, user_items.indices, layout.indptr, layout.indices,
            layout.data, together,
        )  # fmt: skip
        in_parts(threads, mirror, together)
    return ItemCounts(together, sizes, user_items.shape[0])


def sparse_counts(
    user_items: sp.csr_matrix, votes: NDArray[np.float64] | None = None, budget: int | None = None
) -> ItemCounts:
    """Count the pairs of items that occur, as CSR over positions, popular items first.

    With `votes`, the weight of each row of the binary canonical CSR, they are float32 sums of weights,
    added in float64. What would take more than `budget` bytes (what is free when not given) is refused.
    """
    m = user_items.shape[1]
    popularity = np.bincount(user_items.indices, minlength=m).astype(np.int64)
    order = np.argsort(-popularity, kind="stable").astype(np.int32)
    place = positions(order)
    rows = renumbered(user_items, place)
    layout = columns(rows)
    lengths = pair_lengths(rows, layout)
    lengths -= popularity[order] > 0  # themselves
    kind = np.float32 if votes is not None else count_type(popularity)
    check_budget(sparse_bytes(int(lengths.sum()), m, kind), m, budget)
    indptr, indices, data = _room(lengths, kind)
    own: NDArray[Any] = popularity
    with parallel() as threads:
        if votes is None:
            in_parts(
                threads, _count_sparse, rows.indptr, rows.indices, layout.indptr, layout.indices, indptr,
                indices, data,
            )  # fmt: skip
        else:
            own = np.zeros(m)
            in_parts(
                threads, _sum_sparse, rows.indptr, rows.indices, layout.indptr, layout.indices, votes,
                False, indptr, indices, data, own,
            )  # fmt: skip
            own = own[place]
    together = _csr(data, indices, indptr, m)
    return ItemCounts(together, own, user_items.shape[0], order)


def cooccurrence(
    user_items: sp.csr_matrix, votes: NDArray[np.float64] | None = None, budget: int | None = None
) -> sp.csr_matrix:
    """Return R.T @ diag(votes) @ R as float32 CSR, summed in float64, the diagonal stored.

    `user_items` is binary and canonical; `votes` are 1 and `budget`, in bytes, is what is free by
    default.
    """
    m = user_items.shape[1]
    layout = columns(user_items)
    lengths = np.maximum(pair_lengths(user_items, layout), 1)
    check_budget(sparse_bytes(int(lengths.sum()), m, np.float32), m, budget)
    indptr, indices, data = _room(lengths, np.float32)
    votes = np.ones(user_items.shape[0]) if votes is None else votes
    with parallel() as threads:
        in_parts(
            threads, _sum_sparse, user_items.indptr, user_items.indices, layout.indptr, layout.indices,
            votes, True, indptr, indices, data, np.zeros(m),
        )  # fmt: skip
    return _csr(data, indices, indptr, m)


def pair_lengths(user_items: sp.csr_matrix, layout: sp.csc_matrix | None = None) -> NDArray[np.int64]:
    """Return how many items each item shares a user with, itself among them: a row of R.T @ R."""
    layout = columns(user_items) if layout is None else layout
    out = np.zeros(user_items.shape[1], dtype=np.int64)
    with parallel() as threads:
        in_parts(
            threads, _lengths, user_items.indptr, user_items.indices, layout.indptr, layout.indices, out
        )
    return out


def columns(user_items: sp.csr_matrix) -> sp.csc_matrix:
    """Return the transpose's layout with, as data, each entry's position in the CSR arrays."""
    entries = np.arange(user_items.nnz, dtype=np.int64)
    return sp.csr_matrix((entries, user_items.indices, user_items.indptr), user_items.shape).tocsc()


def renumbered(rows: sp.csr_matrix, place: NDArray[np.int32]) -> sp.csr_matrix:
    """Return rows whose columns have the given positions, indices sorted."""
    out = sp.csr_matrix((rows.data, place[rows.indices], rows.indptr), rows.shape)
    out.has_sorted_indices = False
    out.sort_indices()
    return out


def sparse_bytes(entries: int, items: int, dtype: type = np.float32) -> int:
    """Return the bytes of this many entries as CSR."""
    return entries * (4 + np.dtype(dtype).itemsize) + 24 * items


def check_budget(need: int, items: int, budget: int | None) -> None:
    """Refuse what exceeds the budget, or what is free."""
    what = f"the sparse item × item matrix of {items:,} items"
    if budget is None:
        check_memory(need, what)
    else:
        enough = f"pass memory={-(-need // 10**6)}MB, or keep fewer items"
        check_memory(need, what, budget, enough)


def _room(lengths: NDArray[np.int64], dtype: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], Any]:
    """Return the row pointers of rows of these lengths, and room for their indices and data."""
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr, np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=dtype)


def _csr(data: Any, indices: Any, indptr: Any, m: int) -> sp.csr_matrix:
    """Return a CSR matrix on these arrays themselves: the constructor would copy and check them."""
    out = sp.csr_matrix((m, m), dtype=data.dtype)
    if indptr[-1] < np.iinfo(np.int32).max:  # SciPy wants both of one type
        indptr = indptr.astype(np.int32)
    out.data, out.indices, out.indptr = data, indices, indptr
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def _merged(old: sp.csr_matrix, change: sp.csr_matrix, kind: type) -> tuple[int, sp.csr_matrix]:
    """Return the least entry of old + change, and the sum without its zeros."""
    m = old.shape[0]
    arrays = (old.indptr, old.indices, old.data, change.indptr, change.indices, change.data)
    lengths = np.zeros(m, dtype=np.int64)
    least = np.zeros(m, dtype=np.int64)
    with parallel() as threads:
        in_parts(threads, _merge_lengths, *arrays, lengths, least)
        indptr, indices, data = _room(lengths, kind)
        if least.min(initial=0) >= 0:
            in_parts(threads, _merge, *arrays, indptr, indices, data)
    return int(least.min(initial=0)), _csr(data, indices, indptr, m)


# ---- kernels


@jit
def _count_dense(first, stride, indptr, indices, item_ptr, item_users, position, out):
    """Count, over the users of item i, the items after i: one triangle, in a row that stays in cache."""
    m = len(item_ptr) - 1
    count = np.zeros(m, dtype=np.int32)
    for i in range(first, m, stride):  # interleaved: popular items spread over the threads
        for k in range(item_ptr[i], item_ptr[i + 1]):
            for p in range(position[k] + 1, indptr[item_users[k] + 1]):
                count[indices[p]] += 1
        for j in range(i + 1, m):
            out[i, j] = count[j]
        count[i + 1 :] = 0


@jit
def _possible_rows(first, stride, together, sizes, n, good):
    for i in range(first, len(sizes), stride):
        fine = together[i, i] == 0
        for j in range(len(sizes)):
            s = np.int64(together[i, j])
            fine &= s <= min(sizes[i], sizes[j]) and together[j, i] == together[i, j]
            fine &= i == j or sizes[i] + sizes[j] - s <= n
        good[i] = fine


@jit
def _possible_entries(first, stride, indptr, indices, data, sizes, n, good):
    for i in range(first, len(sizes), stride):
        fine = True
        for p in range(indptr[i], indptr[i + 1]):
            j, s = indices[p], np.int64(data[p])
            fine &= j != i and 1 <= s <= min(sizes[i], sizes[j]) and sizes[i] + sizes[j] - s <= n
        good[i] = fine


@jit
def mirror(first, stride, out):
    """Copy the upper triangle to the lower one, tile by tile."""
    m = len(out)
    tile = 64
    tiles = (m + tile - 1) // tile
    for t in range(first, tiles, stride):
        # Thread-private rows: tile t of the lower triangle reads the upper one only.
        for s in range(t + 1):
            for i in range(t * tile, min((t + 1) * tile, m)):
                for j in range(s * tile, min((s + 1) * tile, i)):
                    out[i, j] = out[j, i]


@jit
def _add_dense(out, indptr, indices, data):
    """Add a sparse change to the counts and return the least of what came out."""
    least = 0
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            value = np.int64(out[i, indices[p]]) + data[p]
            least = min(least, value)
            out[i, indices[p]] = max(value, 0)
    return least


@jit
def _lengths(first, stride, indptr, indices, item_ptr, item_users, out):
    m = len(out)
    seen = np.full(m, -1, dtype=np.int32)
    for i in range(first, m, stride):
        count = 0
        for k in range(item_ptr[i], item_ptr[i + 1]):
            u = item_users[k]
            for p in range(indptr[u], indptr[u + 1]):
                j = indices[p]
                if seen[j] != i:
                    seen[j] = i
                    count += 1
        out[i] = count


@jit
def sort_touched(touched, count, bits, words):
    """Sort the first `count` of touched, all different, by a bit for each and for each word of bits.

    All bits are 0 before and after.
    """
    one = np.uint64(1)
    for k in range(count):
        j = touched[k]
        bits[j >> 6] |= one << np.uint64(j & 63)
        words[j >> 12] |= one << np.uint64((j >> 6) & 63)
    k = 0
    for outer in range(len(words)):
        while words[outer]:
            inner = (outer << 6) + _trailing_zeros(words[outer])
            words[outer] &= words[outer] - one
            rest = bits[inner]
            bits[inner] = 0
            while rest:
                touched[k] = (inner << 6) + _trailing_zeros(rest)
                rest &= rest - one
                k += 1


@jit
def _trailing_zeros(x):
    """Return how many zeros follow the lowest one of a uint64, by counting the bits below it."""
    x = (x & (~x + np.uint64(1))) - np.uint64(1)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x += x >> np.uint64(8)  # not by one multiplication, which overflows: uncompiled that is a warning
    x += x >> np.uint64(16)
    x += x >> np.uint64(32)
    return np.int64(x & np.uint64(0x7F))


@jit
def _count_sparse(first, stride, indptr, indices, item_ptr, item_users, out_ptr, out_indices, out_data):
    m = len(out_ptr) - 1
    count = np.zeros(m, dtype=np.int32)
    bits, words = np.zeros((m >> 6) + 1, np.uint64), np.zeros((m >> 12) + 1, np.uint64)
    touched = np.empty(m, dtype=np.int32)
    for i in range(first, m, stride):
        size = np.int64(0)
        for k in range(item_ptr[i], item_ptr[i + 1]):
            u = item_users[k]
            for p in range(indptr[u], indptr[u + 1]):
                j = indices[p]
                if count[j] == 0 and j != i:
                    touched[size] = j
                    size += 1
                count[j] += 1
        count[i] = 0
        sort_touched(touched, size, bits, words)
        for k in range(size):
            j = touched[k]
            out_indices[out_ptr[i] + k] = j
            out_data[out_ptr[i] + k] = count[j]
            count[j] = 0


@jit
def _sum_sparse(
    first, stride, indptr, indices, item_ptr, item_users, votes, diagonal, out_ptr, out_indices,
    out_data, own,
):  # fmt: skip
    """Sum votes of pairs; an item's own sum goes to `own` and, if `diagonal`, is stored, even a 0."""
    m = len(out_ptr) - 1
    total = np.zeros(m)
    seen = np.full(m, -1, dtype=np.int32)
    bits, words = np.zeros((m >> 6) + 1, np.uint64), np.zeros((m >> 12) + 1, np.uint64)
    touched = np.empty(m, dtype=np.int32)
    for i in range(first, m, stride):
        size = np.int64(0)
        for k in range(item_ptr[i], item_ptr[i + 1]):
            u = item_users[k]
            for p in range(indptr[u], indptr[u + 1]):
                j = indices[p]
                if seen[j] != i and j != i:
                    seen[j] = i
                    touched[size] = j
                    size += 1
                total[j] += votes[u]
        own[i] = total[i]
        if diagonal:
            touched[size] = i
            size += 1
        else:
            total[i] = 0.0
        sort_touched(touched, size, bits, words)
        for k in range(size):
            j = touched[k]
            out_indices[out_ptr[i] + k] = j
            out_data[out_ptr[i] + k] = total[j]
            total[j] = 0.0


@jit
def _merge_lengths(first, stride, ptr, idx, dat, cptr, cidx, cdat, lengths, least):
    for i in range(first, len(lengths), stride):
        p, end = ptr[i], ptr[i + 1]
        size = end - p
        for c in range(cptr[i], cptr[i + 1]):
            while p < end and idx[p] < cidx[c]:
                p += 1
            if p < end and idx[p] == cidx[c]:
                value = np.int64(dat[p]) + cdat[c]
                size -= 1 if value == 0 else 0
            else:
                value = cdat[c]
                size += 1
            least[i] = min(least[i], value)
        lengths[i] = size


@jit
def _merge(first, stride, ptr, idx, dat, cptr, cidx, cdat, out_ptr, out_idx, out_dat):
    for i in range(first, len(out_ptr) - 1, stride):
        k, p, end = out_ptr[i], ptr[i], ptr[i + 1]
        for c in range(cptr[i], cptr[i + 1]):
            while p < end and idx[p] < cidx[c]:
                out_idx[k], out_dat[k] = idx[p], dat[p]
                k += 1
                p += 1
            value = np.int64(cdat[c])
            if p < end and idx[p] == cidx[c]:
                value += np.int64(dat[p])
                p += 1
            if value != 0:
                out_idx[k], out_dat[k] = cidx[c], value
                k += 1
        while p < end:
            out_idx[k], out_dat[k] = idx[p], dat[p]
            k += 1
            p += 1
