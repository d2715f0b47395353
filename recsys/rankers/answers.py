"""Answers of rankers: lists of items, and explanations of scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


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
