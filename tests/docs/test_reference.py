"""What the generated pages hold: every public name, command, route and result; nothing is typed that is measured."""

import csv
import json
import re

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jupytext")

from docs.generate import command_line, gallery, reference, reproductions, service, tables  # noqa: E402
from recsys.cli.commands import COMMANDS  # noqa: E402
from recsys.data import PROTOCOLS  # noqa: E402
from recsys.evaluation.metrics import METRICS  # noqa: E402
from tests.docs.pages import ROOT  # noqa: E402


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    reference.write(folder)
    return folder


def test_every_public_name_is_described_once_and_found_from_its_module(pages):
    where = reference.homes()
    assert len(where) > 200
    for (module, name), full in where.items():
        text = (pages / f"{module}.rst").read_text(encoding="utf-8")
        assert f":py:obj:`{name} <{full}>`" in text, f"{module}.{name}"
        home = next(m for m, n in where if f"{m}.{n}" == full)
        own = (pages / f"{home}.rst").read_text(encoding="utf-8")
        assert (
            len(re.findall(rf"^\.\. auto(class|function|data):: {re.escape(full)}$", own, re.M)) == 1
        ), full
    index = (pages / "index.rst").read_text(encoding="utf-8")
    assert all(f"   {module}\n" in index for module in {module for module, _ in where})


def test_adapters_are_described_without_the_libraries_they_need(pages, tmp_path, monkeypatch):
    package = tmp_path / "recsys" / "adapters"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "theirs.py").write_text('"""Of theirs."""\nimport nowhere\n__all__ = ["Model"]\n')
    monkeypatch.setattr(reference.recsys, "__file__", str(tmp_path / "recsys" / "__init__.py"))
    assert reference.adapters() == {"recsys.adapters.theirs": ("Of theirs.", ["Model"])}
    page = reference.adapter("recsys.adapters.theirs", "Of theirs.", ["Model"])
    assert ".. autoclass:: recsys.adapters.theirs.Model\n" in page
    monkeypatch.undo()
    for name, (_, offered) in reference.adapters().items():
        text = (pages / f"{name}.rst").read_text(encoding="utf-8")
        assert all(f"{name}.{thing}\n" in text for thing in offered)


def test_every_method_that_users_call_is_described(pages):
    text = (pages / "recsys.rst").read_text(encoding="utf-8")
    for name in (
        "Recommender.recommend",
        "Recommender.save",
        "Ranker.recommend",
        "Ranker.similar_items",
        "Interactions.from_frame",
    ):
        assert f":: recsys.{name}\n" in text, name
    assert ":: recsys.EASE.recommend" not in text, "a ranker's protocol is told once"


