"""Charts, in colours that colour-blind readers tell apart."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS

alt.data_transformers.disable_max_rows()


def _colour(field: str) -> Any:
    return alt.Color(
        field,
        scale=alt.Scale(range=list(COLOURS)),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=320, title=None),
    )


KINDS = {"for": COLOURS[0], "against": COLOURS[1], "base": "#8a8a8a", "score": COLOURS[6]}


def waterfall(rows: list[tuple[str, str, float]]) -> Any:
    """Return bars that begin where the one before ends, in the order given.

    Parameters
    ----------
    rows : list of (name, kind, value)
        kind "part", or "base"; the last one "score", a total that begins at 0.
    """
    at, records = 0.0, []
    for name, kind, value in rows:
        start = 0.0 if kind == "score" else at
        at = start + value
        sign = "for" if value >= 0 else "against"
        records.append(
            {
                "item": name,
                "from": start,
                "to": at,
                "adds": value,
                "kind": sign if kind == "part" else kind,
            }
        )
    names = [name for name, _, _ in rows]
    return _bars(pd.DataFrame(records), names, "adds to the score", "from", "to")


def similarities(names: list[str], values: list[float]) -> Any:
    """Return bars of each liked item's similarity, in the order given."""
    frame = pd.DataFrame({"item": names, "similarity": values})
    frame["kind"] = ["for" if v >= 0 else "against" for v in values]
    return _bars(frame, names, "similarity", "similarity", None)


def _bars(frame: pd.DataFrame, names: list[str], title: str, start: str, end: str | None) -> Any:
    shown = "adds" if end else start
    places = {"x": alt.X(f"{start}:Q", title=title)} | ({"x2": f"{end}:Q"} if end else {})
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            **places,
            y=alt.Y("item", sort=names, title=None, axis=alt.Axis(labelLimit=170)),
            color=alt.Color(
                "kind", scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())), legend=None
            ),
            tooltip=["item", alt.Tooltip(shown, format="+.4f")],
        )
        .properties(height=28 * len(names) + 40)
    )


def lines(frame: pd.DataFrame, x: str, y: str, colour: str, log: bool = False) -> Any:
    """Return lines with marks of y over x, one a value of `colour`."""
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False)
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X(x, scale=alt.Scale(type="log") if log else alt.Scale()),
            y=alt.Y(y, scale=scale),
            color=_colour(colour),
            tooltip=[x, alt.Tooltip(y, format=".4f"), colour],
        )
        .properties(height=380)
    )


def trade_off(frame: pd.DataFrame, x: str, y: str) -> Any:
    """Return one mark a model: accuracy against something else."""
    tips = ["model", alt.Tooltip(x, format=".4f"), alt.Tooltip(y, format=".4f")]
    base = alt.Chart(frame).encode(
        x=alt.X(x, scale=alt.Scale(zero=False, padding=30)),
        y=alt.Y(y, scale=alt.Scale(zero=False, padding=20)),
        color=_colour("model"),
        tooltip=tips,
    )
    return base.mark_point(size=120, filled=True).properties(height=380)


def distribution(frame: pd.DataFrame, value: str) -> Any:
    """Return how users spread, one line a model: the share with at most each value."""
    return (
        alt.Chart(frame)
        .mark_line(interpolate="step-after")
        .encode(x=alt.X(value), y=alt.Y("share of users"), color=_colour("model"))
        .properties(height=380)
    )
