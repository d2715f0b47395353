"""The models and metrics that pages offer, as the registries declare them."""

from __future__ import annotations

import streamlit as st

from app.parts.kept import keep, restore
from recsys.evaluation.metrics import METRICS
from recsys.rankers.registry import offered_models

# Until a person chooses: it is fitted in a moment, where `auto` takes its time.
DEFAULT = "cf-komd:kernel=mc,degree=2"
CUTOFF = 10  # of the metrics that take one


def models() -> list[str]:
    """Return the specifications that are offered: the default one, `auto`, and the others by name."""
    first = (DEFAULT, "auto")
    return sorted(offered_models(), key=lambda spec: first.index(spec) if spec in first else len(first))


def metrics() -> list[str]:
    """Return the metrics as reports name them."""
    return [f"{name}@{CUTOFF}" if METRICS.get(name).cutoff else name for name in METRICS.names()]


def choose_model() -> str:
    """Show the model's selector and return its specification."""
    offered = models()
    restore("model", offered)
    spec = st.selectbox(
        "Model",
        offered,
        key="model",
        filter_mode="contains",
        help="`auto` tries several on hidden halves of the profiles and blends what helps.",
    )
    keep("model", spec)
    return spec
