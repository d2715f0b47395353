"""Recommend: a list for a user or a profile, each item with its reason."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import state
from app.catalog import Catalog
from app.choices import ask, scoped
from app.jobs import result
from app.navigation import go_to
from app.parts import lists
from app.parts.cards import card
from app.parts.models import choose_model, named
from app.parts.person import Person, choose_person, dislike, like
from app.parts.text import count, escaped
from app.views.explain import open_explanation, show_explanation
from recsys import InputError, Recommender
from recsys.errors import CapabilityError
from recsys.explain import taste_rule
from recsys.explain import text as wording

PAGE = "recommend"
RULE, LEAST = "This profile as a rule", 5  # liked items of a profile with a rule


def page() -> None:
    """Show the page."""
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    left.header("Recommend", anchor=False)
    right.button(
        "Use my file", icon=":material/upload:", on_click=go_to, args=("data",), width="stretch"
    )
    catalog = state.choose_catalog(PAGE)
    spec = choose_model(catalog.data.n_items)
    person = choose_person(catalog)
    with st.sidebar:
        n = ask(st.slider, "How many", 3, 30, 10, key="n")
        with st.expander("Filters and diversity"):
            filters = choose_filters(catalog)
            diversity = ask(
                st.slider,
                "Diversity",
                0.0,
                1.0,
                0.0,
                0.1,
                key="diversity",
                help="Higher values favor items liked by different users; 0 keeps the score order.",
            )
    model = state.recommender(PAGE, catalog, spec, named(spec), partial(popular, catalog, person, n))
    try:
        table = lists.recommend(model, catalog, person, n, diversity, filters)
    except CapabilityError:
        st.warning(
            f"{escaped(named(spec))} can rank only users of its fit with unchanged likes. Choose "
            "another model, or a user without further likes."
        )
        st.stop()
    except InputError as error:
        st.warning(escaped(error))
        st.stop()
    shown = show_list(catalog, model, spec, person, table)
    why_not(catalog, table)
    show_explanation(model, catalog, person, n)
    if shown:
        more_about(catalog, model, person, table)


def choose_filters(catalog: Catalog) -> dict[str, Any]:
    """Show a filter for each column of the item table that has few values, and for the year."""
    filters: dict[str, Any] = {}
    for name, values in catalog.categories.items():
        key = scoped(f"filter-{name}", catalog.name)
        label = escaped(name.capitalize())
        if chosen := ask(st.multiselect, label, values, key=key, select_all=False):
            filters[name] = chosen
    if catalog.years is not None:
        low, high = int(catalog.years.min()), int(catalog.years.max())
        years = ask(st.slider, "Year", low, high, (low, high), key=scoped("years", catalog.name))
        if years != (low, high):
            filters["year"] = years
    return filters


def popular(catalog: Catalog, person: Person, n: int) -> None:
    """Show the most popular items until the model's list is there."""
    st.caption("Until your list is ready, the most popular items:")
    out = {*person.likes, *person.dislikes, *person.lower}
    for rank, item in enumerate([item for item in catalog.items if item not in out][:n], 1):
        users = count(int(catalog.popularity[catalog.item_columns[item]]), "user")
        st.text(f"{rank}. {catalog.titles[item]} ({catalog.verb} by {users})")


