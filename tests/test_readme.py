"""The README's Python runs as printed, and its tables name what there is."""

import re
from pathlib import Path

from recsys import list_rankers
from recsys.data import PROTOCOLS
from recsys.kernels import list_kernels

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
        if "RANKERS.add" not in block:  # the pattern of a new ranker, with its parts left out
            exec(compile(block, "README.md", "exec"), names)  # our own text, checked in
    assert (tmp_path / "model.recsys").exists()


def test_every_ranker_and_kernel_is_in_the_table():
    for name in [*list_rankers(), *list_kernels()]:
        assert f"`{name}`" in TEXT, name


def test_every_protocol_is_told():
    for name in PROTOCOLS:
        assert f"`{name}`" in TEXT or name == "next-10", name


def test_nothing_is_left_to_fill_in():
    assert "@@" not in TEXT
