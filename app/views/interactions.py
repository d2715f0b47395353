"""Interactions: what factorization machines find in the features of a dataset, or of a table."""

from __future__ import annotations

import shlex
from typing import Any

import pandas as pd
import streamlit as st

from app import state
from app.charts import interactions as charts
from app.parts import examples
from app.parts.runs import source_of
from app.parts.selection import selection
from app.parts.upload import clean, kept_files, say_kept, spooled, uploader
from app.session import ask, between, session
from app.uploads import UploadedFile
from recsys import InputError
from recsys.errors import counted
from recsys.fm.findings import Study
from recsys.fm.penalties import penalties
from recsys.fm.problem import classes_of, guess_target, pairs_problem, table_of, table_problem
from recsys.fm.study import study
from recsys.fm.study_settings import MODELS, StudySettings
from recsys.utils.export import csv_text

DATASET, TABLE = "dataset", "table"
BEST = "best"  # regularization strength of the path
PREVIEW = 5  # rows
MOST_CLASSES = 200  # in a list to choose from
MODEL_LABELS = {
    "fm": "Factorization machine: products of two",
    "hofm": "Higher order: products of two, three and more",
    "all-subsets": "All subsets: products of any number",
    "sparse-fm": "Sparse: most products are left out",
}
PENALTY_LABELS = {
    "l2": "ℓ2: shrinks all, leaves nothing out",
    "l1": "ℓ1: leaves out single factors",
    "ti": "TI: leaves out products",
    "l21": "ℓ2,1: leaves out features",
    "cs": "CS: leaves out features by their products",
    "omega": "Ω: leaves out pairs",
    "l1-power": "ℓ1 to the power of the order: leaves out products",
    "l21-power": "ℓ2,1 to the power of the order: leaves out features",
}
KIND_LABELS = {
    "auto": "as its values look",
    "classes": "classes",
    "numbers": "numbers",
}


def page() -> None:
    """Show the page."""
    st.header("Interactions", anchor=False)
    examples.question("interactions")
    st.caption(
        "A factorization machine gives every product of features a weight. Take the chosen dataset, or "
        "upload a table with a column to predict."
    )
    make, command, told = _asked()
    settings, options = _settings()
    here = session()
    key = ("interactions", state.digest(*told, *vars(settings).items()))

    def fit() -> None:
        here.set("interactions.fit", key[1])
        here.cancelled.discard(key)

    st.button("Fit", type="primary", width="stretch", on_click=fit)
    if here.get("interactions.fit", "") != key[1]:
        st.caption("Press Fit: it takes seconds on a small table, and minutes on a large one.")
        examples.empty("interactions")
        return
    if key in here.cancelled:
        st.info("Cancelled. Change something, or press Fit again.")
        return
    job = state.run(key, lambda progress: study(make(), settings), "Fitting")
    if state.settled(job, key, "Fitting"):
        _show(job.result, [*command, *options] if command else [])
        selection(make, settings, key[1], command)


# ---- what to fit to


def _asked() -> tuple[Any, list[str], tuple[Any, ...]]:
    """Return what makes the problem, its part of the command line, and what identifies it."""
    uploader(
        "A table of your own (optional): CSV, TSV, Excel or Parquet, one row an example, one column to "
        "predict",
        "interactions.table", forgets=("interactions.source",),
    )  # fmt: skip
    kept = kept_files("interactions.table")
    if kept:
        say_kept(kept, "interactions.table", "interactions.source")
    catalogue_name = state.choose_dataset()
    if kept:
        labels = {TABLE: f"{kept[0].name} (uploaded)", DATASET: "users and items of the chosen dataset"}
        source = ask(
            st.selectbox, "Examples", name="interactions.source", default=TABLE,
            options=[TABLE, DATASET], format_func=labels.get,
        )  # fmt: skip
        if source == TABLE:
            return _table(kept[0])
    return _dataset(catalogue_name)


