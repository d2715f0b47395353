"""Explain: one recommendation taken apart."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import charts, state
from app.views.recommend import choose_profile, taste
from recsys.explain import because, changes, item_rule, listing, reasons


def page() -> None:
    """Show the page."""
    st.header("Explain")
    left, right = st.columns([1, 2], gap="large")
    with left:
        catalogue = state.choose_data()
        spec = state.choose_model(key="model")
        asked = choose_profile(catalogue)
    model = state.ranker(catalogue, spec)
    if asked.row.nnz == 0:
        right.info("This profile is empty: search a title to begin.")
        st.stop()
    best, _ = state.recommend(model, asked.user, asked.row, 20)
    wanted = st.session_state.get("explained")
    first = [wanted[1]] if wanted and wanted[0] == catalogue.key else []
    if first and first[0] < len(catalogue.labels):
        options = [*first, *(int(k) for k in best if int(k) != first[0])]
    else:
        options = [int(k) for k in best]
    if not options:
        right.warning("Nothing is left to recommend for this profile.")
        st.stop()
    with left:
        item = st.selectbox("Item", options, format_func=lambda k: catalogue.labels[k])
    with right:
        found = reasons(model, asked.user or 0, asked.row, item)
        st.text(str(catalogue.titles[item]))
        st.text(because(catalogue.titles, found))
        st.metric("score", f"{found.score:.4f}")
        if found.items:
            names = [catalogue.labels[k] for k, _ in found.items]
            st.altair_chart(charts.contributions(names, [v for _, v in found.items]), width="stretch")
            rest = f"The other liked items and the model's constant add {found.bias:+.4f}."
            st.caption(
                rest
                if found.kind == "exact"
                else "Bars are similarities; this model has no exact shares."
            )
        rule = item_rule(catalogue.matrix, asked.row.indices, item, exclude=asked.user)
        if rule is not None:
            names = listing([str(catalogue.titles[k]) for k in rule.items])
            st.text(f"People who liked {names} like this.")
            st.caption(
                f"{rule.support} people measured, {rule.precision:.0%} of them like it, "
                f"of everybody {rule.base:.0%}"
            )
        what_if = changes(model, asked.user or 0, asked.row, item)
        if what_if:
            st.subheader("What would change it")
            st.dataframe(
                {
                    "without": [str(catalogue.titles[c.without]) for c in what_if],
                    "score": np.round([c.score for c in what_if], 4),
                    "place": [c.rank for c in what_if],
                },
                hide_index=True,
            )
        taste(catalogue, asked)
