"""Rows of a co-occurrence matrix for a block of items: each entry is counted by one worker, whole."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.kernels.gram.counts import sort_touched


class Block(NamedTuple):
    """Rows low…high of a co-occurrence matrix, as `sparse_counts` or `cooccurrence` has them.

    Row r has `lengths[r]` entries: `indices` ascend in it, and `data` are counts, or float32 sums of
    votes. `own`, (rows,), is the sum of the votes of each item's users; empty without votes.
    """

    lengths: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]
    own: NDArray[np.float64]


def block_of_counts(
    low: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    items: int,
    item_ptr: NDArray[np.int64],
    item_users: NDArray[np.int32],
    entries: int,
    dtype: type,
    votes: NDArray[np.float64] | None = None,
    diagonal: bool = False,
) -> Block:
    """Count the pairs of the items low, low + 1, … with all `items`.

    `indptr` and `indices` are the items of each user, none twice, in any order, and `item_ptr` and
    `item_users` the users of each of the items to count, ascending. There is room for `entries` counts
    of `dtype`. With `votes`, the weight of each user, data are float32, summed in float64 in the order
    of users. `diagonal` stores an item's own sum, too, even a 0.
    """
    rows = len(item_ptr) - 1
    lengths = np.zeros(rows, dtype=np.int64)
    found = np.empty(entries, dtype=np.int32)
    shared = (low, indptr, indices, items, item_ptr, item_users)
    if votes is None and not diagonal:
        data: NDArray[Any] = np.empty(entries, dtype=dtype)
        own = np.zeros(0)
        end = _count_block(*shared, lengths, found, data)
    else:
        data, own = np.empty(entries, dtype=np.float32), np.zeros(rows)
        weights = np.ones(len(indptr) - 1) if votes is None else votes
        end = _sum_block(*shared, weights, diagonal, lengths, found, data, own)
    return Block(lengths, found[:end], data[:end], own)


# ---- kernels


@jit
def _count_block(low, indptr, indices, m, item_ptr, item_users, lengths, out_indices, out_data):
    count = np.zeros(m, dtype=np.int32)
    bits, words = np.zeros((m >> 6) + 1, np.uint64), np.zeros((m >> 12) + 1, np.uint64)
    touched = np.empty(m, dtype=np.int32)
    at = np.int64(0)
    for i in range(len(item_ptr) - 1):
        size = np.int64(0)
        count[low + i] = 1  # not among the touched
        for k in range(item_ptr[i], item_ptr[i + 1]):
            u = item_users[k]
            for p in range(indptr[u], indptr[u + 1]):
                j = indices[p]
                if count[j] == 0:
                    touched[size] = j
                    size += 1
                count[j] += 1
        count[low + i] = 0
        sort_touched(touched, size, bits, words)
        for k in range(size):
            j = touched[k]
            out_indices[at + k] = j
            out_data[at + k] = count[j]
            count[j] = 0
        lengths[i] = size
        at += size
    return at


@jit
def _sum_block(
    low, indptr, indices, m, item_ptr, item_users, votes, diagonal, lengths, out_indices, out_data, own
):
    total = np.zeros(m)
    seen = np.full(m, -1, dtype=np.int32)
    bits, words = np.zeros((m >> 6) + 1, np.uint64), np.zeros((m >> 12) + 1, np.uint64)
    touched = np.empty(m, dtype=np.int32)
    at = np.int64(0)
    for i in range(len(item_ptr) - 1):
        size = np.int64(0)
        for k in range(item_ptr[i], item_ptr[i + 1]):
            u = item_users[k]
            for p in range(indptr[u], indptr[u + 1]):
                j = indices[p]
                if seen[j] != i and j != low + i:
                    seen[j] = i
                    touched[size] = j
                    size += 1
                total[j] += votes[u]
        own[i] = total[low + i]
        if diagonal:
            touched[size] = low + i
            size += 1
        else:
            total[low + i] = 0.0
        sort_touched(touched, size, bits, words)
        for k in range(size):
            j = touched[k]
            out_indices[at + k] = j
            out_data[at + k] = total[j]
            total[j] = 0.0
        lengths[i] = size
        at += size
    return at