def _dataset(name: str) -> tuple[Any, list[str], tuple[Any, ...]]:
    catalogue = state.catalogue(name)
    data = catalogue.data
    st.text(
        f"Examples: what users of {data.name} like, against as many pairs that they did not; features: "
        "what is known of users and items."
    )
    bare = data.user_features is None and data.item_features is None
    if bare:
        st.info("This dataset has no features: the users and items themselves are combined.")
    with st.expander("Examples and features"):
        ids = bare or ask(
            st.toggle, "Users and items themselves, too", name="interactions.ids", default=False
        )
        ratio = ask(st.slider, "Pairs drawn for each liked one", 1, 5, name="interactions.ratio",
                    default=1, valid=between(1, 5))  # fmt: skip
        given = _common([
            str(column)
            for known in (data.user_features, data.item_features)
            if known is not None
            for column in known.columns
        ])  # fmt: skip
    given |= {"ids": ids, "ratio": ratio}
    options = [
        *source_of(catalogue).options(),
        "--ratio",
        ratio,
        *_options(given),
        *(["--ids"] if ids else []),
    ]
    seed = _seed()
    return (
        lambda: pairs_problem(data, seed=seed, **given),
        [] if name.startswith(state.UPLOAD) and not bare else [str(one) for one in options],
        (catalogue.key, *given.items(), seed),
    )


def _table(file: UploadedFile) -> tuple[Any, list[str], tuple[Any, ...]]:
    token, name, content = file
    frame = state.result(("table", token), lambda progress: _read(name, content), f"Reading {name}")
    st.caption(f"{counted(len(frame), 'row')} and {counted(frame.shape[1], 'column')}; the first rows:")
    st.dataframe(frame.head(PREVIEW), hide_index=True, width="stretch")
    columns = list(frame.columns)  # texts, each once: others are not read
    left, right = st.columns(2)
    with left:
        target = ask(
            st.selectbox, "Target: the column to predict", name="interactions.target",
            default=guess_target(columns), options=columns, filter_mode="contains",
        )  # fmt: skip
    cells = frame[target]
    with st.expander("Examples and features"):
        kind = ask(st.selectbox, "The target holds", name="interactions.kind", default="auto",
                   options=list(KIND_LABELS), format_func=KIND_LABELS.get)  # fmt: skip
        scaled = ask(st.toggle, "Columns of numbers scaled, not cut into ranges",
                     name="interactions.scaled", default=False)  # fmt: skip
        given = _common([column for column in columns if column != target])
    positive = None
    classes = classes_of(cells, kind)[:MOST_CLASSES]
    if len(classes) > 2:
        with right:
            positive = ask(
                st.selectbox, "Class to tell from the rest", name="interactions.positive",
                default=classes[0], options=classes, filter_mode="contains",
            )  # fmt: skip
    numbers, seed = "scaled" if scaled else "ranges", _seed()
    given |= {"kind": kind, "positive": positive, "numbers": numbers}
    options = ["--table", name, "--target", target, "--kind", kind, "--numbers", numbers]
    options += _options(given)
    options += [] if positive is None else ["--positive", positive]
    return (
        lambda: table_problem(frame, target, seed=seed, name=name, **given),
        [str(one) for one in options],
        (token, target, *given.items(), seed),
    )


def _read(name: str, content: bytes) -> pd.DataFrame:
    try:
        with spooled(content, name) as path:
            return table_of(path)
    except InputError as error:
        raise InputError(clean(str(error), name)) from None


def _common(columns: list[str]) -> dict[str, Any]:
    """Ask for what both kinds of examples have."""
    categories = ask(
        st.multiselect, "Columns whose numbers are codes", name="interactions.categories", default=[],
        options=columns,
    )  # fmt: skip
    buckets = ask(st.slider, "Ranges of a column of numbers", 2, 20, name="interactions.buckets",
                  default=5, valid=between(2, 20))  # fmt: skip
    rows = ask(st.number_input, "Of more examples so many are drawn", 100, 1_000_000,
               name="interactions.rows", default=50_000, valid=between(100, 1_000_000),
               step=1000)  # fmt: skip
    return {"categories": list(categories), "buckets": int(buckets), "rows": int(rows)}


