"""The examples in the app's docstrings, run."""

import doctest
import importlib

import pytest

pytest.importorskip("streamlit")

from tests.app.browsing import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "app").rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 == found.failed
