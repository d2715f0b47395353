"""Recommend: a user or a profile of titles, the best items, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.navigation import open_page
from app.parts.models import choose_model, models
from app.parts.profile import Asked, choose_dislikes, choose_order, choose_profile
from app.parts.taste import MARK, taste
from app.state import Catalogue
from recsys.errors import counted
from recsys.explain import because, item_rule, reasons_for_items
from recsys.explain import text as wording
from recsys.reranking import diversify, list_diversity, overlap, tail_items
from recsys.utils.export import csv_text

ANY, ALL = "any of these genres", "all of them"


def page() -> None:
    """Show the page."""
    st.header("Recommend")
    left, right = st.columns([1, 2], gap="large")
    with left:
        catalogue = state.choose_data()
        spec = choose_model()
        asked = choose_dislikes(catalogue, choose_profile(catalogue))
        order = st.container()
        N = st.slider("How many", 3, 30, 10)
        with st.expander("Filters and variety"):
            allowed = filters(catalogue)
            variety = st.slider("Variety", 0.0, 1.0, 0.0, 0.1, help="0 keeps the order of the scores.")
            second = st.selectbox("Compare with", ["nothing", *models()])
    with right:
        if asked.row.nnz == 0:
            st.info(
                "This profile is empty: the list shows what many people like. Search a title to begin."
            )
        model = state.ranker(catalogue, spec)
        other = None if second == "nothing" else state.ranker(catalogue, second)
        with order:
            asked = choose_order(catalogue, asked, [model] if other is None else [model, other])
        if other is None:
            if text := wording.parts(model):
                st.text(text)
            show_list(catalogue, model, spec, asked, N, allowed, variety)
        else:
            for column, (m, s) in zip(st.columns(2), ((model, spec), (other, second)), strict=True):
                with column:
                    st.subheader(s.split(":")[0], help=s)
                    show_list(catalogue, m, s, asked, N, allowed, variety, brief=True)


def filters(catalogue: Catalogue) -> NDArray[np.int64] | None:
    """Show the filters there are data for, and return the items that pass, or None for all."""
    keep = np.ones(len(catalogue.labels), dtype=bool)
    names = catalogue.attributes.names
    plain = [k for k, name in enumerate(names) if "=" not in name and not name.endswith("0s")]
    if plain:
        chosen = st.multiselect("Genre", plain, format_func=lambda k: names[k], select_all=False)
        if chosen:
            has = catalogue.attributes.X[:, chosen] > 0
            both = len(chosen) > 1 and st.radio("An item has", (ANY, ALL), horizontal=True) == ALL
            keep &= has.all(axis=1) if both else has.any(axis=1)
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
    found = state.recommend(
        model, asked.user, asked.row, len(catalogue.labels), allowed, asked.lower, asked.dislikes,
        asked.times,
    )  # fmt: skip
    ranked = found.ids
    if len(ranked) == 0:
        st.warning("Nothing is left to recommend: the profile holds every item that passes.")
        return
    ids, scores = diversify(found, N, variety, catalogue.matrix)
    similarity = overlap(catalogue.matrix, ids)
    if asked.dislikes:
        away = counted(len(asked.dislikes), "title")
        st.caption(f"Kept away from {away} you dislike, and lowered what goes with them.")
    follows = taste(catalogue, asked, allowed, ranked, ids)
    rows = []
    known = reasons_for_items(model, asked.user or 0, asked.row, ids, times=asked.times)
    for place, (item, score, told) in enumerate(zip(ids, scores, known, strict=True), 1):
        why = because(catalogue.titles, told, word=catalogue.word, ratings=asked.given)
        if told.kind != "popularity" and not any(value > 0 for _, value in told.items):
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
            st.session_state["explained"] = (catalogue.key, item)
            open_page("explain")