def _options(given: dict[str, Any]) -> list[str]:
    """Return what the command line calls them."""
    named = ["--categories", ",".join(given["categories"])] if given["categories"] else []
    return [*named, "--buckets", str(given["buckets"]), "--rows", str(given["rows"])]


def _seed() -> int:
    return int(session().get("interactions.seed", 0))


# ---- how


def penalties_of(model: str, degree: int | None) -> list[str]:
    """Return the penalties that go with a model, those with a label first."""
    names = dict.fromkeys([*PENALTY_LABELS, *(known.name for known in penalties())])
    return [name for name in names if _goes(StudySettings(model=model, degree=degree, penalty=name))]


def _goes(settings: StudySettings) -> bool:
    try:
        settings.resolved()
    except InputError:
        return False
    return True


def _settings() -> tuple[StudySettings, list[str]]:
    """Show model, degree and penalty; return the settings and the options that say them."""
    one, two, three = st.columns(3)
    with one:
        model = ask(st.selectbox, "Model", name="interactions.model", default="sparse-fm",
                    options=list(MODELS), format_func=MODEL_LABELS.get)  # fmt: skip
    degree = None
    if model in ("hofm", "sparse-fm"):
        low = 3 if model == "hofm" else 2
        with two:
            degree = ask(st.slider, "Degree: most features in a product", low, 5,
                         name=f"interactions.degree.{model}", default=low,
                         valid=between(low, 5))  # fmt: skip
    offered = penalties_of(model, degree)
    with three:
        penalty = ask(st.selectbox, "Penalty", name="interactions.penalty",
                      default="ti" if model == "sparse-fm" else "l2", options=offered,
                      format_func=lambda name: PENALTY_LABELS.get(name, name))  # fmt: skip
    path = StudySettings(model=model, degree=degree, penalty=penalty).resolved().strengths or ()
    with st.expander("Regularization strength, intervals, length of the fit"):
        strength = ask(
            st.selectbox, "Regularization strength", name="interactions.strength", default=BEST,
            options=[BEST, *(f"{value:g}" for value in path)],
            format_func=lambda one: "the best of the path" if one == BEST else one,
        )  # fmt: skip
        refits = ask(st.slider, "Fits on rows drawn again, for intervals of the weights", 0, 100,
                     name="interactions.refits", default=0, valid=between(0, 100))  # fmt: skip
        factors = ask(st.slider, "Factors", 1, 64, name="interactions.factors", default=8,
                      valid=between(1, 64))  # fmt: skip
        epochs = ask(st.slider, "Most epochs of a fit", 5, 500, name="interactions.epochs",
                     default=50, valid=between(5, 500))  # fmt: skip
        least = ask(st.slider, "Rows that an interaction must have", 1, 100,
                    name="interactions.rows.least", default=5, valid=between(1, 100))  # fmt: skip
    settings = StudySettings(
        model=model, degree=degree, penalty=penalty,
        strength=None if strength == BEST else float(strength), refits=int(refits),
        factors=int(factors), epochs=int(epochs), min_rows=int(least), seed=_seed(),
    )  # fmt: skip
    options = ["--model", model, "--penalty", penalty, "--factors", factors, "--epochs", epochs]
    options += ["--min-rows", least, "--refits", refits, "--seed", _seed()]
    options += [] if degree is None else ["--degree", degree]
    options += [] if strength == BEST else ["--strength", strength]
    return settings, [str(one) for one in options]


# ---- what was found


