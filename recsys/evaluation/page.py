"""A report as HTML, for notebooks and as a page of its own: what comes from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from recsys.utils.palette import COLOURS

Ends = tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]
LONGEST = 44  # characters of a model's name that are drawn

STYLE = """<style scoped>
.recsys-report {font-family: system-ui, sans-serif; font-size: 14px; max-width: 75em}
.recsys-report table {border-collapse: collapse; margin: .6em 0}
.recsys-report th, .recsys-report td {padding: .3em .8em; text-align: right; border: 0}
.recsys-report tr {vertical-align: top}
.recsys-report thead th {border-bottom: 1px solid currentColor; font-weight: 600}
.recsys-report tbody th {text-align: left; font-weight: 400; font-family: ui-monospace, monospace}
.recsys-report thead th:first-child {text-align: left}
.recsys-report small {display: block; opacity: .65; white-space: nowrap}
.recsys-report .best {font-weight: 700}
.recsys-report .best small {font-weight: 400}
.recsys-report p {margin: .3em 0}
.recsys-report summary {cursor: pointer; opacity: .75}
</style>"""


def report_page(report: Any, ends: Ends | None = None) -> str:
    """Return a report as an HTML fragment: metric values with intervals, verdicts, folded definitions.

    `ends` are `report.intervals()`, if they are known.
    """
    low, high = report.intervals() if ends is None else ends
    names = list(report.definitions)
    best = report.best()
    rows = []
    for r in report.results:
        cells = []
        for name in names:
            mean, key = r.metrics[name].mean, (r.model, name)
            mark = ' class="best"' if mean == best.get(name) else ""
            cells.append(f"<td{mark}>{_figure(mean)}{_within(low[key], high[key])}</td>")
        rows.append(f"<tr><th>{escape(r.model)}</th>{''.join(cells)}<td>{r.fit_seconds:.2f}</td></tr>")
    told = report.verdicts()
    rest = [line for line in [*report.notes, *report.sentences()] if line not in told]
    return "\n".join(
        [
            '<div class="recsys-report">', STYLE,
            f"<p><strong>{escape(report.dataset)}</strong>: {escape(report.about())}</p>",
            *(f"<p><strong>{escape(line)}</strong></p>" for line in [report.decision()] if line),
            _table(["model", *names, "fit s"], rows),
            "<p><em>Below each mean: 95% bootstrap interval over users.</em></p>",
            *(f"<p>{escape(line)}</p>" for line in told),
            "<details><summary>What the metrics mean</summary>",
            *(f"<p>{escape(line)}</p>" for line in rest),
            "</details>", "</div>",
        ]
    )  # fmt: skip


def groups_page(groups: Any) -> str:
    """Return metric values of groups as an HTML fragment."""
    metrics = list(dict.fromkeys(row["metric"] for row in groups.rows))
    cells: dict[tuple[str, str], list[str]] = {}
    for row in groups.rows:
        told = f"<td>{_figure(row['mean'])}{_within(row['low'], row['high'])}</td>"
        cells.setdefault((row["group"], row["model"]), []).append(told)
    rows = [
        f"<tr><th>{escape(group)}</th><td>{groups.sizes[group]:,}</td><td>{escape(model)}</td>"
        f"{''.join(found)}</tr>"
        for (group, model), found in cells.items()
    ]
    head = [groups.attribute, "users", "model", *metrics]
    return "\n".join(['<div class="recsys-report">', STYLE, _table(head, rows), "</div>"])


DOCUMENT = """:root {color-scheme: light dark}
body {font-family: system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em}
h1 {font-size: 1.6em} h2 {font-size: 1.25em; margin-top: 2em} h3 {font-size: 1em; margin: 1.2em 0 .3em}
pre {white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid; padding: .6em; opacity: .85}
.panels {display: flex; flex-wrap: wrap; gap: 1.5em} svg text {fill: currentColor; font: 12px system-ui}
.recsys-report {overflow-x: auto}"""


def report_document(title: str, runs: Sequence[tuple[str, Any, Ends, str]]) -> str:
    """Return a whole HTML page about reports: it needs no network and runs no script.

    Parameters
    ----------
    title : str
    runs : sequence of (name, report, intervals, how)
        The intervals are the report's; `how` says how to get it again: a command, with its versions.

    Examples
    --------
    >>> from recsys import evaluate, load_dataset
    >>> report = evaluate(load_dataset("sample"), ["ease", "popularity"])
    >>> page = report_document("Two models", [("first", report, report.intervals(), "evaluate(…)")])
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    parts = []
    for name, report, ends, how in runs:
        panels = "".join(forest_plot(report, metric, ends) for metric in report.definitions)
        parts += [
            f"<section><h2>{escape(name)}</h2>", report_page(report, ends),
            f'<h3>Means and 95% bootstrap intervals over users</h3><div class="panels">{panels}</div>',
            f"<h3>To get this again</h3><pre>{escape(how)}</pre></section>",
        ]  # fmt: skip
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{DOCUMENT}</style></head><body>",
            f"<h1>{escape(title)}</h1>", *parts, "</body></html>",
        ]
    )  # fmt: skip


def forest_plot(report: Any, metric: str, intervals: Ends) -> str:
    """Return an SVG picture: each model's mean as a dot on its interval, its name at the left."""
    low, high = intervals
    rows = [
        (r.model, r.metrics[metric].mean, low[r.model, metric], high[r.model, metric])
        for r in report.results
    ]
    ends = [v for _, mean, a, b in rows for v in (mean, a, b) if np.isfinite(v)]
    if not ends:
        return ""
    least, most = min(ends), max(ends)
    span = (most - least) or max(abs(most), 1.0)
    best = report.best().get(metric)
    label = 7 * max(len(shortened(model)) for model, *_ in rows) + 10
    width, down = label + 260, 26

    def at(value: float) -> float:
        return label + 10 + 230 * (value - least) / span

    lines = []
    for k, (model, mean, a, b) in enumerate(rows):
        y = 38 + down * k
        colour = COLOURS[0] if mean == best else "#808080"
        lines.append(f'<text x="0" y="{y + 4}">{escape(shortened(model))}</text>')
        if np.isfinite(a):
            lines.append(
                f'<line x1="{at(a):.1f}" x2="{at(b):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
                'stroke-width="3"/>'
            )
        if np.isfinite(mean):
            lines.append(f'<circle cx="{at(mean):.1f}" cy="{y}" r="5" fill="{colour}"/>')
    bottom = 38 + down * len(rows)
    lines.append(f'<text x="{at(least):.1f}" y="{bottom + 8}">{_figure(least)}</text>')
    if most > least:
        lines.append(
            f'<text x="{at(most):.1f}" y="{bottom + 8}" text-anchor="end">{_figure(most)}</text>'
        )
    title = f'<text x="0" y="16" font-weight="bold">{escape(metric)}</text>'
    return (
        f'<svg role="img" aria-label="{escape(metric)}: means with intervals" width="{width}" '
        f'height="{bottom + 16}" viewBox="0 0 {width} {bottom + 16}">{title}{"".join(lines)}</svg>'
    )


def shortened(model: str) -> str:
    """Return a model's name, or its beginning where it is too long to draw."""
    return model if len(model) <= LONGEST else f"{model[: LONGEST - 1]}…"


def _table(columns: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _within(low: float, high: float) -> str:
    return f"<small>{_figure(low)} – {_figure(high)}</small>" if np.isfinite(low) else ""


def _figure(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"
