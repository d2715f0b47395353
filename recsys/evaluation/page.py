"""A report as HTML, for notebooks and pages: everything in it that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recsys.evaluation.groups import Groups
    from recsys.evaluation.report import Report

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


def report_page(report: Report) -> str:
    """Return a report as an HTML fragment: figures with intervals, verdicts, definitions folded away."""
    low, high = report.intervals()
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
            _table(["model", *names, "fit s"], rows),
            "<p><em>Below each mean: 95% bootstrap interval over users.</em></p>",
            *(f"<p>{escape(line)}</p>" for line in told),
            "<details><summary>What the figures mean</summary>",
            *(f"<p>{escape(line)}</p>" for line in rest),
            "</details>", "</div>",
        ]
    )  # fmt: skip


def groups_page(groups: Groups) -> str:
    """Return figures of groups as an HTML fragment."""
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


def _table(columns: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _within(low: float, high: float) -> str:
    return f"<small>{_figure(low)} – {_figure(high)}</small>" if np.isfinite(low) else ""


def _figure(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"