def _show(found: Study, options: list[str]) -> None:
    """Show a study, and the options of the command line that gives its values, if there are any."""
    st.subheader("What was found")
    for column, (label, value) in zip(
        st.columns(4),
        (
            (f"Test {found.metric}", f"{found.value:.4g}"),
            ("Without interactions", f"{found.alone:.4g}"),
            ("Features used", f"{found.used_features:,} of {found.features:,}"),
            ("Pairs used", f"{found.used_pairs:,} of {found.pairs:,}"),
        ),
        strict=True,
    ):
        column.metric(label, value)
    for sentence in found.sentences():
        st.text(sentence)
    for note in found.notes:
        st.text(f"Note: {note}.")
    _weights(found, options)
    _maps(found)
    if found.path:
        st.subheader("Path over the penalty")
        left, right = st.columns(2)
        left.altair_chart(charts.path_figure(found), width="stretch")
        right.altair_chart(charts.path_left(found), width="stretch")
        st.caption(
            f"The ring is the regularization strength that was chosen. The {found.metric} is that of "
            "the validation rows, not of the test rows."
        )
    st.subheader("Learning curve")
    left, right = st.columns(2)
    left.altair_chart(charts.curve_objective(found), width="stretch")
    right.altair_chart(charts.curve_figure(found), width="stretch")
    st.caption(
        "The objective is that of the training rows, with the penalty; the other line is the metric of "
        "the validation rows."
    )
    _selected(found)


def _weights(found: Study, options: list[str]) -> None:
    st.subheader("Top interactions")
    orders = [order for order in found.settings.orders if found.of_order(order)]
    if not orders:
        st.info(
            "No product of features has a weight at this regularization strength: choose a smaller one."
        )
    else:
        order = ask(
            st.segmented_control, "Products of", name="interactions.order", default=orders[0],
            options=orders, format_func=lambda k: "two" if k == 2 else "three",
        )  # fmt: skip
        order = order or orders[0]
        some = found.of_order(order)
        frame = pd.DataFrame(
            [(one.text, one.weight, one.low, one.high, one.rows) for one in some],
            columns=["interaction", "weight", "low", "high", "rows"],
        )
        if not found.settings.refits:
            frame = frame.drop(columns=["low", "high"])
        st.altair_chart(charts.weight_bars(found, order), width="stretch")
        number = st.column_config.NumberColumn(format="%+.4f")
        st.dataframe(
            frame, hide_index=True, width="stretch",
            column_config={"weight": number, "low": number, "high": number},
        )  # fmt: skip
    st.download_button(
        "Download CSV", csv_text(*_file(found)), mime="text/csv",
        file_name=f"interactions-{_plain(found.name)}-{found.settings.model}.csv",
    )  # fmt: skip
    if options:
        with st.expander("The same on the command line"):
            st.code(shlex.join(["recsys", "interactions", *options]), language=None, wrap_lines=True)


def _file(found: Study) -> tuple[list[str], list[tuple[Any, ...]]]:
    columns, rows = found.table()
    return list(columns), rows


def _plain(name: str) -> str:
    """Return a name that any file system takes."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:60]


def _maps(found: Study) -> None:
    st.subheader("Heat map")
    if not any(weight is not None for line in found.field_grid.weights for weight in line):
        st.info("No two features occur together in enough rows: there is nothing to draw.")
        return
    by = ask(
        st.segmented_control, "By", name="interactions.map", default="columns",
        options=["columns", "features"],
    )  # fmt: skip
    if by == "features" and found.grid.names:
        grid, title = found.grid, "Weights between the features of the largest pairs"
    else:
        grid, title = found.field_grid, "Largest weight, by size, between two columns"
    st.altair_chart(charts.heat_map(grid, title, found), width="stretch")
    st.caption("Blank: no row has both, or too few rows have.")


def _selected(found: Study) -> None:
    st.subheader("What was selected")
    used = sum(one.used for one in found.singles)
    st.text(f"{counted(used, 'feature')} of {len(found.singles):,} in some product with a weight.")
    frame = pd.DataFrame(
        [(one.name, one.field, one.used, one.weight, one.rows) for one in found.singles],
        columns=["feature", "column", "in a product", "weight by itself", "rows"],
    )
    st.dataframe(
        frame, hide_index=True, width="stretch",
        column_config={"weight by itself": st.column_config.NumberColumn(format="%+.4f")},
    )  # fmt: skip
