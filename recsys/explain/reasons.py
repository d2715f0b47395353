"""Reasons: the shares of a score that the liked items, or the models of a blend, contribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix


@dataclass(frozen=True)
class Reasons:
    """A score as a sum of shares of the liked items.

    Attributes
    ----------
    kind : "exact", "nearest" or "popularity"
        Shares that sum with `bias` to the score; similarities of the liked items, of a model without
        such shares; or nothing, of an empty profile or a model that does not read profiles.
    score, bias : float
    items : list of (int, float)
        Liked items with their share or similarity, largest first.
    others : float
        The part of `bias` that unlisted liked items add.
    unlisted : int
        Number of unlisted liked items.
    unit : str
        "users" where the score is a popularity, else empty.

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

    @property
    def base(self) -> float:
        """The part of the score that no liked item adds."""
        return self.bias - self.others


def reasons(ranker: Ranker, userid: int, row: Any, item: int, N: int = 10, **options: Any) -> Reasons:
    """Return how much each liked item contributes to the score of an item.

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
    **options
        `recalculate_user` and `times`, as of `Ranker.explain`.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> result = reasons(model, 3, R[3], 10, N=5)
    >>> result.kind, len(result.items)
    ('exact', 5)
    """
    return reasons_for_items(ranker, userid, row, [item], N, **options)[0]


def reasons_for_items(
    ranker: Ranker,
    userid: int,
    row: Any,
    items: ArrayLike,
    N: int = 10,
    *,
    recalculate_user: bool = False,
    times: Any = None,
    scores: ArrayLike | None = None,
) -> list[Reasons]:
    """Return the `reasons` of several items for one user. Other parameters: as of `reasons`.

    Parameters
    ----------
    items : (n,) int
    scores : (n,) float, optional
        Of the items in a list: a model without shares then computes no scores again.
    """
    check_integer("N", N, 1)
    liked = clean_matrix(row, n_rows=1, name="row")
    times = stored_times(ranker, userid, times)
    wanted = check_ids("item", items, getattr(ranker, "n_items_", None))
    if liked.nnz and "explain" in ranker.capabilities:
        options = {"recalculate_user": recalculate_user, "times": times}
        results = []
        for one in ranker.explain_items(userid, liked, wanted, liked.nnz, **options):
            listed, rest = one.contributions[:N], one.contributions[N:]
            others = float(sum(value for _, value in rest))
            results.append(Reasons("exact", one.score, one.bias + others, listed, others, len(rest)))
        return results
    if scores is not None:
        known = np.asarray(scores, dtype=np.float64)
    elif liked.nnz == 0:
        options = {"recalculate_user": recalculate_user, "times": times}
        known = ranker.scores(userid, liked, **options)[0, wanted]
    else:
        known = score_rows(ranker, [userid], liked, times, recalculate_user=recalculate_user)[0, wanted]
    if liked.nnz == 0 or "similar-items" not in ranker.capabilities:
        return _popularity(ranker, wanted, known)
    return _nearest(ranker, liked, wanted, known, N)


def _popularity(ranker: Ranker, items: NDArray[Any], scores: NDArray[Any]) -> list[Reasons]:
    results = []
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        unit = "users" if score == float(ranker.popularity_[item]) else ""
        results.append(Reasons("popularity", score, score, [], unit=unit))
    return results


def _nearest(
    ranker: Ranker, liked: sp.csr_matrix, items: NDArray[Any], scores: NDArray[Any], N: int
) -> list[Reasons]:
    """Return the liked items most similar to each item."""
    if len(items) == 0:
        return []
    own = liked.indices
    if "embeddings" in ranker.capabilities:
        vectors = ranker.item_embeddings()  # type: ignore[attr-defined]
        similarities = _unit(vectors[items]) @ _unit(vectors[own]).T
    else:
        similarities = np.zeros((len(items), len(own)))
        order = np.argsort(own)
        ids, values = ranker.similar_items(items, N=len(own), items=own)
        for k, (names, cosines) in enumerate(zip(ids, values, strict=True)):
            similarities[k, order[np.searchsorted(own[order], names)]] = cosines
    results = []
    for item, row, score in zip(items.tolist(), similarities, scores.tolist(), strict=True):
        order = np.lexsort((own, -row))
        pairs = [(int(own[k]), float(row[k])) for k in order if own[k] != item]
        results.append(Reasons("nearest", score, score, pairs[:N], unlisted=max(len(pairs) - N, 0)))
    return results


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    vectors = vectors.astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


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
    """Score rows as they are, also by a ranker that would use what it stored of the user.

    The features of the user count unless the user is new.
    """
    known = not recalculate_user and getattr(ranker, "user_features_", None) is not None
    fold_in = "fold-in" in ranker.capabilities and not known
    return ranker.scores(userids, rows, recalculate_user=fold_in, times=times)


class PartShare(NamedTuple):
    """What one model of a blend adds to a score."""

    name: str
    weight: float
    adds: float


def blend_parts(
    ranker: Ranker, userid: int, row: Any, item: int, *, times: Any = None
) -> list[PartShare]:
    """Return what each model of a blend adds to a score; nothing for other rankers.

    Parameters
    ----------
    ranker, userid, row, item, times
        As of `reasons`.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("blend", models="ease+msdw").fit(R, show_progress=False)
    >>> [part.name for part in blend_parts(model, 3, R[3], 10)]
    ['ease', 'msdw']
    """
    blend: Any = ranker
    if not hasattr(blend, "part_scores"):
        return []
    liked = clean_matrix(row, n_rows=1, name="row")
    scores = blend.part_scores(userid, liked, stored_times(ranker, userid, times))
    return [
        PartShare(str(name), float(weight), float(part[item]))
        for name, weight, part in zip(blend.part_names_, blend.part_weights_, scores, strict=True)
    ]
