"""Explain: one item taken apart for a user, recommended or why it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.catalogues import Catalogue
from app.charts import explain as charts
from app.navigation import leave_for, open_page
from app.parts import cards
from app.parts.chosen_user import ChosenUser, choose_order, choose_user
from app.parts.lists import recommend
from app.parts.models import choose_model
from app.parts.profile_rule import profile_rule
from app.parts.words import escaped
from app.session import ask, session
from recsys.errors import counted
from recsys.explain import (
    Reasons,
    WhatIf,
    blend_parts,
    counterfactuals,
    into_list,
    out_of_list,
    what_if,
)
from recsys.explain import text as wording
from recsys.rankers import ModelPackage
from recsys.recommender import Why
from recsys.recommender.answers import rule_sentences
from recsys.recommender.explained import explained_row, model_rule_of

FIRST = 10  # the list that is shown
LISTED = 12  # counterfactual rows
RULE = "The model's rules for it, over what other users like and over its attributes"
COMPANIONS = 40  # items that are tried as further likes
RULES = "Rules of all users"  # that were here, and have a page of their own


def page() -> None:
    """Show the page."""
    st.header("Explain", anchor=False)
    if session().get("explain.show") == RULES:
        session().forget("explain.show")
        open_page("rules")
    cards.style()
    name = state.choose_dataset()
    spec = choose_model()
    catalogue = state.catalogue(name)
    chosen_user = choose_user(catalogue)
    model = state.ranker(catalogue, spec)
    chosen_user = choose_order(catalogue, chosen_user, [model])
    st.button(
        "Back to the list", icon=":material/arrow_back:", type="tertiary", on_click=leave_for,
        args=("recommend",),
    )  # fmt: skip
    ranked, scores = recommend(model, chosen_user, len(catalogue.labels))
    if chosen_user.row.nnz == 0:
        st.info("This profile is empty: type a title beside to begin.")
        st.stop()
    options = choices(catalogue, chosen_user, ranked)
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
    if text := "\n".join(filter(None, [wording.parts(model), wording.left_out(model)])):
        with st.expander(f"What {escaped(model.name)} is made of"):
            st.text(text)
    explained(catalogue, model, chosen_user, item, ranked, scores)
    profile_rule(catalogue, chosen_user, ranked, ranked[:FIRST], marked=False)


def choices(catalogue: Catalogue, chosen_user: ChosenUser, ranked: NDArray[np.int32]) -> list[str]:
    """Return every item's id: the best, the disliked, those rated lower, the liked."""
    order = [*ranked, *chosen_user.dislikes, *chosen_user.lower, *chosen_user.row.indices]
    return [str(catalogue.data.item_ids[k]) for k in dict.fromkeys(map(int, order))]


