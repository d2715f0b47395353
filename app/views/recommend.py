"""Recommend: a user or a profile of titles, the best items, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.ahead import compile_ahead
from app.catalogues import Catalogue
from app.navigation import leave_for
from app.parts import cards
from app.parts.chosen_user import ChosenUser, called, choose_order, choose_user, dislike, like
from app.parts.lists import recommend
from app.parts.models import DEFAULT, choose_model, models, named
from app.parts.profile_rule import MARK, profile_rule
from app.parts.words import escaped
from app.session import ask, between, session
from recsys.errors import counted
from recsys.explain import because, reasons_for_items
from recsys.explain import text as wording
from recsys.rankers.answers import Recommendations
from recsys.reranking import diversify, favour_rare, list_diversity, overlap
from recsys.utils.export import csv_text

NOTHING = "nothing"
ANY, ALL = "any of these genres", "all of them"
AUTO = "auto"
WHY_NOT = "why not"  # the box that asks about an item which is not listed


@dataclass(frozen=True)
class Listed:
    """One model's list as a page shows it.

    Attributes
    ----------
    ranked : Recommendations
        Everything that could be listed, best first.
    ids, scores : (n,) arrays
        What is listed, and the model's scores.
    plain : (n,) int
        What would be listed by score alone.
    why : list of str
        One sentence an item.
    supported : list of bool
        Whether something of the profile speaks for an item, or its popularity does.
    number : int
        How many items were asked for.
    """

    spec: str
    model: Any
    ranked: Recommendations
    ids: NDArray[np.int32]
    scores: NDArray[np.float32]
    plain: NDArray[np.int32]
    why: list[str]
    supported: list[bool]
    number: int


def page() -> None:
    """Show the page."""
    st.header("Recommend", anchor=False)
    cards.style()
    name = state.choose_dataset()
    spec = choose_model()
    with st.sidebar:
        second = ask(
            st.selectbox, "Compare with", name="with", default=NOTHING, options=[NOTHING, *models()],
            filter_mode="contains", format_func=named,
        )  # fmt: skip
    better = st.sidebar.container()
    catalogue = state.catalogue(name)
    chosen_user = choose_user(catalogue)
    order = st.sidebar.container()
    with st.sidebar:
        N = ask(st.slider, "How many", 3, 30, name="n", default=10, valid=between(3, 30))
        with st.expander("Filters and variety"):
            allowed = filters(catalogue)
            variety, novelty = variety_and_novelty()
    with better:
        offer_auto(catalogue, spec)
    until = partial(popular, catalogue, chosen_user, N, allowed)
    model = state.ranker(catalogue, spec, until)
    other = None if second in (NOTHING, spec) else state.ranker(catalogue, second, until)
    with order:
        chosen_user = choose_order(catalogue, chosen_user, [model] if other is None else [model, other])
    made = [
        listed(catalogue, m, s, chosen_user, N, allowed, variety, novelty)
        for m, s in ((model, spec), (other, second))
        if m is not None
    ]
    if chosen_user.row.nnz == 0:
        st.info("This profile is empty: the list shows what many users like. Type a title to begin.")
    if any(one is None for one in made):
        st.warning("Nothing is left to recommend: the profile holds every item that passes.")
        return
    lists = [one for one in made if one is not None]
    if len(lists) == 1:
        show_list(catalogue, lists[0], chosen_user)
    else:
        side_by_side(catalogue, lists, chosen_user)
    why_not(catalogue)
    compile_ahead(state.jobs(), DEFAULT)


# ---- what is listed


def filters(catalogue: Catalogue) -> NDArray[np.int64] | None:
    """Show the filters there are data for, and return the items that pass, or None for all."""
    keep = np.ones(len(catalogue.labels), dtype=bool)
    names = catalogue.attributes.names
    place = {name: k for k, name in enumerate(names) if cards.plain(name)}
    if place:
        chosen = ask(
            st.multiselect, "Genre", name="genres", default=[], options=list(place),
            filter_mode="contains", select_all=False, wrap=True,
        )  # fmt: skip
        if chosen:
            has = catalogue.attributes.X[:, [place[one] for one in chosen]] > 0
            both = False
            if len(chosen) > 1:
                both = ALL == ask(st.radio, "An item has", name="every", default=ANY, options=[ANY, ALL])
            keep &= has.all(axis=1) if both else has.any(axis=1)
    known = catalogue.years[np.isfinite(catalogue.years)]
    if len(known) and known.min() < known.max():
        low, high = int(known.min()), int(known.max())
        first, last = ask(
            st.slider, "Year", low, high, name="years", default=(low, high), valid=between(low, high)
        )
        if (first, last) != (low, high):
            keep &= (catalogue.years >= first) & (catalogue.years <= last)
    if keep.all():
        return None
    if not keep.any():
        st.warning("No item passes these filters.")
        st.stop()
    return np.flatnonzero(keep)


def variety_and_novelty() -> tuple[float, float]:
    """Show how far the list may leave the order of the scores."""
    within = between(0.0, 1.0)
    variety = ask(
        st.slider, "Variety", 0.0, 1.0, step=0.1, name="variety", default=0.0, valid=within,
        help="Above 0, items that the same users have come apart. 0 keeps the order of the scores.",
    )  # fmt: skip
    novelty = ask(
        st.slider, "Novelty", 0.0, 1.0, step=0.1, name="novelty", default=0.0, valid=within,
        help="Of the best hundred, what fewer users have comes first. 0 keeps the order of the scores.",
    )  # fmt: skip
    return variety, novelty


def listed(
    catalogue: Catalogue,
    model: Any,
    spec: str,
    chosen_user: ChosenUser,
    N: int,
    allowed: NDArray[np.int64] | None,
    variety: float,
    novelty: float,
) -> Listed | None:
    """Return a model's list with its reasons; None where nothing is left to list."""
    ranked = recommend(model, chosen_user, len(catalogue.labels), allowed)
    if len(ranked.ids) == 0:
        return None
    scores = np.zeros(len(catalogue.labels), dtype=np.float32)
    scores[ranked.ids] = ranked.scores
    moved = favour_rare(ranked, catalogue.popularity, novelty)
    ids = diversify(moved, N, variety, catalogue.matrix).ids
    why: list[str] = []
    supported: list[bool] = []
    built = chosen_user.user is None and "fold-in" in model.capabilities
    found = reasons_for_items(
        model,
        chosen_user.user or 0,
        chosen_user.row,
        ids,
        recalculate_user=built,
        times=chosen_user.times,
    )
    for one in found:
        sentence = because(catalogue.titles, one, word=catalogue.word, ratings=chosen_user.given)
        why.append(sentence)
        supported.append(one.kind == "popularity" or any(value > 0 for _, value in one.items))
    return Listed(spec, model, ranked, ids, scores[ids], ranked.ids[:N], why, supported, N)


