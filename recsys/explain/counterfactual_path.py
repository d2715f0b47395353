"""Counterfactuals of several items: out of the list without these, into it with those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.explain.contributions import reasons, score_rows
from recsys.explain.counterfactuals import rank_among, repeated, standing, without
from recsys.rankers.base import Ranker
from recsys.utils.validation import check_ids, check_integer

TRIED = 40  # liked items taken out, those with the largest shares
MOST = 5  # taken or added at most


@dataclass(frozen=True)
class Steps:
    """Liked items removed, or items added, one after the other, and the rank of an item after each step.

    Attributes
    ----------
    rank : int
        Rank of the explained item now.
    items : tuple of int
        In the order taken out or added.
    ranks : tuple of int
        The explained item's rank after each, all before it done too.
    goal : int
        Beyond which rank it should fall, or up to which it should rise.
    reached : bool

    Examples
    --------
    >>> Steps(rank=3, items=(7, 2), ranks=(8, 14), goal=10, reached=True).ranks[-1]
    14
    """

    rank: int
    items: tuple[int, ...]
    ranks: tuple[int, ...]
    goal: int
    reached: bool


def out_of_list(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    first: int = 10,
    most: int = MOST,
    leave_out: ArrayLike = (),
    *,
    recalculate_user: bool = False,
    times: Any = None,
) -> Steps:
    """Take liked items out, each time the one without which an item falls furthest, until it is out.

    Parameters
    ----------
    ranker, userid, row, item, leave_out, recalculate_user, times
        As in `what_if`. The ranker scores changed rows ("fold-in"), else nothing is taken out.
    first : int ≥ 1
        Length of the list that it shall leave.
    most : int ≥ 1
        Items taken out at most. One liked item stays.

    Returns
    -------
    Steps
        One way, by single steps: another set may be smaller. Of equal ranks the lower score counts,
        then the item named first by `reasons`. What is taken out is not recommended instead.

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
    >>> steps = out_of_list(model, 3, R[3], best, first=2)
    >>> steps.rank, len(steps.items) == len(steps.ranks)
    (1, True)
    """
    check_integer("first", first, 1)
    check_integer("most", most, 1)
    liked, times, free, now = standing(
        ranker, userid, row, item, leave_out, times, recalculate_user=recalculate_user
    )
    rank = rank_among(now, free, item)
    left: list[int] = []
    if "fold-in" in ranker.capabilities:
        named = reasons(
            ranker, userid, liked, item, TRIED, recalculate_user=recalculate_user, times=times
        )
        left = [k for k, value in named.items if k != item and value > 0]
    taken: list[int] = []
    ranks: list[int] = []
    while (ranks or [rank])[-1] <= first and left and len(taken) < most and liked.nnz - len(taken) > 1:
        rows = without(liked, [[*taken, k] for k in left])
        scores = score_rows(
            ranker, [userid] * len(left), rows, repeated(times, len(left)),
            recalculate_user=recalculate_user,
        )  # fmt: skip
        found = [(-rank_among(line, free, item), float(line[item])) for line in scores]
        best = min(range(len(left)), key=lambda k: found[k])
        taken.append(left.pop(best))
        ranks.append(-found[best][0])
    return Steps(rank, tuple(taken), tuple(ranks), first, (ranks or [rank])[-1] > first)


def into_list(
    ranker: Ranker,
    userid: int,
    row: Any,
    item: int,
    candidates: ArrayLike,
    goal: int = 1,
    most: int = MOST,
    leave_out: ArrayLike = (),
    *,
    recalculate_user: bool = False,
    times: Any = None,
) -> Steps:
    """Like more items, each time the one with which an item rises highest, until it has its goal.

    Parameters
    ----------
    ranker, userid, row, item, leave_out, recalculate_user, times
        As in `what_if`. The ranker scores changed rows ("fold-in"), else nothing is added.
    candidates : int array
        Items that may be liked besides; the item itself, liked ones and those left out do not count.
    goal : int ≥ 1
        The rank that it shall reach.
    most : int ≥ 1
        Items added at most. No step is taken that does not improve the rank or the score.

    Returns
    -------
    Steps
        One way, by single steps: another set may be smaller. Of equal ranks the higher score counts,
        then the earlier candidate. An interaction is later than all others, where there are times.

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
    >>> third = int(model.recommend(3, R[3], N=3).ids[2])
    >>> into_list(model, 3, R[3], third, range(300)).reached
    True
    """
    check_integer("goal", goal, 1)
    check_integer("most", most, 1)
    liked, times, free, now = standing(
        ranker, userid, row, item, leave_out, times, recalculate_user=recalculate_user
    )
    able = "fold-in" in ranker.capabilities
    offered = check_ids("candidates", candidates, liked.shape[1])
    left = [int(k) for k in dict.fromkeys(offered.tolist()) if able and free[k] and k != item]
    rank = rank_among(now, free, item)
    reached = (rank, -float(now[item]))
    added: list[int] = []
    ranks: list[int] = []
    while reached[0] > goal and left and len(added) < most:
        rows = _with(liked, [[*added, k] for k in left])
        scores = score_rows(
            ranker, [userid] * len(left), rows, _later(times, added, left),
            recalculate_user=recalculate_user,
        )  # fmt: skip
        found = []
        for k, line in zip(left, scores, strict=True):
            free[k] = False
            found.append((rank_among(line, free, item), -float(line[item])))
            free[k] = True
        best = min(range(len(left)), key=lambda k: found[k])
        if found[best] >= reached:
            break
        reached = found[best]
        free[left[best]] = False
        added.append(left.pop(best))
        ranks.append(reached[0])
    return Steps(rank, tuple(added), tuple(ranks), goal, reached[0] <= goal)


def _with(liked: sp.csr_matrix, sets: list[list[int]]) -> sp.csr_matrix:
    """Return the row once for each set, with its items besides, at a weight of 1."""
    items = np.array([[*liked.indices, *some] for some in sets], dtype=np.int32)
    values = np.append(liked.data, np.ones(len(sets[0]), dtype=np.float32))
    order = np.argsort(items, axis=1)
    size = items.shape[1]
    return sp.csr_matrix(
        (
            values[order].ravel(), np.take_along_axis(items, order, axis=1).ravel(),
            np.arange(0, size * len(sets) + 1, size),
        ),
        (len(sets), liked.shape[1]),
    )  # fmt: skip


def _later(times: Any, added: list[int], left: list[int]) -> Any:
    """Return the times once for each item that is left, it and those added before later than all."""
    if times is None:
        return None
    row: NDArray[np.float64] = np.asarray(sp.csr_matrix(times, dtype=np.float64).todense())
    latest = float(row.max()) if row.size else 0.0
    dense = np.repeat(row, len(left), axis=0)
    for step, k in enumerate(added, 1):
        dense[:, k] = latest + step
    dense[np.arange(len(left)), left] = latest + len(added) + 1
    return sp.csr_matrix(dense)
