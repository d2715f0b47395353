"""Data: upload a table or look at a dataset: sparsity, long tails, kernel density."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.catalogues import Catalogue
from app.parts.upload import MOST_BYTES, clean, limited, spooled
from recsys import InputError
from recsys.data import read_features, read_interactions
from recsys.data.readers import read_table
from recsys.data.statistics import PowerLaw, Profile, profile
from recsys.errors import counted

MOST_ROWS = 5_000_000
DENSE = 60_000  # items beyond which the kernel's density is not computed on a page


def page() -> None:
    """Show the page."""
    st.header("Data")
    upload()
    catalogue = state.choose_data()
    for note in catalogue.data.notes:
        st.caption(note)
    if len(catalogue.labels) > DENSE:
        st.warning(
            f"{len(catalogue.labels):,} items are too many for the density of the item kernel here."
        )
        st.stop()
    key = ("profile", catalogue.key)
    found = state.result(key, lambda progress: profile(catalogue.matrix), "Measuring")
    show(catalogue, found)


def upload() -> None:
    """Show the upload, its columns and what is wrong with it."""
    with st.expander("Upload a table of interactions"):
        file = st.file_uploader(
            "CSV, TSV or Parquet; plain or gzip", type=["csv", "tsv", "gz", "parquet", "txt"]
        )
        extra = st.file_uploader(
            "Item table (optional): genres, year, title", type=["csv", "tsv", "gz", "parquet"]
        )
        if file is None:
            st.caption(
                f"Up to {MOST_BYTES // 1_000_000} MB and {MOST_ROWS:,} rows. Files stay on this machine."
            )
            return
        try:
            content = limited(file)
            names = columns(content, file.name)
            user = st.selectbox(
                "User column", names, index=guess(names, ("user_id", "user", "userid"), 0)
            )
            item = st.selectbox(
                "Item column", names, index=guess(names, ("item_id", "item", "movieid"), 1)
            )
            rating = st.selectbox(
                "Rating column", ["none", *names], index=guess(["none", *names], ("rating",), 0)
            )
            time = st.selectbox(
                "Time column",
                ["none", *names],
                index=guess(["none", *names], ("timestamp", "time", "date"), 0),
                help="Numbers such as Unix seconds, or ISO dates.",
            )
            if rating != "none":
                st.caption("Which ratings count as liked is chosen beside the dataset.")
            if not st.button("Use this table", type="primary"):
                return
            more = (None if column == "none" else column for column in (rating, time))
            data = parsed(content, file.name, user, item, *more)
            if extra is not None:
                with spooled(limited(extra), extra.name) as path:
                    data = data.with_features(items=read_features(path, None, "item"))
        except InputError as error:
            st.error(clean(str(error), file.name))
            return
        digest = hashlib.sha256(content + (extra.getvalue() if extra else b"")).hexdigest()
        state.use_table(data, f"{digest} {user} {item} {rating} {time}")
        st.success(
            f"{counted(data.n_users, 'user')}, {counted(data.n_items, 'item')}, "
            f"{counted(len(data.users), 'interaction')}"
        )


@st.cache_data(max_entries=4, show_spinner="Reading")
def columns(content: bytes, name: str) -> list[str]:
    """Return the column names of an upload."""
    with spooled(content, name) as path:
        table = read_table(path)
    if len(table) > MOST_ROWS:
        raise InputError(f"the file has {len(table):,} rows; at most {MOST_ROWS:,} are read")
    if len(table.names) < 2:
        raise InputError("a table of interactions needs a column of users and one of items")
    return list(table.names)


@st.cache_data(max_entries=4, show_spinner="Reading")
def parsed(
    content: bytes, name: str, user: str, item: str, rating: str | None, time: str | None = None
) -> Any:
    """Return the interactions of an upload."""
    if user == item:
        raise InputError("users and items must come from two different columns")
    with spooled(content, name) as path:
        return read_interactions(
            path,
            user_col=user,
            item_col=item,
            rating_col=rating,
            time_col=time,
            name=name[:60],
        )


def guess(names: list[str], usual: tuple[str, ...], otherwise: int) -> int:
    """Return the position of the first usual name."""
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in usual if name in lower), min(otherwise, len(names) - 1))


def show(catalogue: Catalogue, found: Profile) -> None:
    """Show what a dataset is like."""
    n, m = catalogue.matrix.shape
    for column, (label, value) in zip(
        st.columns(4),
        (
            ("users", f"{n:,}"),
            ("items", f"{m:,}"),
            (
                "interactions" if catalogue.ratings is None else catalogue.word,
                f"{catalogue.matrix.nnz:,}",
            ),
            ("density", f"{found.density:.3%}"),
        ),
        strict=True,
    ):
        column.metric(label, value)
    st.subheader("Long tails")
    left, right = st.columns(2)
    for column, what, counts, law in (
        (left, "users", found.users, found.user_law),
        (right, "items", found.items, found.item_law),
    ):
        column.altair_chart(
            charts.lines(tail(counts, law), "rank", "likes", "line", log=True), width="stretch"
        )
        column.caption(f"{what}: {formula(law)} on log axes")
    st.subheader("Density of the item kernel")
    st.dataframe(
        pd.DataFrame(
            {
                "of the data": [found.density],
                "of the linear kernel": [found.kernel_density],
                "estimated (10.7)": [found.kernel_estimate],
            }
        ).style.format("{:.3%}"),
        hide_index=True,
    )
    st.caption(
        "The estimate assumes likes spread evenly. "
        "A denser kernel than estimated tells of a few very active users."
    )


def formula(law: PowerLaw) -> str:
    """Return a fitted power law as text; an exponent that rounds to 0 has no sign."""
    power = 0.0 - round(law.exponent, 2)
    return f"likes ≈ {law.scale:.0f} · rank^({power + 0.0:.2f}), R² {law.r_squared:.2f}"


def tail(counts: np.ndarray, law: PowerLaw) -> pd.DataFrame:
    """Return points of a rank plot and of the fitted line, evenly spaced on a log axis."""
    at = np.unique(np.geomspace(1, max(len(counts), 1), 80).astype(int))
    real = pd.DataFrame({"rank": at, "likes": counts[at - 1], "line": "data"})
    fit = pd.DataFrame({"rank": at, "likes": law.scale * at**-law.exponent, "line": "power law"})
    both = pd.concat([real, fit])
    return both[both["likes"] >= 0.5]