# ---- what is shown


def popular(
    catalogue: Catalogue, chosen_user: ChosenUser, N: int, allowed: NDArray[np.int64] | None
) -> None:
    """Show, until a model is fitted, what most users have and this one has not."""
    out = np.concatenate([chosen_user.row.indices, chosen_user.lower, chosen_user.dislikes]).astype(
        np.int64
    )
    items = np.setdiff1d(np.arange(len(catalogue.labels)) if allowed is None else allowed, out)
    items = items[catalogue.popularity[items] > 0]
    items = items[np.argsort(-catalogue.popularity[items], kind="stable")][:N]
    if len(items) == 0:
        return
    st.subheader("Popular items, not the model's list", anchor=False)
    st.caption("The same for every user, but for what the profile holds. The model's list replaces it.")
    users = counted(catalogue.matrix.shape[0], "user")
    st.html(
        cards.lines(
            (
                str(catalogue.titles[item]), cards.about(catalogue, int(item)),
                f"{catalogue.word} by {catalogue.popularity[item]:,.0f} of {users}",
            )
            for item in items
        )
    )  # fmt: skip


def show_list(catalogue: Catalogue, found: Listed, chosen_user: ChosenUser) -> None:
    """Show one list as cards, with what can be done with each."""
    st.text(heading(catalogue, chosen_user))
    st.caption(f"Model: {escaped(', '.join(dict.fromkeys([named(found.spec), found.spec])))}")
    if text := wording.parts(found.model):
        with st.expander(f"What {found.model.name} is made of"):
            st.text(text)
    if chosen_user.added and "fold-in" not in found.model.capabilities:
        st.info(
            "This model takes no new likes without being fitted again: what you liked is left out only."
        )
    follows = profile_rule(catalogue, chosen_user, found.ranked.ids, found.ids)
    grid = st.grid("auto", min_column_width=330)
    shares = cards.shares(found.scores, found.ranked.scores)
    for place, item in enumerate(found.ids):
        key = str(catalogue.data.item_ids[item])
        with grid.cell().container(border=True, height="stretch"):
            st.html(
                cards.card(
                    place + 1, str(catalogue.titles[item]), cards.about(catalogue, int(item)),
                    shares[place] if found.supported[place] else None, float(found.scores[place]),
                    found.why[place],
                    MARK if follows[place] else "",
                )
            )  # fmt: skip
            buttons(key)
    if len(found.ids) < found.number:
        st.caption(f"No more than {counted(len(found.ids), 'item')} can be recommended here.")
    st.caption(besides(catalogue, found))
    if moved := effects(catalogue, found):
        st.caption(moved)
    download(catalogue, [found], chosen_user)


