"""Rules of all users: what they like and what a model puts first, false ones controlled."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app import state
from app.parts import examples
from app.parts.models import choose_model
from app.session import ask, between, session
from recsys.errors import counted
from recsys.explain import Discoveries, discover_rules
from recsys.utils.export import csv_text

USUAL, MOST = 100, 2000  # users
LEVELS = (0.01, 0.05, 0.1, 0.2)
CONTROLS = {
    "any": "however the tests depend on each other",
    "positive": "if tests are independent or help each other: finds more",
}
LISTS, LIKES = "what the model puts first, and what users like", "what users like"
WORDED = 5  # rules that are told in words
TEXT = "Searching rules"


def page() -> None:
    """Show the page."""
    st.header("Rules", anchor=False)
    examples.question("rules")
    catalogue = state.choose_data()
    st.caption(
        "The more rules are searched for, the more look good by "
        "luck. Here a rule is learned from one half of what a user likes and tested on the other, and "
        "no more than a given share of the rules found is expected to be false."
    )
    if len(catalogue.attributes) == 0:
        st.info("Nothing is known of these items that rules could be made of: genres, a year.")
        return
    users = len(catalogue.data.user_ids)
    most = min(MOST, users)
    one, two = st.columns(2)
    with one:
        number = ask(
            st.number_input, "Users, drawn at random", 1, most, name="discover.users",
            default=min(USUAL, most), valid=between(1, most), help=f"Of {counted(users, 'user')}.",
        )  # fmt: skip
        level = ask(
            st.selectbox, "Share of false rules, at most", name="discover.level", default=0.05,
            options=LEVELS, format_func=lambda share: f"{share:.0%} of the rules found, on average",
        )  # fmt: skip
    with two:
        of = ask(
            st.selectbox, "Rules of", name="discover.of", default=LISTS, options=(LISTS, LIKES),
        )  # fmt: skip
        control = ask(
            st.selectbox, "The share holds", name="discover.control", default="any",
            options=tuple(CONTROLS), format_func=CONTROLS.__getitem__,
            help="The first is Benjamini and Yekutieli's control (2001), the second Benjamini and "
            "Hochberg's (1995).",
        )  # fmt: skip
    spec = choose_model() if of == LISTS else ""
    top = 0
    if spec:
        most_top = max(len(catalogue.labels) // 2, 1)
        top = int(
            ask(
                st.number_input, "First items of its list", 1, most_top, name="discover.top",
                default=min(50, most_top), valid=between(1, most_top),
            )
        )  # fmt: skip
    here = session()
    key = ("discoveries", catalogue.key, int(number), spec, top)
    asked = state.digest(key)

    def search() -> None:
        here.set("discover.asked", asked)
        here.cancelled.discard(key)

    st.button("Search for rules", type="primary", on_click=search)
    if here.get("discover.asked", "") != asked:
        examples.empty("rules")
        return
    if key in here.cancelled:
        st.info("Cancelled. Press the button to begin again.")
        return
    model = state.ranker(catalogue, spec) if spec else None

    def work(progress: Any) -> Discoveries:
        return discover_rules(catalogue.data, most=int(number), ranker=model, top=max(top, 1))

    job = state.run(key, work, TEXT)
    if state.settled(job, key, TEXT):
        show(job.result.at(float(level), control))


def show(found: Discoveries) -> None:
    """Show what was searched, the surest rules in words, and all that were found as a table."""
    result, *method = found.sentences()
    st.text(result)
    if not found.shown:
        _method(method)
        return
    st.subheader("The surest", anchor=False)
    for one in found.shown[:WORDED]:
        st.text(found.sentence(one))
    st.subheader("All that were found", anchor=False)
    names, lines = found.table()
    table = pd.DataFrame(lines, columns=list(names))
    shown = pd.DataFrame(
        {
            "user": table["user_id"],
            "rule": table["rule"],
            "set aside": table["tested"],
            "follow it": table["hits"],
            "others": table["others"],
            "others that do": table["others_hits"],
            "q": table["q_value"],
        }
    )
    if found.ranker is not None:
        shown.insert(1, "of", table["of"].map({"likes": "likes", "ranker": found.ranker}))
    st.dataframe(
        shown, hide_index=True, width="stretch",
        column_config={
            "rule": st.column_config.TextColumn(width="medium"),
            "q": st.column_config.NumberColumn(
                format="%.2g", help="The smallest share at which the rule is among those found."
            ),
        },
    )  # fmt: skip
    st.caption(
        "Set aside are items of the user that the rule was not learned from. Others are items that "
        "the user does not like; of a model's rules, those of the tested half that are not among its "
        "first."
    )
    _method(method)
    st.download_button(
        "Download the rules", csv_text(list(names), lines), mime="text/csv",
        file_name=f"rules-{found.name}.csv",
    )  # fmt: skip


def _method(sentences: list[str]) -> None:
    """Show how rules were learned and tested."""
    with st.expander("How they were learned and tested"):
        for sentence in sentences:
            st.text(sentence)
