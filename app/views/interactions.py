"""Interactions: which two features together raise or lower a target."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pandas as pd
import scipy.sparse as sp
import streamlit as st

from app import charts, state, uploads
from app.choices import ask
from app.jobs import result
from app.parts.text import count, escaped
from recsys import InputError, Interactions
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    interactions,
    liked_pairs,
    table_rows,
)
from recsys.utils.progress import report

PAGE = "interactions"
MOST_ROWS = 4_000  # of the draw
RANGES = 5  # of a column of numbers
LEAST_ROWS = 10  # in which both features of a shown pair occur
STRENGTHS = {"few": 3e-3, "some": 1e-3, "many": 3e-4}
MOST_PAIRS, SHOWN = 500, 20


@dataclass(frozen=True)
class Examples:
    """Rows of 0/1 features with a target: two classes (0 and 1), or numbers."""

    X: sp.csr_matrix
    y: Any
    names: tuple[str, ...]
    classes: bool
    target: str


@dataclass(frozen=True)
class Result:
    """Pairs of features with their weights, and the metric with and without them."""

    pairs: pd.DataFrame
    metric: str
    value: float
    without: float
    rows: int
    target: str


def page() -> None:
    """Show the page."""
    st.header("Interactions", anchor=False)
    st.text(
        "Which two features matter together? A sparse factorization machine selects a few pairs of "
        "features and gives each of them a weight."
    )
    file = st.file_uploader(
        "A table with a column to predict (optional; else the likes of the chosen dataset)",
        type=["csv", "tsv", "xlsx", "parquet"],
    )
    try:
        if file is None:
            catalog = state.choose_catalog(PAGE)
            source: Any = catalog.key
            make: Any = lambda: of_likes(catalog.data)  # noqa: E731
        else:
            content = uploads.content_of(file)
            frame = table(content, file.name)
            target = st.selectbox("Column to predict", list(frame.columns), index=frame.shape[1] - 1)
            source = (hashlib.sha256(content).hexdigest(), target)
            make = lambda: of_table(frame, target)  # noqa: E731
    except InputError as error:
        st.error(escaped(error))
        return
    amount = ask(
        st.segmented_control, "Pairs", list(STRENGTHS), key="pairs", default="some", required=True
    )
    key = ("interactions", source, amount)
    found = result(PAGE, key, lambda: fit(make(), STRENGTHS[amount]), "Fitting")
    show(found)


# ---- examples


def table(content: bytes, name: str) -> pd.DataFrame:
    """Return an uploaded table, of more rows some."""
    frame = uploads.frame(content, name)
    if frame.shape[1] < 2 or len(frame) < 40:
        raise InputError(f"{name}: at least two columns and 40 rows are needed")
    return frame.sample(min(MOST_ROWS, len(frame)), random_state=0)


def of_likes(data: Interactions) -> Examples:
    """Return liked pairs and others with the features of both ends."""
    try:
        return Examples(*liked_pairs(data, rows=MOST_ROWS), True, "a like")
    except InputError:
        raise InputError(
            "These data have no features of users or items. Add a table of the items on the page Data, "
            "or upload a table with a column to predict here."
        ) from None


def of_table(frame: pd.DataFrame, target: str) -> Examples:
    """Return the rows of a table; a target with two values, or with text, is a class."""
    X, y, names = table_rows(frame, target, buckets=RANGES)
    values = pd.Series(y).value_counts()
    if pd.api.types.is_numeric_dtype(y) and len(values) > 2:
        return Examples(X, y.astype(float), names, False, target)
    rarest = values.index[-1]
    return Examples(X, (y == rarest).astype(float), names, True, f"{target}={rarest}")


# ---- the fit


def fit(examples: Examples, gamma: float) -> Result:
    """Return the pairs of a sparse machine, measured on a held-out third of the rows."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import r2_score, roc_auc_score
    from sklearn.model_selection import train_test_split

    kept = examples.y if examples.classes else None
    X, held, y, truth = train_test_split(
        examples.X, examples.y, test_size=1 / 3, random_state=0, stratify=kept
    )
    kind = FactorizationMachineClassifier if examples.classes else FactorizationMachineRegressor
    if not examples.classes:
        mean, scale = y.mean(), y.std() or 1.0
        y, truth = (y - mean) / scale, (truth - mean) / scale
    report("with pairs", 0, 2)
    model = kind(penalty="ti", gamma=gamma, n_components=8, max_iter=60, tol=0).fit(X, y)
    report("without pairs", 1, 2)
    linear = LogisticRegression(max_iter=500).fit(X, y) if examples.classes else Ridge().fit(X, y)
    if examples.classes:
        metric = "AUC"
        value = roc_auc_score(truth, model.decision_function(held))
        without = roc_auc_score(truth, linear.decision_function(held))
    else:
        metric = "R²"
        value, without = r2_score(truth, model.predict(held)), r2_score(truth, linear.predict(held))
    listed = interactions(model, MOST_PAIRS, examples.names, X=examples.X, min_rows=LEAST_ROWS)
    pairs = pd.DataFrame(
        [(*names, weight) for names, weight in listed], columns=["one", "other", "weight"]
    )
    rows, target = examples.X.shape[0], examples.target
    return Result(pairs, metric, float(value), float(without), rows, target)


def show(found: Result) -> None:
    """Show what the pairs add, and the largest ones."""
    gain = f"{found.value - found.without:+.3f}"
    with st.container(horizontal=True, gap="large"):
        st.metric(f"{found.metric} with pairs", f"{found.value:.3f}", gain, width="content")
        st.metric(f"{found.metric} without", f"{found.without:.3f}", width="content")
        st.metric("Pairs with a weight", f"{len(found.pairs):,}", width="content")
    if len(found.pairs) == 0:
        st.info("No pair has a weight: choose more pairs.")
        return
    if found.value < found.without:
        st.info("These pairs do not improve the prediction of the held-out rows: choose fewer.")
    top = found.pairs.head(SHOWN)
    rows = [(f"{r.one} × {r.other}", r.weight) for r in top.itertuples()]
    title = f"Pairs that raise (blue) or lower (orange) {found.target}"
    st.altair_chart(charts.bars(rows, title, "weight"), width="stretch")
    grid = pd.concat([top, top.rename(columns={"one": "other", "other": "one"})])
    grid = grid.rename(columns={"one": "row", "other": "column", "weight": "value"})
    with st.expander("As a grid"):
        st.altair_chart(charts.tiles(grid, "Weights of pairs", "weight"), width="stretch")
    with st.expander("All pairs"):
        st.dataframe(found.pairs, hide_index=True, width="stretch")
    st.download_button(
        "Download CSV",
        found.pairs.to_csv(index=False),
        "interactions.csv",
        "text/csv",
        on_click="ignore",
    )
    st.caption(f"{count(found.rows, 'example')}; a third is held out and measured.")
