"""`recsys interactions`: the same figures as the library's, files, and errors of one line."""

import csv
import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from recsys import load_dataset
from recsys.fm.problem import pairs_problem, table_of, table_problem
from recsys.fm.selection import select
from recsys.fm.study import study
from recsys.fm.study_settings import StudySettings
from tests.fm.test_study import table


@pytest.fixture
def recsys(recsys):
    table(200).to_csv("things.csv", index=False)
    return partial(recsys, "interactions")


@pytest.mark.slow
def test_a_dataset_is_studied_and_printed(recsys):
    arguments = ("--model", "hofm", "--no-path", "--strength", "0.001", "--epochs", 5, "-n", 3)
    code, out, err = recsys(*arguments, "--json", "found.json", "--out", "found.csv")
    assert code == 0, err
    found = study(
        pairs_problem(load_dataset("sample")),
        StudySettings(model="hofm", path=False, strength=0.001, epochs=5, number=3),
    )
    for sentence in found.sentences():
        assert sentence in out
    for one in found.interactions:
        line = next(line for line in out.splitlines() if line.strip().startswith(one.text))
        assert line.split()[-2:] == [f"{one.weight:+.4f}", f"{one.rows:,}"]
    assert json.loads(Path("found.json").read_text()) == json.loads(json.dumps(found.as_dict()))
    rows = list(csv.DictReader(Path("found.csv").read_text().splitlines()))
    assert [(int(row["order"]), row["feature_1"], row["feature_3"]) for row in rows] == [
        (one.order, one.names[0], one.names[2] if one.order == 3 else "") for one in found.interactions
    ]
    assert [float(row["weight"]) for row in rows] == pytest.approx(
        [one.weight for one in found.interactions]
    )
    assert "liked pairs against" in err and err.count("\n") == len(found.notes)


def test_a_table_is_studied_with_its_path_and_intervals(recsys):
    code, out, err = recsys(
        "--table", "things.csv", "--target", "price", "--model", "sparse-fm", "--epochs", 10,
        "--strengths", "1e-4,1e-3,1", "--refits", 3, "--json", "-", "--quiet",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)
    again = study(
        table_problem(table_of("things.csv"), "price", name="things.csv"),
        StudySettings(model="sparse-fm", epochs=10, strengths=(1e-4, 1e-3, 1.0), refits=3),
    )
    assert found == json.loads(json.dumps(again.as_dict()))
    assert [step["strength"] for step in found["path"]] == [1e-4, 1e-3, 1.0]
    assert found["path"][-1]["pairs"] == 0
    code, out, err = recsys("--table", "things.csv", "--target", "price", "--model", "sparse-fm", "--epochs", 10, "--strengths", "1e-4,1e-3,1", "--refits", 3)  # fmt: skip
    assert code == 0 and "taken" in out and "low" in out and "Learning curve" in out
    assert sum(line.split()[-1:] == ["taken"] for line in out.splitlines()) == 1
    assert "note: things.csv: column 'id' left out" in err
    code, out, _ = recsys("--table", "things.csv", "--target", "price", "--model", "sparse-fm", "--no-path", "--strength", 10)  # fmt: skip
    assert code == 0 and "No interaction of two features has a weight." in out


def test_what_is_selected_is_printed(recsys):
    arguments = ("--table", "things.csv", "--target", "price", "--model", "sparse-fm", "--no-path")
    code, out, _ = recsys(*arguments, "--strength", 0.02)
    found = study(
        table_problem(table_of("things.csv"), "price", name="things.csv"),
        StudySettings(model="sparse-fm", path=False, strength=0.02),
    )
    left = [one.name for one in found.singles if not one.used]
    assert code == 0 and 0 < len(left) < len(found.singles)
    assert f"In no product: {', '.join(left)}." in out
    selected = out[out.index("Features by themselves") :]
    for one in found.singles:
        line = next(line for line in selected.splitlines() if line.strip().startswith(f"{one.name} "))
        assert line.split()[-3:] == [f"{one.weight:+.4f}", f"{one.rows:,}", "yes" if one.used else "no"]


def test_the_curve_that_is_printed_has_both_ends(recsys):
    _, out, _ = recsys("--table", "things.csv", "--target", "sold", "--no-path", "--epochs", 23)
    curve = out[out.index("Learning curve") : out.index("For sold=yes")]
    numbers = [int(line.split()[0]) for line in curve.splitlines() if line.strip()[:1].isdigit()]
    assert len(numbers) == 10 and numbers[0] == 1 and numbers[-1] == 23


