"""Explain: one item taken apart for a person, recommended or why it is not; and rules of all users."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.catalogues import Catalogue
from app.charts import explain as charts
from app.parts import cards
from app.parts.discoveries import discoveries
from app.parts.lists import recommend
from app.parts.models import choose_model
from app.parts.people import Asked, choose_order, choose_person
from app.parts.taste import taste
from app.session import ask
from recsys.data.side_information import described
from recsys.errors import counted
from recsys.explain import (
    Reasons,
    WhatIf,
    because,
    blend_parts,
    into_list,
    item_rule,
    out_of_list,
    products,
    reasons,
    what_if,
)
from recsys.explain import text as wording

FIRST = 10  # the list that a person looks at
LISTED = 12  # counterfactual rows
COMPANIONS = 40  # items that are tried as further likes
ITEM, RULES = "One item", "Rules of all users"


def page() -> None:
    """Show the page."""
    st.header("Explain", anchor=False)
    shown = ask(
        st.segmented_control, "Show", name="explain.show", default=ITEM, options=[ITEM, RULES],
        required=True, label_visibility="collapsed",
    )  # fmt: skip
    if shown == RULES:
        discoveries(state.choose_data())
    else:
        one_item()


def one_item() -> None:
    """Show one item of a person's list taken apart."""
    cards.style()
    name = state.choose_dataset()
    spec = choose_model()
    catalogue = state.catalogue(name)
    asked = choose_person(catalogue)
    model = state.ranker(catalogue, spec)
    asked = choose_order(catalogue, asked, [model])
    ranked, scores = recommend(model, asked, len(catalogue.labels))
    if asked.row.nnz == 0:
        st.info("This profile is empty: type a title beside to begin.")
        st.stop()
    options = choices(catalogue, asked, ranked)
    chosen = ask(
        st.selectbox,
        "Item",
        name="item",
        default=options[0],
        options=options,
        format_func=catalogue.label,
        filter_mode="contains",
        help="The best come first; any item can be asked about, also one that is not recommended.",
    )
    item = catalogue.items[chosen]
    if text := wording.parts(model):
        st.text(text)
    if text := wording.left_out(model):
        with st.expander("Models that were left out"):
            st.text(text)
    explained(catalogue, model, asked, item, ranked, scores)
    taste(catalogue, asked, ranked, ranked[:FIRST], marked=False)


def choices(catalogue: Catalogue, asked: Asked, ranked: NDArray[np.int32]) -> list[str]:
    """Return every item's id: the best, the disliked, those rated lower, the liked."""
    order = [*ranked, *asked.dislikes, *asked.lower, *asked.row.indices]
    return [str(catalogue.data.item_ids[k]) for k in dict.fromkeys(map(int, order))]


