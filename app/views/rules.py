"""Rules: what a user's likes have in common, and the rule behind a table with two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state, uploads
from app.catalog import Catalog
from app.choices import ask
from app.jobs import result
from app.parts.text import count, escaped
from recsys import InputError
from recsys.datasets.categorical import load_table
from recsys.explain import measure_rule, taste_rule
from recsys.explain import text as wording
from recsys.utils.progress import report

PAGE = "rules"
LIKES, TABLE = "Likes of users", "A table"
LEAST = 8  # likes of a user
EMBEDDED = ("tic-tac-toe", "monks-1", "monks-2", "monks-3")
MOST_ROWS, MOST_VALUES = 2_000, 200  # of a table and of one column


def page() -> None:
    """Show the page."""
    st.header("Rules", anchor=False)
    shown = ask(
        st.segmented_control, "Rules of", [LIKES, TABLE], key="rules", default=LIKES, required=True
    )
    if shown == LIKES:
        of_users(state.choose_catalog(PAGE))
    else:
        of_table()


# ---- users


def of_users(catalog: Catalog) -> None:
    """Show the rules of users drawn at random, the surest first."""
    if len(catalog.attributes) == 0:
        st.info("Rules are made of genres, years and other features of items; this dataset has none.")
        return
    st.text("Each rule is learned from a part of a user's likes and tested on the rest.")
    number = ask(st.slider, "Users, drawn at random", 10, 200, 20, 10, key="rule users")
    key = ("rules", catalog.key, number)
    frame = result(PAGE, key, lambda: rules(catalog, int(number)), "Searching")
    if len(frame) == 0:
        st.info("No rule passed its test. Draw more users.")
        return
    st.dataframe(
        frame.round(2),
        hide_index=True,
        width="stretch",
        column_config={
            "likes that follow": st.column_config.ProgressColumn(format="percent", max_value=1.0),
            "all items that follow": st.column_config.ProgressColumn(format="percent", max_value=1.0),
            "tested": st.column_config.TextColumn(help="Held-out likes that follow the rule."),
        },
    )
    st.download_button(
        "Download CSV", frame.to_csv(index=False), "rules.csv", "text/csv", on_click="ignore"
    )


def rules(catalog: Catalog, number: int, seed: int = 0) -> pd.DataFrame:
    """Return the rules of drawn users that passed their test."""
    matrix = catalog.matrix
    users = np.flatnonzero(np.diff(matrix.indptr) >= LEAST)
    users = np.random.default_rng(seed).permutation(users)[:number]
    rows = []
    for k, user in enumerate(users):
        report("users", k, len(users))
        items = matrix[user].indices
        popularity = catalog.popularity.astype(float)
        popularity[items] -= 1
        found = taste_rule(items, catalog.attributes, popularity)
        if found is None or not found.shown:
            continue
        rows.append(
            {
                "user": str(catalog.data.user_ids[user]),
                "rule": wording.readable(found.rule),
                "likes that follow": found.support / found.profile,
                "all items that follow": found.catalogue / found.items,
                "tested": f"{found.tested_hits} of {found.tested}" if found.tested else "–",
            }
        )
    frame = pd.DataFrame(rows)
    if len(frame):
        lift = frame["likes that follow"] / frame["all items that follow"]
        frame = frame.iloc[(-lift).argsort(kind="stable")]
    return frame


# ---- a table


def of_table() -> None:
    """Show the rule that a kernel machine follows on a table with two classes."""
    st.text("A kernel machine learns the class of the rows; the rule summarizes the machine.")
    file = st.file_uploader("A table of your own (optional)", type=["csv", "tsv", "xlsx", "parquet"])
    try:
        if file is None:
            name = ask(st.selectbox, "Table", list(EMBEDDED), key="rule table")
            table = load_table(name)
            X, y, names = table.X, table.y, tuple(table.names)
        else:
            name = file.name
            X, y, names = encoded(uploads.content_of(file), name)
    except InputError as error:
        st.error(escaped(error))
        return
    left, right = st.columns(2)
    with left:
        clauses = ask(st.slider, "Most clauses", 1, 20, 10, key="clauses")
    with right:
        literals = ask(st.slider, "Most parts of a clause", 1, 8, 5, key="literals")
    key = ("table rule", name, y.tobytes(), X.tobytes(), clauses, literals)
    options: dict[str, Any] = {
        "max_clauses": int(clauses),
        "max_literals": int(literals),
        "names": names,
    }
    found = result(PAGE, key, lambda: measure_rule(X, y, **options), "Learning")
    st.subheader("The rule", anchor=False)
    st.text("\nor ".join(wording.readable(found.rule).split(", or ")))
    for place, (label, value, note) in zip(
        st.columns(3),
        (
            ("Accuracy", found.accuracy, "Held-out rows that the rule classifies correctly."),
            ("Fidelity", found.fidelity, "Held-out rows on which the rule and the machine agree."),
            ("Largest class", found.majority, "Accuracy without any rule."),
        ),
        strict=True,
    ):
        place.metric(label, f"{value:.1%}", help=note)
    st.caption(f"Learned from {count(found.rows, 'row')}, tested on {found.held_out:,}.")


def encoded(content: bytes, name: str) -> tuple[Any, Any, tuple[str, ...]]:
    """Return an uploaded table as 0/1 features, its chosen class and the features' names."""
    frame = uploads.frame(content, name).head(MOST_ROWS).dropna().astype(str)
    columns = [c for c in frame.columns if 1 < frame[c].nunique() <= MOST_VALUES]
    if len(columns) < 2:
        raise InputError(f"{name}: a column of classes and one of categories are needed")
    target = st.selectbox("Column with the class", columns, index=len(columns) - 1)
    positive = st.selectbox("Class that the rule describes", sorted(frame[target].unique()))
    dummies = pd.get_dummies(frame[[c for c in columns if c != target]], prefix_sep="=")
    y = np.where(frame[target] == positive, 1, -1)
    return dummies.to_numpy(np.uint8), y, tuple(dummies.columns)
