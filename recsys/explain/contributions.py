"""Contributions: which liked items a score rests on, whatever the ranker can tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from recsys.explain.recency import Age, ages, in_time, known_times
from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix


@dataclass(frozen=True)
class Reasons:
    """A decomposition of a score into shares of the liked items.

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
        What the score counts, "users" where it is a popularity; empty where it has no unit.
    ages : mapping of int to Age
        How long ago each liked item was, where the ranker ranks by it.

    Examples
    --------
    >>> Reasons("exact", score=0.5, bias=0.125, items=[(4, 0.375)], others=0.025).base
    0.1
    """

    kind: str
    score: float
    bias: float
    items: list[tuple[int, float]]
    others: float = 0.0
    unlisted: int = 0
    unit: str = ""
    ages: Mapping[int, Age] = field(default_factory=dict)

    @property
    def base(self) -> float:
        """The part of the score without the liked items: score − the shares of all liked items."""
        return self.bias - self.others


def reasons(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    N: int = 10,
    *,
    recalculate_user: bool = False,
    times: Any = None,
    as_of: float | None = None,
) -> Reasons:
    """Return how much each liked item contributes to a ranker's score of an item.

    Parameters
    ----------
    ranker : Ranker
        Fitted.
    userid : int
    row : (1, items) sparse matrix
        The liked items.
    item : int
    N : int ≥ 1
        How many liked items are listed.
    recalculate_user : bool
        Whether the row is that of a user never seen, as `recommend` takes it.
    times : (1, items) sparse matrix, optional
        When each interaction happened, as `recommend` takes it.
    as_of : float, optional
        What the ages of interactions are counted to, in the unit of the times; the latest interaction
        when not given.

    Returns
    -------
    Reasons
        Of a kind that the ranker has: a ranker without shares is asked for the liked items most
        similar to `item` instead.

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
    >>> found = reasons(model, 3, R[3], 10, N=5)
    >>> found.kind, len(found.items)
    ('exact', 5)
    >>> reasons(make_ranker("popularity").fit(R), 3, R[3], 10).unit
    'users'
    """
    return reasons_for_items(
        ranker, userid, row, [item], N, recalculate_user=recalculate_user, times=times, as_of=as_of
    )[0]


def reasons_for_items(
    ranker: Ranker,
    userid: int,
    row: Any,
    items: ArrayLike,
    N: int = 10,
    *,
    recalculate_user: bool = False,
    times: Any = None,
    as_of: float | None = None,
) -> list[Reasons]:
    """Return `reasons` for several items of one user, such as a list's, with the user's work done once.

    Parameters
    ----------
    ranker, userid, row, N, recalculate_user, times, as_of
        As in `reasons`.
    items : (n,) int

    Raises
    ------
    InputError, NotFittedError
        As `reasons`.

    Examples
    --------
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("cf-komd").fit(R, show_progress=False)
    >>> found = reasons_for_items(model, 3, R[3], [10, 20])
    >>> found == [reasons(model, 3, R[3], item) for item in (10, 20)]
    True
    """
    check_integer("N", N, 1)
    liked = clean_matrix(row, n_rows=1, name="row")
    times = known_times(ranker, userid, times)
    some = check_ids("item", items, ranker.n_items_ if hasattr(ranker, "n_items_") else None)
    if liked.nnz == 0:
        all_scores = ranker.scores(userid, liked, recalculate_user=recalculate_user, times=times)
        scores = all_scores[0, some].tolist()
        return [_popularity(ranker, item, score) for item, score in zip(some, scores, strict=True)]
    if "explain" in ranker.capabilities:
        old = ages(liked, times, as_of) if times is not None and in_time(ranker) else {}
        found = []
        for explanation in ranker.explain_items(
            userid, liked, some, liked.nnz, recalculate_user=recalculate_user, times=times
        ):
            listed, rest = explanation.contributions[:N], explanation.contributions[N:]
            others = float(sum(value for _, value in rest))
            bias = explanation.bias + others
            found.append(Reasons("exact", explanation.score, bias, listed, others, len(rest), ages=old))
        return found
    all_scores = score_rows(ranker, [userid], liked, times, recalculate_user=recalculate_user)
    scores = all_scores[0, some].tolist()
    if "similar-items" not in ranker.capabilities:
        return [_popularity(ranker, item, score) for item, score in zip(some, scores, strict=True)]
    return [_nearest(ranker, liked, int(k), s, N) for k, s in zip(some, scores, strict=True)]


def _popularity(ranker: Ranker, item: int, score: float) -> Reasons:
    unit = "users" if score == float(ranker.popularity_[item]) else ""  # its number of users
    return Reasons("popularity", score, score, [], unit=unit)


def _nearest(ranker: Ranker, liked: sp.csr_matrix, item: int, score: float, N: int) -> Reasons:
    """Return the liked items most similar to one, for rankers without shares."""
    ids, values = ranker.similar_items(item, N=liked.nnz + 1, items=np.union1d(liked.indices, [item]))
    pairs = [(int(k), float(v)) for k, v in zip(ids, values, strict=True) if k != item]
    return Reasons("nearest", score, score, pairs[:N], unlisted=max(len(pairs) - N, 0))


def score_rows(
    ranker: Ranker,
    userids: list[int],
    rows: sp.csr_matrix,
    times: Any = None,
    *,
    recalculate_user: bool = False,
) -> np.ndarray:
    """Score rows as they are, also by rankers that would use what they stored of the user.

    Features of the user count, where the ranker has some, unless the user is new.
    """
    known = not recalculate_user and getattr(ranker, "user_features_", None) is not None
    fold_in = "fold-in" in ranker.capabilities and not known
    return ranker.scores(userids, rows, recalculate_user=fold_in, times=times)
