"""The models and metrics that pages offer, and the choice among models."""

from __future__ import annotations

import streamlit as st

MODELS = (
    "auto", "cf-komd:kernel=md,degree=2", "cf-komd:kernel=mc,degree=2", "ease", "msdw", "slim", "als",
    "bpr", "ecf-omd", "fm", "hofm", "bilinear", "pairnet", "cf-gram", "blend", "popularity",
)  # fmt: skip
METRICS = (
    "auc",
    "ndcg@10",
    "map@10",
    "recall@10",
    "precision@10",
    "hit@10",
    "mrr@10",
    "coverage@10",
    "novelty@10",
)


def choose_model(label: str = "Model", index: int = 0, key: str | None = None) -> str:
    """Show a model's selector and return its specification."""
    return st.selectbox(label, MODELS, index=index, key=key)
