"""`recsys recommend`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from recsys.cli import terminal
from recsys.cli.lists import COLUMNS, Line, print_items, write_lists
from recsys.cli.options import (
    AsOf,
    Count,
    Diversity,
    History,
    Only,
    RankerFile,
    Threads,
    Without,
    ids_of,
    profile_of,
    use_threads,
    warn_as_of,
)
from recsys.errors import InputError, counted
from recsys.rankers import Bundle, load_bundle
from recsys.rankers.base import Recommendations
from recsys.reranking import rerank
from recsys.utils.topn import all_but
from recsys.utils.validation import check_integer

USERS = 4096  # whose lists are held at once


def recommend(
    ranker: RankerFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="User id; repeat for more.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users.")] = False,
    history: History = None,
    as_of: AsOf = None,
    number: Count = 10,
    items: Only = None,
    filter_items: Without = None,
    dislike: Annotated[
        str | None, typer.Option("--dislike", help="Item ids to keep away from, and what is like them.")
    ] = None,
    diversity: Diversity = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file to write (.json, .parquet).")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="No apostrophe before formulas in CSV.")] = False,
    threads: Threads = None,
) -> None:
    """Print or write the best items for users, or for a history given by item ids."""
    use_threads(threads)
    if (user is not None) + everyone + (history is not None) != 1:
        raise InputError(
            "name whom to recommend to by exactly one of --user ID, --all and --history ID,ID"
        )
    bundle = load_bundle(ranker)
    asked = _asked(bundle, user, history, as_of)
    lists = Lists(
        bundle, asked, check_integer("-n", number, 1),
        dislikes=[] if dislike is None else bundle.items(ids_of(dislike)).tolist(),
        diversity=diversity,
        items=None if items is None else bundle.items(ids_of(items)).tolist(),
        filter_items=None if filter_items is None else bundle.items(ids_of(filter_items)).tolist(),
    )  # fmt: skip
    if out is not None or everyone:
        write_lists(out, lists.blocks(), raw)
    else:
        lines = [(*line[:4], f"{line[4]:.4g}") for block in lists.blocks() for line in block]
        print_items(bundle, lines, COLUMNS)
    warn_as_of(as_of)
    if lists.fallbacks:
        get = "gets" if lists.fallbacks == 1 else "get"
        who = counted(lists.fallbacks, "user")
        lacks = "liked items" if as_of is None else f"a like before {as_of}"
        terminal.say(f"note: {who} without {lacks} {get} the most popular ones")


@dataclass(frozen=True)
class Asked:
    """Users to recommend to.

    Attributes
    ----------
    labels : list of str
        How they are called.
    ids : (users,) int
    rows : (users, items) CSR
    times : (users, items) CSR or None
        When they liked what is in the rows, where the ranker does not know.
    fold_in : bool
        Whether the rows are not those that the ranker was fitted on.
    """

    labels: list[str]
    ids: Any
    rows: sp.csr_matrix
    times: sp.csr_matrix | None = None
    fold_in: bool = False


def _asked(bundle: Bundle, users: list[str] | None, history: str | None, as_of: str | None) -> Asked:
    """Return the users named, somebody of this history, or else all, as of a time or now."""
    if history is not None:
        profile = profile_of(bundle, None, history, as_of)
        return Asked(["new"], np.array([profile.userid]), profile.row, profile.times, fold_in=True)
    labels = list(bundle.user_ids) if users is None else users
    ids = np.arange(len(labels)) if users is None else bundle.rows(users)[0]
    rows, times = bundle.histories(None if users is None else ids, as_of)
    if as_of is None:
        return Asked(labels, ids, rows)
    return Asked(labels, ids, rows, times, fold_in=True)


@dataclass
class Lists:
    """Lists of many users, made a block of users at a time.

    Attributes
    ----------
    fallbacks : int
        So far, the users without liked items.
    """

    bundle: Bundle
    asked: Asked
    number: int
    dislikes: list[int]
    diversity: float
    items: list[int] | None
    filter_items: list[int] | None
    fallbacks: int = 0

    def blocks(self) -> Iterator[list[Line]]:
        """Yield the lines of a block of users at a time."""
        bundle, labels = self.bundle, self.asked.labels
        make = self._reranked if len(self.dislikes) or self.diversity else self._plain
        for start in range(0, max(1, len(labels)), USERS):
            part = slice(start, start + USERS)
            found = make(part)
            self.fallbacks += sum(bool(one.fallback) for one in found)
            yield [
                (label, place + 1, bundle.item_ids[i], bundle.titles[i], float(score))
                for label, one in zip(labels[part], found, strict=True)
                for place, (i, score) in enumerate(zip(one.ids, one.scores, strict=True))
                if i >= 0
            ]

    def _plain(self, part: slice) -> list[Recommendations]:
        items: Any = self.items
        without: Any = self.filter_items
        if without is None:  # of the items named, those that a user likes are left out
            items, without = None, all_but(len(self.bundle.item_ids), items)
        found = self.bundle.ranker.recommend(
            self.asked.ids[part], self.asked.rows[part], N=self.number, items=items,
            filter_items=without, recalculate_user=self.asked.fold_in, times=self._times(part),
        )  # fmt: skip
        fallback = np.atleast_1d(found.fallback)
        return [Recommendations(*one) for one in zip(found.ids, found.scores, fallback, strict=True)]

    def _times(self, part: slice) -> sp.csr_matrix | None:
        return None if self.asked.times is None else self.asked.times[part]

    def _reranked(self, part: slice) -> list[Recommendations]:
        item_users = self.bundle.user_items.tocsc() if self.diversity else None
        return [
            rerank(
                self.bundle.ranker, int(user), self.asked.rows[k], self.number, dislikes=self.dislikes,
                diversity=self.diversity, item_users=item_users, items=self.items,
                filter_items=self.filter_items, recalculate_user=self.asked.fold_in,
                times=self._times(slice(k, k + 1)),
            )
            for k, user in enumerate(self.asked.ids[part], part.start)
        ]  # fmt: skip
