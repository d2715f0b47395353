"""Rows that join objects which repeat: a user, an item, a context, each with its own features.

A row x = x_1 ⊕ … ⊕ x_B has A^m(x) = Σ A^t1(x_1) ⋯ A^tB(x_B) over t1 + … + tB = m: the ANOVA kernel over
a direct sum is the convolution of the tables of its parts. A part that many rows share is read once.

Source: Rendle, Scaling Factorization Machines to Relational Data (2013); for any order from (3.21) of
Atarashi's thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError

__all__ = ["Block", "find_blocks", "given_blocks", "joined_blocks"]

MOST = 12  # blocks that are looked for
GLANCED = 1000  # rows that tell most columns which are no function of an object


@dataclass(frozen=True)
class Block:
    """Some columns of a matrix, `features`, and the distinct objects of which its rows consist there.

    `rows` and `columns` are the objects, (objects, features), as CSR and CSC. `of`, (rows of the
    matrix,), is the object in each row, and `entries[ptr[o] : ptr[o + 1]]` are the rows of object o,
    ascending.
    """

    features: NDArray[np.int64]
    rows: sp.csr_matrix
    columns: sp.csc_matrix
    of: NDArray[np.int32]
    ptr: NDArray[np.int64]
    entries: NDArray[np.int32]

    @classmethod
    def of_columns(cls, X: sp.csr_matrix, features: NDArray[np.int64]) -> Block:
        """Return the block of some columns."""
        part = sp.csr_matrix(X[:, features])
        part.sort_indices()
        of, first = _labels(part)
        return cls._indexed(features, sp.csr_matrix(part[first]), of)

    def reordered(self, order: NDArray[np.int64]) -> Block:
        """Return the block of the same rows in another order."""
        return self._indexed(self.features, self.rows, self.of[order])

    @classmethod
    def _indexed(
        cls, features: NDArray[np.int64], rows: sp.csr_matrix, of: NDArray[np.integer]
    ) -> Block:
        rows.sort_indices()
        columns = rows.tocsc()
        columns.sort_indices()
        ptr = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=rows.shape[0]))])
        entries = np.argsort(of, kind="stable").astype(np.int32)
        return cls(features, rows, columns, of.astype(np.int32), ptr.astype(np.int64), entries)


def given_blocks(X: sp.csr_matrix, widths: Sequence[int]) -> list[Block]:
    """Return blocks of `size` columns each, from the first column on; they must be all columns."""
    numbers = isinstance(widths, (list, tuple, np.ndarray)) and all(
        isinstance(w, (int, np.integer)) and not isinstance(w, bool) and w > 0 for w in widths
    )
    if not numbers or sum(widths) != X.shape[1]:
        raise InputError(
            f"blocks must be numbers of columns that add up to the {X.shape[1]} there are, not "
            f"{widths!r}"
        )
    ends = np.cumsum(widths)
    return [
        Block.of_columns(X, np.arange(end - width, end))
        for end, width in zip(ends.tolist(), widths, strict=True)
    ]


def find_blocks(X: sp.csr_matrix) -> list[Block]:
    """Return blocks that need few objects: each is a one-hot field, and all that is a function of it.

    Fields are runs of columns no two of which share a row, the widest first: a user's age, and the items
    that a user has had, are functions of who it is, and join the users.

    >>> X = sp.csr_matrix([[1, 0, 1, 0, 7], [1, 0, 0, 1, 7], [0, 1, 1, 0, 9], [0, 1, 0, 1, 9.0]])
    >>> [block.features.tolist() for block in find_blocks(X)]
    [[0, 1, 4], [2, 3]]
    """
    X = X if X.has_canonical_format else _canonical(X)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    left = np.flatnonzero(counts)
    if len(left) == 0:
        return [Block.of_columns(X, np.arange(X.shape[1]))]
    blocks: list[Block] = []
    rest, here = X, np.arange(X.shape[1])  # the columns of rest, in X
    while len(left):
        if len(blocks) == MOST - 1:
            blocks.append(Block.of_columns(X, left))
            break
        if 2 * counts[left].sum() < rest.nnz:  # worth a copy
            rest, here = _some_columns(rest, np.searchsorted(here, left)), left
        live = np.zeros(rest.shape[1], dtype=np.bool_)
        live[np.searchsorted(here, left)] = True
        starts = _field_starts(_nearest(rest.indptr, rest.indices, live), live)
        widest = int(np.argmax(np.diff(np.cumsum(np.concatenate([[0], live]))[starts])))
        of, first = _of_field(*_arrays(rest), live, starts[widest], starts[widest + 1])
        _functions_of(rest, of, first, live)
        mine = here[live]
        blocks.append(Block._indexed(mine, sp.csr_matrix(X[first][:, mine]), of))
        left = np.setdiff1d(left, mine, assume_unique=True)
    unused = np.flatnonzero(counts == 0)
    if len(unused):  # they belong somewhere: a sampler draws their parameters from their prior
        block = blocks[0]
        features = np.sort(np.concatenate([block.features, unused]))
        firsts = block.entries[block.ptr[:-1]]
        blocks[0] = Block._indexed(features, sp.csr_matrix(X[firsts][:, features]), block.of)
    return blocks


def joined_blocks(X: sp.csr_matrix) -> list[Block]:
    """Return blocks that are few as well, to go over the rows fewer times; none if nothing repeats.

    Blocks are joined while their pairs of objects, such as (month, weekday), have few entries beside
    what there are rows. Where no one-hot field leads to objects that repeat, the columns may be cut in
    two parts that do.
    """
    X = X if X.has_canonical_format else _canonical(X)
    n = X.shape[0]
    blocks = find_blocks(X)
    if len(blocks) < 2 or sum(block.rows.shape[0] for block in blocks) > n:
        return _cut_in_two(X)
    while len(blocks) > 2:
        pairs = [(a, b) for b in range(len(blocks)) for a in range(b)]
        grown = [_grown(blocks[a], blocks[b]) for a, b in pairs]
        best = int(np.argmin(grown))
        if 2 * grown[best] > n:  # an entry costs a step more than a row costs a pass
            break
        a, b = pairs[best]
        joint = _join(X, blocks[a], blocks[b])
        blocks = [block for k, block in enumerate(blocks) if k not in (a, b)] + [joint]
    return sorted(blocks, key=lambda block: -block.rows.shape[0])


def _canonical(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return a copy whose rows are sorted: the passes over them rely on it."""
    copy = X.copy()
    copy.sum_duplicates()
    return copy


