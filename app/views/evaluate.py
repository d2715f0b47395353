"""Evaluate: models measured in the background, with intervals, spread and trade-off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, state
from app.catalogues import Catalogue
from app.jobs import Job
from app.parts.models import DEFAULT, metrics, models
from recsys import InputError, make_ranker
from recsys.data import PROTOCOLS, find_protocol
from recsys.evaluation import Report, evaluate
from recsys.explain import listing
from recsys.utils.export import csv_text, json_text
from recsys.utils.spec import parse_spec

BEST = "#cfe8f5"
CHOSEN = ("popularity", "ease", DEFAULT)  # until a person chooses, as far as they are offered


def page() -> None:
    """Show the page."""
    st.header("Evaluate")
    catalogue = state.choose_data()
    with st.form("evaluation"):
        offered = models()
        chosen = st.multiselect("Models", offered, [name for name in CHOSEN if name in offered])
        more = st.text_input("Another model", placeholder="cf-komd:kernel=mdnf,d=2,c=2")
        one, two, three = st.columns(3)
        protocol = one.selectbox(
            "Protocol", list(PROTOCOLS), accept_new_options=True, key="protocol",
            help="next- takes any number: next-3.",
        )  # fmt: skip
        several = listing([name for name in PROTOCOLS if PROTOCOLS.get(name).default_folds > 1])
        folds = two.number_input("Folds", 1, 10, 2, help=f"Only {several} have several.")
        seed = three.number_input("Seed", 0, 10_000, 0)
        measured = st.multiselect("Metrics", metrics(), ["auc", "ndcg@10", "map@10", "novelty@10"])
        pressed = st.form_submit_button("Run", type="primary")
    specs = [*chosen, *([more.strip()] if more.strip() else [])]
    if pressed:
        start(catalogue, specs, protocol, int(folds), int(seed), measured)
    job: Job | None = st.session_state.get("evaluation job")
    if job is None:
        st.info("Choose models and press Run. It runs in the background: other pages stay usable.")
    elif not job.over:
        running(job)
    elif job.error is not None:
        st.error("The evaluation was cancelled." if job.error == "cancelled" else job.error)
    else:
        show(job.result)


def start(
    catalogue: Catalogue,
    specs: list[str],
    protocol: str,
    folds: int,
    seed: int,
    metrics: list[str],
) -> None:
    """Start an evaluation; a wrong specification is told at once."""
    try:
        way = find_protocol(protocol)
        chosen = []
        for spec in specs:
            name, params = parse_spec(spec)
            chosen.append((spec, make_ranker(name, **params)))
    except InputError as error:
        st.session_state.pop("evaluation job", None)
        st.error(str(error))
        st.stop()
    running_one: Job | None = st.session_state.get("evaluation job")
    if running_one is not None:
        running_one.cancel()
    several = folds if way.default_folds > 1 else None
    divided = max(2, several) if several and way.grouped else several
    st.session_state["evaluation job"] = Job(
        lambda progress: evaluate(
            catalogue.data, chosen, protocol=protocol, folds=divided, only_folds=several,
            metrics=metrics, seed=seed, progress=progress,
        )
    )  # fmt: skip


@st.fragment(run_every=0.7)
def running(job: Job) -> None:
    """Show progress and the way out."""
    if job.over:
        st.rerun()
    share = job.done / job.total if job.total else 0.0
    st.progress(min(share, 1.0), text=job.text)
    if st.button("Cancel"):
        job.cancel()


def show(report: Report) -> None:
    """Show a report: table, differences, spread, trade-off, files."""
    st.caption(f"{report.dataset}: {report.about()}")
    for note in [*report.notes, *report.conventions]:
        st.caption(note)
    names = list(report.definitions)
    several = report.folds > 1
    table = pd.DataFrame(
        [
            {
                "model": r.model,
                **{
                    column: value
                    for n in names
                    for column, value in (
                        (n, r.metrics[n].mean),
                        *([(f"{n} ±", r.metrics[n].std)] if several else []),
                    )
                },
                "fit s": r.fit_seconds,
                "score s": r.score_seconds,
            }
            for r in report.results
        ]
    )
    seconds = {"fit s": "{:.2f}", "score s": "{:.2f}"}
    st.dataframe(
        table.style.format(seconds, precision=4)
        .highlight_max([n for n in names if report.better[n] == "more"], color=BEST)
        .highlight_min([n for n in names if report.better[n] == "less"], color=BEST),
        hide_index=True,
    )
    if report.comparisons:
        st.subheader("Differences over users")
        for line in report.verdicts():
            st.text(line)
        if len(report.results) > 2:
            with st.expander("All pairs"):
                pairs = pd.DataFrame([differences(c) for c in report.comparisons])
                small = {"p (Holm)": "{:.2g}"}
                st.dataframe(pairs.style.format(small, precision=4), hide_index=True)
    name = st.selectbox("Look closer at", names)
    st.subheader("How users spread")
    st.altair_chart(charts.distribution(_spread(report, name), name), width="stretch")
    others = [n for n in names if n != name]
    if others:
        other = st.selectbox("Trade off against", others, index=len(others) - 1)
        st.altair_chart(charts.trade_off(table[["model", name, other]], other, name), width="stretch")
    with st.expander("What the figures mean"):
        told = [*report.verdicts(), *report.conventions]
        for line in report.sentences():
            if line not in told:
                st.text(line)
    left, right = st.columns(2)
    left.download_button(
        "Download JSON",
        json_text(report.as_dict()),
        "evaluation.json",
        "application/json",
    )
    text = csv_text(*report.table())
    right.download_button("Download CSV", text, "evaluation.csv", "text/csv")


def differences(c: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison as a row: the better model first, and whether it leads."""
    ahead = c["difference"] <= 0 if c["better"] == "less" else c["difference"] >= 0
    sign = 1 if ahead else -1
    low, high = sorted((sign * c["low"], sign * c["high"]))
    return {
        "metric": c["metric"],
        "model": c["first"] if ahead else c["second"],
        "verdict": (
            "is not told apart from" if not c["told_apart"] else "leads" if c["better"] else "is above"
        ),
        "other": c["second"] if ahead else c["first"],
        "by": abs(c["difference"]),
        "95% from": low,
        "to": high,
        "p (Holm)": c["p_holm"],
        "users": c["users"],
    }


def _spread(report: Report, name: str) -> pd.DataFrame:
    parts = []
    for result in report.results:
        values = np.sort(result.per_user[name][np.isfinite(result.per_user[name])])
        at = np.unique(np.linspace(0, len(values) - 1, 200).astype(int)) if len(values) else []
        parts.append(
            pd.DataFrame(
                {
                    name: values[at],
                    "share of users": (np.array(at) + 1) / max(len(values), 1),
                    "model": result.model,
                }
            )
        )
    return pd.concat(parts)
