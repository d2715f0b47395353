"""Data: upload a table, see what was read of it, and what a dataset is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state
from app.catalogues import Catalogue
from app.charts import data as charts
from app.navigation import leave_for
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
from app.uploads import UploadedFile, UploadedTable, as_written
from recsys import InputError
from recsys.data import Interactions
from recsys.data.reading import Look, features_table, look, read
from recsys.data.row_counts import RowCounts
from recsys.data.statistics import Profile, kept_at_least, profile
from recsys.datasets import load_dataset
from recsys.errors import counted
from recsys.utils.export import csv_text

MOST_ROWS = 5_000_000
DENSE = 60_000  # items beyond which the kernel's density is not computed on a page
SHOWN = 8  # rows of a preview
NONE = "none"
ROLES = {
    "user": "User column", "item": "Item column", "rating": "Rating column", "time": "Time column",
    "weight": "Weight column",
}  # fmt: skip
TOLD = {
    "name": "{} in {}, as its name says.",
    "position": "{} in {}, the first column left: choose another one if that is wrong.",
}
PLURAL = {"user": "Users are", "item": "Items are", "rating": "Ratings are", "time": "Times are"}
FOUND = "as found"
CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "header": ("First row", {"names of columns": True, "cells": False}),
    "delimiter": ("Delimiter", {";": ";", ",": ",", "tab": "\t", "|": "|", "::": "::"}),
    "encoding": (
        "Encoding",
        {"UTF-8": "utf-8", "cp1252": "cp1252", "cp1250": "cp1250", "UTF-16": "utf-16"},
    ),
    "decimal": ("Decimal mark", {"point": ".", "comma": ","}),
    "day_first": ("01/02/2020", {"1 February": True, "2 January": False}),
}
FORM = ("header", "delimiter", "encoding")  # that decide what the columns are


def page() -> None:
    """Show the page."""
    st.header("Data", anchor=False)
    given = kept_files("data.file")
    if given and not used(given[0].token):  # nothing of another dataset beside a file that waits
        st.caption(f"File: {escaped(given[0].name)}, not used yet")
        steps(given[0])
        return
    name = state.choose_dataset()
    if given:
        st.success("This table is the dataset now, on every page.")
        st.button("Recommend from it", type="primary", on_click=leave_for, args=("recommend",))
        with st.expander("The file, its columns and its rows"):
            steps(given[0])
    else:
        with st.container(border=True):
            upload()
    catalogue = state.catalogue(name)
    key = ("profile", catalogue.key)
    small = len(catalogue.labels) <= DENSE
    found = state.result(key, lambda progress: profile(catalogue.matrix, small), "Measuring")
    show(catalogue, found)


# ---- uploads


def used(token: str) -> bool:
    """Return whether the dataset that is chosen is of this file."""
    table = state.tables().find(session().get("data", ""))
    return table is not None and table.file == token


def upload() -> None:
    """Show where a file comes in."""
    uploader("A file of your own: CSV, JSON, Parquet or Excel; plain or packed", "data.file")
    st.caption(
        f"A row for each time that a user had an item. Up to {MOST_BYTES // 1_000_000} MB and "
        f"{MOST_ROWS:,} rows. The file stays on the machine that runs this app."
    )


def steps(file: UploadedFile) -> None:
    """Show the three steps from a file to a dataset: the file, its columns, what becomes of its rows."""
    token, name, content = file
    more = kept_files("data.items")
    items = more[0] if more else None
    st.subheader("1. The file", anchor=False)
    told = f"Files: {name}, items in {items.name}" if items is not None else ""
    say_kept([file, *more], "data.file", "data.items", told=told)
    with st.expander("Another file, or a table of the items: title, genres, year"):
        upload()
        uploader("Item table (optional): title, genres, year", "data.items")
    st.subheader("2. Its columns", anchor=False)
    form = choose_form(token)
    try:
        found = looked(token, content, name, tuple((key, form[key]) for key in FORM))
        chosen = choose_columns(token, found)
        data, counts = parsed(token, content, name, tuple((chosen | form).items()))
        data = as_written(data)
        if items is not None:
            data = with_items(data, items.name, items.content)
    except InputError as error:
        st.error(escaped(clean(str(error), name)))
        return
    st.subheader("3. What was read", anchor=False)
    what_became(data, counts)
    if st.button("Use this table", type="secondary" if used(token) else "primary"):
        said = tuple((word, value) for word, value in form.items() if value is not None)
        state.use_table(
            UploadedTable(data, token, "" if items is None else items.name, counts, said),
            f"{token} {chosen} {form} {'' if items is None else items.token}",
        )
        st.rerun()  # the address is written when a run of the page begins


def choose_form(token: str) -> dict[str, Any]:
    """Show what may be said of a file's form, and return it; None where the file decides."""
    out: dict[str, Any] = {}
    with st.expander("How the file is read"):
        for place, (key, (label, options)) in zip(
            st.columns(len(CHOICES)), CHOICES.items(), strict=True
        ):
            with place:
                told = ask(
                    st.selectbox, label, name=f"file.{token[:8]}.{key}", default=FOUND,
                    options=[FOUND, *options],
                )  # fmt: skip
            out[key] = options.get(told)
    return out