def explained(
    catalogue: Catalogue,
    model: Any,
    asked: Asked,
    item: int,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Show what a score rests on, where it puts the item, and what would move it."""
    row, user, titles = asked.row, asked.user or 0, catalogue.titles
    folds = "fold-in" in model.capabilities
    without = item in row.indices and folds and row.nnz > 1
    if without:
        # What speaks for it besides itself.
        row = catalogue.profile([int(k) for k in row.indices if k != item]).row
    found = reasons(model, user, row, item, times=asked.times)
    away = [k for k in asked.dislikes if k != item]
    out = np.concatenate([asked.lower, asked.row.indices, away]).astype(np.int64)
    after = what_if(model, user, row, item, leave_out=out, times=asked.times)
    st.html(cards.title(str(titles[item]), cards.about(catalogue, item)))
    st.text(because(titles, found, word=catalogue.word, ratings=asked.given))
    st.text(standing(catalogue, asked, item, without, after, ranked, scores))
    listed = np.flatnonzero(ranked == item)
    if asked.dislikes and folds and len(listed) and listed[0] + 1 != after.place:
        st.text(
            f"In the list it has place {listed[0] + 1:,}, because what goes with titles you dislike is "
            f"lowered there; all below is about the score without that."
        )
    one, two, _ = st.columns([1, 1, 2])
    unit = "score: people who have it" if found.unit == "people" else "score"
    one.metric(unit, f"{found.score:,.0f}" if found.unit == "people" else f"{found.score:.4f}")
    two.metric("place", f"{after.place:,} of {after.of:,}")
    bars(catalogue, found)
    blended(model, user, row, item, out, asked)
    multiplied(catalogue, model, user, row, item)
    moved(catalogue, model, asked, user, row, item, out, after)
    rule = item_rule(catalogue.matrix, row.indices, item, exclude=asked.user)
    if rule is not None:
        st.subheader("What other people like", anchor=False)
        st.text(wording.people(titles, rule, word=catalogue.word))
        st.caption("Counted in the data; the model does not use this rule.")


def blended(
    model: Any, user: int, row: sp.csr_matrix, item: int, out: NDArray[np.int64], asked: Asked
) -> None:
    """Show what each part of a blend adds, and where it alone would put the item."""
    parts = blend_parts(model, user, row, item, out, times=asked.times)
    if not parts:
        return
    st.subheader("What each part adds", anchor=False)
    st.dataframe(
        {
            "part": [part.name for part in parts],
            "weight": np.round([part.weight for part in parts], 3),
            "adds to the score": np.round([part.adds for part in parts], 4),
            "its own place": [part.place for part in parts],
        },
        hide_index=True,
    )
    st.caption(
        "A part's scores are brought to mean 0 and deviation 1 before they are weighted; what the parts "
        "add sums to the score. The last column is where the part alone would put this item."
    )


def multiplied(catalogue: Catalogue, model: Any, user: int, row: sp.csr_matrix, item: int) -> None:
    """Show which features of the profile a machine multiplies with the item's."""
    given = [described(table) for table in (catalogue.data.item_features, catalogue.data.user_features)]
    known = [() if table is None else table.names for table in given]
    people = getattr(model, "user_features_", None) is not None
    things = getattr(model, "item_features_", None) is not None
    found = products(
        model, user, row, item, catalogue.titles, known[0] if things else (), known[1] if people else ()
    )
    if found is None or not found.listed:
        return
    st.subheader("Which features, and which two together", anchor=False)
    rows = [("the item's own", "base", found.base)]
    rows += [(" × ".join(one.names), "part", one.adds) for one in found.listed]
    if found.unlisted:
        rows.append((counted(found.unlisted, "other product"), "part", found.others))
    if found.higher:
        rows.append(("more than two together", "part", found.higher))
    rows.append(("score", "score", found.score))
    st.altair_chart(charts.waterfall(rows, "How the score adds up"), width="stretch")
    st.caption(
        "The machine multiplies features of the profile with those of the item. A title stands for "
        "having it; two names joined by × add what having both adds beyond each."
    )


def standing(
    catalogue: Catalogue,
    asked: Asked,
    item: int,
    without: bool,
    after: WhatIf,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> str:
    """Return whether the item would be recommended, and what it lacks if not.

    Parameters
    ----------
    without : bool
        Whether `after` is about the profile without the item.
    ranked, scores : arrays
        Everything that can be recommended, away from dislikes.
    """
    if item in asked.dislikes:
        return "You dislike it: it is not recommended."
    if item in asked.row.indices:
        given = f", {asked.given[item]}" if item in asked.given else ""
        told = f"You {catalogue.word} it already{given}, so it is not recommended."
        place = f" Without it in the profile it would have place {after.place:,} of {after.of:,}."
        return told + (place if without else "")
    if item in asked.lower:
        return f"You rated it {asked.given[item]}, below what counts as liked: it is not recommended."
    place_now = int(np.flatnonzero(ranked == item)[0]) + 1
    if place_now <= FIRST:
        return f"It is among the first {FIRST}."
    if asked.dislikes:  # scores of the list are lowered by what they go with
        return f"It is not among the first {FIRST}."
    last = float(scores[FIRST - 1])
    return (
        f"It is not among the first {FIRST}: the last of these has a score of {last:.4f}, "
        f"{last - after.score:.4f} more."
    )


def bars(catalogue: Catalogue, found: Reasons) -> None:
    """Draw how the score adds up, or which liked items are similar."""
    if not found.items:
        return
    names = [catalogue.labels[k] for k, _ in found.items]
    if found.kind != "exact":
        values = [v for _, v in found.items]
        chart = charts.bars(names, values, "Liked items most similar to it", "cosine similarity")
        st.altair_chart(chart, width="stretch")
        st.caption("Bars are similarities; this model has no exact shares.")
        return
    # What rounding leaves is no bar.
    rows = [("base", "base", found.base)] if abs(found.base) > 1e-6 * abs(found.score) else []
    rows += [(name, "part", value) for name, (_, value) in zip(names, found.items, strict=True)]
    if found.unlisted:
        rows.append((counted(found.unlisted, "other " + catalogue.word + " item"), "part", found.others))
    rows.append(("score", "score", found.score))
    st.altair_chart(charts.waterfall(rows, "How the score adds up"), width="stretch")
    st.caption(
        "Each bar is what an item adds to the score, in the score's own units, not a share of it. "
        "A base is what no item of the profile accounts for."
    )


def moved(
    catalogue: Catalogue,
    model: Any,
    asked: Asked,
    user: int,
    row: sp.csr_matrix,
    item: int,
    out: NDArray[np.int64],
    after: WhatIf,
) -> None:
    """Show without which items this one would stand elsewhere, and with which."""
    if not after.tried:
        return
    st.subheader("What would change it", anchor=False)
    for line in wording.changed(catalogue.titles, after, FIRST):
        st.text(line)
    if after.place <= FIRST:
        path = out_of_list(model, user, row, item, FIRST, leave_out=out, times=asked.times)
        if text := wording.falls(catalogue.titles, path, word=catalogue.word):
            st.text(text)
    if after.place > 1:
        goal = 1 if after.place <= FIRST else FIRST
        taken = set(out.tolist())
        offered = [k for k in companions(catalogue, item) if k not in taken]
        up = into_list(model, user, row, item, offered, goal, leave_out=out, times=asked.times)
        text = wording.rises(catalogue.titles, up, word=catalogue.word)
        tried = f"{counted(len(offered), 'title')} whose people are most like its own"
        st.text(text or f"No further like among the {tried} lifts it.")
    rows = after.moved[:LISTED]
    if not rows:
        return
    st.dataframe(
        {
            "without": [str(catalogue.titles[c.without]) for c in rows],
            "place now": [after.place] * len(rows),
            "place then": [c.rank for c in rows],
            "score now": np.round([after.score] * len(rows), 4),
            "score then": np.round([c.score for c in rows], 4),
        },
        hide_index=True,
    )
    same = len(after.tried) - len(after.moved)
    if same:
        st.caption(f"Without {counted(same, 'other')} alone its place stays.")


def companions(catalogue: Catalogue, item: int) -> list[int]:
    """Return the items whose people are most alike to an item's: what may lift it if liked."""
    users = catalogue.matrix[:, [item]].tocsc().indices
    shared = np.asarray(catalogue.matrix[users].sum(axis=0)).ravel()
    near = shared / np.sqrt(np.maximum(catalogue.popularity, 1.0))
    near[item] = 0.0
    order = np.argsort(-near, kind="stable")[:COMPANIONS]
    return [int(k) for k in order if near[k] > 0]
