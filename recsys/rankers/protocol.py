"""What calls of rankers take and return: parameters, data, rows, lists of items, explanations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.sparse import entries_of, owners
from recsys.utils.topn import Allowed, top_n
from recsys.utils.validation import (
    MOST,
    check_choice,
    check_integer,
    check_real,
    clean_matrix,
)

if TYPE_CHECKING:
    from recsys.rankers.base import Ranker

BLOCK_BYTES = 16_000_000  # of the scores that are held at a time

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Callback = Callable[..., Any]
# Scores of some items, (n,), and what each interaction of a row adds to them, (n, interactions).
Shares = tuple[Floats, Floats]
Users = Ints | None  # rows of the fit; None for rows of others
Items = Sequence[Ints]  # an array for each row
Lists = tuple[NDArray[np.int32], NDArray[np.float32]]  # ids and scores, both (rows, N)
Check = Callable[[str, Any], Any]  # of a parameter's value, by its name


def integer(low: int, high: int | None = None) -> Check:
    """Return a check of an integer."""
    return partial(check_integer, low=low, high=high)


def real(low: float = 0.0, high: float = np.inf, **ends: Any) -> Check:
    """Return a check of a number; `open_low` and `open_high` exclude an end."""
    return partial(check_real, low=low, high=high, **ends)


def one_of(*known: str) -> Check:
    """Return a check of one of some words."""
    return partial(check_choice, known=known)


POSITIVE = real(open_low=True)
# Of parameters that several rankers have.
CHECKS: dict[str, Check] = dict.fromkeys(("factors", "iterations", "neg_prop"), integer(1, MOST)) | {
    "regularization": real(),
    "learning_rate": POSITIVE,
    "top_k": integer(1),
    "votes": real(),
    "recency": real(),
    "num_threads": integer(0, MOST),
    "random_state": integer(0, 2**32 - 1),
}


@dataclass(frozen=True)
class Candidate:
    """Parameters that `auto` tries a ranker with, and for which data."""

    params: str = ""  # as after the colon of a specification: "kernel=mc,degree=2"
    items: tuple[float, float] = (0, np.inf)  # least and most
    most_likes: float = np.inf
    timed: bool = False  # for data with times only
    described: bool = False  # for data with item features only, which it is fitted with
    unseen: bool = False  # for data with items that have no users only


@dataclass(frozen=True)
class Data:
    """What a ranker is fitted on."""

    liked: sp.csr_matrix  # (users, items) float32, canonical, of at least one liked item
    times: sp.csr_matrix | None = None  # of the same pattern; None where unknown or all equal
    item_features: sp.csr_matrix | None = None  # float64
    user_features: sp.csr_matrix | None = None
    show_progress: bool = False
    callback: Callback | None = None


@dataclass(frozen=True)
class Rows:
    """Rows to rank items for."""

    matrix: sp.csr_matrix  # (rows, items) float32, canonical
    times: Floats | None = None  # aligned with matrix.indices; None: all equally recent

    @cached_property
    def gaps(self) -> Ints:
        """How many interactions of the same row are strictly newer than each, (nnz,)."""
        assert self.times is not None
        return newer(self.matrix.indptr, self.times)

    @property
    def spans(self) -> list[slice]:
        """Where the entries of each row are."""
        bounds = self.matrix.indptr.tolist()
        return [slice(*pair) for pair in itertools.pairwise(bounds)]

    def part(self, start: int, stop: int) -> Rows:
        """Return some of the rows."""
        matrix, indptr = self.matrix[start:stop], self.matrix.indptr
        times = None if self.times is None else self.times[indptr[start] :][: matrix.nnz]
        return Rows(matrix, times)


def checked_data(user_items: Any, times: Any, item_features: Any, user_features: Any) -> Data:
    """Return what `Ranker.fit` is given as data."""
    liked = clean_matrix(user_items)
    users, items = liked.shape
    if users == 0 or items == 0 or liked.nnz == 0:
        raise InputError(
            f"user_items of shape ({users}, {items}) has no liked items (no values above 0)"
        )
    when = checked_times(times, liked.shape)
    if when is not None:
        values = aligned(liked, when)
        when = None if (values == values[0]).all() else entries_of(liked, values)
    of_items = _features("item_features", item_features, items)
    return Data(liked, when, of_items, _features("user_features", user_features, users))


def _features(name: str, given: Any, rows: int) -> sp.csr_matrix | None:
    if given is None:
        return None
    F = _numbers(name, given)
    if F.shape[0] != rows:
        raise InputError(f"{name} have {F.shape[0]} rows for {rows} {name[:4]}s")
    F.sum_duplicates()
    return F


def _numbers(name: str, given: Any, unknown: str = "") -> sp.csr_matrix:
    """Return a float64 CSR copy of a matrix of finite numbers."""
    try:
        X = sp.csr_matrix(given, dtype=np.float64, copy=True)  # the caller's stays as it is
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers") from error
    if not np.isfinite(X.data).all():
        raise InputError(f"{name} contain NaN or infinity{unknown}")
    return X


def checked_times(given: Any, shape: tuple[int, int]) -> sp.csr_matrix | None:
    """Return times as float64 CSR of the interactions' shape, indices sorted; None stays None."""
    if given is None:
        return None
    times = _numbers("times", given, ": 0 is unknown")
    if times.shape != shape:
        raise InputError(f"times are of shape {times.shape} for interactions of shape {shape}")
    if (times.data < 0).any():
        raise InputError("times contain a negative value: use times from a start, such as Unix seconds")
    entries = times.nnz
    times.sum_duplicates()
    if times.nnz < entries:
        raise InputError("times repeat an item in a row: give each item one time")
    return times


