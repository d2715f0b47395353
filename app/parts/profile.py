"""For whom: a user of the data or a profile of titles, what they dislike, and whether time counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app.parts.kept import keep, restore
from app.state import Catalogue
from recsys.errors import counted
from recsys.explain import ages, in_time
from recsys.rankers.catalogue import Profile
from recsys.utils.dates import date_text
from recsys.utils.sparse import entries_of

NONE = np.zeros(0, dtype=np.int64)
MODES = ("a user", "a profile I build")
NEXT, GENERAL = "what comes next", "what fits in general"


@dataclass(frozen=True)
class Asked:
    """For whom a list is made, and what it must not hold.

    Attributes
    ----------
    profile : Profile
        The user and the liked items.
    lower : (n,) int
        Items that the user rated below what counts as liked: never recommended.
    given : dict of int to str
        The user's ratings as they are shown.
    dislikes : tuple of int
        Items to keep away from, and what is like them.
    general : bool
        Whether all likes count as equally recent, whenever they were.
    """

    profile: Profile
    lower: NDArray[np.int64] = field(default_factory=lambda: NONE)
    given: dict[int, str] = field(default_factory=dict)
    dislikes: tuple[int, ...] = ()
    general: bool = False

    @property
    def user(self) -> int | None:
        """The user's row in the data; None for a built profile."""
        return self.profile.user

    @property
    def row(self) -> sp.csr_matrix:
        """The liked items, (1, items)."""
        return self.profile.row

    @property
    def times(self) -> sp.csr_matrix | None:
        """When each like counts as having happened, (1, items)."""
        times = self.profile.times
        if times is None or not self.general:
            return times
        return entries_of(times, np.zeros(times.nnz))


def choose_profile(catalogue: Catalogue) -> Asked:
    """Show the choice between a user of the data and an own profile."""
    restore("mode", MODES)
    mode = st.radio("For whom", MODES, horizontal=True, key="mode")
    keep("mode", mode)
    return _user(catalogue) if mode == MODES[0] else _built(catalogue)


def choose_order(catalogue: Catalogue, asked: Asked, rankers: list[Any]) -> Asked:
    """Show whether time counts, where there are times and a ranker that reads them."""
    if catalogue.times is None or not any(in_time(ranker) for ranker in rankers):
        return asked
    restore("order", (NEXT, GENERAL))
    wanted = st.radio(
        "Recommend",
        (NEXT, GENERAL),
        key="order",
        help="What comes next depends on when each like was; in general, all are equally recent.",
    )
    keep("order", wanted)
    return replace(asked, general=wanted == GENERAL)


def choose_dislikes(catalogue: Catalogue, asked: Asked) -> Asked:
    """Show the choice of titles to keep away from, and return the profile with them."""
    chosen = st.multiselect(
        "Titles you dislike",
        _by_popularity(catalogue, without=asked.row.indices),
        format_func=lambda k: catalogue.labels[k],
        placeholder="Type a title",
        help="They are left out, and what goes with them is lowered.",
        key=f"dislikes {catalogue.key}",
        filter_mode="contains",
        select_all=False,
        wrap=True,
    )
    return replace(asked, dislikes=tuple(chosen))


def _user(catalogue: Catalogue) -> Asked:
    ids = catalogue.data.user_ids
    restore("user", range(len(ids)))
    name = st.selectbox(
        "User", range(len(ids)), format_func=lambda k: str(ids[k]), key="user", filter_mode="contains"
    )
    user = min(int(name or 0), len(ids) - 1)
    keep("user", user)
    profile = catalogue.user(user)
    row = profile.row
    given = catalogue.rated(user)
    lower = np.array(sorted(set(given) - set(row.indices.tolist())), dtype=np.int64)
    verb = "Likes" if catalogue.word == "liked" else "Rated"
    with st.expander(f"{verb} {counted(row.nnz, 'item')}"):
        st.dataframe(history(catalogue, profile, given), height=200, hide_index=True)
    if len(lower):
        st.caption(f"{counted(len(lower), 'item')} rated lower: not liked, not recommended.")
    return Asked(profile, lower, given)


def history(catalogue: Catalogue, profile: Profile, given: dict[int, str]) -> dict[str, list[Any]]:
    """Return the columns of a profile's table, the newest like first where times are known.

    When an item was liked is its date, or how many likes are newer where times are no dates.
    """
    row, when = profile.row, profile.when
    order = np.arange(row.nnz) if when is None else np.argsort(-when, kind="stable")
    items = [int(k) for k in row.indices[order]]
    table: dict[str, list[Any]] = {}
    if when is not None and catalogue.dated:
        table["date"] = [date_text(t)[:10] if t > 0 else "" for t in when[order]]
    elif when is not None and (old := ages(row, profile.times)):
        table["newer"] = [old[k].newer if k in old else None for k in items]
    table["title"] = [str(catalogue.titles[k]) for k in items]
    if given:
        table["rating"] = [given.get(k, "") for k in items]
    return table


def _built(catalogue: Catalogue) -> Asked:
    key, options = f"profile {catalogue.key}", _by_popularity(catalogue)
    restore(key, options)
    chosen = st.multiselect(
        "Titles you like",
        options,
        format_func=lambda k: catalogue.labels[k],
        placeholder="Type a title",
        help="In order: the last one is your latest.",
        key=key,
        filter_mode="contains",
        select_all=False,
        wrap=True,
    )
    keep(key, list(chosen))
    return Asked(catalogue.profile(chosen))


def _by_popularity(catalogue: Catalogue, without: NDArray[np.int32] | None = None) -> list[int]:
    """Return items as options: numbers, so that two items of one title stay apart."""
    order = np.argsort(-catalogue.popularity, kind="stable")
    return [int(k) for k in (order if without is None else order[~np.isin(order, without)])]
