"""Charts: intervals, lines, bars and tiles."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a8a8a", "#b39700")
UP, DOWN, BASE, TOTAL = COLORS[0], COLORS[1], "#8a8a8a", "#8a63c0"
LABELS = 260  # pixels of a name at most
PADDING = {"left": 0, "right": 16, "top": 5, "bottom": 5}  # the last number of an axis needs room


def palette(names: list[str]) -> dict[str, str]:
    """Return a color for each name, in their order."""
    return {name: COLORS[k % len(COLORS)] for k, name in enumerate(names)}


def _names(order: list[str], **options: Any) -> alt.Axis | Any:
    axis = alt.Axis(labelLimit=LABELS, labelOverlap=False)
    return alt.Y("name:N", sort=order, title=None, axis=axis, **options)


def intervals(frame: pd.DataFrame, title: str, unit: str) -> Any:
    """Return means with their intervals, one row a name.

    Parameters
    ----------
    frame : DataFrame
        Columns name, mean, low and high, in the order shown.
    title, unit : str
        Of the chart and of its axis.
    """
    order = frame["name"].tolist()
    colors = palette(order)
    color = alt.Color(
        "name:N", legend=None, scale=alt.Scale(domain=order, range=[colors[name] for name in order])
    )
    scale = alt.Scale(zero=False, padding=12)
    tips = ["name", *(alt.Tooltip(column, format=".4f") for column in ("mean", "low", "high"))]
    base = alt.Chart(frame).encode(y=_names(order), color=color, tooltip=tips)
    rule = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale, title=unit), x2="high:Q")
    point = base.mark_point(size=110, filled=True, opacity=1).encode(x=alt.X("mean:Q", scale=scale))
    return (rule + point).properties(height=36 * len(frame) + 110, title=title, padding=PADDING)


def lines(frame: pd.DataFrame, x: str, y: str, by: str, title: str, kind: str = "Q") -> Any:
    """Return a line for each value of `by`; x are numbers "Q", categories "N" or times "T"."""
    names = list(dict.fromkeys(frame[by].astype(str)))
    colors = palette(names)
    axis = {"Q": alt.Axis(tickMinStep=1, format="d"), "N": alt.Axis(labelAngle=0)}.get(
        kind, alt.Undefined
    )
    legend = alt.Legend(orient="bottom", title=None, columns=2, labelLimit=320)
    return (
        alt.Chart(frame)
        .mark_line(point=len(frame) < 100)
        .encode(
            x=alt.X(f"{x}:{kind}", title=x, axis=axis, sort=None),
            y=alt.Y(f"{y}:Q", title=y, scale=alt.Scale(zero=kind == "T")),
            color=alt.Color(
                f"{by}:N",
                scale=alt.Scale(domain=names, range=[colors[name] for name in names]),
                legend=legend if len(names) > 1 else None,
            ),
            tooltip=[by, f"{x}:{kind}", alt.Tooltip(f"{y}:Q")],
        )
        .properties(height=320, title=title, padding=PADDING)
    )


def bars(rows: list[tuple[str, float]], title: str, unit: str, total: float | None = None) -> Any:
    """Return one bar a name, in the order given.

    With a total the bars are the parts of a sum: each begins where the one before ends, and a last bar
    "score" shows the sum.
    """
    at, records = 0.0, []
    for name, value in rows:
        start = at if total is not None else 0.0
        at = start + value
        kind = "base" if name == "base" else "raises it" if value >= 0 else "lowers it"
        records.append({"name": name, "from": start, "to": at, "value": value, "kind": kind})
    if total is not None:
        records.append({"name": "score", "from": 0.0, "to": total, "value": total, "kind": "score"})
    frame = pd.DataFrame(records)
    frame["spoken"] = [f"{row['name']}: {row['value']:+.4g}" for row in records]  # by screen readers
    colors = {"raises it": UP, "lowers it": DOWN, "base": BASE, "score": TOTAL}
    kinds = [kind for kind in colors if kind in set(frame["kind"])]
    legend = alt.Legend(title=None, orient="bottom", columns=2) if len(kinds) > 1 else None
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("from:Q", title=unit),
            x2="to:Q",
            y=_names(frame["name"].tolist()),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=kinds, range=[colors[kind] for kind in kinds]),
                legend=legend,
            ),
            tooltip=["name", alt.Tooltip("value:Q", format="+.4f")],
            description="spoken:N",
        )
        .properties(height=26 * len(frame) + (150 if legend else 110), title=title, padding=PADDING)
    )


def tiles(frame: pd.DataFrame, title: str, unit: str) -> Any:
    """Return a heat map of columns row, column and value; pairs without a row are blank."""
    names = list(dict.fromkeys([*frame["row"], *frame["column"]]))
    most = max(float(frame["value"].abs().max()), 1e-9)
    axis = alt.Axis(labelLimit=140, labelOverlap=False)
    return (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=alt.X("column:N", sort=names, title=None, axis=alt.Axis(labelAngle=-90, labelLimit=140)),
            y=alt.Y("row:N", sort=names, title=None, axis=axis),
            color=alt.Color(
                "value:Q",
                scale=alt.Scale(domain=[-most, 0, most], range=[DOWN, "#e4e4e4", UP]),
                legend=alt.Legend(title=unit, orient="bottom", titleLimit=320),
            ),
            tooltip=["row", "column", alt.Tooltip("value:Q", format="+.4f")],
        )
        .properties(height=28 * frame["row"].nunique() + 200, title=title)
    )