def newer(indptr: NDArray[np.integer], times: Floats) -> Ints:
    """Return how many interactions of the same row are strictly newer than each, (nnz,) int64."""
    ends = np.repeat(np.asarray(indptr[1:], dtype=np.int64), np.diff(indptr))
    order = np.lexsort((times, ends))
    last = np.ones(len(times), dtype=np.bool_)  # of the interactions of one row and time
    last[:-1] = (ends[order][1:] != ends[order][:-1]) | (times[order][1:] != times[order][:-1])
    after = np.flatnonzero(last)  # where the next group begins, less 1
    out = np.empty(len(times), dtype=np.int64)
    out[order] = ends[order] - after[np.cumsum(last) - last] - 1
    return out


def recency_weights(rows: Rows, recency: float) -> Floats:
    """Return the weights (newer interactions + 1)^−recency, (nnz,); 1 where times are unknown."""
    if rows.times is None or not recency:
        return np.ones(rows.matrix.nnz)
    return np.asarray((rows.gaps + 1.0) ** -recency, dtype=np.float64)


def aligned(
    rows: sp.csr_matrix, times: sp.csr_matrix, users: NDArray[np.integer] | None = None
) -> Floats:
    """Return the time of each interaction, aligned with rows.indices; 0 if unknown.

    Indices of `rows` and `times`, (…, items), are sorted, none twice in a row. `users` says which row of
    `times` belongs to each row; its own number by default.
    """
    if users is not None:
        times = times[users]
    if np.array_equal(rows.indptr, times.indptr) and np.array_equal(rows.indices, times.indices):
        return np.array(times.data, dtype=np.float64)
    if times.nnz == 0:
        return np.zeros(rows.nnz)
    known, asked = (owners(X) * np.int64(rows.shape[1]) + X.indices for X in (times, rows))
    at = np.minimum(np.searchsorted(known, asked), times.nnz - 1)
    return np.where(known[at] == asked, times.data[at], 0.0)


class Recommendations(tuple[NDArray[np.int32], NDArray[np.float32]]):
    """The pair (ids, scores), (N,) or (users, N), with a flag `fallback` for users without liked items.

    For these users, scores are numbers of users per item.
    """

    fallback: bool | NDArray[np.bool_]

    def __new__(  # noqa: D102
        cls,
        ids: NDArray[np.int32],
        scores: NDArray[np.float32],
        fallback: bool | NDArray[np.bool_] = False,
    ) -> Self:
        pair = super().__new__(cls, (ids, scores))
        pair.fallback = fallback
        return pair

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.fallback)

    @property
    def ids(self) -> NDArray[np.int32]:
        """Item indices, best first."""
        return self[0]

    @property
    def scores(self) -> NDArray[np.float32]:
        """Their scores, non-increasing."""
        return self[1]


@dataclass(frozen=True)
class Explanation:
    """Decomposition of a score: the score is the bias plus the sum of all contributions.

    Contributions are liked items with their shares, largest magnitude first; the bias is the part of the
    score that they do not explain.
    """

    score: float
    bias: float
    contributions: list[tuple[int, float]]


def best_items(
    ranker: Ranker, users: Users, rows: Rows, N: int, skip_liked: bool, allowed: Allowed
) -> Lists:
    """Return the N best candidates of each row, padded with −1 and the lowest float32."""
    count, items = rows.matrix.shape
    width, mask = min(N, allowed.size or items), allowed.mask
    if not allowed.listed:  # else liked items come last, and all are scored
        lists = ranker._best(rows, width, skip_liked, mask)
        if lists is not None:
            empty = ranker.falls_back(users, rows.matrix)
            if empty.any():
                lists[0][empty], lists[1][empty] = top_n(
                    ranker.popularity_[None], sp.csr_matrix((1, items)), width, False, mask
                )
            return lists

    def block(start: int, stop: int) -> Lists:
        part = rows if stop - start == count else rows.part(start, stop)
        scores = ranker._all_scores(None if users is None else users[start:stop], part)
        return top_n(scores, part.matrix, width, skip_liked, mask, allowed.listed)

    return _in_blocks(block, count, width, items)


def nearest(
    similarity: Callable[[Ints], NDArray[np.floating]],
    ids: Ints,
    N: int,
    allowed: Allowed,
    single: bool,
) -> Lists:
    """Return the N candidates most similar to each of some items or users."""
    width = min(check_integer("N", N, 1), max(1, allowed.size))

    def block(start: int, stop: int) -> Lists:
        scores = similarity(ids[start:stop])
        return top_n(scores, sp.csr_matrix(scores.shape), width, False, allowed.mask)

    out, best = _in_blocks(block, len(ids), width, len(allowed.mask))
    if single:
        kept = out[0] >= 0
        return out[0][kept], best[0][kept]
    return out, best


def _in_blocks(lists_of: Callable[[int, int], Lists], count: int, N: int, columns: int) -> Lists:
    """Return the lists of rows, whose scores are held a block at a time."""
    ids, best = np.empty((count, N), dtype=np.int32), np.empty((count, N), dtype=np.float32)
    size = max(1, BLOCK_BYTES // (4 * max(1, columns)))
    for start in range(0, count, size):
        stop = min(start + size, count)
        ids[start:stop], best[start:stop] = lists_of(start, stop)
    return ids, best
