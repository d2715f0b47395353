"""Lists of many users, made a block of users at a time so that memory stays."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import counted
from recsys.rankers import ModelPackage, Recommendations
from recsys.rankers.catalogue import Profile
from recsys.reranking import Merchandising, rerank
from recsys.utils.progress import report
from recsys.utils.topn import LOWEST

LOG = logging.getLogger(__name__)
TOO_FEW = (
    "fewer items of the protected group than asked for among its first ranks: pinned items or limits "
    "come first, or too few are left"
)


def too_few(lists: int) -> str:
    """Return a sentence about how many lists have too few items of the protected group."""
    return f"{counted(lists, 'list')} {'has' if lists == 1 else 'have'} {TOO_FEW}"


USERS = 4096  # whose lists are held at once
COLUMNS: dict[str, type] = {"user_id": str, "rank": int, "item_id": str, "title": str, "score": float}
Line = tuple[Any, ...]
MODEL, POPULAR = "model", "popular"  # where a list comes from
STEP = "lists"  # what a bar says
Block = list[tuple[int, Recommendations]]


@dataclass(frozen=True)
class ListRequest:
    """For whom lists are made."""

    labels: Sequence[Any]  # what they are called
    ids: NDArray[np.int64]
    rows: sp.csr_matrix  # (users, items)
    times: sp.csr_matrix | None = None  # of what is in the rows, where the ranker does not know them
    fold_in: bool = False  # whether the rows are not those that the ranker was fitted on

    @classmethod
    def of_users(
        cls, package: ModelPackage, users: Sequence[Any] | None, as_of: float | str | None = None
    ) -> ListRequest:
        """Return users by id, all of them for None, with what they had liked by a time, or by now."""
        if users is None:
            ids, labels = np.arange(len(package.user_ids)), list(package.user_ids)
        else:
            ids = package.rows(users)[0]
            labels = [package.user_ids[k] for k in ids]
        rows, times = package.histories(None if users is None else ids, as_of)
        return cls(labels, ids, rows) if as_of is None else cls(labels, ids, rows, times, True)

    @classmethod
    def of_profile(cls, label: Any, profile: Profile) -> ListRequest:
        """Return the request of a new user, or of a user as of a time."""
        return cls([label], np.array([profile.userid]), profile.row, profile.times, True)

    def one(self, k: int) -> tuple[int, sp.csr_matrix, sp.csr_matrix | None]:
        """Return the user's number, row and times of one of them."""
        return int(self.ids[k]), self.rows[k], None if self.times is None else self.times[k]


