"""Kernels: expressiveness and accuracy over the degree, and rules on tables of categories."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import state
from app.charts import kernels as charts
from app.navigation import leave_for
from app.parts import examples
from app.parts.kernel_curves import curves, growing, spelled_out
from app.parts.upload import clean, kept_files, say_kept, spooled, uploader
from app.parts.words import escaped
from app.session import ask, between, session
from recsys import InputError
from recsys.datasets.categorical import (
    MISSING,
    OneHot,
    encode,
    generated_tables,
    load_table,
    missing_cells,
    read_rows,
    tables_in,
)
from recsys.errors import counted
from recsys.explain import measure_rule
from recsys.explain.rules.formula import (
    FormulaFigures,
    formula_text,
    measure_formula,
    parse_formula,
    quoted,
)
from recsys.kernel_machines import Selected, select_by_ratio
from recsys.kernels import list_kernels, make_kernel
from recsys.utils.spec import parse_spec

DEGREES, RULES = "Kernels over their degree", "Rules on a table"
FIRST = "tic-tac-toe"  # the table that the page opens with
UPLOAD = "the upload"
MOST_ITEMS, MOST_ROWS = 6000, 5000
MOST_READ = 50_000  # rows of a table before those with missing cells are dropped
LEAST_ROWS = 8  # of each class
MOST_SEPARATED = 1000  # rows: a quadratic program a kernel
SEPARATING = ("linear", "mc:degree=2", "md:degree=2", "mdnf:d=2,c=2", "mcnf:d=2,c=2")
MOST_VALUES = 200  # different values of a column; more are numbers, not categories
INTRO = {
    DEGREES: (
        "A kernel says how alike two items are by counting the formulas that hold in both. With a "
        "higher degree the formulas are longer: conjunctions then tell more items apart, disjunctions "
        "fewer."
    ),
    RULES: "What does a kernel machine follow? It learns a class from a table of categories; the rule "
    "says what it follows.",
}


def page() -> None:
    """Show the page; only the part that is seen is computed."""
    st.header("Kernels", anchor=False)
    examples.question("kernels")
    shown = ask(
        st.segmented_control, "Show", name="kernels.show", default=DEGREES, options=[DEGREES, RULES],
        required=True, label_visibility="collapsed",
    )  # fmt: skip
    st.caption(INTRO[shown])
    if shown == RULES:
        table_rules()
    else:
        over_degrees()


# ---- over the degree


def over_degrees() -> None:
    """Show spectral ratio and AUC of kernels over the degree."""
    catalogue = state.choose_data()
    chosen = ask(
        st.multiselect, "Kernels", name="kernels.kernels", default=["mc", "md"], options=list_kernels(),
        filter_mode="contains", select_all=False, wrap=True,
    )  # fmt: skip
    top = ask(st.slider, "Highest degree", 2, 20, name="kernels.top", default=6, valid=between(2, 20))
    st.text("\n".join(told_of(name) for name in chosen))
    items = len(catalogue.labels)
    if items > MOST_ITEMS:
        st.warning(
            f"{counted(items, 'item')} are too many here: choose a dataset with at most {MOST_ITEMS:,} "
            "beside the page."
        )
        return
    if not chosen:
        st.info("Choose at least one kernel.")
        return
    here = session()
    key = ("degrees", catalogue.key, tuple(chosen), top)
    asked = state.digest(key)
    if here.get("kernels.asked", "") != asked:
        st.caption(
            "Computing fits one CF-KOMD a kernel and degree and measures it on one fold of five; on "
            "larger data it takes a while."
        )
        if not st.button("Compute", type="primary"):
            examples.empty("kernels")
            return
        here.set("kernels.asked", asked)
        st.rerun()
    frame = state.result(
        key,
        lambda progress: curves(catalogue.data, catalogue.matrix, list(chosen), int(top), progress),
        "Computing",
    )
    show_curves(frame)
    with_model(list(chosen), int(top))


def told_of(name: str) -> str:
    """Return what a kernel counts, and how it is drawn if it has no degree."""
    flat = "" if growing(name) else " It has no degree and is drawn as a broken line."
    return f"{name}: {spelled_out(name)}{flat}"


def show_curves(frame: pd.DataFrame) -> None:
    """Show the two pictures, what they mean, and the values as a table."""
    left, right = st.columns(2)
    for place, value, title, up in (
        (left, "spectral ratio", "Expressiveness", "spectral ratio, 0 to 1"),
        (right, "AUC", "Accuracy of CF-KOMD with it", "AUC, mean over users"),
    ):
        place.altair_chart(
            charts.degrees(frame, value, title, up), width="stretch",
            alt=f"{value} of each kernel over its degree",
        )  # fmt: skip
    st.caption(
        "A larger spectral ratio is a more expressive kernel: items look less alike. The most "
        "expressive kernel need not be the most accurate one."
    )
    for line in refusals(frame):
        st.caption(line)
    with st.expander("The values"):
        table = frame[["kernel", "degree", "spectral ratio", "AUC"]]
        st.dataframe(table.style.format({"degree": "{:.0f}"}, precision=4), hide_index=True)


def refusals(frame: pd.DataFrame) -> list[str]:
    """Return which kernels could not be computed from which degree on, and why."""
    rows = frame[frame["why"] != ""].drop_duplicates("kernel")
    return [f"{row.kernel}, degree {row.degree}: {row.why}" for row in rows.itertuples()]


def with_model(chosen: list[str], top: int) -> None:
    """Offer a kernel and degree as the model of the other pages."""
    one, two, three = st.columns([2, 1, 1], vertical_alignment="bottom")
    with one:
        name = ask(st.selectbox, "Kernel", name="kernels.use", default=chosen[0], options=chosen)
    with two:
        degree = ask(
            st.number_input, "Degree", 1, top, name="kernels.degree", default=min(2, top),
            valid=between(1, top), disabled=not growing(name),
        )  # fmt: skip
    params = ",".join(f"{field}={degree}" for field in growing(name))
    spec = f"cf-komd:kernel={name}" + (f",{params}" if params else "")
    three.button("Recommend with it", help=spec, on_click=recommend_with, args=(spec,))


def recommend_with(spec: str) -> None:
    """Open Recommend with a model."""
    session().set("model", spec)
    leave_for("recommend")


# ---- rules


def table_rules() -> None:
    """Show the rule that a machine follows on a table of categories, and let the visitor edit it."""
    uploader(
        "A table of your own: ARFF, CSV, TSV or Excel (optional)", "rules.file",
        ("arff", "csv", "tsv", "xlsx"), forgets=("rules.table",),
    )  # fmt: skip
    files_kept = kept_files("rules.file")
    kept = files_kept[0] if files_kept else None
    if kept is not None:
        say_kept([kept], "rules.file", "rules.table")
    folder = _folder()
    named = sorted(generated_tables(), key=lambda name: (name != FIRST, name))
    official = [] if folder is None else tables_in(folder)
    files = [] if folder is None else sorted(p.name for p in folder.glob("*.arff"))
    options = [*([UPLOAD] if kept else []), *named, *official, *files]
    name = ask(
        st.selectbox, "Table", name="rules.table", default=options[0], options=options,
        format_func=lambda one: f"{one} (raw file)" if one in files else one, filter_mode="contains",
    )  # fmt: skip
    try:
        if name == UPLOAD and kept is not None:
            names, rows = cells(kept.token, kept.name, kept.content)
            table = chosen_columns(names, rows, kept.name)
        elif name in files and folder is not None:
            names, rows = file_cells(str(folder / name))
            table = chosen_columns(names, rows, name)
        else:
            table = ready_table(name, "" if folder is None else str(folder))
        check(table)
    except InputError as error:
        st.error(escaped(clean(str(error), kept.name if name == UPLOAD and kept else name)))
        return
    said(table)
    one, two, three = st.columns(3)
    with one:
        clauses = ask(
            st.slider, "Most clauses", 1, 20, name="rules.clauses", default=10, valid=between(1, 20)
        )
    with two:
        literals = ask(
            st.slider, "Most parts of a clause", 1, 8, name="rules.literals", default=5,
            valid=between(1, 8),
        )  # fmt: skip
    with three:
        seconds = ask(
            st.slider, "Seconds to look for a better rule", 1, 60, name="rules.seconds", default=1,
            valid=between(1, 60),
            help="And for what no rule can weigh more than. It ends as soon as the rule is proved best.",
        )  # fmt: skip
    digest = hashlib.sha256(table.X.tobytes() + table.y.tobytes()).hexdigest()
    key = ("rules", digest, table.names, clauses, literals, seconds)
    options_: dict[str, Any] = {
        "max_clauses": int(clauses), "max_literals": int(literals), "names": table.names,
        "seconds": float(seconds),
    }  # fmt: skip
    found = state.result(key, lambda progress: measure_rule(table.X, table.y, **options_), "Learning")
    show_rule(table, found, state.digest(key))
    separated(table, digest)


def separated(table: OneHot, digest: str) -> None:
    """Offer the choice of a kernel by its radius-margin ratio on the table."""
    st.subheader("Which kernel", anchor=False)
    if len(table.y) > MOST_SEPARATED:
        st.caption(f"Kernels are compared on at most {MOST_SEPARATED:,} rows.")
        return
    if not ask(st.toggle, "Compare kernels", name="rules.kernels", default=False):
        return

    def ratios(progress: Any) -> Selected:
        made = [make_kernel(name, **params) for name, params in map(parse_spec, SEPARATING)]
        ratios_ = np.zeros(len(made))
        for k, kernel in enumerate(made):  # one at a time, so that it can be cancelled between them
            progress(SEPARATING[k], k, len(made))
            ratios_[k] = select_by_ratio([kernel], table.X, table.y).ratios[0]
        best = int(np.argmin(ratios_))
        return Selected(made[best], best, ratios_)

    found = state.result(("ratios", digest), ratios, "Separating")
    st.dataframe(
        {"kernel": list(SEPARATING), "radius-margin ratio": np.round(found.ratios, 4)}, hide_index=True
    )
    st.caption(
        f"{SEPARATING[found.position]} has the smallest ratio: the squared radius over the rows times "
        "the squared margin, with 1% of the identity mixed in. No rows are held out for it."
    )


def _folder() -> Path | None:
    """Return the folder of tables among the data of this machine, if there is one."""
    given = os.environ.get("RECSYS_DATA")
    folder = Path(given) / "categorical" if given else None
    return folder if folder is not None and folder.is_dir() else None


@st.cache_resource(max_entries=4, show_spinner="Reading the table")
def cells(token: str, name: str, _content: bytes) -> tuple[list[str], list[list[str]]]:
    """Return the column names and rows of an upload, which stay as they are."""
    with spooled(_content, name) as path:
        return read_rows(path)


@st.cache_resource(max_entries=4, show_spinner="Reading the table")
def file_cells(path: str) -> tuple[list[str], list[list[str]]]:
    """Return the column names and rows of a file of this machine, which stay as they are."""
    return read_rows(path)


@st.cache_resource(max_entries=8, show_spinner="Reading the table")
def ready_table(name: str, folder: str) -> OneHot:
    """Return a table of Boolean learning, its class being fixed."""
    return load_table(name, folder or None)


def chosen_columns(names: list[str], rows: list[list[str]], source: str) -> OneHot:
    """Show the columns of a table, and return it encoded with the class and the columns chosen.

    Raises
    ------
    InputError
        If there is no class to learn.
    """
    if len(rows) > MOST_READ:
        raise InputError(f"{counted(len(rows), 'row')}; at most {MOST_READ:,} are looked at here")
    stem = f"rules.{state.digest(source, names)[:8]}"
    one, two = st.columns(2)
    with one:
        target = ask(
            st.selectbox, "Column of the class", name=f"{stem}.target", default=names[-1], options=names,
            filter_mode="contains",
        )  # fmt: skip
    place = names.index(target)
    values, counts = np.unique(
        [row[place] for row in rows if row[place] not in MISSING], return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    classes = [str(values[k]) for k in order]
    if len(classes) < 2:
        raise InputError(f"{target} has one value only: choose another column of the class")
    if len(classes) > MOST_VALUES:
        raise InputError(
            f"{target} has {len(classes):,} different values: choose a column with at most {MOST_VALUES}"
        )
    number = dict(zip(values.tolist(), counts.tolist(), strict=True))
    with two:
        positive = ask(
            st.multiselect, "Class to describe", name=f"{stem}.class", default=[classes[0]],
            options=classes, format_func=lambda value: f"{value} ({counted(number[value], 'row')})",
            select_all=False,
        )  # fmt: skip
    if not positive:
        raise InputError("choose at least one class to describe")
    others = [name for name in names if name != target]
    missing = dict(zip(names, missing_cells(rows), strict=True))
    left_out = ask(
        st.multiselect, "Columns to leave out", name=f"{stem}.without", default=[], options=others,
        format_func=lambda name: f"{name} ({missing[name]:,} missing)" if missing[name] else name,
        help="A row with a missing cell in any column that is left is dropped.", select_all=False,
        filter_mode="contains", wrap=True,
    )  # fmt: skip
    keep = [k for k, name in enumerate(names) if name not in left_out]
    if len(keep) < 2:
        raise InputError("leave at least one column besides the class")
    for k in keep:
        if names[k] != target and len({row[k] for row in rows}) > MOST_VALUES:
            raise InputError(
                f"column {names[k]!r} has more than {MOST_VALUES} different values: leave it out, it "
                "is no category"
            )
    kept = [[row[k] for k in keep] for row in rows]
    return encode([names[k] for k in keep], kept, target, positive, source)


def check(table: OneHot) -> None:
    """Refuse a table that is too long, or has too few rows of a class.

    Raises
    ------
    InputError
    """
    if len(table.y) > MOST_ROWS:
        raise InputError(f"{counted(len(table.y), 'row')}; at most {MOST_ROWS:,} here")
    least = int(np.bincount(table.y, minlength=2).min())
    if least < LEAST_ROWS:
        raise InputError(
            f"one class has {counted(least, 'row')}, and each needs at least {LEAST_ROWS}: choose "
            "another class, or leave out columns with missing cells"
        )


def said(table: OneHot) -> None:
    """Say what is learned from: rows, features, the class, and what was dropped."""
    positive = int(table.y.sum())
    st.text(
        f"{counted(len(table.y), 'row')} with {counted(table.X.shape[1], 'feature')}; "
        f"{table.target} in {positive:,} of them ({positive / len(table.y):.1%})."
    )
    for note in table.notes:
        st.text(f"{note[0].upper()}{note[1:]}.")


def show_rule(table: OneHot, found: Any, key: str) -> None:
    """Show a rule as text, as a table, and as a formula that is measured as it is typed."""
    rule = found.rule
    learned = formula_text(rule)
    st.subheader("The rule", anchor=False)
    st.text(f"{table.target} if {rule}")
    for column, (label, value, told) in zip(
        st.columns(4),
        (
            (
                "accuracy",
                f"{found.accuracy:.3f}",
                "Share of the held-out rows that the rule tells right.",
            ),
            (
                "base rate",
                f"{found.majority:.3f}",
                "What is right if every row is given the larger class.",
            ),
            (
                "fidelity",
                f"{found.fidelity:.3f}",
                "Share of these rows where it agrees with its machine.",
            ),
            ("clauses", f"{len(rule.clauses)}", "A clause holds where all its parts do."),
        ),
        strict=True,
    ):
        column.metric(label, value, help=told)
    st.caption(
        f"Learned on {counted(found.rows, 'row')}, measured on {found.held_out:,} others, of which the "
        f"larger class has {found.majority:.3f}."
    )
    st.caption(
        f"{found.guarantee} A rule's weight is the sum of the machine's weights of the rows that it "
        "covers; literals are the parts of its clauses."
    )
    st.subheader("Change it", anchor=False)
    text = ask(
        st.text_input, "Formula", name=f"formula.{key[:8]}", default=learned, live=True,
        help="column=value joined by and, or, not and brackets. It is measured as you type.",
    )  # fmt: skip
    with st.expander("What can stand in it"):
        st.text(", ".join(quoted(name) for name in table.names))
    try:
        formula = parse_formula(text, table.names)
    except InputError as error:
        st.text(f"⚠ {error}.")
        return
    held = measure_formula(formula, table.X[found.held], table.y[found.held])
    every = measure_formula(formula, table.X, table.y)
    st.text("\n".join(formula_told(held, table.target)))
    st.dataframe(
        clause_table(every).style.format({"precision": "{:.1%}"}), hide_index=True, width="stretch"
    )
    st.caption(
        f"Counted over all {counted(every.rows, 'row')}. Alone: rows that no other clause covers; a "
        "clause with none can go."
    )


def formula_told(found: FormulaFigures, target: str) -> list[str]:
    """Return how right a formula is on the held-out rows, in sentences."""
    right = round(found.accuracy * found.rows)
    return [
        f"Held out: {counted(found.rows, 'row')}. Told right: {right:,} ({found.accuracy:.3f}; base "
        f"rate {found.base:.3f}).",
        f"Covered: {found.covered:,}, of which {target}: {found.right:,}. Missed: "
        f"{found.positives - found.right:,} of {found.positives:,}.",
    ]


def clause_table(found: FormulaFigures) -> pd.DataFrame:
    """Return a row a clause: what it covers, how much of it is right, and what it alone covers."""
    return pd.DataFrame(
        [
            {
                "clause": c.text, "rows covered": c.covered, "of the class": c.right,
                "precision": c.right / c.covered if c.covered else np.nan, "alone": c.alone,
            }
            for c in found.clauses
        ]
    )  # fmt: skip
