"""Answers of rankers: lists of items, and explanations of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers.inputs import Rows
from recsys.utils.topn import Candidates, top_n
from recsys.utils.validation import check_integer

if TYPE_CHECKING:
    from recsys.rankers.base import Ranker

BLOCK_BYTES = 64_000_000  # of the scores that are held at a time

Lists = tuple[NDArray[np.int32], NDArray[np.float32]]  # ids and scores, both (rows, N)


class Recommendations(tuple[NDArray[np.int32], NDArray[np.float32]]):
    """The pair (ids, scores), with a flag `fallback` for users without liked items.

    For these users, scores are numbers of users per item.

    Parameters
    ----------
    ids : (N,) or (users, N) int32
    scores : the same shape, float32
    fallback : bool, or (users,) bool

    Examples
    --------
    >>> import numpy as np
    >>> ids, scores = best = Recommendations(np.array([4, 2]), np.array([0.5, 0.25]))
    >>> best.ids is ids, best.fallback
    (True, False)
    """

    fallback: bool | NDArray[np.bool_]

    def __new__(
        cls,
        ids: NDArray[np.int32],
        scores: NDArray[np.float32],
        fallback: bool | NDArray[np.bool_] = False,
    ) -> Self:
        """Make the pair."""
        pair = super().__new__(cls, (ids, scores))
        pair.fallback = fallback
        return pair

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of `__new__`, for copies."""
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

    Attributes
    ----------
    score : float
        The item's score for this user.
    bias : float
        The part of the score that the listed items do not explain.
    contributions : list of (int, float)
        Liked items and their contributions, largest magnitude first.

    Examples
    --------
    >>> why = Explanation(1.0, 0.25, [(3, 0.5), (7, 0.25)])
    >>> why.bias + sum(share for _, share in why.contributions)
    1.0
    """

    score: float
    bias: float
    contributions: list[tuple[int, float]] = field(default_factory=list)


def best_items(
    ranker: Ranker,
    users: NDArray[np.int64] | None,
    rows: Rows,
    N: int,
    skip_liked: bool,
    allowed: Candidates,
) -> Lists:
    """Return the N best candidates of each row, padded with −1 and the lowest float32."""
    count, items = rows.matrix.shape
    width, mask = min(N, allowed.size or items), allowed.mask
    if not allowed.listed:  # else liked items come last, and all are scored
        lists = ranker._best(rows, width, skip_liked, mask)
        if lists is not None:
            empty = ranker.falls_back(users, rows.matrix)
            nothing = sp.csr_matrix((1, items))
            lists[0][empty], lists[1][empty] = top_n(
                ranker.popularity_[None], nothing, width, False, mask
            )
            return lists

    def block(start: int, stop: int) -> Lists:
        part = rows if stop - start == count else rows.part(start, stop)
        scores = ranker._all_scores(None if users is None else users[start:stop], part)
        return top_n(scores, part.matrix, width, skip_liked, mask, allowed.listed)

    return _in_blocks(block, count, width, items)


def nearest(
    similarity: Callable[[NDArray[np.int64]], NDArray[np.floating]],
    ids: NDArray[np.int64],
    N: int,
    allowed: Candidates,
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
