"""`recsys tune`, `links` and `export`, and Parquet lists."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from recsys import EASE, InputError
from recsys.explain import reasons
from recsys.rankers import load_package
from tests.cli.test_cli import FILE


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(FILE)
    return path


def test_tune_prints_a_model_that_fit_takes(recsys, ratings):  # noqa: F811
    code, out, _ = recsys(
        "tune",
        "--model",
        "ease",
        "--interactions",
        ratings,
        "--trials",
        3,
        "--quiet",
        "--json",
        "t.json",
    )
    assert code == 0
    spec = out.strip().splitlines()[-1].removeprefix("--model ")
    found = json.loads(Path("t.json").read_text())
    assert found["model"] == spec and len(found["trials"]) == 3
    assert recsys("fit", "--model", spec, "--interactions", ratings, "--out", "x", "--quiet")[0] == 0


def test_tune_errors(recsys, ratings):  # noqa: F811
    code, _, err = recsys("tune", "--model", "popularity", "--interactions", ratings)
    assert code == 2 and "model must be one of" in err.splitlines()[-1]
    code, _, err = recsys("tune", "--model", "ease", "--interactions", ratings, "--study", "no/where")
    assert code == 2 and "does not exist" in err


def test_export_and_parquet(recsys, ratings):  # noqa: F811
    assert (
        recsys("fit", "--model", "als:factors=4", "--interactions", ratings, "--out", "m", "--quiet")[0]
        == 0
    )
    code, out, _ = recsys("export", "--ranker", "m", "--items-out", "i.parquet", "--users-out", "u.npy")
    assert code == 0 and out == "vector length: 4, relative error of the scores: 0.00%\n"
    assert pq.read_table("i.parquet").num_rows == 11 and np.load("u.npy").shape == (12, 4)
    code, _, err = recsys("export", "--ranker", "m")
    assert code == 2 and "--users-out" in err
    assert recsys("recommend", "--ranker", "m", "--all", "-n", 3, "--out", "r.parquet")[0] == 0
    table = pq.read_table("r.parquet")
    assert (
        table.column_names == ["user_id", "rank", "item_id", "title", "score"] and table.num_rows == 36
    )


def test_lists_of_many_users_are_written_a_block_at_a_time(recsys, ratings, monkeypatch):  # noqa: F811
    assert recsys("fit", "--model", "ease", "--interactions", ratings, "--out", "m", "--quiet")[0] == 0
    whole = {}
    for name in ("a.parquet", "a.csv", "a.json"):
        assert recsys("recommend", "--ranker", "m", "--all", "-n", 3, "--out", name)[0] == 0
        whole[name] = Path(name).read_bytes()
    assert pq.ParquetFile("a.parquet").num_row_groups == 1
    monkeypatch.setattr("recsys.recommender.lists.BLOCK", 5)
    for name in ("a.parquet", "a.csv", "a.json"):
        assert recsys("recommend", "--ranker", "m", "--all", "-n", 3, "--out", f"b-{name}")[0] == 0
        if name != "a.parquet":
            assert Path(f"b-{name}").read_bytes() == whole[name]
    assert pq.ParquetFile("b-a.parquet").num_row_groups == 3
    assert pq.read_table("b-a.parquet").equals(pq.read_table("a.parquet"))
    assert len(json.loads(Path("a.json").read_text())) == 36
    out = recsys("recommend", "--ranker", "m", "--all", "-n", 3)[1]
    assert out.encode() == whole["a.csv"]


def test_a_list_that_fails_half_way_leaves_no_file(recsys, ratings, monkeypatch):  # noqa: F811
    assert recsys("fit", "--model", "ease", "--interactions", ratings, "--out", "m", "--quiet")[0] == 0
    monkeypatch.setattr("recsys.recommender.lists.BLOCK", 5)
    real, calls = EASE.recommend, []

    def failing(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise InputError("the disk is gone")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(EASE, "recommend", failing)
    before = set(Path().iterdir())
    code, _, err = recsys("recommend", "--ranker", "m", "--all", "--out", "half.csv")
    assert code == 2 and "the disk is gone" in err and set(Path().iterdir()) == before


def test_wishes(recsys, ratings):  # noqa: F811
    assert recsys("fit", "--model", "ease", "--interactions", ratings, "--out", "m", "--quiet")[0] == 0

    def items(*arguments):
        code, _, err = recsys(*arguments, "--ranker", "m", "-n", 9, "--out", "w.csv")
        assert code == 0, err
        return [line.split(",")[2] for line in Path("w.csv").read_text().splitlines()[1:]]

    plain = items("recommend", "--history", "i1,i2")
    assert items("recommend", "--history", "i1,i2", "--items", "i1,i4,i6") == [
        i for i in plain if i in ("i4", "i6")
    ]
    assert items("recommend", "--history", "i1,i2", "--filter-items", plain[0]) == plain[1:]
    assert plain[0] not in items("recommend", "--history", "i1,i2", "--dislike", plain[0])
    assert set(items("recommend", "--history", "i1,i2", "--diversity", "0.5")) == set(plain)
    code, out, _ = recsys("similar", "--ranker", "m", "--item", "i1", "--items", "i1,i2,i3")
    assert code == 0 and "i2" in out and "i4" not in out
    assert recsys("similar", "--ranker", "m", "--item", "i1", "--diversity", "0.5")[0] == 0
    for wrong in (
        ("--dislike", "nope"),
        ("--diversity", "2"),
        ("--items", "i1", "--filter-items", "i2"),
    ):
        code, _, err = recsys("recommend", "--ranker", "m", "--user", "u1", *wrong)
        assert code == 2 and err.count("\n") == 1, err


def test_explain_answers_for_models_without_shares_by_the_nearest_liked_items(recsys, ratings):  # noqa: F811
    assert (
        recsys("fit", "--model", "als:factors=4", "--interactions", ratings, "--out", "m", "--quiet")[0]
        == 0
    )
    code, out, err = recsys("explain", "--ranker", "m", "--user", "u1", "--item", "i2", "-n", 3)
    assert code == 0, err
    package = load_package("m")
    profile = package.profile("u1")
    found = reasons(package.ranker, profile.userid, profile.row, int(package.items(["i2"])[0]), 3)
    assert found.kind == "nearest" and len(found.items) == 3
    for k, value in found.items:
        assert re.search(rf"^ *{package.item_ids[k]} .*{re.escape(f'{value:+.4g}')}", out, re.M), out
    assert "als has no contributions" in out and f"{found.score:.4g}" in out
    assert (
        recsys("fit", "--model", "popularity", "--interactions", ratings, "--out", "p", "--quiet")[0]
        == 0
    )
    code, out, err = recsys("explain", "--ranker", "p", "--user", "u1", "--item", "i2")
    assert code == 0 and "score" in out, err


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("bpr:learning_rate=1e30", "bpr diverged"),
        ("ease:name=x", "has no parameter 'name'"),
        ("als:factors=1000000000", "GB are free: lower factors"),
    ],
)
def test_models_that_cannot_be_are_refused_not_reported(recsys, ratings, model, told):  # noqa: F811
    code, _, err = recsys("fit", "--interactions", ratings, "--model", model, "--out", "m")
    *notes, refused = err.splitlines()
    assert code == 2 and told in refused and all(note.startswith("note: ") for note in notes)
    assert not Path("m").exists()
