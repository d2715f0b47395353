"""For whom: a user of the data or a built profile, what they like and dislike besides, as of when."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app.catalogues import Catalogue
from app.parts.words import escaped
from app.session import BUILT, SAMPLE, USER, ask, session
from recsys.errors import counted
from recsys.explain import ages, in_time
from recsys.rankers.catalogue import Profile
from recsys.utils.dates import DAY, date_text
from recsys.utils.sparse import entries_of

NONE = np.zeros(0, dtype=np.int64)
MODES = {USER: "a user", BUILT: "a profile I build"}
NEXT, GENERAL = "next", "general"
ORDERS = {NEXT: "what comes next", GENERAL: "what fits in general"}
MOST_PROFILES, MOST_BROWSERS, LONGEST_NAME = 50, 500, 60
_SHELVES = threading.Lock()
MOST_PROFILE = 1_000_000  # bytes of a profile that is read


@dataclass(frozen=True)
class ChosenUser:
    """For whom a list is made, and what it must not hold.

    Attributes
    ----------
    profile : Profile
        The user and the liked items, with those added on a page.
    lower : (n,) int
        Items that the user rated below what counts as liked: never recommended.
    given : dict of int to str
        The user's ratings as they are shown.
    dislikes : tuple of int
        Items to keep away from, and what is like them.
    general : bool
        Whether all likes count as equally recent, whenever they were.
    added : tuple of int
        Items of the profile that a user of the data has not, but that were liked on a page.
    """

    profile: Profile
    lower: NDArray[np.int64] = field(default_factory=lambda: NONE)
    given: dict[int, str] = field(default_factory=dict)
    dislikes: tuple[int, ...] = ()
    general: bool = False
    added: tuple[int, ...] = ()

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


def choose_user(catalogue: Catalogue) -> ChosenUser:
    """Show, beside the page, the choice between a user of the data and an own profile."""
    with st.sidebar:
        mode = ask(
            st.segmented_control,
            "For whom",
            name="mode",
            default=USER,
            options=list(MODES),
            format_func=MODES.get,
            required=True,
        )
        chosen_user = _user(catalogue) if mode == USER else _built(catalogue)
        chosen_user = _dislikes(catalogue, chosen_user)
    return chosen_user


def choose_order(catalogue: Catalogue, chosen_user: ChosenUser, rankers: list[Any]) -> ChosenUser:
    """Show whether time counts, where there are times and a ranker that reads them."""
    if catalogue.times is None or not any(in_time(ranker) for ranker in rankers):
        return chosen_user
    with st.sidebar:
        wanted = ask(
            st.radio,
            "Recommend",
            name="order",
            default=NEXT,
            options=list(ORDERS),
            format_func=ORDERS.get,
            help="What comes next depends on when each like was; in general, all are equally recent.",
        )
    return replace(chosen_user, general=wanted == GENERAL)


def called(catalogue: Catalogue, chosen_user: ChosenUser) -> str:
    """Return how a user is named: the user's id, or the built profile."""
    return "my profile" if chosen_user.user is None else str(catalogue.data.user_ids[chosen_user.user])


def _user(catalogue: Catalogue) -> ChosenUser:
    ids = list(catalogue.users)
    name = ask(st.selectbox, "User", name="user", default=ids[0], options=ids, filter_mode="contains")
    given = session().get("user", "")
    if given not in ("", name):
        st.info(f"The user {escaped(given)} is not in this dataset: {escaped(name)} is shown.")
    session().choose_user(name)
    user = catalogue.users[name]
    profile = _as_of(catalogue, catalogue.user(user))
    given = catalogue.rated(user)
    liked = set(catalogue.matrix[user].indices.tolist())
    lower = np.array(sorted(set(given) - liked), dtype=np.int64)
    verb = "Likes" if catalogue.word == "liked" else "Rated"
    with st.expander(f"{verb} {counted(profile.row.nnz, 'item')}"):
        st.dataframe(history(catalogue, profile, given), height=200, hide_index=True)
    if len(lower):
        st.caption(f"{counted(len(lower), 'item')} rated lower: not liked, not recommended.")
    more = [item for item in _known(catalogue, "more") if item not in set(profile.row.indices.tolist())]
    return ChosenUser(_with(profile, more), lower, given, added=tuple(more))


