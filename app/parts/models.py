"""Models by the names that every page uses, and metrics."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.choices import ask
from app.parts.text import escaped
from recsys import InputError
from recsys.evaluation.metrics import METRICS
from recsys.rankers.registry import RANKERS, offered_models
from recsys.registry import parse_spec

DEFAULT = "ease"  # nothing is compiled for its first list
BALANCED = "cf-komd:kernel=mc,degree=2"
MOST_ITEMS = 20_000  # of the dense matrix of EASE
# Models with a name of their own: (name, what it is for).
PURPOSES = {
    DEFAULT: ("EASE", "A linear model of the items, with exact reasons."),
    BALANCED: ("Balanced", "A Boolean kernel machine for each user, with exact reasons."),
    "auto": ("Most accurate", "Fits several models and blends those that help. Takes longest."),
    "cosine": ("Fastest", "Items liked by the same users, fitted in a moment."),
    "slist": ("What comes next", "Items that follow the latest likes."),
    "content": ("By item features", "Items with the same genres and other features."),
    "popularity": ("Popular", "The same items for everybody."),
}
# Metrics in words, for those who do not know them.
MEANINGS = {
    "auc": "how often a hidden item ranks above an item that the user does not have; 0.5 is chance",
    "ndcg": "0 to 1, higher when more hidden items are near the top of the list",
    "map": "0 to 1, higher when more hidden items are near the top of the list",
    "precision": "share of the list that is hidden items",
    "recall": "share of the hidden items that are in the list",
    "hit": "share of users with a hidden item in their list",
    "mrr": "mean of 1/rank of the first hidden item: 1 for the first position, 1/2 for the second",
}


def models() -> list[str]:
    """Return the specifications of the models that are offered, those with a purpose first."""
    offered = offered_models()
    first = [spec for spec in PURPOSES if spec in offered]
    return [*first, *(spec for spec in offered if spec not in first)]


def named(spec: str) -> str:
    """Return the name of a model, the same on every page."""
    return PURPOSES[spec][0] if spec in PURPOSES else spec


def summary(spec: str) -> str:
    """Return what a model is, in one sentence."""
    if spec in PURPOSES:
        return PURPOSES[spec][1]
    doc = RANKERS.get(parse_spec(spec)[0]).__doc__ or ""
    return (
        doc.strip().split("\n\n")[0].split(". ")[0].replace("`", "").replace("\n", " ").rstrip(".") + "."
    )


def metrics() -> list[str]:
    """Return the metrics as reports name them."""
    return [f"{name}@10" if METRICS.get(name).cutoff else name for name in METRICS.names()]


def meaning(metric: str) -> str:
    """Return what a metric measures, in a line."""
    name = metric.partition("@")[0]
    return f"{metric}: {MEANINGS.get(name, METRICS.get(name).definition)}."


def choose_model(items: int) -> str:
    """Show the choice of a model beside the page for so many items, and return its specification."""
    options = models()
    typed: Any = st.session_state.get("model") or st.query_params.get("model")
    if typed and typed not in options and typed not in map(named, options):
        options.append(typed)
    with st.sidebar:
        spec: str = ask(
            st.selectbox,
            "Model",
            options,
            key="model",
            format_func=named,
            filter_mode="contains",
            accept_new_options=True,
            help="A name, or a name with parameters: ease:regularization=200",
        )
        try:
            st.caption(escaped(summary(spec)), help=f"`{spec}`")
        except InputError as error:
            st.error(escaped(error))
            st.stop()
    if spec == DEFAULT and items > MOST_ITEMS:
        st.warning(f"EASE needs a dense matrix of all items: too large for {items:,} items.")
        st.button("Use Balanced", on_click=st.session_state.__setitem__, args=("model", BALANCED))
        st.stop()
    return spec
