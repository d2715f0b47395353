"""Compare: which model is better on these data, and by how much."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import charts, state
from app.catalog import Catalog
from app.choices import SAMPLE, ask, scoped
from app.jobs import result, results
from app.navigation import go_to
from app.parts.models import BALANCED, DEFAULT, meaning, metrics, models, named
from app.parts.text import count, escaped
from recsys import InputError
from recsys.data import PROTOCOLS, find_protocol
from recsys.evaluation import Report, evaluate
from recsys.evaluation.metrics import parse_metric
from recsys.rankers.registry import ranker_of

PAGE = "compare"
QUICK = ("popularity", DEFAULT, BALANCED)  # compared until others are chosen
MEASURED = ("auc", "ndcg@10", "map@10")


def page() -> None:
    """Show the page."""
    st.header("Compare", anchor=False)
    st.text("Models predict a hidden part of each user's likes from the rest.")
    catalog = state.choose_catalog(PAGE)
    settings = choose(catalog)
    if settings is None:
        return
    key = ("report", catalog.key, *settings.values())
    asked = st.session_state.get("compared") == key or bool(results(key))
    if not asked and not (catalog.name == SAMPLE and settings == defaults()):
        st.button(
            "Compare", type="primary", on_click=st.session_state.__setitem__, args=("compared", key)
        )
        return
    report = result(PAGE, key, lambda: run(catalog, settings), "Comparing")
    show(catalog, report, settings)


def defaults() -> dict[str, Any]:
    """Return the settings until others are chosen."""
    return {"models": QUICK, "metrics": MEASURED, "protocol": "half-profile", "folds": 2, "seed": 0}


def choose(catalog: Catalog) -> dict[str, Any] | None:
    """Show what is compared and how; None if it cannot be done."""
    typed = [*st.query_params.get_all("models"), *st.session_state.get("models", [])]
    offered = models()
    known = {*offered, *map(named, offered)}
    options = [*offered, *dict.fromkeys(spec for spec in typed if spec not in known)]
    specs = ask(
        st.multiselect,
        "Models",
        options,
        key="models",
        default=list(QUICK),
        format_func=named,
        accept_new_options=True,
        filter_mode="contains",
        select_all=False,
        help="A name, or a name with parameters: ease:regularization=200",
    )
    settings = st.expander("Settings")
    with settings:
        one, two, three = st.columns([2, 1, 1])
    has_test = catalog.data.held_out is not None
    names = [name for name in PROTOCOLS if has_test or name != "published"]
    with one:
        key = scoped("protocol", catalog.name if has_test else None)
        usual = names.index("half-profile")
        protocol = ask(st.selectbox, "Protocol", names, usual, key=key, help="Which likes are hidden.")
    way = find_protocol(protocol)
    with two:
        folds = ask(st.number_input, "Folds", 2, 10, 2, key="folds", disabled=way.folds == 1)
    with three:
        seed = ask(st.number_input, "Seed", 0, 10_000, 0, key="seed", help="Seed of the random choices.")
    with settings:
        st.caption(f"Hidden and predicted: {escaped(way.description)}.")
        measured = ask(st.multiselect, "Metrics", metrics(), key="metrics", default=list(MEASURED))
        for name in measured:
            st.caption(escaped(meaning(name)), help=escaped(parse_metric(name)[0].definition))
    try:
        for spec in specs:
            ranker_of(spec)  # refuses an unknown one
        way.check(catalog.data, int(folds) if way.folds > 1 else way.folds)
    except InputError as error:
        st.warning(escaped(error))
        return None
    if not specs or not measured:
        st.info("Choose at least one model and one metric.")
        return None
    chosen = {"models": tuple(specs), "metrics": tuple(measured), "protocol": protocol}
    return chosen | {"folds": int(folds) if way.folds > 1 else None, "seed": int(seed)}


def run(catalog: Catalog, settings: dict[str, Any]) -> Report:
    """Return the report of these settings."""
    return evaluate(
        catalog.data,
        {named(spec): ranker_of(spec) for spec in settings["models"]},
        protocol=settings["protocol"],
        folds=settings["folds"],
        metrics=settings["metrics"],
        seed=settings["seed"],
    )


def show(catalog: Catalog, report: Report, settings: dict[str, Any]) -> None:
    """Show which model is better and by how much, the intervals, and the rest folded."""
    frame = report.frame()
    metric = settings["metrics"][0]
    for name, why in report.failed.items():
        st.warning(escaped(f"{name} could not be measured: {why}"))
    order = frame[frame["metric"] == metric].sort_values(
        "mean", ascending=report.better.get(metric) == "less"
    )
    names = order["model"].tolist()
    specs = {named(spec): spec for spec in settings["models"]}
    with st.container(border=True):
        st.markdown(f"**{escaped(headline(report, metric, names))}**")
        st.text("\n".join(others(report, settings["metrics"], names)))
        with st.container(horizontal=True):
            for k, name in enumerate(names):
                kind: Any = "primary" if k == 0 else "secondary"
                st.button(f"Use {escaped(name)}", type=kind, on_click=use_model, args=(specs[name],))
    columns = st.columns(min(len(settings["metrics"]), 3))
    for k, name in enumerate(settings["metrics"]):
        means = frame[frame["metric"] == name].rename(columns={"model": "name"})
        chart = charts.intervals(means, name, "mean and 95% interval")
        columns[k % len(columns)].altair_chart(chart, width="stretch")
    with st.expander("All values"):
        st.dataframe(values(report, frame, settings["metrics"]), hide_index=True)
        for note in report.notes:
            st.caption(escaped(note))
    groups(report, metric)
    with st.expander("The same on the command line"):
        st.code(command(catalog, settings), language=None, wrap_lines=True)
    st.download_button(
        "Download CSV",
        frame.to_csv(index=False),
        f"comparison-{Path(catalog.data.name).stem}.csv",
        "text/csv",
        on_click="ignore",
    )


def difference(report: Report, metric: str, one: str, two: str) -> dict[str, Any] | None:
    """Return by how much a model is better than another, with its interval."""
    for c in report.comparisons:
        if c["metric"] == metric and {c["first"], c["second"]} == {one, two}:
            sign = 1 if c["first"] == one else -1
            ends = sorted((sign * c["low"], sign * c["high"]))
            found = {"by": sign * c["difference"], "ends": ends, "p": c["p_holm"]}
            return found | {"clear": c["differs_clearly"]}
    return None


def headline(report: Report, metric: str, names: list[str]) -> str:
    """Return which model is best by a metric, and by how much."""
    if len(names) < 2:
        return f"{names[0]}: {metric} {report.best().get(metric, float('nan')):.3f}"
    found = difference(report, metric, *names[:2])
    if found is None:
        return f"{names[0]} has the best {metric}"
    between = f"95% interval {found['ends'][0]:+.3f} to {found['ends'][1]:+.3f}"
    if not found["clear"]:
        pair = f"{names[0]} and {names[1]}"
        if (
            found["ends"][0] > 0 or found["ends"][1] < 0
        ):  # then it is the test that does not tell them apart
            between = f"p = {found['p']:.2g}, corrected for the number of tests"
        return f"No clear difference in {metric} between {pair} ({found['by']:+.3f}, {between})"
    return f"{names[0]} is better than {names[1]}: {metric} {found['by']:+.3f} ({between})"


def others(report: Report, measured: tuple[str, ...], names: list[str]) -> list[str]:
    """Return how the best model by the first metric does on the other metrics."""
    lines = [meaning(measured[0])]
    for metric in measured[1:]:
        for name in names[1:2]:
            found = difference(report, metric, names[0], name)
            if found is not None:
                clear = "a clear difference" if found["clear"] else "no clear difference"
                lines.append(f"In {metric}: {found['by']:+.3f}, {clear}.")
    hidden = find_protocol(report.protocol).description
    if len(names) > 2 and (said := report.decision()):
        lines.append(said)
    tested = count(report.rows["user"].nunique(), "tested user")
    lines.append(
        f"{tested} of {report.users:,}, {count(report.items, 'item')}. Hidden and predicted: {hidden}."
    )
    return lines


def values(report: Report, frame: pd.DataFrame, measured: tuple[str, ...]) -> pd.DataFrame:
    """Return a row for each model: its metrics with intervals, and its seconds."""
    rows = []
    for r in report.results:
        row: dict[str, Any] = {"model": r.model}
        own = frame[frame["model"] == r.model].set_index("metric")
        for name in measured:
            mean, low, high = own.loc[name, ["mean", "low", "high"]].astype(float)
            row[name] = f"{mean:.4f} ({low:.4f} to {high:.4f})"
        rows.append(row | {"fit, s": round(r.fit_seconds, 2), "scores, s": round(r.score_seconds, 2)})
    return pd.DataFrame(rows)


def groups(report: Report, metric: str) -> None:
    """Show a metric by the length of the profile."""
    with st.expander("By the length of the profile"):
        try:
            frame = report.by("profile length")
        except InputError as error:
            st.caption(escaped(error))
            return
        frame = frame[frame["metric"] == metric].rename(columns={"group": "liked items", "mean": metric})
        frame["liked items"] = frame["liked items"].astype(str)
        st.altair_chart(charts.lines(frame, "liked items", metric, "model", metric, kind="N"))


def use_model(spec: str) -> None:
    """Open Recommend with a model: what a button calls."""
    st.session_state["model"] = spec
    go_to("recommend")


def command(catalog: Catalog, settings: dict[str, Any]) -> str:
    """Return the command that prints the same values."""
    uploaded = catalog.name.startswith("upload-")
    words = ["--interactions", catalog.data.name] if uploaded else ["--dataset", catalog.name]
    for role in ("user", "item", "rating", "time", "weight") if uploaded else ():
        if column := getattr(catalog.data.columns, role, None):
            words += [f"--{role}-col", column]
    if catalog.least is not None and catalog.data is not catalog.every:
        words += ["--min-rating", f"{catalog.least:g}"]
    for spec in settings["models"]:
        words += ["--model", spec]
    for metric in settings["metrics"]:
        words += ["--metric", metric]
    words += ["--protocol", settings["protocol"], "--seed", str(settings["seed"])]
    if settings["folds"] is not None:
        words += ["--folds", str(settings["folds"])]
    return shlex.join(["recsys", "evaluate", *words])
