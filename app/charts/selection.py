"""Charts of what a path selects: metrics before and after the refit, how many, each weight's path."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.fm.selection import Selection
from recsys.utils.palette import COLOURS

HEIGHT, LINES = 320, 10
LEGEND = 30  # of a line of a legend below a chart, whose height holds it
BEFORE, AFTER = "before the refit", "after the refit"


def path_figures(found: Selection, place: int) -> Any:
    """Return the validation metric before and after the refit, the two models beside."""
    rows = [
        {"strength": point.strength, "value": value, "model": model, "interactions": point.interactions}
        for point in found.points
        for model, value in ((BEFORE, point.value), (AFTER, point.refitted))
        if value is not None
    ]
    beside = [
        {"strength": point.strength, "value": one.choose, "model": one.model,
         "interactions": one.interactions}
        for one in (found.linear, found.full)
        for point in (found.points[0], found.points[-1])
    ]  # fmt: skip
    names = [BEFORE, AFTER, found.linear.model, found.full.model]
    colour = alt.Color(
        "model:N", scale=alt.Scale(domain=names, range=list(COLOURS[:4])),
        legend=alt.Legend(title=None, orient="bottom", columns=2),
    )  # fmt: skip
    fields = {
        "x": _strength(),
        "y": alt.Y("value:Q", title=found.metric, scale=alt.Scale(zero=False),
                   axis=alt.Axis(format=".3f")),
        "color": colour,
        "tooltip": [
            "model:N", alt.Tooltip("strength:Q", format=".3g"),
            alt.Tooltip("interactions:Q", format=","), alt.Tooltip("value:Q", format=".4f"),
        ],
    }  # fmt: skip
    line = alt.Chart(pd.DataFrame(rows)).mark_line(point=True).encode(**fields)
    rules = alt.Chart(pd.DataFrame(beside)).mark_line(strokeDash=[6, 4]).encode(**fields)
    return (line + rules + _here(found, place)).properties(
        height=HEIGHT + 2 * LEGEND, title=f"Validation {found.metric}"
    )


def path_numbers(found: Selection, place: int) -> Any:
    """Return how many interactions have a weight at each regularization strength."""
    frame = pd.DataFrame(
        [(one.strength, one.features, one.interactions) for one in found.points],
        columns=["strength", "features", "interactions"],
    )
    line = alt.Chart(frame).mark_line(point=True, color=COLOURS[0]).encode(
        x=_strength(),
        y=alt.Y("interactions:Q", title="Interactions", scale=alt.Scale(type="symlog")),
        tooltip=[alt.Tooltip("strength:Q", format=".3g"), alt.Tooltip("features:Q", format=","),
                 alt.Tooltip("interactions:Q", format=",")],
    )  # fmt: skip
    return (line + _here(found, place)).properties(height=HEIGHT, title="Interactions selected")


def weight_paths(found: Selection, place: int) -> Any:
    """Return the weights along the path of the interactions that are largest at a point."""
    names = [one.text for one in found.points[place].chosen[:LINES]]
    rows = [
        {"strength": point.strength, "weight": weights.get(name, other), "interaction": name}
        for point in found.points
        for weights in [{one.text: one.weight for one in point.chosen}]
        # of a point with more interactions than are listed, the weight of the others is not known
        for other in [0.0 if len(point.chosen) == point.interactions else None]
        for name in names
    ]
    frame = pd.DataFrame(rows, columns=["strength", "weight", "interaction"])
    line = alt.Chart(frame).mark_line(point=True).encode(
        x=_strength(), y=alt.Y("weight:Q", title="Weight, penalised"),
        color=alt.Color(
            "interaction:N", sort=names, scale=alt.Scale(domain=names, scheme="tableau10"),
            legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=320),
        ),
        tooltip=["interaction:N", alt.Tooltip("strength:Q", format=".3g"),
                 alt.Tooltip("weight:Q", format="+.4f")],
    )  # fmt: skip
    return (line + _here(found, place)).properties(
        height=HEIGHT + LEGEND * len(names), title="Weights along the path"
    )


def _strength() -> Any:
    return alt.X(
        # falling, as the path goes, and the slider that a point is chosen by
        "strength:Q", scale=alt.Scale(type="log", nice=False, reverse=True),
        title="Regularization strength (log, falling)",
        axis=alt.Axis(format=".0e", tickCount=5),
    )  # fmt: skip


def _here(found: Selection, place: int) -> Any:
    frame = pd.DataFrame([{"strength": found.points[place].strength}])
    return alt.Chart(frame).mark_rule(strokeWidth=2, color="#888888").encode(x="strength:Q")
