"""Reasons for one recommendation: which liked items it rests on, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix

MISFIT = 0.02  # of the largest share: from there on a share and the fall of the score are told apart


@dataclass(frozen=True)
class Reasons:
    """What a score rests on.

    Attributes
    ----------
    kind : "exact", "nearest" or "popularity"
        Shares that sum with `bias` to the score; similarities of the liked items, for models
        that have no such shares; or nothing, for a profile without items and for models that
        read none.
    score, bias : float
    items : list of (int, float)
        Liked items with share or similarity, largest first.
    others : float
        Of `bias`, what the liked items add that are not listed; the rest is the model's constant.
    unlisted : int
        Number of these.
    unit : str
        What the score counts, "people" where it is a popularity; empty where it has no unit.
    """

    kind: str
    score: float
    bias: float
    items: list[tuple[int, float]]
    others: float = 0.0
    unlisted: int = 0
    unit: str = ""

    @property
    def base(self) -> float:
        """What no liked item accounts for: score − the shares of all liked items."""
        return self.bias - self.others


@dataclass(frozen=True)
class Change:
    """What becomes of an item when one liked item is taken out of the profile.

    Attributes
    ----------
    without : int
        The liked item.
    score : float
        Of the explained item then.
    rank : int
        Its place then among the items that could be recommended now, from 1; equal scores by index.
    """

    without: int
    score: float
    rank: int


@dataclass(frozen=True)
class WhatIf:
    """An item's place now, and without each of the liked items.

    Attributes
    ----------
    item : int
    score : float
    place, of : int
        Its place among the items that could be recommended (neither liked nor left out), itself
        always one of them, from 1, and their number.
    tried : tuple of Change
        For each liked item that was left out alone, the worst place first, then the lowest score.
    liked : int
        Number of liked items; `tried` are all of them or those with the largest contributions.
    misfit : (int, float, float) or None
        Where the model is not additive, the liked item whose share differs most from what leaving
        it out takes away: the item, its share, and the fall of the score. None where all agree, or
        where there are no shares.
    """

    item: int
    score: float
    place: int
    of: int
    tried: tuple[Change, ...]
    liked: int
    misfit: tuple[int, float, float] | None

    @property
    def moved(self) -> list[Change]:
        """Those of `tried` that give the item another place."""
        return [change for change in self.tried if change.rank != self.place]


def reasons(ranker: Ranker, userid: int, row: Any, item: int, N: int = 10) -> Reasons:
    """Return what a ranker's score of an item for a user rests on.

    Parameters
    ----------
    ranker : Ranker
        Fitted.
    userid : int
    row : (1, items) sparse matrix
        The liked items.
    item : int
    N : int ≥ 1

    Raises
    ------
    InputError, NotFittedError
        As the ranker's `explain`.
    """
    check_integer("N", N, 1)
    liked = clean_matrix(row, n_rows=1, name="row")
    if liked.nnz == 0:
        score = float(ranker.scores(userid, liked)[0, item])
        return Reasons("popularity", score, score, [], unit=_unit(ranker, item, score))
    if "explain" in ranker.capabilities:
        told = ranker.explain(userid, liked, item, liked.nnz)
        listed, rest = told.contributions[:N], told.contributions[N:]
        others = float(sum(value for _, value in rest))
        return Reasons("exact", told.score, told.bias + others, listed, others, len(rest))
    score = float(_scored(ranker, [userid], liked)[0, item])
    if "similar-items" not in ranker.capabilities:
        return Reasons("popularity", score, score, [], unit=_unit(ranker, item, score))
    ids, values = ranker.similar_items(item, N=liked.nnz + 1, items=np.union1d(liked.indices, [item]))
    pairs = [(int(k), float(v)) for k, v in zip(ids, values, strict=True) if k != item]
    return Reasons("nearest", score, score, pairs[:N], unlisted=max(len(pairs) - N, 0))


def _unit(ranker: Ranker, item: int, score: float) -> str:
    """Return "people" where a score is the item's number of users."""
    return "people" if score == float(ranker.popularity_[item]) else ""


