"""Charts as PNG files through matplotlib, an optional dependency."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from recsys.cli.terminal import write_bytes
from recsys.errors import InputError
from recsys.utils.extras import install_hint
from recsys.utils.palette import COLOURS, MARKS


def require(option: str) -> None:
    """Refuse an option that draws when matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError(f"{option} needs matplotlib: {install_hint('plot')}")


def draw_lines(
    path: Path, lines: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, title: str,
    log: bool = False,
) -> None:  # fmt: skip
    """Draw one line a name and write the chart; with `log` the horizontal axis is logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for k, (name, points) in enumerate(lines.items()):
        colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
        axes.plot([p[0] for p in points], [p[1] for p in points], label=name, color=colour, marker=mark)
    if log:
        axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120)
    write_bytes(path, out.getvalue())