@pytest.mark.thorough
def test_what_a_path_selects_is_printed_written_and_drawn(recsys):
    arguments = (
        "--table",
        "things.csv",
        "--target",
        "price",
        "--model",
        "sparse-fm",
        "--epochs",
        8,
        "--select",
    )
    code, out, err = recsys(
        *arguments,
        "--halves",
        2,
        "--starts",
        2,
        "--json",
        "found.json",
        "--out",
        "top.csv",
        "-n",
        3,
        "--picture",
        "path.png",
    )
    assert code == 0, err
    found = select(
        table_problem(table_of("things.csv"), "price", name="things.csv"),
        StudySettings(model="sparse-fm", epochs=8, number=3), pairs=2, starts=2,
    )  # fmt: skip
    assert json.loads(Path("found.json").read_text()) == json.loads(json.dumps(found.as_dict()))
    for sentence in found.sentences():
        assert sentence in out
    for point in found.points:
        assert any(
            line.split()[:3]
            == [f"{point.strength:.3g}", f"{point.features:,}", f"{point.interactions:,}"]
            for line in out.splitlines()
        )
    for one in found.measured:
        assert any(
            line.strip().startswith(f"{one.model} ") and line.split()[-1] == f"{one.measure:.4f}"
            for line in out.splitlines()
        )
    rows = list(csv.DictReader(Path("top.csv").read_text().splitlines()))
    chosen = found.points[found.taken].chosen
    assert [row["interaction"] for row in rows] == [one.text for one in chosen]
    assert [float(row["refitted"]) for row in rows] == pytest.approx([one.refitted for one in chosen])
    assert [float(row["halves"]) for row in rows] == [one.halves for one in chosen]
    assert Path("path.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_what_a_path_selects_without_halves_goes_to_any_kind_of_file(recsys):
    """Shares that were not asked for are missing numbers, not texts."""
    arguments = ("--table", "things.csv", "--target", "price", "--model", "sparse-fm", "--epochs", 8)
    for name in ("top.parquet", "top.json", "top.csv"):
        code, _, err = recsys(*arguments, "--select", "--quiet", "--out", name)
        assert code == 0, err
    written = pd.read_parquet("top.parquet")
    assert len(written) and written["halves"].isna().all() and written["refitted"].notna().all()
    assert {(one["halves"], one["starts"]) for one in json.loads(Path("top.json").read_text())} == {
        (None, None)
    }
    assert {row["starts"] for row in csv.DictReader(Path("top.csv").read_text().splitlines())} == {""}


@pytest.mark.thorough
@pytest.mark.parametrize(("arguments", "message"), [
    (("--halves", "2"), "are for --select"), (("--select",), "not for fm with l2"),
    (("--select", "--model", "sparse-fm", "--penalty", "omega"), "not for sparse-fm with omega"),
    (("--select", "--model", "sparse-fm", "--halves", "-1"), "pairs must be"),
    (("--select", "--strength", "0.1"), "leave out --strength"), (("--select", "--no-path"), "leave out --strength"),
    (("--select", "--min-rows", "9"), "leave out --min-rows"),
    (("--select", "--strengths", "0.1,1"), "of its own"), (("--select", "--refits", "2"), "of its own"),
    (("--table", "things.csv", "--target", "prise"), "did you mean 'price'"),
    (("--table", "things.csv", "--target", "sold", "--categories", "size,kolour"), "did you mean 'colour'"),
    (("--categories", "jahr"), "no column 'jahr'"),
    (("--table", "constant.csv", "--target", "y"), "'yes' in every row"),
    (("--table", "bare.csv", "--target", "y"), "no column beside 'y' is a feature"),
    (("--table", "empty.csv"), "the file is empty"), (("--table", "header.csv"), "there is a header only"),
    (("--table", "missing.csv"), "missing.csv"), (("--table", "ragged.csv"), "line 3"),
    (("--table", "things.csv", "--target", "colour"), "has 3 classes"),
    (("--table", "things.csv", "--dataset", "sample"), "not both"), (("--kind", "numbers"), "for --table"),
    (("--interactions", "likes.csv"), "no features of users or items"), (("--target", "stars"), "target must be one of"),
    (("--model", "fmm"), "model must be one of"), (("--strengths", "a,b"), "--strengths takes numbers"),
    (("--ratio", "99999999"), "ratio 99999999 leaves 0 liked pairs of 50000 rows: at least 5 are needed"),
    (("--table", "things.csv", "--ids"), "--ids and --ratio are for interactions"),
    (("--table", "things.csv", "--ratio", "-1"), "--ids and --ratio are for interactions"),
    (("--item-id", "nope"), "--item-id names a column of --items FILE: give that, too"),
    (("--user-id", "nope", "--items", "things.csv"), "--user-id names a column of --users FILE"),
    (("--strengths", ","), "strengths holds none"), (("--degree", "3"), "model 'hofm'"), (("--threads", "0"), "--threads"),
    (("--table", "things.csv", "--target", "price", "--no-path", "--epochs", "1", "--out", "no/where.csv"), "no/where.csv"),
])  # fmt: skip
def test_errors_are_one_line(recsys, arguments, message):
    Path("constant.csv").write_text("x,y\n" + "a,yes\nb,yes\n" * 10)
    Path("bare.csv").write_text("x,y\n" + "".join(f"only {k} of me,{k % 2}\n" for k in range(30)))
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("x,y\n")
    Path("ragged.csv").write_text("x,y\na,1\nb\n")
    Path("likes.csv").write_text("user,item\n" + "".join(f"u{k % 5},i{k % 7}\n" for k in range(35)))
    code, out, err = recsys(*arguments, "--quiet")
    assert code == 2 and message in err and err.count("\n") == 1, err
    assert out == ""
