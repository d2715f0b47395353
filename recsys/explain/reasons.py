"""Reasons for one recommendation: which liked items it rests on, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from recsys.base import Ranker
from recsys.checks import check_integer
from recsys.errors import InputError


@dataclass(frozen=True)
class Reasons:
    """What a score rests on.

    Attributes
    ----------
    kind : "exact", "nearest" or "popularity"
        Shares that sum with `bias` to the score; similarities of the liked items, for models
        that have no such shares; or nothing, for a profile without items.
    score, bias : float
    items : list of (int, float)
        Liked items with share or similarity, largest first.
    """

    kind: str
    score: float
    bias: float
    items: list[tuple[int, float]]


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
        Its place then among the items not liked, from 1.
    """

    without: int
    score: float
    rank: int


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
    liked = sp.csr_matrix(row)
    if liked.nnz == 0:
        score = float(ranker.scores(userid, liked)[0, item])
        return Reasons("popularity", score, score, [])
    if "explain" in ranker.capabilities:
        told = ranker.explain(userid, liked, item, N)
        return Reasons("exact", told.score, told.bias, told.contributions)
    score = float(_scored(ranker, [userid], liked)[0, item])
    if "similar-items" not in ranker.capabilities:
        return Reasons("popularity", score, score, [])
    ids, values = ranker.similar_items(item, N=liked.nnz + 1, items=np.union1d(liked.indices, [item]))
    pairs = [(int(k), float(v)) for k, v in zip(ids, values, strict=True) if k != item]
    return Reasons("nearest", score, score, pairs[:N])


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
        do not read the row.
    """
    check_integer("N", N, 1)
    liked = sp.csr_matrix(row)
    if liked.nnz < 2 or "fold-in" not in ranker.capabilities:
        return []
    # Those that matter are among the largest contributions: no need to try a thousand.
    tried = [k for k, _ in reasons(ranker, userid, liked, item, 4 * N).items]
    dense = np.repeat(np.asarray(liked.todense()) > 0, len(tried), axis=0)
    dense[np.arange(len(tried)), tried] = False
    rows = sp.csr_matrix(dense.astype(np.float32))
    scores = _scored(ranker, [userid] * len(tried), rows)
    out = []
    for k, without in enumerate(tried):
        better = (scores[k] > scores[k, item]) & ~dense[k]
        better[item] = False
        out.append(Change(without, float(scores[k, item]), int(better.sum()) + 1))
    return sorted(out, key=lambda change: -change.rank)[:N]


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


def because(titles: ArrayLike, found: Reasons, most: int = 3) -> str:
    """Return a sentence that names the liked items that speak for an item.

    Parameters
    ----------
    titles : (items,) of str
    found : Reasons
    most : int ≥ 1
        How many are named.

    Raises
    ------
    InputError
        If `most` is below 1.
    """
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}")
    names = np.asarray(titles, dtype=object)
    top = [str(names[k]) for k, value in found.items if value > 0][:most]
    if found.kind == "popularity":
        return "Many people like it."
    if not top:
        return "Nothing in this profile speaks for it."
    verb = "Because you liked" if found.kind == "exact" else "Similar to what you liked:"
    return f"{verb} {listing(top)}."


def listing(names: list[str]) -> str:
    """Return 'a', 'a and b' or 'a, b and c'."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
