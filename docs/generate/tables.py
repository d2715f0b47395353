"""Tables that stand in pages, written from the registries: `<!-- table: NAME -->` becomes one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

from recsys.data import PROTOCOLS, find_protocol
from recsys.data.splits import VARIANTS
from recsys.evaluation.metrics import METRICS

ROOM = Path(__file__).resolve().parents[2] / "recsys"


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
    for name in (*PROTOCOLS, *VARIANTS):
        found = find_protocol(name)
        future = "yes" if found.needs_time else "where there are times" if found.uses_time else "no"
        lines.append(f"| `{name}` | {found.description} | {found.default_folds} | {future} |")
    return "\n".join(lines)


def told(path: Path) -> str:
    """Return the first line of a module's docstring, without importing it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].replace("|", "\\|").replace("*", "\\*")


def modules() -> str:
    """Return every module with what it holds, one room after another."""
    lines = []
    for room in sorted(
        path for path in ROOM.iterdir() if path.is_dir() and (path / "__init__.py").exists()
    ):
        lines += [
            f"::::{{dropdown}} recsys/{room.name}/: {told(room / '__init__.py') or 'see the files'}",
            "| file | |",
            "|---|---|",
        ]
        for path in sorted(room.rglob("*.py")):
            if path.name != "__init__.py" or path.parent != room:
                lines.append(f"| `{path.relative_to(room)}` | {told(path)} |")
        lines += ["::::", ""]
    lines += ["| file | |", "|---|---|"]
    lines += [f"| `recsys/{path.name}` | {told(path)} |" for path in sorted(ROOM.glob("*.py"))]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"metrics": metrics, "protocols": protocols, "modules": modules}


def fill(folder: Path) -> None:
    """Put the tables into the pages of a folder."""
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        filled = re.sub(r"<!-- table: (\S+) -->", lambda found: TABLES[found[1]](), text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
