"""The chart of the page Map: items as points, the liked and the recommended marked, an area."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS

AREA = "area"  # the selection's name
LIKED, LISTED = "liked", "recommended"
REST = "#9a9a9a"  # of items that are none of those named
TALL = 560
# Not the colours that mark what is liked and recommended.
GROUPS = (COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5], "#a06cc8")


def items(
    frame: pd.DataFrame, colour: str, groups: list[str], titles: tuple[str, str], title: str
) -> Any:
    """Return the map.

    Parameters
    ----------
    frame : DataFrame
        Columns x, y, title, mark (`LIKED`, `LISTED` or empty), people, and the column `colour`.
    colour : "genre", "decade" or "popularity"
        Popularity is in the column people.
    groups : list of str
        Values of the colour in order; the last one is the rest, in grey, where it is "other".
    titles : (str, str)
        Of the axes.
    title : str
    """
    axis = alt.Axis(labels=False, ticks=False, grid=True)
    place = {
        "x": alt.X("x:Q", axis=axis, title=titles[0], scale=alt.Scale(zero=False, padding=12)),
        "y": alt.Y("y:Q", axis=axis, title=titles[1], scale=alt.Scale(zero=False, padding=12)),
    }
    tips = [name for name in ("title", "genre", "decade", "people", "mark") if name in frame]
    if colour == "popularity":
        shade = alt.Color(
            "people:Q", title="people who have it",
            scale=alt.Scale(type="log", scheme="viridis", domainMin=1, clamp=True),
            legend=alt.Legend(orient="bottom"),
        )  # fmt: skip
    else:
        known = [one for one in groups if one != "other"]
        if colour == "decade":
            scale = alt.Scale(domain=groups, range=_decades(len(known)) + [REST] * ("other" in groups))
        else:
            scale = alt.Scale(
                domain=groups, range=list(GROUPS[: len(known)]) + [REST] * ("other" in groups)
            )
        shade = alt.Color(
            f"{colour}:N", scale=scale, sort=groups,
            legend=alt.Legend(orient="bottom", title=None, columns=3, symbolOpacity=1),
        )  # fmt: skip
    brush = alt.selection_interval(name=AREA, encodings=["x", "y"])
    points = (
        alt.Chart(frame)
        .mark_circle(size=42, opacity=0.65)
        .encode(**place, color=shade, tooltip=tips)
        .add_params(brush)
    )
    marked = (
        alt.Chart(frame[frame["mark"] != ""])
        .mark_point(size=150, filled=True, opacity=1, stroke="white", strokeWidth=1.4)
        .encode(
            **place,
            shape=alt.Shape(
                "mark:N",
                scale=alt.Scale(domain=[LIKED, LISTED], range=["diamond", "triangle-up"]),
                legend=alt.Legend(orient="top", title=None, symbolSize=110),
            ),
            fill=alt.Fill(
                "mark:N",
                scale=alt.Scale(domain=[LIKED, LISTED], range=[COLOURS[1], COLOURS[6]]),
                legend=alt.Legend(orient="top", title=None, symbolSize=110),
            ),
            tooltip=tips,
        )
    )
    whole = (points + marked).resolve_scale(color="independent")
    # As SVG the brush would be a picture without a name; a canvas has that of the whole chart.
    embedded = {"embedOptions": {"renderer": "canvas"}}
    return whole.properties(height=TALL, title=title, usermeta=embedded)


def _decades(number: int) -> list[str]:
    """Return so many shades from dark to light of one scale, the oldest first."""
    ends = ((121, 82, 179), (33, 145, 140), (235, 180, 40))  # seen on light and on dark
    out = []
    for k in range(number):
        at = 2.0 * k / max(number - 1, 1)
        low = min(int(at), 1)
        share = at - low
        mixed = [round(a + (b - a) * share) for a, b in zip(ends[low], ends[low + 1], strict=True)]
        out.append("#{:02x}{:02x}{:02x}".format(*mixed))
    return out
