"""Data options are one object: fit, tune and evaluate read features of items and users from files."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recsys import load_ranker
from recsys.cli import commands
from recsys.cli.options import DataOptions, takes_data

USERS, ITEMS = 24, 16


@pytest.fixture
def files(tmp_path):
    """Return the options of a table whose likes follow the groups of both sides."""
    rng = np.random.default_rng(3)
    lines = [
        f"u{u},i{i}\n"
        for u in range(USERS)
        for i in range(ITEMS)
        if rng.random() < (0.7 if u % 2 == i % 2 else 0.1)
    ]
    (tmp_path / "likes.csv").write_text("user_id,item_id\n" + "".join(lines))
    (tmp_path / "items.csv").write_text(
        "who,genre,colour\n" + "".join(f"i{i},g{i % 2},c{i % 3}\n" for i in range(ITEMS))
    )
    # One user has no like: users' features are read where there are such.
    (tmp_path / "users.csv").write_text(
        "id,kind\n" + "".join(f"u{u},k{u % 2}\n" for u in range(USERS + 1))
    )
    return (
        "--interactions",
        "likes.csv",
        "--items",
        "items.csv",
        "--item-id",
        "who",
        "--users",
        "users.csv",
        "--user-id",
        "id",
    )


MODEL = "fm:factors=2,iterations=3"


def test_fit_gives_a_ranker_the_features_of_both_sides(recsys, files):
    code, _, err = recsys("fit", "--model", MODEL, *files, "--cold-items", "--out", "with", "--quiet")
    assert code == 0, err
    code, _, err = recsys("fit", "--model", MODEL, *files[:2], "--out", "without", "--quiet")
    assert code == 0, err
    full, bare = load_ranker("with"), load_ranker("without")

    row = np.zeros((1, ITEMS))
    row[0, :3] = 1
    assert not np.array_equal(full.scores(0, row), bare.scores(0, row))


def test_evaluate_and_tune_read_the_same_files(recsys, files, monkeypatch):
    given = []
    for module in ("recsys.evaluation", "recsys.tuning"):
        __import__(module)
    from recsys.cli import evaluate, tune

    for module, name in ((evaluate, "run_evaluation"), (tune, "search")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda data, *rest, real=real, **options: given.append(data) or real(data, *rest, **options),
        )
    code, out, err = recsys(
        "evaluate", "--model", MODEL, "--model", "ease", *files, "--folds", 2, "--json", "e.json"
    )
    assert code == 0, err
    assert json.loads(Path("e.json").read_text())["results"][0]["model"] == MODEL
    code, out, err = recsys("tune", "--model", MODEL, *files, "--trials", 1, "--quiet")
    assert code == 0, err
    assert len(given) == 2
    for data in given:
        assert list(data.item_features.columns) == ["genre", "colour"]
        assert list(data.user_features.columns) == ["kind"]


def test_what_evaluate_tells_depends_on_the_features(recsys, files):
    figures = []
    for options in (files, files[:2]):
        code, out, err = recsys("evaluate", "--model", MODEL, *options, "--folds", 2, "--json", "-")
        assert code == 0, err
        figures.append(json.loads(out)["results"][0]["metrics"]["auc"]["mean"])
    assert figures[0] != figures[1]


def test_items_and_users_that_only_their_table_has_are_taken_in(recsys, files):
    code, _, err = recsys("fit", "--model", MODEL, *files, "--out", "without")
    assert code == 0 and "left out: 1 (cold_items=True or --cold-items takes them in)" in err
    assert "no model reads the user table" in err
    code, _, err = recsys("fit", "--model", MODEL, *files, "--out", "with", "--cold-items")
    assert code == 0 and "no model reads" not in err
    new = ("--user", f"u{USERS}", "-n", 2)
    assert recsys("recommend", "--ranker", "without", *new)[0] == 2
    code, out, _ = recsys("recommend", "--ranker", "with", *new)
    assert code == 0 and f"u{USERS}" in out


@pytest.mark.parametrize("command", ["fit", "tune", "evaluate"])
def test_every_data_option_is_offered_by_each_command(recsys, command):
    code, out, _ = recsys(command, "--help")
    options = {"--dataset", "--interactions", "--user-col", "--item-col", "--rating-col", "--time-col"}
    options |= {"--min-rating", "--items", "--item-id", "--users", "--user-id", "--data-dir"}
    assert code == 0 and options <= set(re.findall(r"^  (--[a-z-]+)", out, re.M))


def test_the_options_stand_in_the_signature():
    @takes_data
    def command(out: str, data: DataOptions, quiet: bool = False) -> None:
        seen.append((out, data, quiet))

    seen = []
    names = list(inspect.signature(command).parameters)
    assert names[0] == "out" and names[-1] == "quiet" and "user_id" in names and "data" not in names
    given = {name: None for name in names if name not in ("out", "quiet")} | {
        "dataset": "sample",
        "cold_items": False,
    }
    command(out="x", quiet=True, **given)
    assert seen == [("x", DataOptions(dataset="sample"), True)]


def test_the_table_of_commands_says_what_their_docstrings_say():
    import importlib

    for name, text in commands.COMMANDS.items():
        module = commands.MODULES.get(name, name)
        function = getattr(importlib.import_module(f"recsys.cli.{module}"), name)
        assert function.__doc__.split("\n")[0] == text
        assert commands.load(name).name == name
    files = {path.stem for path in Path(commands.__file__).parent.glob("*.py")}
    assert {commands.MODULES.get(name, name) for name in commands.COMMANDS} <= files


def test_help_imports_no_command():
    script = (
        "import sys; from recsys.cli import call; code = call(['--help']);"
        "late = [m for m in ('recsys.cli.fit', 'recsys.rankers.cf_komd', 'rich', 'streamlit') if m in sys.modules];"
        "sys.exit(code or ', '.join(late) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "recommend" in done.stdout and "Search parameters" in done.stdout


def test_what_is_compared_without_a_model_has_a_model_of_each_family(recsys, files, monkeypatch):
    from recsys.evaluation import models

    families = {"popularity", "ease", "cf-komd", "als", "sparse-fm", "fm", "pairnet"}
    assert families <= {spec.split(":")[0] for spec in models.COMPARED}
    monkeypatch.setattr(models, "COMPARED", ("popularity",))
    code, out, err = recsys("evaluate", *files, "--folds", 2, "--json", "-")
    assert code == 0, err
    assert [r["model"] for r in json.loads(out)["results"]] == ["popularity"]


def test_the_table_of_items_is_read_by_the_column_of_the_interactions(recsys, tmp_path):
    (tmp_path / "sales.csv").write_text(
        "Kunde;Artikel\n" + "".join(f"k{k % 5};a{k % 7}\n" for k in range(35))
    )
    (tmp_path / "goods.csv").write_text(
        "Artikel;Bezeichnung\n" + "".join(f"a{k};Tee {k}\n" for k in range(7))
    )
    fit = ("fit", "--interactions", "sales.csv", "--model", "popularity", "--out", "m.recsys")
    code, _, err = recsys(*fit, "--items", "goods.csv")
    assert code == 0 and "Bezeichnung of the item table is read as the titles of the items" in err
    (tmp_path / "goods.csv").write_text(
        "Was;Bezeichnung\n" + "".join(f"a{k};Tee {k}\n" for k in range(7))
    )
    code, _, err = recsys(*fit, "--items", "goods.csv")
    assert code == 2 and "no item column; found: Was, Bezeichnung" in err
    assert recsys(*fit, "--items", "goods.csv", "--item-id", "Was")[0] == 0


@pytest.mark.parametrize("ending", [".xlsx", ".gz", ".XLS"])
def test_lists_are_not_written_under_the_ending_of_another_format(recsys, tmp_path, ending):
    (tmp_path / "likes.csv").write_text(
        "user,item\n" + "".join(f"u{k % 5},i{k % 7}\n" for k in range(30))
    )
    data = ("--interactions", "likes.csv", "--model", "popularity", "--out", "m.recsys")
    assert recsys("fit", *data)[0] == 0
    code, _, err = recsys("recommend", "--ranker", "m.recsys", "--all", "--out", f"top{ending}")
    assert code == 2 and "the ending must be .csv, .parquet, .json or .jsonl" in err
    assert not (tmp_path / f"top{ending}").exists()


def test_a_file_of_items_may_name_items_that_nobody_bought(recsys, tmp_path):
    (tmp_path / "likes.csv").write_text(
        "user,item\n" + "".join(f"u{k % 5},i{k % 7}\n" for k in range(30))
    )
    data = ("--interactions", "likes.csv", "--model", "popularity", "--out", "m.recsys")
    assert recsys("fit", *data)[0] == 0
    (tmp_path / "sold-out.txt").write_text("i0\nnever bought\ni1\n")
    (tmp_path / "others.txt").write_text("x\ny\n")
    lists = ("recommend", "--ranker", "m.recsys", "--keep-liked", "--all")
    told = "note: --filter-items: ids that are not in the model, left out: 1"
    code, text, err = recsys(*lists, "--filter-items", "@sold-out.txt")
    assert code == 0 and told in err
    assert {line.split(",")[2] for line in text.splitlines()[1:]} == {f"i{k}" for k in range(2, 7)}
    code, text, err = recsys(*lists, "--filter-items", "@others.txt")
    assert code == 2 and "none of the 2 ids is an item of the model" in err
    code, _, err = recsys(*lists, "--filter-items", "i0,never bought")
    assert code == 2 and "unknown item id 'never bought'" in err
    code, _, err = recsys("similar", "--ranker", "m.recsys", "--item", "i2", "--items", "@sold-out.txt")
    assert code in (0, 2) and "--items: ids that are not in the model, left out: 1" in err
