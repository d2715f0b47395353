"""Tables of metrics and protocols in pages, from their registries."""

import re
from pathlib import Path

from recsys.data import PROTOCOLS, find_protocol
from recsys.evaluation.metrics import METRICS


def metrics() -> str:
    """Return every metric with its definition."""
    lines = ["| name | definition |", "|---|---|"]
    for name in METRICS:
        metric = METRICS.get(name)
        definition = metric.definition.replace("|", "\\|")
        lines.append(f"| `{name}{'@k' if metric.cutoff else ''}` | {definition} |")
    return "\n".join(lines)


def protocols() -> str:
    """Return every protocol with its description."""
    lines = ["| name | what is hidden | folds |", "|---|---|---|"]
    for name in PROTOCOLS:
        protocol = find_protocol(name)
        lines.append(f"| `{name}` | {protocol.description} | {protocol.folds} |")
    return "\n".join(lines)


TABLES = {"metrics": metrics, "protocols": protocols}


def fill(folder: Path) -> None:
    """Put the tables into the pages of a folder."""
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        filled = re.sub(r"<!-- table: (\S+) -->", lambda match: TABLES[match[1]](), text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
