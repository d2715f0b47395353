"""Explain: a dialog over the list that says why an item has its rank."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app import charts
from app.catalog import Catalog
from app.parts import lists
from app.parts.person import Person
from app.parts.text import count, escaped
from recsys import InputError, Recommender

SHOWN = 10  # bars of a chart
MOST_CHANGES = 12
OPEN = "explained item"


def open_explanation(item: str) -> None:
    """Open the dialog for an item: what a button calls."""
    st.session_state[OPEN] = item


def show_explanation(model: Recommender, catalog: Catalog, person: Person, n: int) -> None:
    """Show the dialog, if one is open."""
    item = st.session_state.get(OPEN)
    if item not in catalog.items:
        return
    dialog = st.dialog(escaped(catalog.titles[item]), width="large", on_dismiss=_close)
    dialog(_body)(model, catalog, person, item, n)


def _close() -> None:
    st.session_state.pop(OPEN, None)


def _body(model: Recommender, catalog: Catalog, person: Person, item: str, n: int) -> None:
    if not [one for one in person.likes if one != item]:
        st.info("This profile has no other likes, so there is no reason to show.")
        return
    every = st.toggle("All liked items", key="all reasons") if len(person.likes) > SHOWN else False
    bars = len(person.likes) if every else SHOWN
    try:
        why = lists.explain(model, catalog, person, item, bars, MOST_CHANGES)
    except InputError as error:
        st.warning(escaped(error))
        return
    said, rank = lists.reason(catalog, why, item), (why.changes or {}).get("rank")
    if rank and rank > n and said.startswith("Because"):
        said = f"It has this score because{said.removeprefix('Because')}"
    st.text("\n".join([standing(catalog, person, item, why, n), said]))
    show_shares(catalog, why)
    st.subheader("What other users like", anchor=False)
    st.text(why.rule_text or "No rule of other users passes the test for this item.")
    show_changes(why)
    if why.parts:
        st.subheader("Parts of the blend", anchor=False)
        parts = pd.DataFrame(why.parts, columns=["model", "weight", "adds to the score"])
        st.dataframe(parts, hide_index=True)
    if "similar-items" in model.ranker.capabilities:
        near = model.similar(catalog.items[item], n=6)["item"].astype(str)
        st.caption(escaped("Similar: " + " · ".join(catalog.titles[one] for one in near)))
    for note in why.notes:
        st.caption(escaped(note))


def standing(catalog: Catalog, person: Person, item: str, why: Any, n: int) -> str:
    """Return whether the item is in the list, and its rank and score."""
    rank = (why.changes or {}).get("rank")
    of = (why.changes or {}).get("of")
    score = f"score {why.score:.4f}"
    placed = f"rank {rank:,} of {of:,}, {score}" if rank else score
    ratings = catalog.ratings(person.user) if person.user else {}
    if item in person.likes:
        return f"You {catalog.verb} it already. Without it in the profile: {placed}."
    if item in person.dislikes:
        return f"You dislike it, so it is left out. Otherwise: {placed}."
    if item in person.lower:
        return f"You rated it {ratings[item]:g}, below the threshold of likes. Otherwise: {placed}."
    if rank and rank > n:
        return f"Not among the first {n}: {placed}."
    return f"{placed[:1].upper()}{placed[1:]}."


def show_shares(catalog: Catalog, why: Any) -> None:
    """Draw how the score adds up, or which liked items are similar."""
    rows = [(catalog.names[str(row[0])], float(row[2])) for row in why.rows]
    if why.reasons.kind != "exact":
        if rows:
            chart = charts.bars(rows, "Liked items most similar to it", "cosine similarity")
            st.altair_chart(chart, width="stretch")
        return
    if abs(why.base) > 1e-6 * abs(why.score):
        rows.insert(0, ("base", float(why.base)))
    if why.reasons.unlisted:
        others = count(why.reasons.unlisted, f"other {catalog.verb} item")
        rows.append((others, float(why.reasons.others)))
    chart = charts.bars(rows, "How the score adds up", "adds to the score", total=float(why.score))
    st.altair_chart(chart, width="stretch")


def show_changes(why: Any) -> None:
    """Show the rank and the score without single liked items."""
    listed = (why.changes or {}).get("listed") or []
    if not listed:
        return
    st.subheader("Without one of the liked items", anchor=False)
    frame = pd.DataFrame(
        {
            "without": [one["title"] for one in listed],
            "rank": [one["rank"] for one in listed],
            "score": [one["score"] for one in listed],
        }
    )
    four = st.column_config.NumberColumn(format="%.4f")
    st.dataframe(frame, hide_index=True, column_config={"score": four})
