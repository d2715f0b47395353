"""Charts of kernels over their degree."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS


def degrees(frame: pd.DataFrame, value: str, title: str, up: str) -> Any:
    """Return a value over the degree, a line a kernel; one without a degree is drawn broken.

    Parameters
    ----------
    frame : DataFrame
        Columns `kernel`, `degree`, `has degree` (bool) and the value; NaN where it could not be had.
    value, title, up : str
        Column, and the titles of the chart and of its upward axis.
    """
    shown = frame[frame[value].notna()]
    colour = alt.Color(
        "kernel:N",
        scale=alt.Scale(range=list(COLOURS[:6])),
        legend=alt.Legend(orient="bottom", columns=2, title=None, labelLimit=320),
    )
    axis = alt.Axis(tickMinStep=1, format="d")
    x = alt.X("degree:Q", title="degree", axis=axis, scale=alt.Scale(nice=False, padding=8))
    y = alt.Y(f"{value}:Q", title=up, scale=alt.Scale(zero=False))
    shown_value = alt.Tooltip(f"{value}:Q", title=up, format=".4f")
    tips = ["kernel", alt.Tooltip("degree:Q", format="d"), shown_value]
    base = alt.Chart(shown, title=title)
    lines = base.transform_filter("datum['has degree']").mark_line(point=True)
    flat = base.transform_filter("!datum['has degree']").mark_line(strokeDash=[6, 4])
    how = {"x": x, "y": y, "color": colour, "tooltip": tips}
    return (lines.encode(**how) + flat.encode(**how)).properties(height=380)