def heading(catalogue: Catalogue, chosen_user: ChosenUser) -> str:
    """Return for whom a list is."""
    likes = counted(chosen_user.row.nnz, f"{catalogue.word} item")
    away = (
        f", away from {counted(len(chosen_user.dislikes), 'title')} disliked"
        if chosen_user.dislikes
        else ""
    )
    return f"For {called(catalogue, chosen_user)} ({likes}{away})."


def buttons(item_id: str) -> None:
    """Show what can be done with a card."""
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Like", key=f"like {item_id}", on_click=like, args=(item_id,), icon=":material/thumb_up:",
            type="tertiary",
        )  # fmt: skip
        st.button(
            "Dislike", key=f"dislike {item_id}", on_click=dislike, args=(item_id,),
            icon=":material/thumb_down:", type="tertiary",
        )  # fmt: skip
        st.button(
            "Explain", key=f"explain {item_id}", on_click=explain, args=(item_id,),
            icon=":material/help:", type="tertiary",
        )  # fmt: skip


def explain(item_id: str) -> None:
    """Open Explain for an item, everything else as it is chosen here."""
    session().set("item", item_id)
    leave_for("explain")


def why_not(catalogue: Catalogue) -> None:
    """Show the way to ask about an item that is not listed."""
    st.selectbox(
        "Why not …?", catalogue.item_ids, index=None, format_func=catalogue.label,
        placeholder="Any title: what it lacks, and what would bring it here", filter_mode="contains",
        key=WHY_NOT, on_change=explain_chosen,
    )  # fmt: skip


def explain_chosen() -> None:
    """Open Explain for the item that was asked about."""
    if (chosen := st.session_state[WHY_NOT]) is not None:
        explain(str(chosen))


def besides(catalogue: Catalogue, found: Listed) -> str:
    """Return what a list is like beside accurate."""
    varied, owners, tail = spread(catalogue, found.ids)
    return (
        f"Diversity {varied}: 1 means that no user had two of these items, 0 that the same users had "
        f"all. On average {owners:,.0f} users have an item of this list; {tail:,} of the "
        f"{len(found.ids):,} are in the long tail, outside the most popular items that hold 80% of all "
        f"likes."
    )


def effects(catalogue: Catalogue, found: Listed) -> str:
    """Return what variety and novelty changed in a list; '' where nothing."""
    if np.array_equal(found.ids, found.plain):
        return ""
    others = len(set(found.plain.tolist()) - set(found.ids.tolist()))
    varied, owners, tail = spread(catalogue, found.plain)
    return (
        f"By score alone the list would have {counted(others, 'other item')}, diversity {varied}, "
        f"{owners:,.0f} users an item on average and {tail:,} of the tail."
    )


