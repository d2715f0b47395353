"""Charts of a dataset: long tails with their fits, ratings, and interactions over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS

LIKED, LOWER = COLOURS[0], "#8a8a8a"


def tail(data: pd.DataFrame, fit: pd.DataFrame, title: str, across: str, up: str) -> Any:
    """Return counts over their rank on logarithmic axes as points, and the fitted line without marks.

    Parameters
    ----------
    data, fit : DataFrame
        Columns `rank`, `likes` and `what`, what the legend calls them.
    title, across, up : str
    """
    names = [str(data["what"].iloc[0]), str(fit["what"].iloc[0])]
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=names, range=[COLOURS[0], COLOURS[1]]),
        legend=alt.Legend(orient="bottom", columns=1, title=None, labelLimit=320),
    )
    log, axis = alt.Scale(type="log", nice=False), alt.Axis(tickCount=4, format="~s")
    x = alt.X("rank:Q", title=across, scale=log, axis=axis)
    y = alt.Y("likes:Q", title=up, scale=log, axis=axis)
    tips = [alt.Tooltip("rank:Q", format=","), alt.Tooltip("likes:Q", format=",.1f")]
    dots = alt.Chart(data, title=title).mark_circle(size=28, opacity=0.9)
    line = alt.Chart(fit).mark_line(strokeWidth=2, strokeDash=[6, 4])
    return (
        dots.encode(x=x, y=y, color=colour, tooltip=tips) + line.encode(x=x, y=y, color=colour)
    ).properties(height=360)


def ratings(frame: pd.DataFrame, word: str) -> Any:
    """Return how often each rating was given, those that count in colour.

    Parameters
    ----------
    frame : DataFrame
        Columns `rating` (text, in order) and `rows`, `counts` ("liked", "lower").
    """
    kinds = list(dict.fromkeys([word, "does not count"]))
    return (
        alt.Chart(frame, title="How often each rating was given")
        .mark_bar()
        .encode(
            x=alt.X(
                "rating:N",
                sort=frame["rating"].tolist(),
                title="rating",
                axis=alt.Axis(labelAngle=0, labelOverlap=True),
            ),
            y=alt.Y("rows:Q", title="ratings", axis=alt.Axis(tickMinStep=1, format="~s")),
            color=alt.Color(
                "counts:N",
                scale=alt.Scale(domain=kinds, range=[LIKED, LOWER]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            tooltip=["rating", alt.Tooltip("rows:Q", format=","), "counts"],
        )
        .properties(height=320)
    )


def over_time(frame: pd.DataFrame, period: str, word: str) -> Any:
    """Return how many likes there were in each period; columns `start` (datetime) and `likes`."""
    return (
        alt.Chart(frame, title=f"When they were given, by {period}")
        .mark_area(line=True, opacity=0.35, interpolate="step-after", color=COLOURS[0])
        .encode(
            x=alt.X("start:T", title=period),
            y=alt.Y("likes:Q", title=word, axis=alt.Axis(tickMinStep=1, format="~s")),
            tooltip=[alt.Tooltip("start:T", format="%Y-%m-%d"), alt.Tooltip("likes:Q", format=",")],
        )
        .properties(height=320)
    )
