"""Explain: how a score adds up, and which liked items are similar."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from recsys.utils.palette import COLOURS

LEGEND = 90  # pixels of the height, which the legend takes
KINDS = {"raises it": COLOURS[0], "lowers it": COLOURS[1], "base": "#8a8a8a", "score": "#8a63c0"}


def waterfall(rows: list[tuple[str, str, float]], title: str) -> Any:
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
        sign = "raises it" if value >= 0 else "lowers it"
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
    return _bars(pd.DataFrame(records), names, title, "adds to the score", "from", "to")


def bars(names: list[str], values: list[float], title: str, axis: str) -> Any:
    """Return one bar a name, in the order given."""
    frame = pd.DataFrame({"item": names, "value": values})
    frame["kind"] = ["raises it" if v >= 0 else "lowers it" for v in values]
    return _bars(frame, names, title, axis, "value", None)


def _bars(
    frame: pd.DataFrame, names: list[str], title: str, axis: str, start: str, end: str | None
) -> Any:
    shown = "adds" if end else start
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    legend = alt.Legend(title=None, orient="bottom") if len(kinds) > 1 else None
    places = {"x": alt.X(f"{start}:Q", title=axis)} | ({"x2": f"{end}:Q"} if end else {})
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            **places,
            y=alt.Y("item", sort=names, title=None, axis=alt.Axis(labelLimit=260, labelOverlap=False)),
            color=alt.Color(
                "kind",
                scale=alt.Scale(domain=kinds, range=[KINDS[kind] for kind in kinds]),
                legend=legend,
            ),
            tooltip=["item", alt.Tooltip(shown, format="+.4f")],
        )
        .properties(height=28 * len(names) + 60 + (LEGEND if legend else 0), title=title)
    )
