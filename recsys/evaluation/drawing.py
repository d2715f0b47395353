"""Plots of reports: means with their intervals, through matplotlib, an optional dependency."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recsys.errors import InputError
from recsys.evaluation.page import shortened
from recsys.utils.extras import install_hint
from recsys.utils.palette import COLOURS, MARKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # panels beside each other
GREY = "#595959"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty plot that notebooks show, whether or not pyplot was imported."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError(f"plot() needs matplotlib: {install_hint('plot')}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=110, bbox_inches="tight")
            return out.getvalue()

    figure = Shown(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_means(rows: Sequence[Mapping[str, Any]], title: str, best: Mapping[str, float]) -> Figure:
    """Draw one panel a metric: each model's mean as a dot on its interval.

    Rows have `model`, `metric`, `mean`, `low`, `high`; the interval may be NaN. `best` is the mean of
    each metric that is drawn in colour.
    """
    models, metrics = _distinct(rows, "model"), _distinct(rows, "metric")
    across = min(ACROSS, len(metrics))
    down = -(-len(metrics) // across)
    longest = max(len(_short(model)) for model in models)
    figure = new_figure(0.085 * longest + 3.1 * across + 0.4, down * (0.42 * len(models) + 0.9) + 0.7)
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for k, panel in enumerate(panels.flat):
        if k >= len(metrics):
            panel.set_visible(False)
            continue
        found = {row["model"]: row for row in rows if row["metric"] == metrics[k]}
        for place, model in enumerate(models):
            row = found[model]
            first = row["mean"] == best.get(metrics[k])
            colour = COLOURS[0] if first else GREY
            if np.isfinite(row["low"]):
                panel.hlines(place, row["low"], row["high"], color=colour, linewidth=2.2, alpha=0.85)
            panel.plot([row["mean"]], [place], "o", color=colour, markersize=7 if first else 5.5)
        panel.set_yticks(range(len(models)), [_short(model) for model in models])
        panel.set_ylim(len(models) - 0.45, -0.55)
        panel.set_title(metrics[k], fontsize=11, loc="left", fontweight="bold")
        _plain(panel, "x")
    _entitle(figure, title)
    return figure


def draw_lines(
    rows: Sequence[Mapping[str, Any]], x: str, title: str, places: Sequence[Any], labels: Sequence[str]
) -> Figure:
    """Draw one panel a metric and one line a model over what `x` names, with a bar an interval.

    Rows are those of `draw_means`, and with an entry of the name `x`. `places` are its values, in their
    order, and `labels` what the axis calls them.
    """
    models, metrics = _distinct(rows, "model"), _distinct(rows, "metric")
    across = min(ACROSS, len(metrics))
    down = -(-len(metrics) // across)
    figure = new_figure(4.2 * across + 0.4, 3.2 * down + 0.5 + 0.22 * len(models))
    panels = figure.subplots(down, across, squeeze=False)
    shift = min(0.06, 0.5 / max(len(models), 1))
    for k, panel in enumerate(panels.flat):
        if k >= len(metrics):
            panel.set_visible(False)
            continue
        for m, model in enumerate(models):
            own = [row for row in rows if row["metric"] == metrics[k] and row["model"] == model]
            found = {row[x]: row for row in own}
            at = np.arange(len(places)) + shift * (m - (len(models) - 1) / 2)
            mean = np.array([found[place]["mean"] for place in places], dtype=np.float64)
            low = np.array([found[place]["low"] for place in places], dtype=np.float64)
            high = np.array([found[place]["high"] for place in places], dtype=np.float64)
            colour = COLOURS[m % len(COLOURS)]
            panel.vlines(at, low, high, color=colour, linewidth=1.8, alpha=0.55)
            panel.plot(
                at, mean, color=colour, marker=MARKS[m % len(MARKS)], markersize=5, linewidth=1.4,
                label=_short(model),
            )  # fmt: skip
        panel.set_xticks(range(len(places)), labels)
        widest = max((len(line) for label in labels for line in label.split("\n")), default=0)
        if widest * len(labels) > 36:
            panel.tick_params(axis="x", rotation=35)
        panel.set_xlabel(x, color=GREY)
        panel.set_title(metrics[k], fontsize=11, loc="left", fontweight="bold")
        _plain(panel, "y")
    if len(models) > 1:
        handles, names = panels.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower left", frameon=False, ncols=2)
    _entitle(figure, title)
    return figure


def _entitle(figure: Figure, title: str) -> None:
    figure.suptitle(
        f"{title}\nlines: 95% bootstrap intervals over users", x=0.01, ha="left", fontsize=10, color=GREY
    )


def _plain(panel: Axes, grid: str) -> None:
    for side in ("top", "right", "left" if grid == "x" else "bottom"):
        panel.spines[side].set_visible(False)
    panel.grid(axis=grid, color="#dddddd", linewidth=0.8)  # type: ignore[arg-type]
    panel.set_axisbelow(True)
    panel.tick_params(length=0)
    if grid == "x":
        panel.locator_params(axis="x", nbins=5)


def _distinct(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def _short(label: str) -> str:
    """Return a label that fits, and that matplotlib does not read as a formula."""
    return shortened(label).replace("$", r"\$")
