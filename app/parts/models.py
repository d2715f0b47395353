"""The models and metrics that pages offer, as the registries declare them."""

from __future__ import annotations

import streamlit as st

from recsys.evaluation.metrics import METRICS
from recsys.rankers.registry import offered_models

DEFAULT = "auto"  # chosen until a person chooses
CUTOFF = 10  # of the metrics that take one


def models() -> list[str]:
    """Return the specifications that are offered, the default one first."""
    return sorted(offered_models(), key=lambda spec: spec != DEFAULT)


def metrics() -> list[str]:
    """Return the metrics as reports name them."""
    return [f"{name}@{CUTOFF}" if METRICS.get(name).cutoff else name for name in METRICS.names()]


def choose_model(label: str = "Model", index: int = 0, key: str | None = None) -> str:
    """Show a model's selector and return its specification."""
    return st.selectbox(label, models(), index=index, key=key)
