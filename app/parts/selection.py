"""What is selected: the path from nothing on, a point of it, and how sure the choice is."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from app import state
from app.charts import selection as charts
from app.session import ask, between, session
from recsys.errors import counted
from recsys.fm.problem import Problem
from recsys.fm.selection import SELECTABLE, Selection, select
from recsys.fm.study_settings import StudySettings
from recsys.utils.export import csv_text


def selection(
    make: Callable[[], Problem], settings: StudySettings, told: str, command: list[str]
) -> None:
    """Show the part of the page.

    Parameters
    ----------
    make : callable
        Gives the problem.
    settings : StudySettings
    told : str
        Identifies problem and settings.
    command : list of str
        The options that give the command line the problem; empty where there are none.
    """
    st.subheader("What is selected, and how sure that is")
    if settings.resolved().penalty not in SELECTABLE or settings.model == "all-subsets":
        st.caption(
            f"This is for the model sparse-fm with one of the penalties {', '.join(SELECTABLE)}: others "
            "leave no interaction out exactly."
        )
        return
    st.caption(
        "A path begins where no interaction is worth its penalty, and lowers the penalty step by step. "
        "What is selected at each is fitted again without the penalty, which shrinks. Interactions that "
        "few rows have are selected, too: the table says how many."
    )
    left, right = st.columns(2)
    with left:
        pairs = ask(st.slider, "Pairs of random halves, for stability", 0, 50,
                    name="interactions.halves", default=0, valid=between(0, 50))  # fmt: skip
    with right:
        starts = ask(st.slider, "Random starts at the chosen regularization strength", 0, 20,
                     name="interactions.starts", default=0, valid=between(0, 20))  # fmt: skip
    here = session()
    key = ("interactions path", state.digest(told, pairs, starts))

    def follow() -> None:
        here.set("interactions.follow", key[1])
        here.forget("interactions.point")  # it was of another path
        here.cancelled.discard(key)

    st.button("Follow the path", on_click=follow)
    if here.get("interactions.follow", "") != key[1]:
        return
    if key in here.cancelled:
        st.info("Cancelled. Press the button to begin again.")
        return
    work = lambda progress: select(  # noqa: E731 - as `state.run` takes it
        make(), settings, pairs=int(pairs), starts=int(starts), progress=progress
    )
    job = state.run(key, work, "Following the path")
    if state.settled(job, key, "Following the path"):
        _show(job.result, _words(settings, int(pairs), int(starts), command) if command else [])


def _words(settings: StudySettings, pairs: int, starts: int, command: list[str]) -> list[str]:
    """Return the command that gives the same path."""
    options = {
        "--model": settings.model, "--degree": settings.degree, "--penalty": settings.penalty,
        "--factors": settings.factors, "--epochs": settings.epochs, "--seed": settings.seed,
    }  # fmt: skip
    words = ["recsys", "interactions", *command]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    return [*words, "--select", "--halves", str(pairs), "--starts", str(starts)]


def _show(found: Selection, command: list[str]) -> None:
    for sentence in found.sentences():
        st.text(sentence)
    places = list(range(len(found.points)))

    def label(place: int) -> str:
        point = found.points[place]
        return f"{point.strength:.2g}, {counted(point.interactions, 'interaction')}"

    place = int(ask(
        st.select_slider, "Point of the path", name="interactions.point", default=found.taken,
        options=places, format_func=label,
    ))  # fmt: skip
    st.caption(_told(found.marks, label))
    point = found.points[place]
    after = "–" if point.refitted is None else f"{point.refitted:.4g}"
    for column, (name, value) in zip(
        st.columns(4),
        (
            ("Before the refit", f"{point.value:.4g}"), ("After the refit", after),
            ("Without interactions", f"{found.linear.choose:.4g}"),
            ("Leaving none out", f"{found.full.choose:.4g}"),
        ),
        strict=True,
    ):  # fmt: skip
        column.metric(name, value)
    st.caption(
        f"{found.metric} of the point and of the models beside it, on the {found.rows[1]:,} rows that "
        "choose."
    )
    left, right = st.columns(2)
    left.altair_chart(charts.path_figures(found, place), width="stretch")
    right.altair_chart(charts.path_numbers(found, place), width="stretch")
    _chosen(found, place)
    st.text(f"On {counted(found.rows[2], 'test row')}, measured for these points alone:")
    frame = pd.DataFrame(
        [(one.model, one.interactions, one.choose, one.measure) for one in found.measured],
        columns=["model", "interactions", f"validation {found.metric}", f"test {found.metric}"],
    )
    four = st.column_config.NumberColumn(format="%.4f")
    st.dataframe(
        frame, hide_index=True, width="stretch", column_config={name: four for name in frame.columns[2:]}
    )
    if command:
        with st.expander("This path on the command line"):
            st.code(shlex.join(command), language=None, wrap_lines=True)


def _told(marks: dict[int, str], label: Callable[[int], str]) -> str:
    """Return which points are best, and by what: str.capitalize would spoil EBIC."""
    said = "; ".join(f"{told}: {label(place)}" for place, told in marks.items())
    return said[:1].upper() + said[1:]


def _chosen(found: Selection, place: int) -> None:
    point = found.points[place]
    if not point.chosen:
        st.info("Nothing is selected at this regularization strength.")
        return
    st.altair_chart(charts.weight_paths(found, place), width="stretch")
    rows = [
        (one.text, one.weight, one.refitted, one.rows, one.halves, one.starts) for one in point.chosen
    ]
    columns = ["interaction", "weight", "refitted", "rows", "halves", "starts"]
    frame = pd.DataFrame(rows, columns=columns).dropna(axis=1, how="all")
    number = st.column_config.NumberColumn(format="%+.4f")
    share = st.column_config.NumberColumn(format="%.2f")
    config: dict[str, Any] = {
        "weight": number, "refitted": number, "halves": share, "starts": share,
    }  # fmt: skip
    st.dataframe(frame, hide_index=True, width="stretch", column_config=config)
    if point.interactions > len(point.chosen):
        st.caption(f"The {len(point.chosen):,} largest of {point.interactions:,}.")
    columns_of, lines = found.table(place)
    st.download_button(
        "Download what is selected", csv_text(list(columns_of), lines), mime="text/csv",
        file_name="selected-interactions.csv",
    )  # fmt: skip