@st.cache_resource(max_entries=4, show_spinner="Looking at the columns")
def looked(token: str, _content: bytes, name: str, form: tuple[tuple[str, Any], ...]) -> Look:
    """Return the first rows of an upload and which columns are meant.

    Raises
    ------
    InputError
        If it cannot be read, or has one column only.
    """
    with spooled(_content, name) as path:
        found = look(path, SHOWN, **dict(form))
    if len(found.names) < 2:
        raise InputError("a table of interactions needs a column of users and one of items")
    return found


@st.cache_resource(max_entries=4, show_spinner="Reading the rows")
def parsed(
    token: str, _content: bytes, name: str, chosen: tuple[tuple[str, Any], ...]
) -> tuple[Interactions, RowCounts]:
    """Return the interactions of an upload, and what became of its rows."""
    with spooled(_content, name) as path:
        data = read(path, name=name[:60], interface="page", max_rows=MOST_ROWS, **dict(chosen))
    return data, data.counts or RowCounts(len(data.users), kept=len(data.users))


def choose_columns(token: str, found: Look) -> dict[str, str | None]:
    """Show the first rows and the columns as they are found, and return those that are chosen."""
    names = found.names
    shown = [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name
             for k, name in enumerate(names)]  # fmt: skip
    first = pd.DataFrame(dict(zip(shown, found.first, strict=True)), dtype=object)
    st.caption(f"The first {counted(len(first), 'row')}:")
    st.dataframe(first, hide_index=True, width="stretch")
    chosen: dict[str, str | None] = {}
    proposed = {role: getattr(found.roles, role, None) for role in ROLES}
    free = [k for k in range(len(names)) if k not in proposed.values()]
    for role in ("user", "item"):
        if proposed[role] is None:
            proposed[role] = free.pop(0) if free else 0
    for place, (role, label) in zip(st.columns(len(ROLES)), ROLES.items(), strict=True):
        needed = role in ("user", "item")
        at = proposed[role]
        with place:
            chosen[role] = ask(
                st.selectbox, label, name=f"file.{token[:8]}.{role}",
                default=NONE if at is None else names[at],
                options=[*([] if needed else [NONE]), *dict.fromkeys(names)], filter_mode="contains",
                help="Counts such as plays, or amounts." if role == "weight" else None,
            )  # fmt: skip
    told = [
        TOLD[found.roles.how.get(role, "position")].format(PLURAL[role], name)
        for role, name in chosen.items()
        if role in PLURAL and proposed[role] is not None and name == names[proposed[role]]
    ]
    if chosen["rating"] == NONE:
        told.append("No column of ratings: every row counts as a like.")
    told += [f"{question[:1].upper()}{question[1:]}." for question in found.questions]
    st.text("\n".join(told))
    if chosen["weight"] == NONE:
        chosen["weight"] = None
    return chosen


def with_items(data: Interactions, name: str, content: bytes) -> Interactions:
    """Return the interactions with an uploaded table of items.

    Raises
    ------
    InputError
        If it cannot be read, or none of the items is in it.
    """
    assert data.columns is not None
    column = data.columns.item
    with spooled(content, name) as path:
        try:
            return data.with_features(items=features_table(path, "item", column, data.item_ids))
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
    for name, values in (
        (data.columns.rating, data.rating), (data.columns.time, data.time),
        (data.columns.weight, data.weight),
    ):  # fmt: skip
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
    st.subheader("How many items have a user in common", anchor=False)
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
        "The item kernel is a table of all pairs of items; it is as dense as the second number says. "
        "The third is what as many likes would give if every user were as active and every item as "
        "well known. An item counts as having a user in common with itself."
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
    found = quality.over_time(time)
    if found is None:
        st.caption(
            "Times are numbers and no dates: models take their order, and nothing is drawn over time."
        )
        return
    frame, period = found
    st.subheader("Time", anchor=False)
    st.altair_chart(
        charts.over_time(frame, period, catalogue.word), width="stretch",
        alt=f"How many were given in each {period}",
    )  # fmt: skip
    st.caption(quality.span(time))