def test_every_command_and_option_is_described(tmp_path):
    command_line.write(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## recsys {name}\n" in text
        for parameter in command_line.load(name).params:
            assert parameter.name == "help" or parameter.opts[-1] in text


def test_the_commands_that_take_threads_are_those_of_the_page():
    text = (ROOT / "docs" / "howto" / "processes-and-threads.md").read_text(encoding="utf-8")
    named = re.search(r"`--threads` of `recsys (.*?);", text, re.S)[1]
    taking = {
        name
        for name in COMMANDS
        if any("--threads" in parameter.opts for parameter in command_line.load(name).params)
    }
    assert set(re.split(r"`(?:, | and )`|`", named)) - {""} == taking


def test_every_route_and_body_is_described(tmp_path):
    service.write(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    found = service.schema()
    for path, methods in found["paths"].items():
        assert all(f"`{method.upper()} {path}`" in text for method in methods)
    for name, described in found["components"]["schemas"].items():
        assert f"\n### {name}\n" in text
        assert all(f"`{field}`" in text for field in described.get("properties", {}))


def test_metrics_and_protocols_are_all_in_their_tables():
    assert all(f"`{name}" in tables.metrics() for name in METRICS)
    assert all(f"`{name}`" in tables.protocols() for name in PROTOCOLS)


@pytest.mark.thorough
def test_every_module_is_in_the_architecture():
    table = tables.modules()
    for path in (ROOT / "recsys").rglob("*.py"):
        if path.name != "__init__.py":
            assert f"{path.name}`" in table, path


# Reproductions


def test_every_result_has_a_page():
    assert not reproductions.unused()


def test_the_list_of_papers_tables_says_where_or_why():
    entries = reproductions.coverage()
    assert {entry["paper"] for entry in entries} == set(reproductions.PAPERS)
    for entry in entries:
        assert entry["state"] in ("there", "in part", "no"), entry
        assert bool(entry["result"]) == (entry["state"] != "no"), entry
        assert entry["why"] or entry["state"] == "there", entry
        assert all((reproductions.RESULTS / name).exists() for name in entry["result"].split()), entry
    bibliography = (ROOT / "docs" / "bibliography.bib").read_text(encoding="utf-8")
    assert all(f"{{{key}," in bibliography for key in reproductions.PAPERS)


def test_every_statement_of_the_papers_names_its_test_or_why_there_is_none():
    entries = reproductions.statements()
    assert {entry["paper"] for entry in entries} == set(reproductions.PAPERS)
    keys = [(entry["paper"], entry["element"]) for entry in reproductions.covered()]
    assert len(set(keys)) == len(keys) > 208
    for entry in entries:
        assert entry["state"] in ("there", "in part", "no", "not checked"), entry
        assert bool(entry["test"]) == (entry["state"] in ("there", "in part")), entry
        assert entry["why"] or entry["state"] in ("there", "not checked"), entry
        assert not entry["result"], entry


def test_every_test_and_script_that_the_list_names_is_there():
    for entry in reproductions.covered():
        assert bool(entry["test"]) == (entry["state"] in ("there", "in part")), entry
        for name in entry["test"].split():
            file, _, function = name.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not function or re.search(rf"^def {function}\(", text, re.MULTILINE), name


def test_the_index_says_in_three_sentences_what_how_near_and_why_not():
    text = reproductions.summary(reproductions.coverage())
    what, near, missing = re.split(r"(?<=[a-z])\. (?=[A-Z\d])", text)
    parts = [int(number) for number in re.findall(r"\d+", what)]
    assert parts[0] == sum(parts[1:]) == len(reproductions.coverage())
    close, of = map(int, re.match(r"(\d+) of the (\d+) AUC", near).groups())
    assert 0 < close < of and "times the printed" in near and "not distributed" in missing
    assert text in reproductions.index(reproductions.coverage())


def test_ours_stands_beside_the_print():
    text = reproductions.table("table_6_3.csv")
    heads = [cell.strip() for cell in text.splitlines()[0].strip("|").split("|")]
    row = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert heads[:3] == ["kernel", "mdnf", "mdnf, printed"]
    with open(reproductions.RESULTS / "table_6_3.csv", encoding="utf-8") as file:
        ours = float(next(csv.DictReader(file))["mdnf"])
    assert row[:3] == ["linear", f"{ours:.4g}", "87.87"]
    assert "0.000653" in reproductions.table("random_features_errors.csv")


def test_no_figure_is_written_by_hand_into_the_measurements():
    """Digits in the text are names of datasets, tables and settings, and sizes that were chosen."""
    text = (reproductions.PAGES / "measurements.md").read_text(encoding="utf-8")
    assert not re.findall(r"\d+\.\d+ ?(?:s\b|ms|MB|GB|times|%)|\b0\.\d{2,}", text)


# The gallery


def test_the_gallery_shows_every_script_as_it_was_run(tmp_path):
    assert not gallery.stale(), "run: make gallery"
    gallery.write(tmp_path)
    for script in gallery.SCRIPTS.glob("*.py"):
        book = json.loads((tmp_path / f"{script.stem}.ipynb").read_text(encoding="utf-8"))
        outputs = [
            out for cell in book["cells"] if cell["cell_type"] == "code" for out in cell["outputs"]
        ]
        assert outputs and not [out for out in outputs if out["output_type"] == "error"]
        assert "/tmp/" not in json.dumps(outputs)
    assert "tour" in (tmp_path / "index.md").read_text(encoding="utf-8")


def test_the_notebooks_are_those_of_the_scripts(tmp_path):
    gallery.write_notebooks(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in gallery.SCRIPTS.glob("*.ipynb")}
    assert made == kept, "run: python -m docs.generate.gallery -"
    assert "own_csv.ipynb" in kept


def test_what_is_stored_is_slim():
    assert gallery.slim({"output_type": "stream", "name": "stderr", "text": "noise"}) is None
    shown = gallery.slim(
        {"output_type": "execute_result", "data": {"text/plain": "x", "text/html": "<b>x</b>"}}
    )
    assert shown["data"] == {"text/html": "<b>x</b>"}