def show_list(
    catalog: Catalog, model: Recommender, spec: str, person: Person, table: pd.DataFrame
) -> bool:
    """Show a list as cards and its download; return whether there is one."""
    liked = f"{catalog.verb} {count(len(person.likes), 'item')}"
    about = st.empty()
    if not person.likes:
        st.info("This profile is empty, so the list shows popular items. Type a title you like.")
    grid = st.grid("auto", min_column_width=280, border=True)
    reasons: list[str] = []
    shares = False
    for rank, item in enumerate(table["item"], 1):
        empty = not person.likes  # popular items, which no liked item explains
        why = None if empty else lists.explain(model, catalog, person, item, lists.REASONS)
        reasons.append(lists.reason(catalog, why, item) if why else popularity_of(catalog, item))
        shares = shares or (why is not None and lists.has_shares(why))
        actions = [
            ("Like", ":material/thumb_up:", partial(like, person, item)),
            ("Dislike", ":material/thumb_down:", partial(dislike, person, item)),
        ]
        if why:
            actions.append(("Explain", ":material/help:", partial(open_explanation, item)))
        with grid.cell():
            card(rank, catalog.titles[item], catalog.about(item), reasons[-1], item, actions)
    text = f"For {person.name}, who {liked}." if person.user else f"For {person.name}: {liked}."
    if catalog.data.weight is not None and not model.ranker.weighted:
        text += f" {named(spec)} does not use the weights."
    about.text(text + " In brackets: the share of the score that a liked item brings." * shares)
    if len(table) == 0:
        st.info("Nothing is left to recommend.")
        return False
    download(catalog, spec, person, table, reasons)
    return True


def popularity_of(catalog: Catalog, item: str) -> str:
    """Return how many users have an item."""
    users = count(int(catalog.popularity[catalog.item_columns[item]]), "user")
    return f"Popular: {catalog.verb} by {users}."


def more_about(catalog: Catalog, model: Recommender, person: Person, table: pd.DataFrame) -> None:
    """Show what a list and a blend are made of, and the rule of the profile where it is asked for."""
    with st.expander("More about this list"):
        popularity = [int(catalog.popularity[catalog.item_columns[item]]) for item in table["item"]]
        mean = sum(popularity) / len(popularity)
        st.text(f"On average {mean:,.0f} users {catalog.verb} an item of this list.")
        if text := wording.parts(model.ranker):
            st.text(text)
        asked = len(person.likes) >= LEAST and len(catalog.attributes) and st.toggle(RULE, key="rule")
    if asked:
        items = sorted(catalog.item_columns[item] for item in person.likes)
        key = ("profile rule", catalog.key, tuple(items))
        popular = catalog.popularity.astype(float)
        rule = result(PAGE, key, lambda: (taste_rule(items, catalog.attributes, popular),), RULE)[0]
        st.text(RULE + ": none passes the test." if rule is None or not rule.shown else rule_text(rule))


def rule_text(rule: Any) -> str:
    """Return the rule of a profile with its counts."""
    return (
        f"{RULE}: {wording.readable(rule.rule)}. {rule.support:,} of the {count(rule.profile, 'item')} "
        f"follow it, {rule.catalogue:,} of all {rule.items:,}. The model does not use it."
    )


def download(
    catalog: Catalog, spec: str, person: Person, table: pd.DataFrame, reasons: list[str]
) -> None:
    """Offer the list as CSV."""
    frame = pd.DataFrame(
        {
            "user": person.name,
            "model": spec,
            "rank": range(1, len(table) + 1),
            "item": table["item"],
            "title": [catalog.titles[item] for item in table["item"]],
            "score": table["score"],
            "why": reasons,
        }
    )
    st.download_button(
        "Download CSV",
        frame.map(inert).to_csv(index=False).encode("utf-8-sig"),  # as spreadsheets read it
        f"recommendations-{Path(catalog.data.name).stem}.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
    )


def inert(cell: Any) -> Any:
    """Return a cell that a spreadsheet takes as text and not as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell


def why_not(catalog: Catalog, table: pd.DataFrame) -> None:
    """Show the way to ask about an item that is not in the list."""

    def chosen() -> None:
        if (item := st.session_state["why not"]) is not None:
            open_explanation(item)
            st.session_state["why not"] = None

    st.selectbox(
        "Why not …?",
        [item for item in catalog.items if item not in set(table["item"])],
        index=None,
        format_func=catalog.labels.__getitem__,
        placeholder="Type a title",
        filter_mode="contains",
        key="why not",
        on_change=chosen,
    )
