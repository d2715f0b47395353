"""Explain: one item taken apart for a person: recommended, or why it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app import charts, state
from app.catalogues import Catalogue
from app.parts import cards
from app.parts.models import choose_model
from app.parts.people import Asked, choose_order, choose_person
from app.parts.taste import taste
from app.session import ask
from recsys.errors import counted
from recsys.explain import Reasons, WhatIf, because, item_rule, reasons, what_if
from recsys.explain import text as wording

FIRST = 10  # the list that a person looks at
LISTED = 12  # counterfactual rows


def page() -> None:
    """Show the page."""
    st.header("Explain", anchor=False)
    cards.style()
    name = state.choose_dataset()
    spec = choose_model()
    catalogue = state.catalogue(name)
    asked = choose_person(catalogue)
    model = state.ranker(catalogue, spec)
    asked = choose_order(catalogue, asked, [model])
    if asked.row.nnz == 0:
        st.info("This profile is empty: type a title beside to begin.")
        st.stop()
    ranked, scores = state.recommend(
        model,
        asked.user,
        asked.row,
        len(catalogue.labels),
        None,
        asked.lower,
        asked.dislikes,
        asked.times,
    )
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
    explained(catalogue, model, asked, item, ranked, scores)
    taste(catalogue, asked, None, ranked, ranked[:FIRST], marked=False)


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
    has = item in row.indices
    if has and "fold-in" in model.capabilities and row.nnz > 1:
        # What speaks for it besides itself.
        row = catalogue.profile([int(k) for k in row.indices if k != item]).row
    found = reasons(model, user, row, item, times=asked.times)
    out = np.append(asked.lower, asked.row.indices)
    after = what_if(model, user, row, item, leave_out=out, times=asked.times)
    st.html(cards.title(str(titles[item]), cards.about(catalogue, item)))
    st.text(because(titles, found, word=catalogue.word, ratings=asked.given))
    st.text(standing(catalogue, asked, item, has, after, scores))
    one, two = st.columns(2)
    unit = "score: people who have it" if found.unit == "people" else "score"
    one.metric(unit, f"{found.score:,.0f}" if found.unit == "people" else f"{found.score:.4f}")
    two.metric("place", f"{after.place:,} of {after.of:,}")
    bars(catalogue, found)
    moved(catalogue, after)
    rule = item_rule(catalogue.matrix, row.indices, item, exclude=asked.user)
    if rule is not None:
        st.subheader("What other people like")
        st.text(wording.people(titles, rule, word=catalogue.word))
        st.caption("Counted in the data; the model does not use this rule.")


def standing(
    catalogue: Catalogue,
    asked: Asked,
    item: int,
    has: bool,
    after: WhatIf,
    scores: NDArray[np.float32],
) -> str:
    """Return whether the item would be recommended, and what it lacks if not."""
    if has:
        given = f", {asked.given[item]}" if item in asked.given else ""
        return (
            f"You {catalogue.word} it already{given}, so it is not recommended. "
            f"Without it in the profile it would have place {after.place:,} of {after.of:,}."
        )
    if item in asked.lower:
        return f"You rated it {asked.given[item]}, below what counts as liked: it is not recommended."
    if after.place <= FIRST or len(scores) < FIRST:
        return f"It is among the first {FIRST}."
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
        st.altair_chart(charts.similarities(names, values), width="stretch")
        st.caption("Bars are similarities; this model has no exact shares.")
        return
    # What rounding leaves is no bar.
    rows = [("base", "base", found.base)] if abs(found.base) > 1e-6 * abs(found.score) else []
    rows += [(name, "part", value) for name, (_, value) in zip(names, found.items, strict=True)]
    if found.unlisted:
        rows.append((counted(found.unlisted, "other " + catalogue.word + " item"), "part", found.others))
    rows.append(("score", "score", found.score))
    st.altair_chart(charts.waterfall(rows), width="stretch")
    st.caption(
        "Each bar is what an item adds to the score, in the score's own units, not a share of it. "
        "A base is what no item of the profile accounts for."
    )


def moved(catalogue: Catalogue, after: WhatIf) -> None:
    """Show the items without which this one would stand elsewhere."""
    if not after.tried:
        return
    st.subheader("Without one of them")
    for line in wording.changed(catalogue.titles, after, FIRST):
        st.text(line)
    rows = after.moved[:LISTED]
    if not rows:
        st.text("None of them alone changes its place.")
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
        st.caption(f"{same:,} others alone do not change its place.")
