"""The generated pages hold every public name, command, metric, protocol and result."""

import re

import pytest

pytest.importorskip("matplotlib")

from docs.generate import command_line, reference, reproductions, tables  # noqa: E402
from recsys.cli.commands import COMMANDS  # noqa: E402
from recsys.data import PROTOCOLS  # noqa: E402
from recsys.evaluation.metrics import METRICS  # noqa: E402
from tests.docs.pages import ROOT  # noqa: E402


def test_every_public_name_is_described_once(tmp_path):
    reference.write(tmp_path)
    where = reference.homes()
    assert len(where) > 100
    for full in set(where.values()):
        pattern = rf"^\.\. auto(class|function|data):: {re.escape(full)}$"
        pages = [path for path in tmp_path.glob("*.rst") if re.search(pattern, path.read_text(), re.M)]
        assert len(pages) == 1, full


def test_every_command_and_option_is_described(tmp_path):
    command_line.write(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## recsys {name}\n" in text
        for parameter in command_line.load(name).params:
            assert parameter.name == "help" or parameter.opts[-1] in text


def test_metrics_and_protocols_are_all_in_their_tables():
    assert all(f"`{name}" in tables.metrics() for name in METRICS)
    assert all(f"`{name}`" in tables.protocols() for name in PROTOCOLS)


def test_every_entry_of_the_coverage_has_its_result_or_a_reason():
    for entry in reproductions.coverage():
        assert entry["state"] in ("there", "in part", "no", "not checked"), entry
        if reproductions.is_measured(entry):
            assert bool(entry["result"]) == (entry["state"] != "no"), entry
            assert all((reproductions.RESULTS / name).exists() for name in entry["result"].split())
        assert entry["why"] or entry["state"] in ("there", "not checked"), entry


def test_every_test_and_script_of_the_coverage_exists():
    for entry in reproductions.coverage():
        assert bool(entry["test"]) == (entry["state"] in ("there", "in part")), entry
        for name in entry["test"].split():
            file, _, function = name.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not function or re.search(rf"^def {function}\(", text, re.MULTILINE), name


def test_printed_values_stand_beside_ours():
    assert "87.87" in reproductions.table("table_6_3.csv")
    assert "0.000653" in reproductions.table("random_features_errors.csv")