def spread(catalogue: Catalogue, ids: NDArray[np.int32]) -> tuple[str, float, int]:
    """Return a list's diversity, the mean number of users an item, and items of the long tail."""
    varied = f"{list_diversity(overlap(catalogue.matrix, ids)):.2f}" if len(ids) > 1 else "–"
    return varied, float(catalogue.popularity[ids].mean()), int(catalogue.tail[ids].sum())


# ---- two models


def side_by_side(catalogue: Catalogue, lists: list[Listed], chosen_user: ChosenUser) -> None:
    """Show two lists, with what each has and where the other has it."""
    st.text(agreement(lists[0], lists[1]))
    for column, found, other in zip(st.columns(2), lists, lists[::-1], strict=True):
        with column:
            st.subheader(escaped(short(found.spec)), anchor=False, help=escaped(found.spec))
            shares = cards.shares(found.scores, found.ranked.scores)
            for place, item in enumerate(found.ids):
                with st.container(border=True):
                    st.html(
                        cards.card(
                            place + 1, str(catalogue.titles[item]), cards.about(catalogue, int(item)),
                            shares[place] if found.supported[place] else None,
                            float(found.scores[place]),
                    found.why[place],
                            elsewhere(int(item), place, other),
                        )
                    )  # fmt: skip
            st.caption(besides(catalogue, found))
    download(catalogue, lists, chosen_user)


def agreement(one: Listed, two: Listed) -> str:
    """Return how many items two lists share."""
    both = len(set(one.ids.tolist()) & set(two.ids.tolist()))
    most = min(len(one.ids), len(two.ids))
    return f"{both:,} of the {counted(most, 'item')} {'is' if both == 1 else 'are'} in both lists."


def short(spec: str) -> str:
    """Return what a list is called: its model's purpose, or the model's name without parameters."""
    return named(spec).split(":")[0]


def elsewhere(item: int, place: int, other: Listed) -> str:
    """Return where the other list has an item: 'same rank', '▲ 3 against ease', 'only here'."""
    where = np.flatnonzero(other.ids == item)
    if len(where) == 0:
        return "only here"
    by = int(where[0]) - place
    if by == 0:
        return "same rank"
    return f"{'▲' if by > 0 else '▼'} {abs(by)} against {short(other.spec)}"


# ---- auto, files


def offer_auto(catalogue: Catalogue, spec: str) -> None:
    """Offer the search for the best blend beside the first model; it swaps in when it is ready."""
    if spec != DEFAULT:
        return
    here = session()
    key, fit = state.fitting(catalogue, AUTO)
    wanted = here.get("auto asked", "") == state.digest(key)
    if not wanted:
        if st.button(
            "Search for a better model", type="tertiary", icon=":material/manage_search:",
            help="auto tries several models on hidden halves of the profiles and blends what helps. "
            "This list stays until it is ready.",
        ):  # fmt: skip
            here.set("auto asked", state.digest(key))
            st.rerun()
        return
    if key in here.cancelled:
        here.forget("auto asked")
        return
    job = state.run(key, fit, "Searching for a better model")
    if job.running:
        st.caption(
            "A better model is being searched for: see the progress beside. This list is of the first."
        )
        return
    here.forget("auto asked")
    if job.error is not None:
        state.jobs().forget(key)
        st.warning(escaped(job.error))
        return
    here.set("model", AUTO)
    st.toast("auto is ready: the list is now its own.")
    st.rerun()


def download(catalogue: Catalogue, lists: list[Listed], chosen_user: ChosenUser) -> None:
    """Offer the lists as a file that says whose they are."""
    who = called(catalogue, chosen_user)
    columns = ("dataset", "user", "model", "rank", "item_id", "title", "score", "why")
    rows = [
        (
            catalogue.data.name, who, found.spec, place + 1, str(catalogue.data.item_ids[item]),
            str(catalogue.titles[item]), float(found.scores[place]), found.why[place],
        )
        for found in lists
        for place, item in enumerate(found.ids)
    ]  # fmt: skip
    name = "-".join([catalogue.data.name, who, *(found.spec for found in lists)])
    safe = re.sub(r"[^\w.=]+", "-", name).strip("-")[:120]
    st.download_button(
        "Download CSV", csv_text(columns, rows), f"recommendations-{safe}.csv", "text/csv",
        icon=":material/download:",
    )  # fmt: skip