def _as_of(catalogue: Catalogue, profile: Profile) -> Profile:
    """Return the profile of a chosen day, where likes have dates."""
    if not catalogue.dated or profile.when is None or not (profile.when > 0).any():
        return profile
    days = [_day(t) for t in profile.when[profile.when > 0]]
    first, last = min(days), max(days)
    if first == last:
        return profile
    wanted = ask(
        st.selectbox,
        "As of",
        name="asof",
        default="today",
        options=["today", *sorted({str(day) for day in days if day > first}, reverse=True)],
        help="What was liked before that day counts. The model knows all likes, later ones too.",
    )
    if wanted == "today":
        return profile
    moment = datetime.fromisoformat(wanted).replace(tzinfo=UTC).timestamp()
    return profile.before(moment)


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(float(seconds) // DAY * DAY, UTC).date()


def _with(profile: Profile, more: list[int]) -> Profile:
    """Return a profile with items liked just now."""
    if not more:
        return profile
    n = profile.row.shape[1]
    order = np.argsort(np.array([*profile.row.indices, *more]), kind="stable")
    items = np.array([*profile.row.indices, *more], dtype=np.int32)[order]
    values = np.append(profile.row.data, np.ones(len(more), dtype=np.float32))[order]
    row = sp.csr_matrix((values, items, [0, len(items)]), (1, n))
    when = profile.when
    if when is not None:
        latest = float(when.max()) if len(when) else 0.0
        when = np.concatenate([when, latest + 1.0 + np.arange(len(more))])[order]
    return replace(profile, row=row, when=when)


def _built(catalogue: Catalogue) -> ChosenUser:
    chosen = ask(
        st.multiselect,
        "Titles you like",
        name="likes",
        default=[],
        options=catalogue.item_ids,
        format_func=catalogue.label,
        placeholder="Type a title",
        help="In order: the last one is your latest.",
        filter_mode="contains",
        select_all=False,
        wrap=True,
    )
    saved_profiles(catalogue, chosen)
    return ChosenUser(catalogue.profile([catalogue.items[one] for one in chosen]))


def _dislikes(catalogue: Catalogue, chosen_user: ChosenUser) -> ChosenUser:
    liked = set(chosen_user.row.indices.tolist())
    chosen = ask(
        st.multiselect,
        "Titles you dislike",
        name="dislikes",
        default=[],
        options=[one for one in catalogue.item_ids if catalogue.items[one] not in liked],
        format_func=catalogue.label,
        placeholder="Type a title",
        help="They are left out, and what goes with them is lowered.",
        filter_mode="contains",
        select_all=False,
        wrap=True,
    )
    if chosen_user.added:
        titles = ", ".join(str(catalogue.titles[k]) for k in chosen_user.added)
        st.text(f"Liked here besides: {titles}.")
        if st.button("Forget these likes", type="tertiary"):
            session().forget("more")
            st.rerun()
    return replace(chosen_user, dislikes=tuple(catalogue.items[one] for one in chosen))


def _known(catalogue: Catalogue, name: str) -> list[int]:
    return [catalogue.items[one] for one in session().get(name, []) if one in catalogue.items]


def like(item_id: str) -> None:
    """Add an item to what the chosen user likes, and take it out of what they dislike."""
    here = session()
    name = "likes" if here.get("mode", USER) == BUILT else "more"
    here.set(name, [*(one for one in here.get(name, []) if one != item_id), item_id])
    here.set("dislikes", [one for one in here.get("dislikes", []) if one != item_id])


def dislike(item_id: str) -> None:
    """Keep the chosen user's lists away from an item."""
    here = session()
    here.set("dislikes", [*(one for one in here.get("dislikes", []) if one != item_id), item_id])
    for name in ("likes", "more"):
        if item_id in here.get(name, []):
            here.set(name, [one for one in here.get(name, []) if one != item_id])


# ---- saved profiles


@st.cache_resource(show_spinner=False)
def _shelves() -> OrderedDict[str, dict[str, dict[str, Any]]]:
    return OrderedDict()


def shelf() -> dict[str, dict[str, Any]]:
    """Return the named profiles of this browser: {name: {"dataset", "likes", "dislikes"}}."""
    here, shelves = session(), _shelves()
    owner = here.browser or here.id
    with _SHELVES:
        kept = shelves.setdefault(owner, {})
        shelves.move_to_end(owner)
        while len(shelves) > MOST_BROWSERS:
            shelves.popitem(last=False)
    return kept


def saved_profiles(catalogue: Catalogue, chosen: list[str]) -> None:
    """Show the ways to name, save, open, download and read a profile."""
    here, kept = session(), shelf()
    dataset = here.get("data", SAMPLE)
    with st.popover("Save or open", width="stretch"):
        profile = {"dataset": dataset, "likes": chosen, "dislikes": here.get("dislikes", [])}
        with st.form("save profile", border=False):
            name = st.text_input("Name", max_chars=LONGEST_NAME)
            if st.form_submit_button("Save"):
                if not name.strip() or not chosen:
                    st.warning("A name and at least one title are needed.")
                elif len(kept) >= MOST_PROFILES and name.strip() not in kept:
                    st.warning(f"{MOST_PROFILES} profiles are kept at most: remove one first.")
                else:
                    kept[name.strip()] = profile
        own = [name for name, one in kept.items() if one["dataset"] == dataset]
        if own:
            one = st.selectbox("Saved on this dataset", own)
            left, right = st.columns(2)
            if left.button("Open", width="stretch"):
                _open(catalogue, kept[one])
            if right.button("Remove", width="stretch"):
                del kept[one]
                st.rerun()
        st.download_button(
            "Download this profile", json.dumps(profile, ensure_ascii=False, indent=1), "profile.json",
            "application/json", disabled=not chosen,
        )  # fmt: skip
        file = st.file_uploader("Read a profile", type=["json"], key="profile file")
        if file is not None and st.button("Use this profile"):
            given = read_profile(file.getvalue())
            if given is None:
                st.error("This file is no profile that was downloaded here.")
            else:
                _open(catalogue, given)


def read_profile(content: bytes) -> dict[str, Any] | None:
    """Return a profile that was downloaded; None for any other file."""
    try:
        found = json.loads(content[:MOST_PROFILE])
        likes, dislikes = found["likes"], found.get("dislikes", [])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not isinstance(likes, list) or not isinstance(dislikes, list):
        return None
    if not all(isinstance(one, str) for one in [*likes, *dislikes]):
        return None
    return {"likes": list(dict.fromkeys(likes)), "dislikes": list(dict.fromkeys(dislikes))}


def _open(catalogue: Catalogue, profile: dict[str, Any]) -> None:
    here = session()
    known = [one for one in profile["likes"] if one in catalogue.items]
    here.set("mode", BUILT)
    here.set("likes", known)
    here.set("dislikes", [one for one in profile["dislikes"] if one in catalogue.items])
    missing = len(profile["likes"]) - len(known)
    if missing:
        st.toast(f"{counted(missing, 'title')} of the profile not found in this dataset.")
    st.rerun()


# ---- history


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
