"""Charts of the page Interactions: weights, heat maps, the path over the penalty, the learning curve."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.fm.findings import Grid, Study
from recsys.utils.palette import COLOURS

FOR, AGAINST = COLOURS[0], COLOURS[1]
LABELS = 240  # pixels of a name at most
CELL, ROW = 26, 34  # pixels of a bar, and of a row of a heat map
HEIGHT = 300


def weight_bars(found: Study, order: int) -> Any:
    """Return the interactions of an order as bars, with lines for the intervals where there are some."""
    rows = [
        {
            "interaction": one.text,
            "weight": one.weight,
            "rows": one.rows,
            "low": one.low,
            "high": one.high,
            "sign": "for" if one.weight >= 0 else "against",
        }
        for one in found.of_order(order)
    ]
    frame = pd.DataFrame(rows)
    base = alt.Chart(frame).encode(
        y=alt.Y("interaction:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABELS))
    )
    tips = ["interaction:N", alt.Tooltip("weight:Q", format="+.4f"), alt.Tooltip("rows:Q", format=",")]
    bars = base.mark_bar().encode(
        x=alt.X("weight:Q", title=f"Weight ({unit(found)})"),
        color=alt.Color(
            "sign:N", scale=alt.Scale(domain=["for", "against"], range=[FOR, AGAINST]), legend=None
        ),
        tooltip=tips,
    )
    title = f"Interactions of {'two' if order == 2 else 'three'} features"
    if found.settings.refits:
        ends = {"x": "low:Q", "x2": "high:Q", "tooltip": tips}
        # light below dark: it is seen on bars, on white and on black
        halo = base.mark_rule(strokeWidth=4, color="#ffffff").encode(**ends)
        line = base.mark_rule(strokeWidth=2, color="#1a1a1a").encode(**ends)
        return (bars + halo + line).properties(height=CELL * len(rows) + 40, title=title)
    return bars.properties(height=CELL * len(rows) + 40, title=title)


def unit(found: Study) -> str:
    """Return what weights are measured in."""
    return f"log-odds of {found.wanted}" if found.metric == "AUC" else f"units of {found.wanted}"


def heat_map(grid: Grid, title: str, found: Study) -> Any:
    """Return the weights of pairs as a square; what no row has both of is left blank."""
    rows = [
        {"one": a, "other": b, "weight": weight}
        for a, line in zip(grid.names, grid.weights, strict=True)
        for b, weight in zip(grid.names, line, strict=True)
        if weight is not None
    ]
    names = list(grid.names)
    frame = pd.DataFrame(rows, columns=["one", "other", "weight"])
    most = max(float(frame["weight"].abs().max()), 1e-9) if len(frame) else 1.0
    return (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=alt.X("other:N", sort=names, scale=alt.Scale(domain=names), title=None,
                    axis=alt.Axis(labelAngle=-90, labelLimit=130, labelOverlap=False)),
            y=alt.Y("one:N", sort=names, scale=alt.Scale(domain=names), title=None,
                    axis=alt.Axis(labelLimit=130)),
            color=alt.Color(
                "weight:Q",
                scale=alt.Scale(domain=[-most, 0, most], range=[AGAINST, "#e4e4e4", FOR]),
                legend=alt.Legend(title=f"Weight ({unit(found)})", orient="bottom", titleLimit=320),
            ),
            tooltip=["one:N", "other:N", alt.Tooltip("weight:Q", format="+.4f")],
        )
        .properties(height=ROW * len(names) + 190, title=title)
    )  # fmt: skip


def path_figure(found: Study) -> Any:
    """Return the validation metric over the regularization strength, the chosen one marked."""
    return _path(found, "value", found.metric, ".3f")


def path_left(found: Study) -> Any:
    """Return how many pairs have a weight over the regularization strength, the taken one marked."""
    return _path(found, "pairs", "Pairs with a weight", ",.0f")


def _path(found: Study, what: str, title: str, form: str) -> Any:
    frame = pd.DataFrame([vars(step) for step in found.path])
    frame["taken"] = frame["strength"] == found.settings.strength
    tips = [alt.Tooltip("strength:Q", format=".2g"), alt.Tooltip("features:Q", format=","),
            alt.Tooltip("pairs:Q", format=","), alt.Tooltip("value:Q", format=".4f")]  # fmt: skip
    base = alt.Chart(frame).encode(
        x=alt.X("strength:Q", scale=alt.Scale(type="log"), title="Regularization strength (log)",
                axis=alt.Axis(format=".0e", tickCount=5)),
        y=alt.Y(f"{what}:Q", title=title, scale=alt.Scale(zero=what == "pairs"),
                axis=alt.Axis(format=form)),
        tooltip=tips,
    )  # fmt: skip
    line = base.mark_line(point=True, color=FOR)
    taken = base.mark_point(size=180, strokeWidth=3, color=AGAINST).transform_filter("datum.taken")
    return (line + taken).properties(height=HEIGHT, title=f"{title}, by regularization strength")


def curve_figure(found: Study) -> Any:
    """Return the validation metric at every epoch."""
    return _curve(found, "value", found.metric, ".3f")


def curve_objective(found: Study) -> Any:
    """Return the objective at every epoch."""
    return _curve(found, "objective", "Objective", ".4f")


def _curve(found: Study, what: str, title: str, form: str) -> Any:
    frame = pd.DataFrame([vars(one) for one in found.curve])
    return (
        alt.Chart(frame)
        .mark_line(point=len(frame) < 30, color=FOR)
        .encode(
            x=alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y(f"{what}:Q", title=title, scale=alt.Scale(zero=False),
                    axis=alt.Axis(format=form)),
            tooltip=["epoch:Q", alt.Tooltip(f"{what}:Q", format=form)],
        )
        .properties(height=HEIGHT, title=f"{title}, by epoch")
    )  # fmt: skip