def explained(
    catalogue: Catalogue,
    model: Any,
    chosen_user: ChosenUser,
    item: int,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Show what a score rests on, where it puts the item, and what would move it."""
    row, user, titles = chosen_user.row, chosen_user.user or 0, catalogue.titles
    folds = "fold-in" in model.capabilities
    without = item in row.indices and folds and row.nnz > 1
    if without:
        # What speaks for it besides itself.
        row = counterfactuals.without(row, [[item]])
    why = explained_row(
        package_of(catalogue, model), user, row, item, fold_in=chosen_user.profile.fold_in or without,
        times=chosen_user.times, exclude=chosen_user.user,
        word=catalogue.word, ratings=chosen_user.given,
    )  # fmt: skip
    found = why.reasons
    away = [k for k in chosen_user.dislikes if k != item]
    out = np.concatenate([chosen_user.lower, chosen_user.row.indices, away]).astype(np.int64)
    new = folds and (chosen_user.profile.fold_in or without)
    after = what_if(model, user, row, item, leave_out=out, recalculate_user=new, times=chosen_user.times)
    st.html(cards.title(str(titles[item]), cards.about(catalogue, item)))
    told = standing(catalogue, chosen_user, item, without, after, ranked, scores)
    said = [why.sentence, told if item in chosen_user.row.indices else f"{rank(found, after)} {told}"]
    for line in said if item in ranked[:FIRST] else reversed(said):  # the answer to "why not" first
        st.text(line)
    listed = np.flatnonzero(ranked == item)
    if chosen_user.dislikes and folds and len(listed) and listed[0] + 1 != after.rank:
        st.text(
            f"In the list it has rank {listed[0] + 1:,}, because what goes with titles you dislike is "
            f"lowered there; all else here is about the score without that."
        )
    for note in why.notes:
        st.caption(f"{note[0].upper()}{note[1:]}.")
    bars(catalogue, found)
    moved(catalogue, model, chosen_user, user, row, item, out, after, new)
    if ask(st.toggle, RULE, name="explain.rule", default=False):
        package = package_of(catalogue, model)
        rule, notes = model_rule_of(
            package, user, row, item, FIRST, fold_in=chosen_user.profile.fold_in or without,
            times=chosen_user.times, exclude=chosen_user.user, word=catalogue.word,
            leave_out=np.setdiff1d(out, [item]),
            attributes=catalogue.attributes,
        )  # fmt: skip
        for line in [*rule_sentences(rule), *(f"{note[0].upper()}{note[1:]}." for note in notes)]:
            st.text(line)
    if why.rule is not None:
        st.subheader("What other users like", anchor=False)
        st.text(why.rule_text)
        st.caption(
            f"Counted in the data of all other users. {wording.tested(why.rule, 'users')} The model "
            "does not use this rule."
        )
    if "similar-items" in model.capabilities:
        near, _ = model.similar_items(item, N=7)
        st.caption("Similar to it")
        st.html(cards.chips([str(titles[k]) for k in near if k != item][:6]))
    blended(model, user, row, item, out, chosen_user)
    multiplied(why)


def rank(found: Reasons, after: WhatIf) -> str:
    """Return an item's rank by its score alone, and that score."""
    of_users = found.unit == "users"
    score = counted(round(found.score), "user") if of_users else f"{found.score:.4f}"
    told = f"because {score} have it" if of_users else f"with a score of {score}"
    return f"Rank {after.rank:,} of {after.of:,}, {told}."


def blended(
    model: Any, user: int, row: sp.csr_matrix, item: int, out: NDArray[np.int64], chosen_user: ChosenUser
) -> None:
    """Show what each part of a blend adds, and where it alone would put the item."""
    parts = blend_parts(model, user, row, item, out, times=chosen_user.times)
    if not parts:
        return
    with st.expander("What each part of the blend adds"):
        st.dataframe(
            {
                "part": [part.name for part in parts],
                "weight": np.round([part.weight for part in parts], 3),
                "adds to the score": np.round([part.adds for part in parts], 4),
                "its own rank": [part.rank for part in parts],
            },
            hide_index=True,
        )
        st.caption(
            "A part's scores are brought to mean 0 and deviation 1 before they are weighted; what the "
            "parts add sums to the score. The last column is where the part alone would put this item."
        )


def package_of(catalogue: Catalogue, model: Any) -> ModelPackage:
    """Return a ranker with the ids and titles of a dataset, as explanations take them."""
    data = catalogue.data
    return ModelPackage(
        model, data.user_ids, data.item_ids, catalogue.titles, catalogue.matrix, catalogue.times,
        data.item_features, data.user_features, data.columns,
    )  # fmt: skip


def multiplied(why: Why) -> None:
    """Show which features of the profile a machine multiplies with the item's."""
    if why.products is None or not why.products.listed:
        return
    (own, base), *rest = why.multiplied
    rows = [(own, "base", base), *((name, "part", value) for name, value in rest)]
    rows.append(("score", "score", why.products.score))
    with st.expander("Which features, and which two together"):
        st.altair_chart(charts.waterfall(rows, "How the score adds up"), width="stretch")
        st.caption(
            "The machine multiplies features of the profile with those of the item. A title stands for "
            "having it; two names joined by × add what having both adds beyond each."
        )


def standing(
    catalogue: Catalogue,
    chosen_user: ChosenUser,
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
    if item in chosen_user.dislikes:
        return "You dislike it: it is not recommended."
    if item in chosen_user.row.indices:
        given = f", {chosen_user.given[item]}" if item in chosen_user.given else ""
        told = f"You {catalogue.word} it already{given}, so it is not recommended."
        alone = f" Without it in the profile it would have rank {after.rank:,} of {after.of:,}."
        return told + (alone if without else "")
    if item in chosen_user.lower:
        return (
            f"You rated it {chosen_user.given[item]}, below what counts as liked: it is not recommended."
        )
    place_now = int(np.flatnonzero(ranked == item)[0]) + 1
    if place_now <= FIRST:
        return f"It is among the first {FIRST}."
    if chosen_user.dislikes:  # scores of the list are lowered by what they go with
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
    base = " The base is what no item of the profile accounts for." if rows[0][1] == "base" else ""
    st.caption(
        f"Each bar is what an item adds to the score, and begins where the one before ends.{base}"
    )


def moved(
    catalogue: Catalogue,
    model: Any,
    chosen_user: ChosenUser,
    user: int,
    row: sp.csr_matrix,
    item: int,
    out: NDArray[np.int64],
    after: WhatIf,
    new: bool,
) -> None:
    """Show without which items this one would stand elsewhere, and with which."""
    if not after.tried:
        return
    st.subheader("What would move it", anchor=False)
    _, first, *rest = wording.changed(catalogue.titles, after, FIRST)  # its rank now is said above
    st.text(first)
    if after.rank <= FIRST:
        path = out_of_list(
            model, user, row, item, FIRST, leave_out=out, recalculate_user=new, times=chosen_user.times
        )
        if text := wording.falls(catalogue.titles, path, word=catalogue.word):
            st.text(text)
    if after.rank > 1:
        goal = 1 if after.rank <= FIRST else FIRST
        taken = set(out.tolist())
        offered = [k for k in companions(catalogue, item) if k not in taken]
        up = into_list(
            model, user, row, item, offered, goal, leave_out=out, recalculate_user=new,
            times=chosen_user.times,
        )  # fmt: skip
        text = wording.rises(catalogue.titles, up, word=catalogue.word)
        tried = f"{counted(len(offered), 'title')} whose users are most like its own"
        st.text(text or f"No further like among the {tried} lifts it.")
    rows = after.moved[:LISTED]
    if not rows and not rest:
        return
    with st.expander("Without each liked item alone"):
        if rows:
            st.dataframe(
                {
                    "without": [str(catalogue.titles[c.without]) for c in rows],
                    "rank": [c.rank for c in rows],
                    "score": np.round([c.score for c in rows], 4),
                },
                hide_index=True,
            )
        for line in rest:
            st.text(line)
        same = len(after.tried) - len(after.moved)
        if same:
            st.caption(f"Without {counted(same, 'other')} alone its rank stays.")


def companions(catalogue: Catalogue, item: int) -> list[int]:
    """Return the items whose users are most like an item's: what may lift it if liked."""
    users = catalogue.matrix[:, [item]].tocsc().indices
    shared = np.asarray(catalogue.matrix[users].sum(axis=0)).ravel()
    near = shared / np.sqrt(np.maximum(catalogue.popularity, 1.0))
    near[item] = 0.0
    order = np.argsort(-near, kind="stable")[:COMPANIONS]
    return [int(k) for k in order if near[k] > 0]
