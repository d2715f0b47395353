"""Tables that stand in pages, written from the registries: `<!-- table: NAME -->` becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from recsys.data import PROTOCOLS
from recsys.evaluation.metrics import METRICS


def metrics() -> str:
    """Return every metric with its definition."""
    lines = ["| name | definition | one value for each |", "|---|---|---|"]
    for name in METRICS:
        metric = METRICS.get(name)
        told = metric.definition.replace("|", "\\|")
        lines.append(
            f"| `{name}{'@k' if metric.cutoff else ''}` | {told} | {'user' if metric.per_user else 'fold'} |"
        )
    return "\n".join(lines)


def protocols() -> str:
    """Return every protocol with its description."""
    lines = ["| name | what is hidden | folds | of the future |", "|---|---|---|---|"]
    for name in PROTOCOLS:
        found = PROTOCOLS[name] if hasattr(PROTOCOLS, "__getitem__") else PROTOCOLS.get(name)
        future = "yes" if found.needs_time else "where there are times" if found.uses_time else "no"
        lines.append(f"| `{name}` | {found.description} | {found.default_folds} | {future} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"metrics": metrics, "protocols": protocols}


def fill(folder: Path) -> None:
    """Put the tables into the pages of a folder."""
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        filled = re.sub(r"<!-- table: (\S+) -->", lambda found: TABLES[found[1]](), text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
