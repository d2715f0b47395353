"""Data: a file of one's own on one screen, and what the chosen dataset is like."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state, uploads
from app.catalog import Catalog
from app.navigation import go_to
from app.parts.text import count, escaped
from recsys import InputError, Interactions

PAGE = "data"
NONE = "–"
LABELS = {
    "user": "User",
    "item": "Item",
    "title": "Title",
    "rating": "Rating",
    "time": "Time",
    "weight": "Weight",
}
HELP = {
    "weight": "Quantities or counts. Rows at or below 0 are not used.",
    "title": "A name of each item.",
}
QUANTITY = re.compile("menge|anzahl|stück|quantit|qty|cantidad", re.IGNORECASE)
FORM: dict[str, tuple[str, dict[str, Any]]] = {
    "header": ("First row", {"column names": True, "values": False}),
    "delimiter": ("Delimiter", {";": ";", ",": ",", "tab": "\t", "|": "|", "::": "::"}),
    "encoding": ("Encoding", {"UTF-8": "utf-8", "cp1252": "cp1252", "UTF-16": "utf-16"}),
    "decimal": ("Decimal mark", {"point": ".", "comma": ","}),
    "day_first": ("01/02/2020", {"1 February": True, "2 January": False}),
}


def page() -> None:
    """Show the page."""
    st.header("Data", anchor=False)
    version = st.session_state.setdefault("upload version", 0)
    file = st.file_uploader(
        "A file of your own: CSV, JSON, Parquet or Excel, one row for each purchase, rating or click",
        type=uploads.TYPES,
        key=f"file {version}",
    )
    if file is not None:
        steps(file)
        return
    catalog = state.choose_catalog(PAGE)
    show(catalog)


# ---- a file


def steps(file: Any) -> None:
    """Show the columns of a file with their roles, what was read, and the button that uses it."""
    try:
        content = uploads.content_of(file)
        sheet = choose_sheet(uploads.sheets(content, file.name))
        more = st.expander("How the file is read; a table of the items")
        with more:
            form, items = choose_form(), choose_items()
        preview = uploads.preview(content, file.name, sheet, shape_of(form))
    except InputError as error:
        st.error(escaped(error))
        return
    roles = choose_roles(preview)
    left, right = st.columns([3, 2])
    names = {column: f"{column} ({LABELS[role].lower()})" for role, column in roles.items()}
    left.dataframe(preview.rows.rename(columns=names), hide_index=True, width="stretch")
    with right.container(border=True):
        if "user" not in roles or "item" not in roles:
            st.info("Choose the column of the users and the column of the items.")
            return
        try:
            data = uploads.read(content, file.name, sheet, form, roles, items)
        except InputError as error:
            st.error(escaped(error))
            return
        summary(data)
        others = [name for name in preview.columns if name not in roles.values()]
        quantities = [name for name in others if QUANTITY.search(name)]
        if quantities and "weight" not in roles:
            st.text(
                f"If {quantities[0]} is chosen as the weight, rows with a value below 0 are left out."
            )
        token = uploads.keep(data, content, file.name, sheet, form, roles, items)
        st.button("Use this table", type="primary", on_click=use_table, args=(token,))


def use_table(token: str) -> None:
    """Choose the table and open Recommend: what the button calls."""
    state.use(token)
    st.session_state["upload version"] += 1
    go_to("recommend")


def choose_sheet(names: list[str]) -> str | None:
    """Show the sheets of a workbook, where there are several."""
    if len(names) < 2:
        return names[0] if names else None
    chosen: str = st.selectbox(f"Sheet (one of {len(names)})", names)
    return chosen


def choose_form() -> dict[str, Any]:
    """Show what may be said of a file's form, and return what was chosen."""
    form: dict[str, Any] = {}
    for place, (key, (label, options)) in zip(st.columns(len(FORM)), FORM.items(), strict=True):
        chosen = place.selectbox(label, ["automatic", *options], key=f"form {key}")
        if chosen != "automatic":
            form[key] = options[chosen]
    return form


def shape_of(form: dict[str, Any]) -> dict[str, Any]:
    """Return what of the form decides the columns."""
    return {key: form[key] for key in ("header", "delimiter", "encoding") if key in form}


def choose_items() -> tuple[bytes, str] | None:
    """Show the upload of an item table, and return its content and name."""
    file = st.file_uploader(
        "Item table: title, genres, year (optional)", type=uploads.TYPES, key="items"
    )
    return None if file is None else (uploads.content_of(file), file.name)


