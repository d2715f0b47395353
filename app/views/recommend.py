"""Recommend: a user or a profile of titles, the best items, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.state import Catalogue
from recsys.cli.terminal import csv_text
from recsys.errors import counted
from recsys.explain import because, following, item_rule, reasons, taste_rule
from recsys.explain import text as wording
from recsys.reranking import list_diversity, mmr, overlap, tail_items

POOL = 100  # candidates that are re-ranked for diversity
MARK = "◆"  # beside the items of a list that follow the taste rule
NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Asked:
    """Whom to recommend for.

    Attributes
    ----------
    user : int or None
        None for a built profile.
    row : (1, items) sparse matrix
        The liked items.
    lower : (n,) int
        Items that the user rated below what counts as liked: never recommended.
    given : dict of int to str
        The user's ratings as they are shown.
    """

    user: int | None
    row: sp.csr_matrix
    lower: NDArray[np.int64] = field(default_factory=lambda: NONE)
    given: dict[int, str] = field(default_factory=dict)


def page() -> None:
    """Show the page."""
    st.header("Recommend")
    left, right = st.columns([1, 2], gap="large")
    with left:
        catalogue = state.choose_data()
        spec = state.choose_model(key="model")
        asked = choose_profile(catalogue)
        N = st.slider("How many", 3, 30, 10)
        with st.expander("Filters and variety"):
            allowed = filters(catalogue)
            variety = st.slider("Variety", 0.0, 1.0, 0.0, 0.1, help="0 keeps the order of the scores.")
            second = st.selectbox("Compare with", ["nothing", *state.MODELS])
    with right:
        if asked.row.nnz == 0:
            st.info(
                "This profile is empty: the list shows what many people like. Search a title to begin."
            )
        model = state.ranker(catalogue, spec)
        if second == "nothing":
            if text := wording.parts(model):
                st.text(text)
            show_list(catalogue, model, spec, asked, N, allowed, variety)
        else:
            other = state.ranker(catalogue, second)
            for column, (m, s) in zip(st.columns(2), ((model, spec), (other, second)), strict=True):
                with column:
                    st.subheader(s.split(":")[0], help=s)
                    show_list(catalogue, m, s, asked, N, allowed, variety, brief=True)


def choose_profile(catalogue: Catalogue) -> Asked:
    """Show the choice between a user of the data and an own profile."""
    mode = st.radio("For whom", ["a user", "a profile I build"], horizontal=True, key="mode")
    if mode == "a user":
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
        return Asked(user, row, lower, given)
    # Options are numbers, so that two items of one title stay apart.
    order = np.argsort(-catalogue.popularity, kind="stable")
    chosen = st.multiselect(
        "Titles you like",
        [int(k) for k in order],
        format_func=lambda k: catalogue.labels[k],
        placeholder="Type a title",
        key=f"profile {catalogue.key}",
    )
    return Asked(None, catalogue.row(chosen))


def filters(catalogue: Catalogue) -> NDArray[np.int64] | None:
    """Show the filters there are data for, and return the items that pass, or None for all."""
    keep = np.ones(len(catalogue.labels), dtype=bool)
    names = catalogue.attributes.names
    plain = [k for k, name in enumerate(names) if "=" not in name and not name.endswith("0s")]
    if plain:
        chosen = st.multiselect("Genre", plain, format_func=lambda k: names[k])
        for k in chosen:
            keep &= catalogue.attributes.X[:, k] > 0
    known = catalogue.years[np.isfinite(catalogue.years)]
    if len(known) and known.min() < known.max():
        low, high = int(known.min()), int(known.max())
        first, last = st.slider("Year", low, high, (low, high))
        if (first, last) != (low, high):
            keep &= (catalogue.years >= first) & (catalogue.years <= last)
    if keep.all():
        return None
    if not keep.any():
        st.warning("No item passes these filters.")
        st.stop()
    return np.flatnonzero(keep)


def show_list(
    catalogue: Catalogue,
    model: Any,
    spec: str,
    asked: Asked,
    N: int,
    allowed: NDArray[np.int64] | None,
    variety: float,
    brief: bool = False,
) -> None:
    """Show the best items as cards, each with its reason."""
    ranked, values = state.recommend(
        model, asked.user, asked.row, len(catalogue.labels), allowed, asked.lower
    )
    if len(ranked) == 0:
        st.warning("Nothing is left to recommend: the profile holds every item that passes.")
        return
    count = max(N, POOL) if variety else N
    ids, scores = ranked[:count], values[:count]
    similarity = overlap(catalogue.matrix, ids)
    if variety:
        order = mmr(scores, similarity, N, variety)
        ids, scores, similarity = ids[order], scores[order], similarity[np.ix_(order, order)]
    follows = taste(catalogue, asked, allowed, ranked, ids)
    rows = []
    for place, (item, score) in enumerate(zip(ids, scores, strict=True), 1):
        found = reasons(model, asked.user or 0, asked.row, int(item))
        why = because(catalogue.titles, found, word=catalogue.word, ratings=asked.given)
        if found.kind != "popularity" and not any(value > 0 for _, value in found.items):
            why = f"Filler: {why[0].lower()}{why[1:]}"
        rows.append(
            (place, str(catalogue.data.item_ids[item]), str(catalogue.titles[item]), float(score), why)
        )
        with st.container(border=True):
            st.text(f"{place}. {catalogue.titles[item]}{f'  {MARK}' if follows[place - 1] else ''}")
            st.text(why)
            if not brief:
                details(catalogue, model, asked, int(item), place)
    tail = tail_items(catalogue.popularity)
    varied = f"{list_diversity(similarity):.2f}" if len(ids) > 1 else "–"
    st.caption(f"diversity {varied}  ·  long tail {tail[ids].mean():.0%} of the list")
    text = csv_text(("rank", "item_id", "title", "score", "why"), rows)
    st.download_button(
        "Download CSV", text, "recommendations.csv", "text/csv", key=f"csv {spec} {brief}"
    )


def details(catalogue: Catalogue, model: Any, asked: Asked, item: int, place: int) -> None:
    """Show, for one recommended item, a rule of other people, similar items and the way to Explain."""
    with st.expander("Why, and what is similar"):
        rule = item_rule(catalogue.matrix, asked.row.indices, item, exclude=asked.user)
        if rule is not None:
            st.text(wording.people(catalogue.titles, rule, word=catalogue.word))
            st.caption("Counted in the data; the model does not use this rule.")
        if "similar-items" in model.capabilities:
            near, _ = model.similar_items(item, N=6)
            st.text("Similar: " + ", ".join(str(catalogue.titles[k]) for k in near if k != item))
        if st.button("Explain this", key=f"explain {place} {item}"):
            st.session_state["explained"] = (catalogue.key, item, asked.user, asked.row.indices.tolist())
            st.switch_page(st.session_state["explain page"])


def taste(
    catalogue: Catalogue,
    asked: Asked,
    allowed: NDArray[np.int64] | None,
    ranked: NDArray[np.int32],
    listed: NDArray[np.int32],
    marked: bool = True,
) -> tuple[bool, ...]:
    """Show the rule behind a profile, where there is one that says something and leaves something.

    Returns for each listed item whether it follows the rule.
    """
    nothing = (False,) * len(listed)
    if len(catalogue.attributes) == 0 or asked.row.nnz < 5 or len(listed) == 0:
        return nothing
    items = tuple(int(k) for k in asked.row.indices)
    # The same items whatever the model: a rule must not change with the list it is shown beside.
    found = taste_of(catalogue, items, asked.user, np.sort(ranked))
    if found is None or not found.shown:
        return nothing
    how = following(found.rule, catalogue.attributes, ranked, listed)
    st.text(f"This taste as a rule: {wording.readable(found.rule)}")
    st.caption(
        " ".join(wording.taste(found, word=catalogue.word))
        + " The rule is read from the profile and the items' attributes; the model does not use it."
    )
    st.caption(" ".join(wording.follows(how, MARK if marked else "")))
    return how.follows


@st.cache_data(max_entries=500, show_spinner=False, hash_funcs={Catalogue: lambda c: c.key})
def taste_of(
    catalogue: Catalogue, items: tuple[int, ...], user: int | None, candidates: NDArray[np.int32]
) -> Any:
    """Return the taste rule of a profile, the user's own likes taken out of the popularity."""
    popularity = catalogue.popularity.copy()
    if user is not None:
        popularity[list(items)] -= 1
    return taste_rule(np.array(items), catalogue.attributes, popularity, candidates=candidates)
