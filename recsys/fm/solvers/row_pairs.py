"""Rows that are pairs of objects which repeat, found in a plain sparse matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.multilinear.pairs import Pairs, make_pairs

__all__ = ["split_rows"]


def split_rows(X: sp.csr_matrix) -> tuple[Pairs, int, NDArray[np.int64]] | None:
    """Return rows as pairs of parts that repeat, the column that parts them, and the pairs' order.

    None if there are no such parts.

    Cuts are tried where one-hot fields end; distinct parts are told apart by a 64-bit sum of hashes.
    """
    n, d = X.shape
    columns = X.tocsc()
    cuts = field_ends(columns.indptr, columns.indices, n)
    cuts = cuts[(cuts > 0) & (cuts < d)]
    if len(cuts) == 0:
        return None
    keys = np.random.default_rng(7).integers(1, 2**63, size=d, dtype=np.uint64)
    low, high = 0, len(cuts) - 1
    found: dict[int, tuple[NDArray[np.int64], ...]] = {}

    def labels(at: int) -> tuple[NDArray[np.int64], ...]:
        if at not in found:
            found[at] = label_parts(X.indptr, X.indices, X.data, keys, int(cuts[at]))
        return found[at]

    while low < high:  # left parts only get more as the cut moves right, right parts fewer
        middle = (low + high) // 2
        a, b = labels(middle)[2:]
        low, high = (low, middle) if len(a) >= len(b) else (middle + 1, high)
    best = min((at for at in (low - 1, low) if at >= 0), key=lambda at: sum(map(len, labels(at)[2:])))
    left, right, first_left, first_right = labels(best)
    if len(first_left) + len(first_right) > n:
        return None
    cut = int(cuts[best])
    A = sp.csr_matrix(X[first_left][:, :cut])
    B = sp.csr_matrix(X[first_right][:, cut:])
    order = np.argsort(left, kind="stable")
    return make_pairs(A, B, left[order], right[order]), cut, order


# ---- kernels


@jit
def _mix(h):
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@jit
def _label(hashes, out):
    """Give equal hashes one number, in order of appearance; returns where each first appears."""
    size = 16
    while size < 4 * len(hashes):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, dtype=np.int64)
    first = np.empty(len(hashes), dtype=np.int64)
    count = 0
    for i in range(len(hashes)):
        at = _mix(hashes[i]) & mask
        while slots[at] >= 0 and hashes[first[slots[at]]] != hashes[i]:
            at = (at + np.uint64(1)) & mask
        if slots[at] < 0:
            slots[at] = count
            first[count] = i
            count += 1
        out[i] = slots[at]
    return first[:count].copy()


@jit
def label_parts(indptr, indices, data, keys, cut):
    """Return the number of each row's left and right part, and the first row of each part."""
    n = len(indptr) - 1
    one, two = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    bits = np.empty(1)
    view = bits.view(np.uint64)
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            bits[0] = data[q]
            h = _mix(keys[indices[q]] ^ _mix(view[0]))
            if indices[q] < cut:
                one[i] += h
            else:
                two[i] += h
    left, right = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    first_left = _label(one, left)
    first_right = _label(two, right)
    return left, right, first_left, first_right


@jit
def field_ends(col_ptr, rows, n):
    """Return the columns that start a new run of columns no two of which share a row."""
    seen = np.full(n, -1, dtype=np.int64)
    ends = []
    field = 0
    for j in range(len(col_ptr) - 1):
        clash = False
        for q in range(col_ptr[j], col_ptr[j + 1]):
            if seen[rows[q]] == field:
                clash = True
                break
        if clash:
            field += 1
            ends.append(j)
        for q in range(col_ptr[j], col_ptr[j + 1]):
            seen[rows[q]] = field
    return np.array(ends, dtype=np.int64) if len(ends) > 0 else np.empty(0, dtype=np.int64)
