"""For whom: a user of the data or a profile of titles, and what they dislike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app.state import Catalogue
from recsys.errors import counted
from recsys.rankers.catalogue import Profile

NONE = np.zeros(0, dtype=np.int64)


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
    """

    profile: Profile
    lower: NDArray[np.int64] = field(default_factory=lambda: NONE)
    given: dict[int, str] = field(default_factory=dict)
    dislikes: tuple[int, ...] = ()

    @property
    def user(self) -> int | None:
        """The user's row in the data; None for a built profile."""
        return self.profile.user

    @property
    def row(self) -> sp.csr_matrix:
        """The liked items, (1, items)."""
        return self.profile.row


def choose_profile(catalogue: Catalogue) -> Asked:
    """Show the choice between a user of the data and an own profile."""
    mode = st.radio("For whom", ["a user", "a profile I build"], horizontal=True, key="mode")
    return _user(catalogue) if mode == "a user" else _built(catalogue)


def choose_dislikes(catalogue: Catalogue, asked: Asked) -> Asked:
    """Show the choice of titles to keep away from, and return the profile with them."""
    chosen = st.multiselect(
        "Titles you dislike",
        _by_popularity(catalogue, without=asked.row.indices),
        format_func=lambda k: catalogue.labels[k],
        placeholder="Type a title",
        help="They are left out, and what goes with them is lowered.",
        key=f"dislikes {catalogue.key}",
    )
    return replace(asked, dislikes=tuple(chosen))


def _user(catalogue: Catalogue) -> Asked:
    ids = catalogue.data.user_ids
    name = st.selectbox("User", range(len(ids)), format_func=lambda k: str(ids[k]), key="user")
    user = min(int(name or 0), len(ids) - 1)
    row = catalogue.matrix[user]
    given = catalogue.rated(user)
    lower = np.array(sorted(set(given) - set(row.indices.tolist())), dtype=np.int64)
    verb = "Likes" if catalogue.word == "liked" else "Rated"
    with st.expander(f"{verb} {counted(row.nnz, 'item')}"):
        table = {"title": [str(catalogue.titles[k]) for k in row.indices]}
        if given:
            table["rating"] = [given.get(int(k), "") for k in row.indices]
        st.dataframe(table, height=200, hide_index=True)
    if len(lower):
        st.caption(f"{counted(len(lower), 'item')} rated lower: not liked, not recommended.")
    return Asked(Profile(user, row), lower, given)


def _built(catalogue: Catalogue) -> Asked:
    chosen = st.multiselect(
        "Titles you like",
        _by_popularity(catalogue),
        format_func=lambda k: catalogue.labels[k],
        placeholder="Type a title",
        key=f"profile {catalogue.key}",
    )
    return Asked(catalogue.profile(chosen))


def _by_popularity(catalogue: Catalogue, without: NDArray[np.int32] | None = None) -> list[int]:
    """Return items as options: numbers, so that two items of one title stay apart."""
    order = np.argsort(-catalogue.popularity, kind="stable")
    return [int(k) for k in (order if without is None else order[~np.isin(order, without)])]