@dataclass
class Lists:
    """Lists of the best items."""

    package: ModelPackage
    request: ListRequest
    number: int  # items a list, at most
    dislikes: Sequence[int] = ()
    diversity: float = 0.0
    left_out: NDArray[np.int64] | None = None  # items that are in no list
    filter_liked: bool = True
    merchandising: Merchandising | None = None
    fallbacks: int = 0  # so far, the users without liked items, who get the most popular ones
    unfair: int = 0  # so far, the lists with fewer items of the protected group than asked for

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield a block of users at a time, each by its position in `request`, with the list.

        `start` and `stop` are the positions of those whose lists are made: all when not given.
        """
        reranked = len(self.dislikes) or self.diversity or self.merchandising is not None
        make = self._reranked if reranked else self._plain
        stop = len(self.request.labels) if stop is None else min(stop, len(self.request.labels))
        for begin in range(start, max(start + 1, stop), USERS):
            report(STEP, begin, len(self.request.labels))
            found = make(slice(begin, min(begin + USERS, stop)))
            self.fallbacks += sum(bool(one.fallback) for one in found)
            self.unfair += sum(not self.is_fair(one) for one in found)
            yield list(enumerate(found, begin))
        if note := self.note():
            LOG.info(note)

    @cached_property
    def some_popular(self) -> bool:
        """Whether a user has no interactions to personalise with, and gets the most popular items."""
        request = self.request
        ids = None if request.fold_in else request.ids
        return bool(self.package.ranker.falls_back(ids, request.rows).any())

    def is_fair(self, found: Recommendations) -> bool:
        """Return whether a list has as many items of the protected group as asked for."""
        fair = None if self.merchandising is None else self.merchandising.fair
        return fair is None or fair.met(found.ids)

    def note(self) -> str | None:
        """Return which pinned items are left out, and how many lists have too few protected items."""
        told = [self.unlisted_pins(), too_few(self.unfair) if self.unfair else ""]
        return "; ".join(filter(None, told)) or None

    def unlisted_pins(self) -> str:
        """Return a sentence about pinned items that filters leave out; "" without any."""
        pinned = [] if self.merchandising is None else list(self.merchandising.pinned)
        absent = [] if self.left_out is None else [item for item in pinned if item in self.left_out]
        if not absent:
            return ""
        names = ", ".join(repr(str(self.package.item_ids[item])[:40]) for item in absent[:5])
        more = f" and {len(absent) - 5:,} more" if len(absent) > 5 else ""
        return f"pinned but not listed, as the items to rank or filters leave it out: {names}{more}"

    @cached_property
    def columns(self) -> dict[str, type]:
        """The columns of `lines`: `COLUMNS`, and where a list comes from if one is of popular items."""
        return COLUMNS | ({"source": str} if self.some_popular else {})

    def lines(self, block: Block, source: bool = False) -> list[Line]:
        """Return the rows of a block, of the columns `columns`, or with `source`; ids are text here."""
        cells = len(COLUMNS) + 1 if source else len(self.columns)
        package, labels = self.package, self.request.labels
        return [
            (
                str(labels[k]), place, str(package.item_ids[i]), str(package.titles[i]), float(score),
                POPULAR if found.fallback else MODEL,
            )[:cells]
            for k, found in block
            for place, (i, score) in enumerate(zip(found.ids, found.scores, strict=True), 1)
        ]  # fmt: skip

    def _plain(self, part: slice) -> list[Recommendations]:
        request = self.request
        found = self.package.ranker.recommend(
            request.ids[part], request.rows[part], N=self.number, filter_items=self.left_out,
            filter_already_liked_items=self.filter_liked, recalculate_user=request.fold_in,
            times=None if request.times is None else request.times[part],
        )  # fmt: skip
        fallback = np.atleast_1d(found.fallback)
        return [
            Recommendations(ids[ids >= 0], scores[ids >= 0], flag)  # without the padding
            for ids, scores, flag in zip(found.ids, found.scores, fallback, strict=True)
        ]

    def _reranked(self, part: slice) -> list[Recommendations]:
        item_users = self.package.item_users if self.diversity else None
        found = []
        for k in range(*part.indices(len(self.request.labels))):
            user, row, times = self.request.one(k)
            found.append(rerank(
                self.package.ranker, user, row, self.number, dislikes=self.dislikes,
                diversity=self.diversity, item_users=item_users, filter_items=self.left_out,
                filter_already_liked_items=self.filter_liked,
                recalculate_user=self.request.fold_in, times=times, merchandising=self.merchandising,
            ))  # fmt: skip
        return found


def most_popular(popularity: NDArray[np.floating], lists: Lists, n: int) -> Recommendations:
    """Return the items with the most users, without those that are left out or disliked."""
    users = popularity.astype(np.float64)
    for without in (lists.left_out, lists.dislikes):
        if without is not None:
            users[without] = LOWEST
    best = np.argsort(-users, kind="stable")
    best = best[users[best] > LOWEST]
    found = Recommendations(best.astype(np.int32), users[best].astype(np.float32), True)
    if lists.merchandising is None:
        return found
    pinned, others = lists.merchandising.applied(lists.merchandising.boosted(found), n)
    return Recommendations(*(np.concatenate(one) for one in zip(pinned, others, strict=True)))
