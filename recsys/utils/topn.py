"""The best N of each row: filters, ties and padding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import borrowed, jit, over_rows
from recsys.errors import InputError
from recsys.utils.validation import check_ids

LOWEST = np.float32(np.finfo(np.float32).min)
ROOT = np.int64(0)  # of a heap


class Allowed(NamedTuple):
    """The allowed items: a mask, its number of items, and whether they were listed."""

    mask: NDArray[np.uint8]
    size: int
    listed: bool = False


def allowed_items(
    size: int, leave_out: ArrayLike | None, only: ArrayLike | None, what: str = "items"
) -> Allowed:
    """Return the mask that `filter_items` or `items`, not both, describe."""
    if leave_out is not None and only is not None:
        raise InputError(f"pass filter_{what} or {what}, not both")
    mask = np.ones(size, dtype=np.uint8)
    if only is not None:
        mask[:] = 0
        mask[check_ids(what, only, size)] = 1
    elif leave_out is not None:
        mask[check_ids(f"filter_{what}", leave_out, size)] = 0
    return Allowed(mask, int(mask.sum()), only is not None)


def top_n(
    scores: NDArray[np.floating],
    rows: sp.csr_matrix,
    N: int,
    skip_liked: bool,
    mask: NDArray[np.uint8],
    liked_last: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return ids and scores of each row's N best candidates, padded with −1 and `LOWEST`.

    Equal scores go by index. Liked items are left out if `skip_liked`; with `liked_last` they fill what
    room is left, by index, and have the score `LOWEST`.
    """
    ids = np.full((len(scores), N), -1, dtype=np.int32)
    best = np.full((len(scores), N), LOWEST, dtype=scores.dtype)
    arrays = (scores, rows.indptr, rows.indices, skip_liked, liked_last, mask, ids, best)
    if _top_rows.small(scores.size):
        _top_rows_in_numpy(*arrays)
    else:
        over_rows(len(scores), _top_rows, *arrays)
    return ids, best.astype(np.float32, copy=False)


# ---- kernels


@jit(inline="always")
def _worse(s, i, t, j):
    return s < t or (s == t and i > j)


@jit
def _sift(s, i, start, size):
    """Restore the heap whose root is the worst of the kept."""
    root = start
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _worse(s[child + 1], i[child + 1], s[child], i[child]):
            child += 1
        if not _worse(s[child], i[child], s[root], i[root]):
            return
        s[child], s[root] = s[root], s[child]
        i[child], i[root] = i[root], i[child]
        root = child


@jit
def _heapify(s, i, size):
    for k in range(size // 2 - 1, -1, -1):
        _sift(s, i, k, size)


@jit
def offer(s, i, size, score, item):
    """Keep the item if it is among the best len(s) so far; return how many are kept.

    s and i hold scores and items of a heap whose root is the worst. The score is rounded to the
    precision of s before it is compared.
    """
    width = len(s)
    if size < width:
        s[size], i[size] = score, item
        size += 1
        if size == width:
            _heapify(s, i, width)
        return size
    last_score, last_item = s[0], i[0]
    s[0] = score
    if _worse(s[0], item, last_score, last_item):
        s[0] = last_score
        return size
    i[0] = item
    _sift(s, i, ROOT, width)
    return size


@jit
def put_in_order(s, i, size):
    """Order the kept ones, best first."""
    if size < len(s):
        _heapify(s, i, size)
    for end in range(size - 1, 0, -1):  # worst to the end
        s[0], s[end] = s[end], s[0]
        i[0], i[end] = i[end], i[0]
        _sift(s, i, ROOT, end)


def _top_rows_in_numpy(scores, indptr, indices, skip_liked, liked_last, mask, ids, best):
    """Do as `_top_rows`, in NumPy."""
    width = ids.shape[1]
    for r, row in enumerate(scores):
        allowed = mask == 1
        liked = indices[indptr[r] : indptr[r + 1]]
        if skip_liked:
            allowed[liked] = False
        kept = np.flatnonzero(allowed)
        if len(kept) > width > 0:  # those that tie with the last one are sorted, too
            kept = kept[row[kept] >= np.partition(row[kept], -width)[-width]]
        order = kept[np.argsort(-row[kept], kind="stable")][:width]
        ids[r, : len(order)], best[r, : len(order)] = order, row[order]
        if skip_liked and liked_last and len(order) < width:
            rest = liked[mask[liked] == 1][: width - len(order)]
            ids[r, len(order) : len(order) + len(rest)] = rest


@jit
def _top_rows(first, stride, scores, indptr, indices, skip_liked, liked_last, mask, ids, best):
    ids, best = borrowed((ids, best))
    rows, m = scores.shape
    width = ids.shape[1]
    banned = np.zeros(m, dtype=np.uint8)
    for r in range(first, rows, stride):
        if skip_liked:
            for p in range(indptr[r], indptr[r + 1]):
                banned[indices[p]] = 1
        s, i = best[r], ids[r]
        size = np.int64(0)
        for j in range(m):
            v = scores[r, j]
            if (size == width and v <= s[0]) or mask[j] == 0 or banned[j] == 1:
                continue
            size = offer(s, i, size, v, j)
        put_in_order(s, i, size)
        if skip_liked:
            for p in range(indptr[r], indptr[r + 1]):  # sorted by index
                j = indices[p]
                banned[j] = 0
                if liked_last and size < width and mask[j] == 1:
                    i[size] = j
                    size += 1
