"""Kernels: expressiveness and AUC over the degree, and rules on a table of categories."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.catalogues import Catalogue
from app.parts.upload import clean, limited, spooled
from recsys import InputError, make_ranker
from recsys.datasets.categorical import generated_tables, load_table, read_categorical
from recsys.errors import counted
from recsys.evaluation import evaluate
from recsys.explain import measure_rule
from recsys.kernels import item_gram, make_kernel, spectral_ratio

FIRST = "tic-tac-toe"  # the table that the page opens with
MOST_ITEMS = 6000
MOST_ROWS = 5000


def page() -> None:
    """Show the page."""
    st.header("Kernels")
    degrees, rules = st.tabs(["Degrees", "Rules"])
    with rules:
        table_rules()
    with degrees:
        over_degrees()


def over_degrees() -> None:
    """Show spectral ratio and AUC of mC and mD over the degree."""
    catalogue = state.choose_data()
    if len(catalogue.labels) > MOST_ITEMS:
        st.warning(
            f"{len(catalogue.labels):,} items: choose a dataset with at most {MOST_ITEMS:,} here."
        )
        return
    top = st.slider("Highest degree", 2, 20, 6)
    key = ("degrees", catalogue.key, top)
    if not st.session_state.get("degrees asked") == key:
        st.caption("Fits one CF-KOMD a kernel and degree on one fold; on larger data it takes a while.")
        if not st.button("Compute", type="primary"):
            return
        st.session_state["degrees asked"] = key
    job = state.run(key, lambda progress: _degrees(catalogue, top, progress), "Computing")
    if not state.settled(job, key, "Computing"):
        return
    frame = job.result
    left, right = st.columns(2)
    left.altair_chart(charts.lines(frame, "degree", "spectral ratio", "kernel"), width="stretch")
    right.altair_chart(charts.lines(frame, "degree", "AUC", "kernel"), width="stretch")
    st.caption("A larger spectral ratio is a more expressive kernel: items look less alike.")


def _degrees(catalogue: Catalogue, top: int, progress: Any) -> pd.DataFrame:
    rows = []
    for step, (name, degree) in enumerate((name, d) for name in ("mc", "md") for d in range(1, top + 1)):
        progress(f"{name} of degree {degree}", step, 2 * top)
        kernel = make_kernel(name, degree=degree)
        ratio = spectral_ratio(item_gram(catalogue.matrix, kernel), standardized=True)
        model = make_ranker("cf-komd", kernel=name, degree=degree)
        report = evaluate(catalogue.data, {name: model}, metrics=("auc",), only_folds=1)
        rows.append(
            {
                "kernel": name,
                "degree": degree,
                "spectral ratio": ratio,
                "AUC": report.results[0].metrics["auc"].mean,
            }
        )
    return pd.DataFrame(rows)


def table_rules() -> None:
    """Show the rule that a machine follows on a table of categories."""
    file = st.file_uploader(
        "ARFF or CSV of categories (optional)", type=["arff", "csv", "tsv"], key="categorical"
    )
    tables = sorted(generated_tables(), key=lambda name: (name != FIRST, name))
    name = st.selectbox("Table", ["the upload", *tables] if file else tables)
    target = positive = ""
    if file and name == "the upload":
        target = st.text_input("Column of the class", placeholder="the last one")
        positive = st.text_input("Class to describe", placeholder="the more frequent of two")
    one, two = st.columns(2)
    clauses = one.slider("Most clauses", 1, 20, 10)
    literals = two.slider("Most literals a clause", 1, 8, 5)
    try:
        if file and name == "the upload":
            with spooled(
                limited(file), file.name if not file.name.endswith(".arff") else "x.csv"
            ) as path:
                if file.name.endswith(".arff"):
                    path = path.rename(path.with_suffix(".arff"))
                table = read_categorical(path, target or None, positive or None)
        else:
            table = load_table(name)
        if len(table.y) > MOST_ROWS:
            raise InputError(
                f"{len(table.y):,} rows; at most {MOST_ROWS:,} here, use `recsys rules` for more"
            )
        if np.bincount(table.y, minlength=2).min() < 8:
            raise InputError("each class needs at least 8 rows")
    except InputError as error:
        st.error(clean(str(error), file.name if file else name))
        return
    digest = hashlib.sha256(table.X.tobytes() + table.y.tobytes()).hexdigest()
    key = ("rules", digest, table.names, clauses, literals)
    options = {"max_clauses": clauses, "max_literals": literals, "names": table.names}
    work = state.run(key, lambda progress: measure_rule(table.X, table.y, **options), "Learning")
    if not state.settled(work, key, "Learning"):
        return
    found = work.result
    rule = found.rule
    st.text(f"{table.target} if")
    st.dataframe({"one of": str(rule).split(" ∨ ")}, hide_index=True, width="stretch")
    for column, (label, value) in zip(
        st.columns(4),
        (
            ("accuracy", f"{found.accuracy:.3f}"),
            ("fidelity", f"{found.fidelity:.3f}"),
            ("clauses", len(rule.clauses)),
            ("literals", rule.literals),
        ),
        strict=True,
    ):
        column.metric(label, value)
    st.caption(
        f"Learned on {counted(found.rows, 'row')}, measured on {found.held_out:,} others, of which the "
        f"larger class has {found.majority:.3f}."
    )
    for note in table.notes:
        st.caption(f"{note}.")
