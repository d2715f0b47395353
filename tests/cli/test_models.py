"""`recsys tune`, `links` and `export`, and Parquet lists."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.test_cli import FILE, recsys  # noqa: F401


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(FILE)
    return path


def test_tune_prints_a_model_that_fit_takes(recsys, ratings):  # noqa: F811
    code, out, _ = recsys("tune", "--model", "ease", "--interactions", ratings, "--trials", 3, "--quiet", "--json", "t.json")  # fmt: skip
    assert code == 0
    spec = out.strip().splitlines()[-1].removeprefix("--model ")
    found = json.loads(Path("t.json").read_text())
    assert found["model"] == spec and len(found["trials"]) == 3
    assert recsys("fit", "--model", spec, "--interactions", ratings, "--out", "x", "--quiet")[0] == 0


def test_tune_errors(recsys, ratings):  # noqa: F811
    code, _, err = recsys("tune", "--model", "popularity", "--interactions", ratings)
    assert code == 2 and "model must be one of" in err and err.count("\n") == 1
    code, _, err = recsys("tune", "--model", "ease", "--interactions", ratings, "--study", "no/where")
    assert code == 2 and "does not exist" in err


@pytest.fixture
def graph(tmp_path):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 60)
    lines = [f"n{k},{'|'.join(f'w{w}' for w in np.flatnonzero(rng.random(9) < np.where(np.arange(9) // 3 == g, 0.8, 0.1)))},{rng.normal():.3f}" for k, g in enumerate(groups)]  # fmt: skip
    (tmp_path / "nodes.csv").write_text("id,words,size\n" + "\n".join(lines) + "\n")
    pairs = [(a, b) for a in range(60) for b in range(a + 1, 60) if groups[a] == groups[b] and rng.random() < 0.4]  # fmt: skip
    (tmp_path / "edges.csv").write_text("user_id,item_id\n" + "".join(f"n{a},n{b}\n" for a, b in pairs))
    return tmp_path


def test_links_compares_predictors(recsys, graph):  # noqa: F811
    code, out, err = recsys("links", "--left", "nodes.csv", "--pairs", "edges.csv", "--model", "pair-svm:C=0.1", "--model", "pairnet:n_components=4,beta=0.001", "--json", "l.json")  # fmt: skip
    assert code == 0, err
    assert "pair-svm:C=0.1" in out and "held-out pairs" in out
    found = json.loads(Path("l.json").read_text())
    assert found["results"][0]["auc"] > 0.7
    code, out, err = recsys("links", "--left", "nodes.csv", "--pairs", "edges.csv", "--cold", "--model", "bilinear:n_components=3")  # fmt: skip
    assert code == 0 and "never seen" in out


@pytest.mark.parametrize(("arguments", "message"), [
    (("--model", "pearnet"), "did you mean 'pairnet'?"), (("--model", "pairnet:degre=2"), "did you mean 'degree'?"), (("--model", "pairnet:degree=1"), "degree"),
    (("--test-size", "0"), "test_size"), (("--left", "missing.csv"), "missing.csv"),
])  # fmt: skip
def test_links_errors(recsys, graph, arguments, message):  # noqa: F811
    code, _, err = recsys("links", "--left", "nodes.csv", "--pairs", "edges.csv", *arguments)
    assert code == 2 and message in err and err.count("\n") == 1, err
    assert recsys("links", "--left", "nodes.csv", "--pairs", "nodes.csv")[0] == 2


def test_export_and_parquet(recsys, ratings):  # noqa: F811
    assert recsys("fit", "--model", "als:factors=4", "--interactions", ratings, "--out", "m", "--quiet")[0] == 0  # fmt: skip
    code, out, _ = recsys("export", "--ranker", "m", "--items-out", "i.parquet", "--users-out", "u.npy")
    assert code == 0 and out == "4 numbers a vector; they miss 0.00% of the scores\n"
    assert pq.read_table("i.parquet").num_rows == 11 and np.load("u.npy").shape == (12, 4)
    code, _, err = recsys("export", "--ranker", "m")
    assert code == 2 and "--users-out" in err
    assert recsys("recommend", "--ranker", "m", "--all", "-n", 3, "--out", "r.parquet")[0] == 0
    table = pq.read_table("r.parquet")
    assert (
        table.column_names == ["user_id", "rank", "item_id", "title", "score"] and table.num_rows == 36
    )
