"""Charts of the page Links: AUCs with their errors, and an object among its neighbours."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS

KINDS = ("this one", "known link", "predicted link")
GREY = "#8a8a8a"
INK = {"light": "#333333", "dark": "#e6e6e6"}  # of names
TALL = 420  # of the network


def aucs(frame: pd.DataFrame) -> Any:
    """Return each model's AUC with its 95% interval, the best one first.

    Parameters
    ----------
    frame : DataFrame
        Columns model, AUC, low and high, in the order shown.
    """
    order = frame["model"].tolist()
    y = alt.Y("model:N", sort=order, title=None, axis=alt.Axis(labelLimit=190, labelOverlap=False))
    x = alt.Scale(zero=False, padding=12)
    tips = ["model", *(alt.Tooltip(name, format=".4f") for name in ("AUC", "low", "high"))]
    base = alt.Chart(frame)
    line = base.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(
        x=alt.X("low:Q", scale=x, title="AUC, 95% interval"), x2="high:Q",
        y=y, tooltip=tips,
    )  # fmt: skip
    mark = base.mark_point(size=110, filled=True, color=COLOURS[0], opacity=1).encode(
        x=alt.X("AUC:Q", scale=x), y=y, tooltip=tips
    )
    return (line + mark).properties(height=44 * len(frame) + 90, title="AUC of each predictor")


def network(nodes: pd.DataFrame, edges: pd.DataFrame, title: str, theme: str = "light") -> Any:
    """Return an object in the middle, its known neighbours left of it, the predicted ones right.

    Parameters
    ----------
    nodes : DataFrame
        Columns name, kind, x and y (−1 to 1), score (None where the link is known).
    edges : DataFrame
        Columns x, y, x2, y2 and kind: "known link", "predicted link" or "between them".
    title : str
    theme : "light" or "dark"
    """
    ink = INK[theme]
    x = alt.Scale(domain=[-2.25, 2.25])
    y = alt.Scale(domain=[-1.15, 1.15])
    lines = (
        alt.Chart(edges)
        .mark_rule()
        .encode(
            x=alt.X("x:Q", scale=x, axis=None), y=alt.Y("y:Q", scale=y, axis=None), x2="x2:Q", y2="y2:Q",
            color=alt.Color(
                "kind:N", legend=None,
                scale=alt.Scale(
                    domain=["known link", "predicted link", "between them"],
                    range=[COLOURS[0], COLOURS[1], GREY],
                ),
            ),
            strokeDash=alt.condition(
                alt.datum["kind"] == "predicted link", alt.value([6, 4]), alt.value([1, 0])
            ),
            opacity=alt.condition(
                alt.datum["kind"] == "between them", alt.value(0.35), alt.value(0.8)
            ),
        )
    )  # fmt: skip
    place = {"x": alt.X("x:Q", scale=x, axis=None), "y": alt.Y("y:Q", scale=y, axis=None)}
    points = (
        alt.Chart(nodes)
        .mark_point(filled=True, opacity=1, stroke="white", strokeWidth=1)
        .encode(
            **place,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=list(KINDS), range=[ink, COLOURS[0], COLOURS[1]]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            size=alt.condition(alt.datum["kind"] == "this one", alt.value(260), alt.value(130)),
            tooltip=["name", "kind", alt.Tooltip("score:Q", format=".4f")],
        )
    )
    layers = lines + points
    for align, dx, side in (("right", -9, "left"), ("left", 9, "right"), ("center", 0, "middle")):
        part = nodes[nodes["side"] == side]
        if len(part):
            layers += (
                alt.Chart(part)
                .mark_text(
                    align=align, dx=dx, dy=-18 if side == "middle" else 0, limit=105, fontSize=11,
                    color=ink,
                )
                .encode(**place, text="name", tooltip=["name", "kind"])
            )  # fmt: skip
    return layers.resolve_scale(color="independent").properties(height=TALL, title=title)
