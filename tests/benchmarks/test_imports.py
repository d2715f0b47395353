"""Every name of this project that a benchmark imports exists, also where a function imports it."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))


def imported(path):
    """Return the module and the name of each `from recsys… import name` and `from benchmarks… import name`."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [
        (node.module, alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[0] in ("recsys", "benchmarks")
        for alias in node.names
    ]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_exist(path):
    for module, name in imported(path):
        try:
            found = hasattr(importlib.import_module(module), name)
        except ImportError as error:
            assert (error.name or "").split(".")[0] not in ("recsys", "benchmarks")
            continue  # a library that is not installed here
        if not found:
            importlib.import_module(f"{module}.{name}")


def test_a_name_that_is_gone_is_noticed(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("def late():\n    from recsys.datasets import nothing\n")
    assert imported(path) == [("recsys.datasets", "nothing")]
    with pytest.raises(ModuleNotFoundError):
        test_imports_exist(path)
