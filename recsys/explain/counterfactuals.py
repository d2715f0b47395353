"""Counterfactuals: an item's rank and score without one liked item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from recsys.explain.contributions import reasons, score_rows
from recsys.explain.recency import known_times
from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix

TRIED = 4  # times as many as are listed: those that matter are among the largest contributions
MISFIT = 0.02  # of the largest share: from there on a share and the fall of the score count as different


@dataclass(frozen=True)
class Change:
    """The rank and score of an item after one liked item is taken out of the profile.

    Attributes
    ----------
    without : int
        The liked item.
    score : float
        Of the explained item then.
    rank : int
        Its rank then among the items that could be recommended now, from 1; equal scores by index.

    Examples
    --------
    >>> Change(without=7, score=0.25, rank=12).rank
    12
    """

    without: int
    score: float
    rank: int


@dataclass(frozen=True)
class WhatIf:
    """An item's rank now, and without each of the liked items.

    Attributes
    ----------
    item : int
    score : float
    rank, of : int
        Its rank among the items that could be recommended (neither liked nor left out), itself
        always one of them, from 1, and their number.
    tried : tuple of Change
        For each liked item that was left out alone, the worst rank first, then the lowest score.
    liked : int
        Number of liked items; `tried` are all of them or those with the largest contributions.
    misfit : (int, float, float) or None
        Where the model is not additive, the liked item whose share differs most from what leaving
        it out takes away: the item, its share, and the fall of the score. None where all agree, or
        where there are no shares.

    Examples
    --------
    >>> tried = (Change(7, 0.25, 12), Change(3, 0.5, 2))
    >>> WhatIf(4, 0.6, 2, 90, tried, liked=2, misfit=None).moved
    [Change(without=7, score=0.25, rank=12)]
    """

    item: int
    score: float
    rank: int
    of: int
    tried: tuple[Change, ...]
    liked: int
    misfit: tuple[int, float, float] | None

    @property
    def moved(self) -> list[Change]:
        """Those of `tried` that give the item another rank."""
        return [change for change in self.tried if change.rank != self.rank]


def what_if(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    most: int = 50,
    leave_out: ArrayLike = (),
    *,
    recalculate_user: bool = False,
    times: Any = None,
) -> WhatIf:
    """Return an item's rank, and its rank and score without each liked item.

    Parameters
    ----------
    ranker, userid, row, item
        As in `reasons`. Rankers that cannot score a changed row give the rank only.
    most : int ≥ 1
        Liked items that are left out, one at a time: those with the largest shares.
    leave_out : int array
        Items that are never recommended to this user and have no rank.
    recalculate_user : bool
        Whether the row is that of a user never seen, of whom no features are known.
    times : (1, items) sparse matrix, optional
        When each interaction happened, as `recommend` takes it.

    Raises
    ------
    InputError, NotFittedError
        As the ranker's `explain`.

    Examples
    --------
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> best = int(model.recommend(3, R[3], N=1).ids[0])
    >>> found = what_if(model, 3, R[3], best)
    >>> found.rank, len(found.tried) == found.liked
    (1, True)
    """
    check_integer("most", most, 1)
    liked, times, free, now = standing(
        ranker, userid, row, item, leave_out, times, recalculate_user=recalculate_user
    )
    rank = rank_among(now, free, item)
    found = None
    if liked.nnz >= 2 and "fold-in" in ranker.capabilities:
        found = reasons(
            ranker, userid, liked, item, most, recalculate_user=recalculate_user, times=times
        )
    shares = [(k, value) for k, value in found.items if k != item] if found is not None else []
    tried: list[Change] = []
    misfit: tuple[int, float, float] | None = None
    if shares:
        rows = without(liked, [[k] for k, _ in shares])
        scores = score_rows(
            ranker, [userid] * len(shares), rows, repeated(times, len(shares)),
            recalculate_user=recalculate_user,
        )  # fmt: skip
        tried = [
            Change(k, float(line[item]), rank_among(line, free, item))
            for (k, _), line in zip(shares, scores, strict=True)
        ]
        if found is not None and found.kind == "exact":
            falls = [float(now[item]) - change.score for change in tried]
            off = [abs(fall - value) for fall, (_, value) in zip(falls, shares, strict=True)]
            worst = int(np.argmax(off))
            if off[worst] > MISFIT * max(abs(value) for _, value in shares):
                misfit = (*shares[worst], falls[worst])
    tried.sort(key=lambda change: (-change.rank, change.score))
    return WhatIf(int(item), float(now[item]), rank, int(free.sum()), tuple(tried), liked.nnz, misfit)


def standing(
    ranker: Ranker, userid: int, row: Any, item: int, leave_out: ArrayLike, times: Any, *,
    recalculate_user: bool,
) -> tuple[sp.csr_matrix, Any, np.ndarray, np.ndarray]:  # fmt: skip
    """Return a user's clean row and times, the items that could be recommended, and scores now."""
    liked = clean_matrix(row, n_rows=1, name="row")
    times = known_times(ranker, userid, times)
    free = open_items(liked, leave_out, item)
    scores = score_rows(ranker, [userid], liked, times, recalculate_user=recalculate_user)
    return liked, times, free, scores[0]


def open_items(liked: sp.csr_matrix, leave_out: ArrayLike, item: int) -> np.ndarray:
    """Return which items could be recommended, as booleans: neither liked nor left out, or the item."""
    check_ids("item", [item], liked.shape[1])
    free = np.ones(liked.shape[1], dtype=bool)
    free[liked.indices] = False
    free[check_ids("leave_out", leave_out, liked.shape[1])] = False
    free[item] = True
    return free


def without(liked: sp.csr_matrix, sets: Sequence[Sequence[int]]) -> sp.csr_matrix:
    """Return the row once for each set, without its items; the others keep their weights."""
    dense = np.repeat(np.asarray(liked.todense(), dtype=np.float32), len(sets), axis=0)
    for k, some in enumerate(sets):
        dense[k, some] = 0.0
    return sp.csr_matrix(dense)


def repeated(times: Any, n: int) -> Any:
    """Return the row of times n times, None for None."""
    return None if times is None else sp.vstack([sp.csr_matrix(times)] * n, format="csr")


def rank_among(scores: np.ndarray, free: np.ndarray, item: int) -> int:
    """Return an item's rank among the free ones, equal scores by index as lists have them."""
    better = free & (scores > scores[item])
    ties = free[:item] & (scores[:item] == scores[item])
    return int(better.sum() + ties.sum()) + 1


def changes(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    N: int = 3,
    *,
    recalculate_user: bool = False,
    times: Any = None,
) -> list[Change]:
    """Return the liked items without which an item falls furthest, and how far.

    Parameters
    ----------
    ranker, userid, row, item, recalculate_user, times
        As in `what_if`; the ranker scores the row it is given.
    N : int ≥ 1

    Returns
    -------
    list of Change
        Worst rank first. Empty for a profile of fewer than two items, and for rankers that
        do not read the row. `what_if` says the rank now.

    Examples
    --------
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> found = changes(model, 3, R[3], 10, N=2)
    >>> found[0].rank >= found[1].rank
    True
    """
    check_integer("N", N, 1)
    return list(
        what_if(
            ranker, userid, row, item, TRIED * N, recalculate_user=recalculate_user, times=times
        ).tried[:N]
    )