def _grown(a: Block, b: Block) -> float:
    """Return at most how many more entries two blocks have when they are one."""
    one, two = a.rows.shape[0], b.rows.shape[0]
    return float(one * b.rows.nnz + two * a.rows.nnz - a.rows.nnz - b.rows.nnz)


def _join(X: sp.csr_matrix, a: Block, b: Block) -> Block:
    keys, first, of = np.unique(
        a.of.astype(np.int64) * b.rows.shape[0] + b.of, return_index=True, return_inverse=True
    )
    features = np.sort(np.concatenate([a.features, b.features]))
    return Block._indexed(features, sp.csr_matrix(X[first][:, features]), of)


def _cut_in_two(X: sp.csr_matrix) -> list[Block]:
    """Return two blocks of neighbouring columns, cut where a field ends; none if they do not repeat."""
    n, d = X.shape
    every = np.ones(d, dtype=np.bool_)
    cuts = _field_starts(_nearest(X.indptr, X.indices, every), every)[1:-1]
    if len(cuts) == 0:
        return []
    keys = _keys(d, 7)
    found: dict[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}

    def labels(at: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        if at not in found:
            sums = _row_hashes(*_arrays(X), keys, int(cuts[at]))
            found[at] = [_label(part) for part in sums]
        return found[at]

    low, high = 0, len(cuts) - 1
    while low < high:  # left parts only get more as the cut moves right, right parts fewer
        middle = (low + high) // 2
        (_, a), (_, b) = labels(middle)
        low, high = (low, middle) if len(a) >= len(b) else (middle + 1, high)
    tried = [at for at in (low - 1, low) if at >= 0]
    best = min(tried, key=lambda at: sum(len(first) for _, first in labels(at)))
    if sum(len(first) for _, first in labels(best)) > n:
        return []
    cut = int(cuts[best])
    return [Block.of_columns(X, np.arange(cut)), Block.of_columns(X, np.arange(cut, d))]


def _arrays(X: sp.csr_matrix) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    return X.indptr, X.indices, X.data


def _keys(columns: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(1, 2**63, size=columns, dtype=np.uint64)


def _labels(part: sp.csr_matrix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of the distinct rows each is, and where each of these comes first."""
    for seed in count(7):  # until no two rows have a hash by chance
        sums, _ = _row_hashes(*_arrays(part), _keys(part.shape[1], seed), part.shape[1])
        of, first = _label(sums)
        alike = np.ones(part.shape[1], dtype=np.bool_)
        _unlike(*_arrays(part), np.arange(part.shape[0]), of, first, alike)
        if alike.all():
            break
    return of, first


def _functions_of(
    X: sp.csr_matrix, of: NDArray[np.int64], first: NDArray[np.int64], live: NDArray[np.bool_]
) -> None:
    """Leave those columns live that have in every row what they have in the first row of its label."""
    n = X.shape[0]
    # some of the rows tell most, and then there is less to compare in all of them
    _unlike(*_arrays(X), np.arange(0, n, max(n // GLANCED, 1)), of, first, live)
    _unlike(*_arrays(X), np.arange(n), of, first, live)


def _some_columns(X: sp.csr_matrix, columns: NDArray[np.int64]) -> sp.csr_matrix:
    """Return X[:, columns], ascending."""
    place = np.full(X.shape[1], -1, dtype=np.int32)
    place[columns] = np.arange(len(columns))
    indptr = _kept_counts(X.indptr, X.indices, place)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    _keep(*_arrays(X), place, indptr, indices, data)
    return sp.csr_matrix((data, indices, indptr), shape=(X.shape[0], len(columns)))


# ---- kernels


@jit
def _kept_counts(indptr, indices, place):
    """Return the row pointers of the columns that are kept."""
    out = np.zeros(len(indptr), dtype=np.int32)
    for i in range(len(indptr) - 1):
        kept = 0
        for q in range(indptr[i], indptr[i + 1]):
            kept += place[indices[q]] >= 0
        out[i + 1] = out[i] + kept
    return out


@jit
def _keep(indptr, indices, data, place, new_ptr, new_indices, new_data):
    """Copy the entries of the columns that are kept."""
    for i in range(len(indptr) - 1):
        at = new_ptr[i]
        for q in range(indptr[i], indptr[i + 1]):
            j = place[indices[q]]
            if j >= 0:
                new_indices[at], new_data[at] = j, data[q]
                at += 1


@jit
def _nearest(indptr, indices, live):
    """Return, for each live column, the first one after it that some row has as its next live entry."""
    columns = len(live)
    out = np.full(columns, columns, dtype=np.int64)
    for i in range(len(indptr) - 1):
        before = -1
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            if live[j]:
                if before >= 0 and j < out[before]:
                    out[before] = j
                before = j
    return out


@jit
def _field_starts(nearest, live):
    """Return where runs of live columns start no two of which share a row, and the end of the last."""
    d = len(nearest)
    for j in range(d - 2, -1, -1):
        nearest[j] = min(nearest[j], nearest[j + 1])
    at = 0
    while at < d and not live[at]:
        at += 1
    out = [at]
    while at < d:
        at = nearest[at]
        out.append(at)
    return np.array(out, dtype=np.int64)


@jit
def _of_field(indptr, indices, data, live, start, stop):
    """Return a number for what each row has in a field, and where each number comes first."""
    n = len(indptr) - 1
    column, value = np.full(n, -1, dtype=np.int64), np.zeros(n)
    for i in range(n):
        low, high = indptr[i], indptr[i + 1]
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < start:
                low = middle + 1
            else:
                high = middle
        while low < indptr[i + 1] and not live[indices[low]]:
            low += 1
        if low < indptr[i + 1] and indices[low] < stop:
            column[i], value[i] = indices[low], data[low]
    size = 16
    while size < 4 * n:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, dtype=np.int64)
    of, first = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    bits = value.view(np.uint64)
    found = 0
    for i in range(n):
        at = _mix(_mix(bits[i]) + np.uint64(column[i] + 2)) & mask
        while slots[at] >= 0:
            k = first[slots[at]]
            if column[k] == column[i] and value[k] == value[i]:
                break
            at = (at + np.uint64(1)) & mask
        if slots[at] < 0:
            slots[at] = found
            first[found] = i
            found += 1
        of[i] = slots[at]
    return of, first[:found].copy()


@jit
def _mix(h):
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@jit
def _label(hashes):
    """Give equal hashes one number, in order of appearance; returns where each first appears, too."""
    size = 16
    while size < 4 * len(hashes):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, dtype=np.int64)
    of, first = np.empty(len(hashes), dtype=np.int64), np.empty(len(hashes), dtype=np.int64)
    found = 0
    for i in range(len(hashes)):
        at = _mix(hashes[i]) & mask
        while slots[at] >= 0 and hashes[first[slots[at]]] != hashes[i]:
            at = (at + np.uint64(1)) & mask
        if slots[at] < 0:
            slots[at] = found
            first[found] = i
            found += 1
        of[i] = slots[at]
    return of, first[:found].copy()


@jit
def _row_hashes(indptr, indices, data, keys, cut):
    """Return a sum of hashes of each row's entries before the column `cut`, and of the others."""
    n = len(indptr) - 1
    one, two = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    bits = data.view(np.uint64)
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            h = _mix(keys[indices[q]] ^ _mix(bits[q]))
            if indices[q] < cut:
                one[i] += h
            else:
                two[i] += h
    return one, two


@jit
def _unlike(indptr, indices, data, rows, of, first, live):
    """Unmark the live columns whose value in some of these rows is not that of its label's first row."""
    for i in rows:
        k = first[of[i]]
        if k == i:
            continue
        p, q = indptr[i], indptr[k]
        end, last = indptr[i + 1], indptr[k + 1]
        while True:
            while p < end and not live[indices[p]]:
                p += 1
            while q < last and not live[indices[q]]:
                q += 1
            if p == end and q == last:
                break
            if p < end and q < last and indices[p] == indices[q]:
                if data[p] != data[q]:
                    live[indices[p]] = False
                p += 1
                q += 1
            elif q == last or (p < end and indices[p] < indices[q]):
                live[indices[p]] = False
                p += 1
            else:
                live[indices[q]] = False
                q += 1