def choose_roles(preview: uploads.Preview) -> dict[str, str]:
    """Show which column has which role; empty where nothing is sure."""
    roles: dict[str, str] = {}
    options = [NONE, *preview.columns]
    grid = st.grid(len(LABELS), min_column_width=130)
    for role in LABELS:
        sure = preview.roles.get(role, NONE)
        with grid.cell():
            chosen = st.selectbox(
                LABELS[role],
                options,
                index=options.index(sure),
                key=f"role {role} {hash(tuple(options))}",
                help=HELP.get(role),
                filter_mode="contains",
            )
        if chosen != NONE:
            roles[role] = chosen
    return roles


def summary(data: Interactions) -> None:
    """Show what was read, and what was not used."""
    st.markdown(
        f"**{count(len(data.users), 'interaction')} of {count(data.n_users, 'user')}, "
        f"{count(data.n_items, 'item')}**"
    )
    read, *notes = [note for note in data.notes if "='" not in note]  # without hints of Python code
    st.text("\n".join([*notes, *limits(data)]))
    st.caption(escaped(read))


def limits(data: Interactions) -> list[str]:
    """Return what cannot be done with so little."""
    lengths = np.diff(data.matrix.indptr)
    lines = []
    if data.n_users == 1:
        lines.append("Only one user: models need the likes of several users.")
    if (lengths >= 2).sum() == 0:
        lines.append("No user has two items, so Compare has nothing to hide and predict.")
    if data.time is None:
        lines.append("No times: protocols in time and next-item models need a time column.")
    return lines


# ---- the dataset


def show(catalog: Catalog) -> None:
    """Show what the dataset is like."""
    data = catalog.data
    density = len(data.users) / (data.n_users * data.n_items)
    numbers = {
        "Users": f"{data.n_users:,}",
        "Items": f"{data.n_items:,}",
        "Interactions": f"{len(data.users):,}",
        "Density": f"{density:.2%}",
    }
    with st.container(horizontal=True, gap="large"):
        for label, value in numbers.items():
            st.metric(label, value, width="content")
    if notes := [*data.notes, *limits(data)]:
        st.text("\n".join(notes))
    st.button("Recommend from it", on_click=go_to, args=("recommend",))
    lengths = np.diff(catalog.matrix.indptr)
    drawn = [
        histogram(lengths, "Users by their number of items", "users"),
        histogram(catalog.popularity, "Items by their number of users", "items"),
    ]
    drawn += [chart for chart in (ratings(catalog.every), over_time(data)) if chart is not None]
    for k in range(0, len(drawn), 2):
        for place, chart in zip(st.columns(len(drawn[k : k + 2])), drawn[k : k + 2], strict=True):
            place.altair_chart(chart, width="stretch")
    with st.expander("The most popular items"):
        items = list(catalog.items)[:50]
        frame = pd.DataFrame(
            {
                "title": [catalog.titles[item] for item in items],
                "users": [int(catalog.popularity[catalog.item_columns[item]]) for item in items],
            }
        )
        st.dataframe(frame, hide_index=True)


def histogram(values: Any, title: str, unit: str) -> Any:
    """Return how many users or items have how many, in bins of doubling width."""
    edges = 2 ** np.arange(int(np.log2(max(values.max(), 1))) + 2)
    counts, _ = np.histogram(values, edges)
    names = [f"{a}" if b - a == 1 else f"{a} to {b - 1}" for a, b in zip(edges, edges[1:], strict=False)]
    rows = [(name, float(number)) for name, number in zip(names, counts, strict=True)]
    return charts.bars(rows, title, unit)


def ratings(data: Interactions) -> Any:
    """Return how often each rating was given, where there are few different ones."""
    if data.rating is None:
        return None
    grades, counts = np.unique(data.rating, return_counts=True)
    if len(grades) > 40:
        return None
    rows = [(f"{g:g}", float(c)) for g, c in zip(grades, counts, strict=True)]
    return charts.bars(rows, "Ratings", "how often")


def over_time(data: Interactions) -> Any:
    """Return the number of interactions over time, where times are dates."""
    if data.time is None or np.median(data.time) < 1e8:  # positions and not seconds since 1970
        return None
    time = pd.to_datetime(data.time[data.time > 0], unit="s")
    days = (time.max() - time.min()).days
    rule = "D" if days <= 92 else "MS" if days <= 3660 else "YS"
    counts = pd.Series(1, index=time).resample(rule).sum()
    frame = pd.DataFrame({"time": counts.index, "interactions": counts.to_numpy(), "what": "all"})
    return charts.lines(frame, "time", "interactions", "what", "Interactions over time", kind="T")
