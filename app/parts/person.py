"""For whom: a user of the data or a profile of titles, with what they like and dislike besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from app.catalog import Catalog
from app.choices import ask, scoped
from app.parts.text import count, escaped

USER, PROFILE = "a user", "a profile"
MOST_OFFERED = 5_000  # users in the box; others are typed


@dataclass(frozen=True)
class Person:
    """For whom a list is made. Ids are texts.

    Attributes
    ----------
    user : str or None
        None for a profile of titles.
    likes : list of str
        Liked items, the oldest first, those added on the page last.
    added : list of str
        Of these, what a user of the data has not.
    dislikes, lower : list of str
        Disliked on the page; rated below what counts as liked.
    likes_key, dislikes_key : str
        Of the choices.
    """

    user: str | None
    likes: list[str]
    added: list[str]
    dislikes: list[str]
    lower: list[str]
    likes_key: str
    dislikes_key: str

    @property
    def name(self) -> str:
        """Return how the person is called."""
        return "your profile" if self.user is None else self.user

    @property
    def is_known(self) -> bool:
        """Whether the list is that of a user as the data have it."""
        return self.user is not None and not self.added


def choose_person(catalog: Catalog) -> Person:
    """Show the choice beside the page, and return the person."""
    with st.sidebar:
        mode = ask(
            st.segmented_control, "For whom", [USER, PROFILE], key="for", default=USER, required=True
        )
        user = _choose_user(catalog) if mode == USER else None
        own = [] if user is None else catalog.history(user)
        likes_key = scoped("likes", catalog.name, user)
        added = _choose_items(
            catalog,
            "Titles you like" if user is None else "Also liked",
            likes_key,
            [item for item in catalog.items if item not in set(own)],
            "Oldest first." if user is None else "In addition to the likes in the data.",
        )
        likes = [*own, *added]
        dislikes_key = scoped("dislikes", catalog.name, user)
        free = [item for item in catalog.items if item not in set(likes)]
        dislikes = _choose_items(
            catalog, "Titles you dislike", dislikes_key, free, "Not listed; similar items rank lower."
        )
    lower = [] if user is None else [i for i in catalog.ratings(user) if i not in set(likes)]
    lower = [item for item in lower if item in catalog.items]
    return Person(user, likes, added, dislikes, lower, likes_key, dislikes_key)


def _choose_user(catalog: Catalog) -> str:
    names = list(catalog.users)
    key = scoped("user", catalog.name)
    offered = names[:MOST_OFFERED]
    typed: Any = st.session_state.get(key) or st.query_params.get(key)
    if typed in catalog.users and typed not in offered:
        offered.append(typed)
    name: str = ask(
        st.selectbox,
        "User",
        offered,
        key=key,
        filter_mode="contains",
        accept_new_options=True,
        help=None if len(names) <= MOST_OFFERED else f"Or type any of {count(len(names), 'id')}.",
    )
    if name not in catalog.users:
        st.warning(f"There is no user {escaped(name)} in this dataset: choose another one.")
        st.stop()
    ratings = catalog.ratings(name)
    history = catalog.history(name)[::-1]
    with st.expander(f"{catalog.verb.capitalize()} {count(len(history), 'item')}"):
        columns: dict[str, list[Any]] = {"title": [catalog.titles[item] for item in history]}
        if ratings:
            columns["rating"] = [ratings.get(item) for item in history]
        st.dataframe(pd.DataFrame(columns), hide_index=True, height=220)
    return name


def _choose_items(catalog: Catalog, label: str, key: str, options: list[str], note: str) -> list[str]:
    items: list[str] = ask(
        st.multiselect,
        label,
        options,
        key=key,
        format_func=catalog.labels.__getitem__,
        placeholder="Type a title",
        help=note,
        filter_mode="contains",
        select_all=False,
    )
    return items


def like(person: Person, item: str) -> None:
    """Add an item to the likes: what a button calls."""
    _move(person.likes_key, person.dislikes_key, item)


def dislike(person: Person, item: str) -> None:
    """Add an item to the dislikes: what a button calls."""
    _move(person.dislikes_key, person.likes_key, item)


def _move(into: str, out_of: str, item: str) -> None:
    state = st.session_state
    state[into] = [*(one for one in state.get(into, []) if one != item), item]
    state[out_of] = [one for one in state.get(out_of, []) if one != item]
