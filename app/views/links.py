"""Links: predictors of links between users and items by their features, and why a link is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.catalog import Catalog
from app.choices import ask
from app.jobs import result
from app.parts.text import count, escaped
from recsys import InputError
from recsys.datasets import graph_of
from recsys.links import compare_links, fit_on_all_links, link_reasons, strongest_links

PAGE = "links"
MODELS = {
    "Bilinear model": "bilinear:n_components=10,max_iter=20",
    "Factorization machine": "fm:n_components=10,max_iter=20",
    "Pairwise kernel": "pair-svm",
    "PairNet": "pairnet:n_components=5,max_iter=20",
}
USERS, ITEMS = 150, 200  # of the draw
LISTED = 10


def page() -> None:
    """Show the page."""
    st.header("Links", anchor=False)
    st.text(
        "Predictors learn from a part of the links and from the features of both ends. They are "
        "evaluated on the other links."
    )
    catalog = state.choose_catalog(PAGE)
    key: tuple[Any, ...] = ("links", catalog.key)
    graph = result(PAGE, ("graph", *key), lambda: drawn(catalog), "Reading features")
    names = ask(
        st.multiselect,
        "Predictors",
        list(MODELS),
        key="predictors",
        default=list(MODELS)[:2],
        select_all=False,
    )
    cold = ask(
        st.checkbox,
        "Measure on new users and items only",
        key="cold",
        value=False,
        help="None of their links is known, only their features.",
    )
    if not names:
        st.info("Choose at least one predictor.")
        return
    st.caption(f"{count(len(graph.links), 'link')}; 30% are held out.")
    specs = [MODELS[name] for name in names]
    try:
        found = result(
            PAGE, (*key, *specs, cold), lambda: compare_links(graph, specs, cold=cold), "Comparing"
        )
    except InputError as error:
        st.warning(escaped(error))
        return
    label = {spec: name for name, spec in MODELS.items()}
    rows = [
        {
            "name": label[one.model],
            "mean": one.metrics.auc,
            "low": one.metrics.auc - 1.96 * one.auc_error,
            "high": one.metrics.auc + 1.96 * one.auc_error,
        }
        for one in found
    ]
    frame = pd.DataFrame(rows).sort_values("mean", ascending=False)
    best = frame.iloc[0]
    st.markdown(
        f"**{best['name']} gives a held-out link a higher score than a pair without a link in "
        f"{best['mean']:.0%} of the cases; chance is 50%.**"
    )
    chart = charts.intervals(frame, "AUC of each predictor", "AUC, 95% interval")
    st.altair_chart(chart, width="stretch")
    strongest(graph, key, MODELS[str(best["name"])])


def drawn(catalog: Catalog) -> Any:
    """Return the graph of some users and the most popular items."""
    return graph_of(catalog.draw(USERS, ITEMS)).weighted()


def strongest(graph: Any, key: tuple[Any, ...], spec: str) -> None:
    """Show the strongest links of one object that are not known, and what makes one of them."""
    st.subheader("Predicted links", anchor=False)
    ids = [str(one) for one in graph.left.ids]
    labels = {one: str(text) for one, text in zip(ids, graph.left.labels, strict=True)}
    chosen = ask(
        st.selectbox,
        graph.left.noun.capitalize(),
        ids,
        key="object",
        format_func=lambda one: f"{labels[one]} [{one}]" if labels[one] != one else one,
        filter_mode="contains",
    )
    index = ids.index(chosen)
    model = result(PAGE, ("fit", *key, spec), lambda: fit_on_all_links(graph, spec), "Fitting")
    objects, scores = strongest_links(model, graph, index, LISTED)
    if len(objects) == 0:
        st.info("It is linked to every other object.")
        return
    names = [str(graph.right.labels[k]) for k in objects]
    left, right = st.columns([2, 3], gap="large")
    table = {graph.right.noun: names, "score": np.round(scores, 3)}
    left.dataframe(pd.DataFrame(table), hide_index=True, width="stretch")
    with right:
        to = st.selectbox("Explain the link to", range(len(names)), format_func=names.__getitem__)
        ends = (index, int(objects[to]))
        why = link_reasons(model, graph.A, graph.B, *ends, LISTED)
        left_names, right_names = graph.left.features, graph.right.features
        if why.kind == "exact":
            rows = [("base", float(why.base))]
            rows += [
                (name, float(v)) for name, v in ((labels[chosen], why.left), (names[to], why.right)) if v
            ]
            rows += [(f"{left_names[p]} × {right_names[q]}", float(v)) for p, q, v in why.pairs]
            if why.unlisted:
                rows.append((count(why.unlisted, "other pair"), float(why.others)))
            chart = charts.bars(
                rows, "How the score adds up", "adds to the score", total=float(why.score)
            )
        else:
            features = (left_names, right_names)
            rows = [(features[end][feature], float(value)) for end, feature, value in why.changes]
            chart = charts.bars(rows, "Fall of the score without each feature", "fall of the score")
        st.altair_chart(chart, width="stretch")
