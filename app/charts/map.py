"""The chart of the page Map: items as points, the liked and the recommended marked, an area."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from recsys.utils.palette import COLOURS

AREA = "area"  # the selection's name
LIKED, LISTED = "liked", "recommended"
REST = "#9a9a9a"  # of items that are none of those named
TALL = 640
WIDE, HIGH = 960, 410  # pixels of the points' area for which titles are put beside them
# Of titles, also after the page has changed from light to dark.
INK = "luminance(background || '#fff') < 0.4 ? '#eef1f4' : '#1f2429'"
LETTER, LINE, LONGEST = 6.0, 14.0, 140  # pixels of a title: a letter, its height, its width at most
PHONE = 520  # pixels of a chart below which titles would lie on each other
SIDES: dict[str, tuple[Any, int, int]] = {  # of a point: the alignment and the offset of its title
    "right": ("left", 9, 0),
    "left": ("right", -9, 0),
    "above": ("center", 0, -14),
    "below": ("center", 0, 15),
}
# Not the colours that mark what is liked and recommended.
GROUPS = (COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5], "#a06cc8")


def items(
    frame: pd.DataFrame,
    colour: str,
    groups: list[str],
    titles: tuple[str, str],
    title: str,
) -> Any:
    """Return the map: pale points, marks on what is liked and listed, titles where there is a name.

    Parameters
    ----------
    frame : DataFrame
        Columns x, y, title, mark (`LIKED`, `LISTED` or empty), name (the title where it is written
        into the chart, else empty), users, and the column `colour`.
    colour : "genre", "decade" or "popularity"
        Popularity is in the column users.
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
    tips = [name for name in ("title", "genre", "decade", "users", "mark") if name in frame]
    if colour == "popularity":
        shade = alt.Color(
            "users:Q", title="users who have it",
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
        .mark_circle(size=36, opacity=0.3)
        .encode(**place, color=shade, tooltip=tips)
        .add_params(brush)
    )
    marked = (
        alt.Chart(frame[frame["mark"] != ""])
        .mark_point(size=150, filled=True, stroke="white", strokeWidth=1.4)
        .encode(
            **place,
            opacity=alt.condition(alt.datum["name"] != "", alt.value(1.0), alt.value(0.4)),
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
    layers = points + marked
    named = frame[frame["name"] != ""]
    shown = alt.expr(f"width < {PHONE} ? 0 : 1")  # on a phone they stand in a list below
    for side, part in named.groupby(sides(named, frame)):
        align, dx, dy = SIDES[str(side)]
        layers += (
            alt.Chart(part)
            .mark_text(
                align=align, baseline="middle", dx=dx, dy=dy, limit=LONGEST, fontSize=11, opacity=shown,
                color=alt.expr(INK),
            )
            .encode(**place, text="name", tooltip=tips)
        )  # fmt: skip
    whole = layers.resolve_scale(color="independent")
    # As SVG the brush would be a picture without a name; a canvas has that of the whole chart.
    embedded = {"embedOptions": {"renderer": "canvas"}}
    return whole.properties(height=TALL, title=title, usermeta=embedded)


def sides(named: pd.DataFrame, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Return on which side of its point each title covers least of the others and of the marks."""

    def pixels(axis: str, length: int) -> Any:
        low, high = frame[axis].min(), frame[axis].max()
        return (named[axis].to_numpy() - low) / max(high - low, 1e-12) * length

    x, y = pixels("x", WIDE), HIGH - pixels("y", HIGH)
    taken = [(a - 7, b - 7, a + 7, b + 7) for a, b in zip(x, y, strict=True)]
    out = []
    for a, b, name in zip(x, y, named["name"], strict=True):
        wide = min(LETTER * len(name), LONGEST)
        best = None
        for side, (align, dx, dy) in SIDES.items():
            left = a + dx - {"left": 0.0, "right": wide, "center": wide / 2}[align]
            box = (left, b + dy - LINE / 2, left + wide, b + dy + LINE / 2)
            cost = sum(_common(box, other) for other in taken)
            cost += box[3] - box[1] if min(box[0], WIDE - box[2]) < 0 else 0.0  # it would be cut off
            if best is None or cost < best[0]:
                best = (cost, side, box)
        assert best is not None
        taken.append(best[2])
        out.append(best[1])
    return np.array(out, dtype=object)


def _common(one: tuple[float, ...], two: tuple[float, ...]) -> float:
    """Return the area that two boxes (left, top, right, bottom) share."""
    wide = min(one[2], two[2]) - max(one[0], two[0])
    tall = min(one[3], two[3]) - max(one[1], two[1])
    return max(wide, 0.0) * max(tall, 0.0)


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
