"""Kernels: expressiveness and accuracy of item kernels over their degree."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pandas as pd
import streamlit as st

from app import charts, state
from app.catalog import Catalog
from app.choices import ask
from app.jobs import result
from app.navigation import go_to
from app.parts.text import count, escaped
from recsys import InputError, Interactions
from recsys.evaluation import evaluate
from recsys.kernels import item_gram, list_kernels, make_kernel, spectral_ratio
from recsys.rankers.registry import ranker_of
from recsys.utils.progress import report

PAGE = "kernels"
DEGREES = ("degree", "d", "c", "arity")  # parameters that are the degree
MOST_USERS, MOST_ITEMS = 1_000, 1_000  # of the draw


def page() -> None:
    """Show the page."""
    st.header("Kernels", anchor=False)
    st.text(
        "A Boolean kernel measures the similarity of two items by the number of formulas over users "
        "that hold for both. A higher degree means longer formulas."
    )
    catalog = state.choose_catalog(PAGE)
    left, right = st.columns(2)
    with left:
        names = ask(
            st.multiselect,
            "Kernels",
            list_kernels(),
            key="kernels",
            default=["mc", "md"],
            select_all=False,
        )
    with right:
        top = ask(st.slider, "Highest degree", 2, 12, 5, key="degree")
    if not names:
        st.info("Choose at least one kernel.")
        return
    for name in names:
        st.caption(f"{escaped(name)}: {about(name)}")
    key = ("kernels", catalog.key, tuple(names), top)
    frame = result(PAGE, key, lambda: curves(draw(catalog), names, int(top)), "Measuring")
    for error in dict.fromkeys(frame["error"][frame["error"] != ""]):
        st.caption(escaped(error))
    left, right = st.columns(2)
    for place, column, title in (
        (left, "spectral ratio", "Expressiveness"),
        (right, "AUC", "Accuracy of CF-KOMD"),
    ):
        shown = frame.dropna(subset=[column])
        if len(shown):
            place.altair_chart(charts.lines(shown, "degree", column, "kernel", title), width="stretch")
    with st.expander("The values"):
        st.dataframe(frame.drop(columns=["spec", "error"]), hide_index=True)
    best = frame.dropna(subset=["AUC"]).sort_values("AUC").tail(1)
    for _, row in best.iterrows():
        st.button(
            f"Recommend with {escaped(row['kernel'])}, degree {row['degree']}",
            help=row["spec"],
            on_click=recommend_with,
            args=(row["spec"],),
        )


def draw(catalog: Catalog) -> Interactions:
    """Return the dataset, of a large one some users and the most popular items."""
    data = catalog.data
    if data.n_users <= MOST_USERS and data.n_items <= MOST_ITEMS:
        return data
    return catalog.draw(MOST_USERS, MOST_ITEMS)


def about(name: str) -> str:
    """Return what a kernel counts, as its description begins, in Markdown."""
    first = (type(make_kernel(name)).__doc__ or "").strip().split("\n")[0]
    text = re.sub(r"^(mC|mD|C|D): ", "", first)
    return re.sub(r"\\`(\w+)\\`", r"*\1*", escaped(text))


def degree_parameters(name: str) -> list[str]:
    """Return the parameters of a kernel that are its degree; none where it has none."""
    fields = [field.name for field in dataclasses.fields(make_kernel(name))]  # type: ignore[arg-type]
    return [name for name in DEGREES if name in fields]


def curves(data: Interactions, names: list[str], top: int) -> pd.DataFrame:
    """Return spectral ratio and AUC of kernels over their degree; one without repeats its values.

    A kernel ends at the first degree that it refuses.
    """
    steps = [(n, d) for n in names for d in range(1, (top if degree_parameters(n) else 1) + 1)]
    rows: list[dict[str, Any]] = []
    refused = set()
    for k, (name, degree) in enumerate(steps):
        if name in refused:
            continue
        report(f"{name}, degree {degree}", k, len(steps))
        params = {parameter: degree for parameter in degree_parameters(name)}
        spec = ",".join([f"cf-komd:kernel={name}", *(f"{key}={value}" for key, value in params.items())])
        row: dict[str, Any] = {"kernel": name, "degree": degree, "spec": spec, "error": ""}
        try:
            kernel = make_kernel(name, **params)
            row["spectral ratio"] = spectral_ratio(item_gram(data.matrix, kernel), standardized=True)
            done = evaluate(data, {spec: ranker_of(spec)}, metrics=("auc",), folds=5, only_folds=1)
            row["AUC"] = done.results[0].metrics["auc"].mean
        except InputError as error:
            row |= {"error": f"{name}: {error}", "spectral ratio": None, "AUC": None}
            refused.add(name)
        rows += [row] if params else [row | {"degree": d} for d in range(1, top + 1)]
    frame = pd.DataFrame(rows)
    users = count(data.n_users, "user")
    frame.attrs["note"] = f"{users}, {count(data.n_items, 'item')}"
    return frame


def recommend_with(spec: str) -> None:
    """Open Recommend with a model: what the button calls."""
    st.session_state["model"] = spec
    go_to("recommend")
