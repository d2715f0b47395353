"""Counterfactuals: an item's rank and score without one of the liked items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.explain.reasons import reasons, score_rows, stored_times
from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer, clean_matrix


class Change(NamedTuple):
    """Rank and score of an item without one liked item."""

    without: int
    score: float
    rank: int


class WhatIf(NamedTuple):
    """Rank of an item, and its rank without each liked item."""

    item: int
    score: float
    rank: int  #: from 1 among the items that can be recommended
    of: int  #: the number of these
    changes: tuple[Change, ...]  #: one per removed liked item, worst rank first, then lowest score
    liked: int  #: number of liked items


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
    """Return an item's rank and score, and those without each liked item.

    Rankers without fold-in give only the rank. Other parameters: as of `reasons`.

    Parameters
    ----------
    most : int ≥ 1
        Number of liked items with the largest contributions to remove, one at a time.
    leave_out : int array
        Items that cannot be recommended.

    Examples
    --------
    >>> from recsys import load_dataset, make_ranker
    >>> R = load_dataset("sample").matrix
    >>> model = make_ranker("ease").fit(R, show_progress=False)
    >>> best = int(model.recommend(3, R[3], N=1).ids[0])
    >>> result = what_if(model, 3, R[3], best)
    >>> result.rank, len(result.changes) == result.liked
    (1, True)
    """
    check_integer("most", most, 1)
    liked = clean_matrix(row, n_rows=1, name="row")
    check_ids("item", [item], liked.shape[1])
    times = stored_times(ranker, userid, times)
    free = candidates(liked, item, check_ids("leave_out", leave_out, liked.shape[1]))
    options = {"times": times, "recalculate_user": recalculate_user}
    now = score_rows(ranker, [userid], liked, **options)[0]
    changes: list[Change] = []
    if liked.nnz >= 2 and "fold-in" in ranker.capabilities:
        listed = reasons(ranker, userid, liked, item, most, **options).items
        out = [k for k, _ in listed if k != item]
        rows = np.repeat(liked.toarray(), len(out), axis=0)
        rows[np.arange(len(out)), out] = 0.0
        if times is not None:
            options["times"] = sp.vstack([sp.csr_matrix(times)] * len(out), format="csr")
        if out:
            scores = score_rows(ranker, [userid] * len(out), sp.csr_matrix(rows), **options)
            changes = [
                Change(k, float(line[item]), rank_among(line, free, item))
                for k, line in zip(out, scores, strict=True)
            ]
    changes.sort(key=lambda change: (-change.rank, change.score))
    rank = rank_among(now, free, item)
    return WhatIf(int(item), float(now[item]), rank, int(free.sum()), tuple(changes), liked.nnz)


def candidates(liked: sp.csr_matrix, item: int, leave_out: Any = ()) -> NDArray[np.bool_]:
    """Return which items could be recommended: the item, and all that are not liked or left out."""
    free = np.ones(liked.shape[1], dtype=bool)
    free[liked.indices] = False
    free[np.asarray(leave_out, dtype=np.int64)] = False
    free[item] = True
    return free


def rank_among(scores: NDArray[Any], free: NDArray[np.bool_], item: int) -> int:
    """Return an item's rank among the free ones; equal scores by index."""
    better = free & (scores > scores[item])
    ties = free[:item] & (scores[:item] == scores[item])
    return int(better.sum() + ties.sum()) + 1
