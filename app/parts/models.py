"""The models and metrics that pages offer, as the registries declare them."""

from __future__ import annotations

import streamlit as st

from app.parts.words import escaped
from app.session import ask, session
from recsys.errors import InputError
from recsys.evaluation.metrics import METRICS
from recsys.rankers.registry import RANKERS, offered_models
from recsys.utils.spec import parse_spec

# Until the visitor chooses: it is fitted in a moment, where `auto` takes its time.
DEFAULT = "cf-komd:kernel=mc,degree=2"
# What a model is chosen for, and what that means, before the others by name.
PURPOSES = {
    DEFAULT: ("Balanced", "Good lists with exact reasons, fitted in seconds."),
    "auto": (
        "Most accurate",
        "Tries several models on hidden halves of the profiles and blends what helps. It takes longest.",
    ),
    "cosine": ("Fastest", "Neighbours of what was liked, fitted in a moment."),
    "slist": ("What comes next", "What follows the latest likes."),
    "content": ("With item features", "Items with the genres and other features of what was liked."),
}
CUTOFF = 10  # of the metrics that take one


def models() -> list[str]:
    """Return the specifications that are offered: those with a purpose, and the others by name."""
    offered = offered_models()
    first = [spec for spec in PURPOSES if spec in offered]
    return [*first, *(spec for spec in offered if spec not in first)]


def named(spec: str) -> str:
    """Return how a model is called in the app: its purpose, or the specification."""
    return PURPOSES[spec][0] if spec in PURPOSES else spec


def metrics() -> list[str]:
    """Return the metrics as reports name them."""
    return [f"{name}@{CUTOFF}" if METRICS.get(name).cutoff else name for name in METRICS.names()]


def summary(spec: str) -> str:
    """Return what a model is, in the first sentence of what it says of itself."""
    name, _ = parse_spec(spec)
    text = " ".join((RANKERS.get(name).__doc__ or "").strip().split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".").replace("`", "") + "."


def choose_model() -> str:
    """Show the model's selector beside the page and return its specification."""
    with st.sidebar:
        offered = models()
        spec: str = ask(
            st.selectbox,
            "Model",
            name="model",
            default=DEFAULT,
            options=offered_with(offered, "model"),
            filter_mode="contains",
            accept_new_options=True,
            format_func=named,
            help="By purpose, or any model by its name, with parameters if you like: "
            "`ease:regularization=200`.",
        )
    try:
        text = summary(spec)
    except InputError as error:
        said = escaped(error)
        st.error(f"{said}{'' if said.endswith('?') else '.'} Choose another model beside.")
        st.stop()
    told = f"{PURPOSES[spec][1]} {escaped(spec)}" if spec in PURPOSES else text
    st.sidebar.caption(told)
    return spec


def offered_with(offered: list[str], name: str) -> list[str]:
    """Return the offered specifications and the one that was typed, if there is one."""
    typed = session().get(name, DEFAULT)
    return offered if typed in offered or not typed else [*offered, typed]
