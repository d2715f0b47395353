"""Charts of evaluations: intervals, differences user by user, trade-offs, groups and folds."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from recsys.utils.palette import COLOURS

OTHER = "#8a8a8a"
BINS = 25  # of a histogram
PLOT, AROUND, LINE = 220, 80, 22  # pixels: of a plot, of its title and axis, of a line of its legend


def forest(frame: pd.DataFrame, metric: str, unit: str) -> Any:
    """Return each model's mean as a dot on its interval, in its own colour.

    Parameters
    ----------
    frame : DataFrame
        Columns `model`, `mean`, `low` and `high` (NaN where there is no interval).
    metric, unit : str
        The chart's title, and what the axis counts.
    """
    order = frame["model"].tolist()
    base = alt.Chart(frame, title=metric).encode(
        y=alt.Y("model:N", sort=order, title=None, axis=alt.Axis(labelLimit=200, labelOverlap=False)),
        color=alt.Color("model:N", scale=_scale(order), legend=None),
        tooltip=[
            "model",
            alt.Tooltip("mean:Q", format=".4f"),
            alt.Tooltip("low:Q", title="95% from", format=".4f"),
            alt.Tooltip("high:Q", title="to", format=".4f"),
        ],
    )
    x = alt.X("mean:Q", title=unit, scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(tickCount=5))
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=unit), x2="high:Q")
    dots = base.mark_point(size=90, filled=True, opacity=1).encode(x=x)
    return (bars + dots).properties(height=34 * len(order) + AROUND)


def binned(values: np.ndarray, ahead: str, behind: str, sign: float = 1.0) -> pd.DataFrame:
    """Return the bars of a histogram with 0 as an edge of a bar of its own: equal users.

    Parameters
    ----------
    values : (users,) float64
        Differences; 0 is equal.
    ahead, behind : str
        Who is better where the difference is above and below 0, once multiplied by `sign`.

    Returns
    -------
    DataFrame
        `from`, `to`, `users`, `who`; the counts add up to the users.
    """
    rows = []
    widest = float(np.abs(values).max()) if len(values) else 0.0
    equal = np.abs(values) <= 1e-12
    if widest > 1e-12:
        edges = np.linspace(0.0, widest, BINS // 2 + 1)
        for side, own in ((1.0, values[~equal & (values > 0)]), (-1.0, -values[~equal & (values < 0)])):
            counts, _ = np.histogram(own, edges)
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
                who = ahead if side * sign > 0 else behind
                start, end = sorted((side * low, side * high))
                rows.append({"from": start, "to": end, "users": int(count), "who": who})
    half = widest / 200 if widest > 1e-12 else 0.5
    rows.append({"from": -half, "to": half, "users": int(equal.sum()), "who": "equal"})
    frame = pd.DataFrame(rows)
    return frame[frame["users"] > 0].sort_values("from", ignore_index=True)


def colours(models: list[str]) -> dict[str, str]:
    """Return each model's colour, the same in every chart."""
    return {model: COLOURS[k % 6] for k, model in enumerate(models)}


def histogram(
    frame: pd.DataFrame, names: tuple[str, str], models: list[str], axis: str, title: str
) -> Any:
    """Return the bars of `binned`, coloured by who is better."""
    own = colours(models)
    scale = alt.Scale(domain=[names[0], "equal", names[1]], range=[own[names[0]], OTHER, own[names[1]]])
    return (
        alt.Chart(frame, title=title)
        .mark_bar(orient="vertical")
        .encode(
            x=alt.X("from:Q", title=axis),
            x2="to:Q",
            y=alt.Y("users:Q", title="users", axis=alt.Axis(tickMinStep=1)),
            y2=alt.datum(0),
            color=alt.Color(
                "who:N",
                scale=scale,
                legend=alt.Legend(title="better", orient="bottom", columns=1, labelLimit=280),
            ),
            tooltip=[
                alt.Tooltip("from:Q", format=".4f"),
                alt.Tooltip("to:Q", format=".4f"),
                "users",
                "who",
            ],
        )
        .properties(height=PLOT + AROUND + 4 * LINE)
    )


def against(frame: pd.DataFrame, x: str, y: str, titles: tuple[str, str, str], log: bool = False) -> Any:
    """Return one named mark a model: y over x; `titles` are those of the chart and of the axes."""
    title, across, up = titles
    kind = alt.Scale(type="log", padding=30) if log else alt.Scale(zero=False, padding=30)
    axis = alt.Axis(tickCount=4, format="~g") if log else alt.Axis(tickCount=6)
    base = alt.Chart(frame, title=title).encode(
        x=alt.X(f"{_field(x)}:Q", title=across, scale=kind, axis=axis),
        y=alt.Y(f"{_field(y)}:Q", title=up, scale=alt.Scale(zero=False, padding=24)),
    )
    tips = [
        "model",
        alt.Tooltip(f"{_field(x)}:Q", title=across, format=".4f"),
        alt.Tooltip(f"{_field(y)}:Q", title=up, format=".4f"),
    ]
    dots = base.mark_point(size=120, filled=True, opacity=1).encode(
        color=alt.Color(
            "model:N",
            scale=_scale(frame["model"].tolist()),
            legend=alt.Legend(orient="bottom", columns=1, labelLimit=320, title=None, symbolOpacity=1),
        ),
        tooltip=tips,
    )
    return dots.properties(height=PLOT + AROUND + LINE * len(frame))


def over(frame: pd.DataFrame, x: str, order: list[str], titles: tuple[str, str, str]) -> Any:
    """Return a line a model with its intervals over groups or folds, in the order given.

    Parameters
    ----------
    frame : DataFrame
        `x`, `model`, `mean`, `low`, `high`.
    x : str
    order : list of str
        The labels of the axis.
    titles : (chart, x axis, y axis)
    """
    title, across, up = titles
    base = alt.Chart(frame, title=title).encode(
        x=alt.X(f"{_field(x)}:N", sort=order, title=across, axis=alt.Axis(labelAngle=0, labelLimit=90)),
        color=alt.Color(
            "model:N",
            scale=_scale(list(dict.fromkeys(frame["model"]))),
            legend=alt.Legend(orient="bottom", columns=1, labelLimit=320, title=None, symbolOpacity=1),
        ),
    )
    y = alt.Y("mean:Q", title=up, scale=alt.Scale(zero=False))
    tips = ["model", f"{_field(x)}:N", alt.Tooltip("mean:Q", format=".4f")]
    lines = base.mark_line(point=True).encode(y=y, tooltip=tips)
    if frame["low"].notna().any():
        bars = base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", title=up), y2="high:Q")
        lines = bars + lines
    return lines.properties(height=PLOT + AROUND + LINE * frame["model"].nunique())


def _scale(models: list[str]) -> Any:
    own = colours(models)
    return alt.Scale(domain=list(own), range=list(own.values()))


def _field(name: str) -> str:
    """Return a column's name as Vega-Lite takes it: dots and brackets have a meaning there."""
    for sign in (".", "[", "]", ":"):
        name = name.replace(sign, "\\" + sign)
    return name
