"""Reasons: the shares of a score that the liked items, or the models of a blend, contribute."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix


@dataclass(frozen=True)
class Reasons:
    """Contributions of liked items to a score.

    "exact" contributions sum with `bias` to the score. "nearest" has similarities of liked items, for
    models without contributions. "popularity" has no items, for an empty profile or a model that ignores
    profiles.
    """

    kind: str
    score: float
    bias: float
    items: list[tuple[int, float]]  #: liked items with contribution or similarity, largest first
    others: float = 0.0  #: sum of the contributions of unlisted liked items, a part of `bias`
    unlisted: int = 0  #: number of unlisted liked items
    unit: str = ""  #: "users" if the score is a popularity

    @property
    def base(self) -> float:
        """The part of the score that does not come from liked items."""
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
) -> Reasons:
    """Return the contributions of liked items to the score of an item.

    Parameters: as of `Ranker.explain`; `row` has the liked items, N is the largest number to list.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> result = reasons(model, 3, R[3], 10, N=5)
    >>> result.kind, len(result.items)
    ('exact', 5)
    """
    liked = clean_matrix(row, n_rows=1, name="row")
    [item] = check_ids("item", [item], getattr(ranker, "n_items_", None))
    times = stored_times(ranker, userid, times)
    options = {"recalculate_user": recalculate_user, "times": times}
    scores = None
    if "explain" not in ranker.capabilities:
        scores = [score_rows(ranker, [userid], liked, **options)[0, [item]]]
    return reasons_for_lists(ranker, [userid], liked, [[item]], N, scores=scores, **options)[0][0]


def reasons_for_lists(
    ranker: Ranker,
    userids: ArrayLike,
    rows: Any,
    items: Sequence[ArrayLike],
    N: int = 10,
    *,
    scores: Sequence[NDArray[Any]] | None = None,
    **options: Any,
) -> list[list[Reasons]]:
    """Return the `reasons` of the `items` in lists of several users, an array for each row.

    `scores` are those of the items; required for models without contributions.
    """
    check_integer("N", N, 1)
    liked = clean_matrix(rows, n_rows=len(items), name="rows")
    shares: Any = [(of, None) for of in scores or ()]
    if "explain" in ranker.capabilities:
        shares = ranker.shares(userids, liked, items, **options)
    bounds, results = itertools.pairwise(liked.indptr.tolist()), []
    for bound, some, (of, adds) in zip(bounds, map(np.asarray, items), shares, strict=True):
        own = liked.indices[slice(*bound)]
        if len(own) == 0 or (adds is None and "similar-items" not in ranker.capabilities):
            results.append(_popularity(ranker, some, of))
        elif adds is None:
            results.append(_nearest(ranker, own, some, of, N))
        else:
            results.append(_exact(own, of, adds, N))
    return results


def _exact(
    liked: NDArray[Any], scores: NDArray[np.float64], shares: NDArray[np.float64], N: int
) -> list[Reasons]:
    """Return the liked items with the largest shares, equal ones by index."""
    order = np.argsort(-np.abs(shares), axis=1, kind="stable")[:, :N]
    values = np.take_along_axis(shares, order, axis=1)
    rest, unlisted = shares.copy(), shares.shape[1] - order.shape[1]
    np.put_along_axis(rest, order, 0.0, axis=1)
    others, bias = rest.sum(axis=1), scores - values.sum(axis=1)
    columns = (scores, bias, liked[order], values, others)
    return [
        Reasons("exact", score, base, list(zip(ids, listed, strict=True)), more, unlisted)
        for score, base, ids, listed, more in zip(*(one.tolist() for one in columns), strict=True)
    ]


def _popularity(ranker: Ranker, items: NDArray[Any], scores: NDArray[Any]) -> list[Reasons]:
    results = []
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        unit = "users" if score == float(ranker.popularity_[item]) else ""
        results.append(Reasons("popularity", score, score, [], unit=unit))
    return results


def _nearest(
    ranker: Ranker, own: NDArray[Any], items: NDArray[Any], scores: NDArray[Any], N: int
) -> list[Reasons]:
    """Return the liked items most similar to each item, equal ones by index."""
    if len(items) == 0:
        return []
    similarities = ranker.similarities(items, own)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, : N + 1]
    values = np.take_along_axis(similarities, order, axis=1)
    results = []
    columns = (items, scores, own[order], values)
    for item, score, ids, near in zip(*(one.tolist() for one in columns), strict=True):
        pairs = [pair for pair in zip(ids, near, strict=True) if pair[0] != item][:N]
        unlisted = len(own) - (item in own) - len(pairs)
        results.append(Reasons("nearest", score, score, pairs, unlisted=unlisted))
    return results


def stored_times(ranker: Ranker, userid: int, times: Any) -> Any:
    """Return the times, or those of this user from the fit if there are none."""
    fitted = getattr(ranker, "times_", None)
    if times is not None or fitted is None or not 0 <= userid < fitted.shape[0]:
        return times
    return fitted[userid]


def score_rows(
    ranker: Ranker,
    userids: list[int],
    rows: sp.csr_matrix,
    times: Any = None,
    *,
    recalculate_user: bool = False,
) -> NDArray[Any]:
    """Score rows without stored factors of the users; features of users count unless they are new."""
    known = not recalculate_user and getattr(ranker, "user_features_", None) is not None
    fold_in = "fold-in" in ranker.capabilities and not known
    return ranker.scores(userids, rows, recalculate_user=fold_in, times=times)


class PartShare(NamedTuple):
    """Contribution of one model of a blend to a score."""

    name: str
    weight: float
    adds: float


def blend_parts(
    ranker: Ranker, userid: int, row: Any, item: int, *, times: Any = None
) -> list[PartShare]:
    """Return the contribution of each model of a blend to a score; empty for other rankers."""
    blend: Any = ranker
    if not hasattr(blend, "part_scores"):
        return []
    liked = clean_matrix(row, n_rows=1, name="row")
    scores = blend.part_scores(userid, liked, stored_times(ranker, userid, times))
    return [
        PartShare(str(name), float(weight), float(part[item]))
        for name, weight, part in zip(blend.part_names_, blend.part_weights_, scores, strict=True)
    ]
