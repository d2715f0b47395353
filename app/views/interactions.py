"""Interactions: which products of features matter, by a factorization machine."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.model_selection import train_test_split

from app import state
from app.parts.upload import clean, kept_files, say_kept, spooled, uploader
from app.session import ask, between, session
from app.uploads import UploadedFile
from recsys import InputError
from recsys.data.readers import read_table
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    interactions,
    liked_pairs,
    table_rows,
)
from recsys.fm.tables import Rows
from recsys.utils.export import csv_text

DATASET, TABLE = "dataset", "table"
PENALTIES = {
    "ti": "sparse: leaves out products (TI)",
    "cs": "sparse: leaves out features (CS)",
    "l2": "ℓ2: shrinks all, leaves nothing out",
}
SOLVERS = {"ti": "cd", "cs": "block", "l2": "cd"}
MOST_ROWS = 20_000
MOST_CLASSES = 20  # of a target; more are numbers
EPOCHS = 30


def page() -> None:
    """Show the page."""
    st.header("Interactions", anchor=False)
    st.caption("A factorization machine gives every product of two features a weight.")
    rows, key = _rows()
    left, right = st.columns(2)
    with left:
        penalty = ask(
            st.selectbox,
            "Penalty",
            name="interactions.penalty",
            default="ti",
            options=list(PENALTIES),
            format_func=PENALTIES.get,
        )
    with right:
        exponent = ask(
            st.slider,
            "Strength of the penalty (power of ten)",
            -7,
            0,
            name="interactions.strength",
            default=-4,
            valid=between(-7, 0),
        )
    settings = (penalty, 10.0**exponent)
    job_key = ("interactions", state.digest(*key, *settings))
    if job_key in session().cancelled:
        if st.button("Fit", type="primary"):
            session().cancelled.discard(job_key)
            st.rerun()
        return
    job = state.run(job_key, lambda progress: fit(rows(), *settings), "Fitting")
    if state.settled(job, job_key, "Fitting"):
        _show(*job.result)


def fit(rows: Rows, penalty: str, strength: float) -> tuple[pd.DataFrame, str, float, float]:
    """Return the strongest products, the metric, and its values on held-out rows with and without."""
    classes = pd.Series(rows.y).nunique()
    numbers = rows.y.dtype.kind in "fiu" and classes > 2
    y = rows.y if numbers else (rows.y == pd.Series(rows.y).value_counts().index[-1]).astype(int)
    train, test, of_train, of_test = train_test_split(
        rows.X, y, test_size=0.2, random_state=0, stratify=None if numbers else y
    )
    model: Any = (FactorizationMachineRegressor if numbers else FactorizationMachineClassifier)(
        n_components=8,
        penalty=penalty,
        solver=SOLVERS[penalty],
        beta=strength if penalty == "l2" else 1e-5,
        gamma=strength,
        max_iter=EPOCHS,
        tol=0,
        random_state=0,
    )
    linear: Any = Ridge() if numbers else LogisticRegression()
    value, alone = (_value(one.fit(train, of_train), test, of_test, numbers) for one in (model, linear))
    best = interactions(model, 20, rows.names, X=train, min_rows=5)
    frame = pd.DataFrame([(" × ".join(names), weight) for names, weight in best])
    frame = frame.set_axis(["interaction", "weight"], axis=1) if len(frame) else frame
    return frame, "RMSE" if numbers else "AUC", value, alone


def _value(model: Any, X: Any, y: Any, numbers: bool) -> float:
    if numbers:
        return float(root_mean_squared_error(y, model.predict(X)))
    return float(roc_auc_score(y, model.decision_function(X)))


def _rows() -> tuple[Any, tuple[Any, ...]]:
    """Return what makes the rows, and what identifies them."""
    uploader(
        "A table of your own (optional): one row an example, one column to predict",
        "interactions.table",
        forgets=("interactions.source",),
    )
    kept = kept_files("interactions.table")
    if kept:
        say_kept(kept, "interactions.table", "interactions.source")
        return _table(kept[0])
    name = state.choose_dataset()
    data = state.catalogue(name).data
    bare = data.user_features is None and data.item_features is None
    st.text(f"What users of {data.name} like, against as many pairs that they did not.")
    return lambda: liked_pairs(data, ids=bare, rows=MOST_ROWS), (state.catalogue(name).key,)


def _table(file: UploadedFile) -> tuple[Any, tuple[Any, ...]]:
    token, name, content = file
    frame = state.result(("table", token), lambda progress: _read(name, content), f"Reading {name}")
    st.dataframe(frame.head(5), hide_index=True, width="stretch")
    columns = list(frame.columns)
    target = ask(
        st.selectbox,
        "Column to predict",
        name="interactions.target",
        default=columns[-1],
        options=columns,
    )
    return lambda: table_rows(frame, target, rows=MOST_ROWS), (token, target)


def _read(name: str, content: bytes) -> pd.DataFrame:
    try:
        with spooled(content, name) as path:
            read = read_table(path, what="rows")
    except InputError as error:
        raise InputError(clean(str(error), name)) from None
    frame = pd.DataFrame(dict(enumerate(read.columns))).set_axis(read.names, axis=1)
    return frame.apply(_numbers)


def _numbers(cells: pd.Series) -> pd.Series:
    parsed = pd.to_numeric(cells, errors="coerce")
    return parsed if parsed.notna().sum() == (cells.notna() & (cells != "")).sum() else cells


def _show(frame: pd.DataFrame, metric: str, value: float, alone: float) -> None:
    one, two = st.columns(2)
    one.metric(f"{metric} on a fifth of the rows", f"{value:.4g}")
    two.metric(f"{metric} without interactions", f"{alone:.4g}")
    if frame.empty:
        st.info("No product of features has a weight: choose a weaker penalty.")
        return
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("interaction:N", sort=None, title=None, axis=alt.Axis(labelLimit=240)),
            x=alt.X("weight:Q", title="Weight"),
        )
    )
    st.altair_chart(bars.properties(title="Products of two features"), width="stretch")
    st.download_button(
        "Download CSV",
        csv_text(list(frame.columns), list(frame.itertuples(index=False, name=None))),
        mime="text/csv",
        file_name="interactions.csv",
    )