def what_if(
    ranker: Ranker, userid: int, row: Any, item: int, most: int = 50, leave_out: ArrayLike = ()
) -> WhatIf:
    """Return an item's place, and its place and score without each liked item.

    Parameters
    ----------
    ranker, userid, row, item
        As in `reasons`. Rankers that cannot score a changed row give the place only.
    most : int ≥ 1
        Liked items that are left out, one at a time: those with the largest shares.
    leave_out : int array
        Items that are never recommended to this user and hold no place.

    Raises
    ------
    InputError, NotFittedError
        As the ranker's `explain`.
    """
    check_integer("most", most, 1)
    liked = clean_matrix(row, n_rows=1, name="row")
    now = _scored(ranker, [userid], liked)[0]
    free = np.ones(liked.shape[1], dtype=bool)
    free[liked.indices] = False
    free[check_ids("leave_out", leave_out, liked.shape[1])] = False
    free[item] = True
    place = _place(now, free, item)
    able = liked.nnz >= 2 and "fold-in" in ranker.capabilities
    found = reasons(ranker, userid, liked, item, most) if able else None
    shares = [(k, value) for k, value in found.items if k != item] if found is not None else []
    tried: list[Change] = []
    misfit: tuple[int, float, float] | None = None
    if shares:
        dense = np.repeat(np.asarray(liked.todense()) > 0, len(shares), axis=0)
        dense[np.arange(len(shares)), [k for k, _ in shares]] = False
        rows = sp.csr_matrix(dense.astype(np.float32))
        scores = _scored(ranker, [userid] * len(shares), rows)
        tried = [
            Change(k, float(line[item]), _place(line, free, item))
            for (k, _), line in zip(shares, scores, strict=True)
        ]
        if found is not None and found.kind == "exact":
            falls = [float(now[item]) - change.score for change in tried]
            off = [abs(fall - value) for fall, (_, value) in zip(falls, shares, strict=True)]
            worst = int(np.argmax(off))
            if off[worst] > MISFIT * max(abs(value) for _, value in shares):
                misfit = (*shares[worst], falls[worst])
    tried.sort(key=lambda change: (-change.rank, change.score))
    return WhatIf(int(item), float(now[item]), place, int(free.sum()), tuple(tried), liked.nnz, misfit)


def _place(scores: np.ndarray, free: np.ndarray, item: int) -> int:
    """Return an item's place among the free ones, equal scores by index as lists have them."""
    better = free & (scores > scores[item])
    ties = free[:item] & (scores[:item] == scores[item])
    return int(better.sum() + ties.sum()) + 1


def changes(ranker: Ranker, userid: int, row: Any, item: int, N: int = 3) -> list[Change]:
    """Return the liked items without which an item falls furthest, and how far.

    Parameters
    ----------
    ranker, userid, row, item
        As in `reasons`; the ranker scores the row it is given.
    N : int ≥ 1

    Returns
    -------
    list of Change
        Worst rank first. Empty for a profile of fewer than two items, and for rankers that
        do not read the row. `what_if` says what the place is now.
    """
    check_integer("N", N, 1)
    # Those that matter are among the largest contributions: no need to try a thousand.
    return list(what_if(ranker, userid, row, item, 4 * N).tried[:N])


def _scored(ranker: Ranker, userids: list[int], rows: sp.csr_matrix) -> np.ndarray:
    """Score rows as they are, also by rankers that would use what they stored of the user."""
    if "fold-in" not in ranker.capabilities:
        return ranker.scores(userids, rows)
    out = np.full(rows.shape, -np.inf, dtype=np.float32)
    ids, values = ranker.recommend(
        np.arange(len(userids)), rows, N=rows.shape[1], filter_already_liked_items=False,
        recalculate_user=True,
    )  # fmt: skip
    for k, (some, scores) in enumerate(zip(ids, values, strict=True)):
        kept = some >= 0
        out[k, some[kept]] = scores[kept]
    return out
