"""What pages share: the chosen dataset, and models fitted on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from app.catalog import Catalog, catalog_of, datasets
from app.choices import SAMPLE, ask, scoped
from app.jobs import result
from app.navigation import go_to
from app.parts.text import escaped
from app.uploads import tables
from recsys import Interactions, Recommender
from recsys.datasets import load_dataset
from recsys.utils.progress import report

GRADES = 20  # different ratings at most that are offered as a threshold one by one


def label(name: str) -> str:
    """Return a dataset's name as it is shown."""
    table = tables().get(name)
    if table is not None:
        return f"{table.name} (your file)"
    return "sample (invented films)" if name == SAMPLE else name


def choose_dataset() -> str:
    """Show the choice of a dataset beside the page, and return its name.

    A dataset that is not there is named until another one is chosen, and nothing else is shown.
    """
    first = st.session_state.setdefault("first data", st.query_params.get("data", SAMPLE))
    own: list[str] = st.session_state.setdefault("uploads", [])
    if first.startswith("upload-") and first not in own:
        own.append(first)
    there = [*datasets(), *(name for name in own if name in tables())]
    chosen = st.session_state.get("dataset", first)
    if chosen not in there:
        st.query_params["data"] = chosen
        uploaded = chosen.startswith("upload-")
        what = "The uploaded table" if uploaded else f"The dataset {escaped(chosen)}"
        st.warning(f"{what} is no longer available." if uploaded else f"{what} is not available.")
        with st.container(horizontal=True):
            if uploaded:
                st.button("Upload again", type="primary", on_click=_upload_again)
            st.button("Use the sample", on_click=use, args=(SAMPLE,))
        st.stop()
    with st.sidebar:
        name: str = st.selectbox(
            "Dataset",
            there,
            index=there.index(first) if first in there else 0,
            key="dataset",
            format_func=label,
            filter_mode="contains",
            persist_state="session",
        )
    if name != SAMPLE or "data" in st.query_params:
        st.query_params["data"] = name
    return name


def use(name: str) -> None:
    """Choose a dataset: what a button calls."""
    own = st.session_state.setdefault("uploads", [])
    if name.startswith("upload-"):  # a file that is uploaded again takes the place of the first
        own[:] = [*(one for one in own if label(one) != label(name)), name]
    st.session_state["first data"] = st.session_state["dataset"] = name


def _upload_again() -> None:
    use(SAMPLE)
    go_to("data")


def choose_catalog(page: str) -> Catalog:
    """Show the choice of a dataset and of its threshold, and return it, waiting for it to load."""
    name = choose_dataset()
    table = tables().get(name)
    every: Interactions = (
        table
        if table is not None
        else result(page, ("data", name), lambda: load_dataset(name), f"Reading {name}")
    )
    least = None if every.rating is None else choose_threshold(name, every.rating)
    key = ("catalog", name, least)
    made: Catalog = result(page, key, lambda: catalog_of(name, every, least), f"Preparing {label(name)}")
    return made


def choose_threshold(name: str, rating: Any) -> float:
    """Show from which rating on an item counts as liked, and return it."""
    grades = [float(grade) for grade in np.unique(rating)]
    low, top = grades[0], grades[-1]
    key, text = scoped("least", name), "Counts as liked: rated at least"
    with st.sidebar:
        if len(grades) > GRADES:
            return float(ask(st.number_input, text, low, top, low, key=key))
        options = [f"{grade:g} of {top:g}" for grade in grades]
        chosen = ask(st.selectbox, text, options, key=key)
    return grades[options.index(chosen)]


def recommender(
    page: str, catalog: Catalog, spec: str, name: str, meanwhile: Callable[[], None] | None = None
) -> Recommender:
    """Return a fitted model, waiting for it; what its first list compiles is waited for, too."""

    def fit() -> Recommender:
        report("fitting", 0, 2)
        model = Recommender(spec).fit(catalog.data)
        report("first list", 1, 2)
        user = catalog.data.user_ids[0]
        top = model.recommend(user, n=1, unknown="popular")
        for item in top["item"]:
            model.explain(user, item, changes=1)
        return model

    fitted: Recommender = result(page, ("model", catalog.key, spec), fit, f"Fitting {name}", meanwhile)
    return fitted
