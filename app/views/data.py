"""Data: upload a table, see what was read of it, and what a dataset is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state
from app.catalogues import Catalogue
from app.charts import data as charts
from app.navigation import open_page
from app.parts import quality
from app.parts.upload import (
    MOST_BYTES,
    clean,
    kept_files,
    say_kept,
    spooled,
    uploader,
)
from app.parts.words import escaped
from app.session import ask, session
from app.uploads import UploadedTable
from recsys import InputError
from recsys.data import Interactions
from recsys.data.columns import Columns
from recsys.data.guesses import Guess, guess_columns
from recsys.data.readers import Table, read_table
from recsys.data.statistics import Profile, kept_at_least, profile
from recsys.data.tables import features_table
from recsys.data.usable_rows import RowCounts, usable_rows
from recsys.datasets import load_dataset
from recsys.errors import counted
from recsys.utils.export import csv_text

MOST_ROWS = 5_000_000
DENSE = 60_000  # items beyond which the kernel's density is not computed on a page
SHOWN = 8  # rows of a preview
NONE = "none"
ROLES = {"user": "User column", "item": "Item column", "rating": "Rating column", "time": "Time column"}
TOLD = {
    "name": "{} in {}, as its name says.",
    "content": "{} in {}, as what it holds says.",
    "position": "{} in {}, the first column left: choose another one if that is wrong.",
}
PLURAL = {"user": "Users are", "item": "Items are", "rating": "Ratings are", "time": "Times are"}


def page() -> None:
    """Show the page."""
    st.header("Data", anchor=False)
    upload()
    catalogue = state.choose_data()
    key = ("profile", catalogue.key)
    small = len(catalogue.labels) <= DENSE
    found = state.result(key, lambda progress: profile(catalogue.matrix, small), "Measuring")
    show(catalogue, found)


# ---- uploads


def upload() -> None:
    """Show the upload: a preview, the columns, and what becomes of the rows."""
    here = session()
    given, more = kept_files("data.file"), kept_files("data.items")
    with st.expander("Upload a table of interactions", expanded=bool(given)):
        uploader("CSV, TSV, Parquet or Excel; plain or gzip", "data.file")
        uploader("Item table (optional): title, genres, year", "data.items")
        if not given:
            st.caption(
                f"Up to {MOST_BYTES // 1_000_000} MB and {MOST_ROWS:,} rows. The file stays on the "
                "machine that runs this app."
            )
            return
        token, name, content = given[0]
        items = more[0] if more else None
        told = f"Files: {name}, items in {items.name}" if items is not None else ""
        say_kept([*given, *more], "data.file", "data.items", told=told)
        try:
            table = read(token, content, name)
            columns = choose_columns(token, table)
            data, counts = parsed(token, table, name, columns)
            if items is not None:
                data = with_items(data, columns, items.name, items.content)
        except InputError as error:
            st.error(escaped(clean(str(error), name)))
            return
        what_became(data, counts)
        if st.button("Use this table", type="primary"):
            told = f"{token} {columns} {'' if items is None else items.token}"
            named = "" if items is None else items.name
            state.use_table(UploadedTable(data, token, named, counts), told)
            st.rerun()  # the address is written when a run of the page begins
        used = state.tables().find(here.get("data", ""))
        if used is not None and used.file == token:
            st.success("This table is the dataset now, on every page.")
            if st.button("Recommend from it"):
                open_page("recommend")


@st.cache_resource(max_entries=4, show_spinner="Reading the file")
def read(token: str, _content: bytes, name: str) -> Table:
    """Return the cells of an upload; rows of another length than the header are left out.

    Raises
    ------
    InputError
        If it cannot be read, is too long, or has one column only.
    """
    with spooled(_content, name) as path:
        table = read_table(path, strict=False)
    if len(table) > MOST_ROWS:
        raise InputError(f"the file has {len(table):,} rows; at most {MOST_ROWS:,} are read")
    if len(table.names) < 2:
        raise InputError("a table of interactions needs a column of users and one of items")
    return table


@st.cache_resource(max_entries=4, show_spinner="Looking at the columns")
def guessed(token: str, _table: Table) -> Guess:
    """Return which columns are meant."""
    return guess_columns(_table.names, _table.columns)


@st.cache_resource(max_entries=4, show_spinner="Reading the rows")
def parsed(token: str, _table: Table, name: str, columns: Columns) -> tuple[Interactions, RowCounts]:
    """Return the interactions of an upload, and what became of its rows."""
    return usable_rows(_table, columns, name[:60])


def choose_columns(token: str, table: Table) -> Columns:
    """Show the first rows and the columns as they are guessed, and return those that are chosen."""
    st.caption(f"The first {counted(min(SHOWN, len(table)), 'row')} of {len(table):,}:")
    names = [f"{name} ({table.names[: k + 1].count(name)})" if table.names.count(name) > 1 else name
             for k, name in enumerate(table.names)]  # fmt: skip
    first = pd.DataFrame(
        {name: column[:SHOWN] for name, column in zip(names, table.columns, strict=True)}
    )
    st.dataframe(first, hide_index=True, width="stretch")
    found = guessed(token, table)
    chosen: dict[str, str] = {}
    for place, (role, label) in zip(st.columns(4), ROLES.items(), strict=True):
        needed = role in ("user", "item")
        options = [*([] if needed else [NONE]), *dict.fromkeys(table.names)]
        with place:
            chosen[role] = ask(
                st.selectbox, label, name=f"file.{token[:8]}.{role}",
                default=getattr(found, role) or NONE, options=options, filter_mode="contains",
                help="Numbers such as Unix seconds, or ISO dates." if role == "time" else None,
            )  # fmt: skip
    told = [
        TOLD[found.why[role]].format(PLURAL[role], name)
        for role, name in chosen.items()
        if role in found.why and name == getattr(found, role)
    ]
    if chosen["rating"] == NONE:
        told.append("No column of ratings: every row counts as a like.")
    st.text("\n".join(told))
    more = {role: None if chosen[role] == NONE else chosen[role] for role in ("rating", "time")}
    return Columns(chosen["user"], chosen["item"], **more)


def with_items(data: Interactions, columns: Columns, name: str, content: bytes) -> Interactions:
    """Return the interactions with an uploaded table of items.

    Raises
    ------
    InputError
        If it cannot be read, or none of the items is in it.
    """
    with spooled(content, name) as path:
        try:
            return data.with_features(items=features_table(path, "item", columns.item, data.item_ids))
        except InputError as error:
            raise InputError(f"item table {clean(str(error), name)}") from None


def what_became(data: Interactions, counts: RowCounts) -> None:
    """Show how many rows there are, how many are used, merged and left out, and why."""
    for place, (label, number) in zip(
        st.columns(4),
        (
            ("rows", counts.rows), ("pairs that are used", counts.kept),
            ("merged: a pair again", counts.repeated), ("left out", sum(counts.left_out.values())),
        ),
        strict=True,
    ):  # fmt: skip
        place.metric(label, f"{number:,}")
    them = f"They are of {counted(data.n_users, 'user')} and {counted(data.n_items, 'item')}."
    st.text("\n".join([*counts.sentences(), *notes_of(data, counts), them]))
    say_limits(data.matrix, data)
    if counts.left_out or counts.repeated:
        st.download_button(
            "Download the cleaned table (CSV)", lambda: cleaned(data), f"cleaned-{data.name}.csv",
            "text/csv", on_click="ignore",
        )  # fmt: skip


def notes_of(data: Interactions, counts: RowCounts) -> list[str]:
    """Return what reading says besides the counts: merged pairs, items without a row in their table."""
    said = {line.removesuffix(".") for line in counts.sentences()}
    return [f"{note}." for note in data.notes if note not in said]


def cleaned(data: Interactions) -> str:
    """Return the pairs that are used as CSV, numbers to the last digit, as a command reads them."""
    assert data.columns is not None
    names = [data.columns.user, data.columns.item]
    columns: list[Any] = [data.user_ids[data.users], data.item_ids[data.items]]
    for name, values in ((data.columns.rating, data.rating), (data.columns.time, data.time)):
        if name is not None and values is not None:
            names.append(name)
            columns.append([repr(float(value)) for value in values])
    return csv_text(names, zip(*columns, strict=True), raw=True)


def say_limits(matrix: Any, data: Interactions) -> None:
    """Say what cannot be done with so little, and what should be known."""
    cannot, know = quality.limits(matrix, data.time, data.rating)
    for line in cannot:
        st.warning(line)
    if know:
        st.caption("  \n".join(know))


# ---- what a dataset is like


def show(catalogue: Catalogue, found: Profile) -> None:
    """Show what a dataset is like."""
    n, m = catalogue.matrix.shape
    word = catalogue.word
    count = "interactions" if catalogue.ratings is None else word
    for column, (label, value) in zip(
        st.columns(4),
        (
            ("users", f"{n:,}"), ("items", f"{m:,}"), (count, f"{catalogue.matrix.nnz:,}"),
            ("density", f"{found.density:.3%}"),
        ),
        strict=True,
    ):  # fmt: skip
        column.metric(label, value)
    told = [f"{note}." for note in catalogue.data.notes]
    table = state.tables().find(str(catalogue.key[1]))
    if table is not None and table.counts is not None:
        told = [f"{counted(table.counts.rows, 'row')} read, {table.counts.kept:,} used.", *told]
    if told:
        st.text("\n".join(told))
    say_limits(catalogue.matrix, catalogue.data)
    st.caption("  \n".join(quality.cold_sentences(catalogue.matrix, word)))
    left, right = st.columns(2)
    with left:
        rated(catalogue)
    with right if catalogue.ratings is not None else left:
        in_time(catalogue)
    st.subheader("Long tails", anchor=False)
    st.caption("A few users are far more active than the others, and a few items far better known.")
    left, right = st.columns(2)
    for column, what, of, counts_, law in (
        (left, "Users", "user", found.users, found.user_law),
        (right, "Items", "item", found.items, found.item_law),
    ):
        points, line = quality.tail(counts_, law, what.lower())
        column.altair_chart(
            charts.tail(
                points, line, f"{what} by their number of likes", f"rank of the {of}", "likes"
            ),
            width="stretch", alt=f"{what} by their number of likes over their rank, with a fitted line",
        )  # fmt: skip
    st.subheader("How many items have somebody in common", anchor=False)
    if np.isnan(found.kernel_density):
        st.caption(f"{counted(m, 'item')} are too many to count all their pairs here.")
        return
    st.dataframe(
        pd.DataFrame(
            {
                "pairs of users and items that are " + word: [found.density],
                "pairs of items with a user in common": [found.kernel_density],
                "if likes were spread evenly": [found.kernel_estimate],
            }
        ).style.format("{:.3%}"),
        hide_index=True, width="stretch",
    )  # fmt: skip
    st.caption(
        "The item kernel is a table of all pairs of items; it is as dense as the second figure says. "
        "The third is what as many likes would give if everybody were as active and every item as "
        "well known. An item counts as having somebody in common with itself."
    )


def rated(catalogue: Catalogue) -> None:
    """Show how often each rating was given, and what remains at each threshold."""
    if catalogue.least is None:
        return
    data = raw(catalogue)
    assert data.rating is not None
    st.subheader("Ratings", anchor=False)
    frame = quality.ratings(data.rating, catalogue.least, catalogue.word)
    st.altair_chart(
        charts.ratings(frame, catalogue.word), width="stretch",
        alt="How often each rating was given, those that count in colour",
    )  # fmt: skip
    kept = kept_at_least(data.users, data.items, data.rating, [catalogue.least])[0]
    st.caption(
        f"From {catalogue.least:g} on a rating counts: {kept.rows:,} of "
        f"{counted(len(data.users), 'rating')}, of {counted(kept.users, 'user')} and "
        f"{counted(kept.items, 'item')}. Choose the threshold beside the page."
    )
    grades = np.unique(data.rating)
    if 1 < len(grades) <= quality.MOST_BARS:
        with st.expander("What remains at each threshold"):
            rows = kept_at_least(data.users, data.items, data.rating, grades)
            table = pd.DataFrame(rows).rename(columns={"least": "rated at least", "rows": "ratings"})
            st.dataframe(table, hide_index=True, width="stretch")


def raw(catalogue: Catalogue) -> Interactions:
    """Return the interactions before a threshold."""
    name = str(catalogue.key[1])
    if catalogue.key[0] == "upload":
        table = state.tables().find(name)
        return catalogue.data if table is None else table.data
    key = ("data", ("dataset", name))
    found: Interactions = state.result(key, lambda progress: load_dataset(name), f"Reading {name}")
    return found


def in_time(catalogue: Catalogue) -> None:
    """Show when the likes were given."""
    time = catalogue.data.time
    if time is None:
        return
    found = quality.course(time)
    if found is None:
        st.caption(
            "Times are numbers and no dates: models take their order, and no course of time is drawn."
        )
        return
    frame, period = found
    st.subheader("Time", anchor=False)
    st.altair_chart(
        charts.course(frame, period, catalogue.word), width="stretch",
        alt=f"How many were given in each {period}",
    )  # fmt: skip
    st.caption(quality.span(time))
