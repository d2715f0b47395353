"""`recsys links`: a graph of tables, of the data folder or of a dataset; strongest links with their features."""

import json
from pathlib import Path

import numpy as np
import pytest

from recsys.datasets import load_dataset
from recsys.datasets.linked_tables import graph_of, read_graph
from recsys.links import compare_links, fit_on_all_links, link_reasons, strongest_links
from recsys.links import text as wording
from tests.cli.test_models import graph  # noqa: F401

QUICK = ("--model", "bilinear:n_components=3,max_iter=10", "--model", "pair-svm")
TABLES = ("--left", "nodes.csv", "--pairs", "edges.csv")


def test_the_table_and_its_verdicts(recsys, graph):  # noqa: F811
    code, out, err = recsys("links", *TABLES, *QUICK, "--seed", 3, "--json", "l.json")
    assert code == 0, err
    data = read_graph("edges.csv", "nodes.csv").weighted()
    found = compare_links(data, QUICK[1::2], seed=3)
    told = json.loads(Path("l.json").read_text())
    assert told["verdicts"] == wording.verdicts(found) and told["about"] == wording.about_graph(data)
    for line in (*wording.verdicts(found), wording.about_graph(data), wording.headline(found)):
        assert line in out
    for result, entry in zip(found.results, told["results"], strict=True):
        assert f"{result.metrics.auc:.4f}" in out and f"{result.auc_error:.4f}" in out
        assert entry["auc"] == result.metrics.auc and entry["auc_error"] == result.auc_error
        assert entry["behind"] == (None if result.gap is None else result.gap._asdict())


def test_strongest_links_with_the_features_that_make_them(recsys, graph):  # noqa: F811
    code, out, err = recsys("links", *TABLES, *QUICK, "--object", "n4", "-n", 3, "--json", "l.json")
    assert code == 0, err
    told = json.loads(Path("l.json").read_text())["object"]
    data = read_graph("edges.csv", "nodes.csv").weighted()
    name = compare_links(data, QUICK[1::2]).best.model
    model = fit_on_all_links(data, name)
    index = data.left.ids.tolist().index("n4")
    strong = strongest_links(model, data, index, "left", 3)
    assert told["model"] == name and told["candidates"] == strong.candidates
    assert [entry["id"] for entry in told["links"]] == [data.left.ids[k] for k in strong.objects]
    assert strong.candidates == len(data.left.ids) - 1 - told["known"]
    for other, entry in zip(strong.objects, told["links"], strict=True):
        reasons = link_reasons(model, data.A, None, index, int(other), 3)
        assert entry["score"] == reasons.score
        adds = sum(pair["adds"] for pair in entry["pairs"])
        total = entry["base"] + entry["left"] + entry["right"] + adds + entry["others"]
        assert total == pytest.approx(entry["score"]) and entry["text"] in out
        for pair, (p, q, value) in zip(entry["pairs"], reasons.pairs, strict=True):
            assert pair == {"left": data.left.features[p], "right": data.left.features[q], "adds": value}  # fmt: skip
            assert f"{value:+.4f}" in out


def test_one_link_is_explained(recsys, graph):  # noqa: F811
    code, out, err = recsys("links", *TABLES, *QUICK[:2], "--object", "n4", "--to", "n7", "--json", "-")
    assert code == 0, err
    told = json.loads(out)["object"]
    assert [entry["id"] for entry in told["links"]] == ["n7"]
    assert "chance" in told["links"][0]["chance"]


def test_users_and_items_and_pairs_alone(recsys, graph):  # noqa: F811
    code, out, err = recsys("links", "--dataset", "sample", "--ids", *QUICK[:2], "--object", "m0150", "--side", "right", "--json", "-")  # fmt: skip
    assert code == 0, err
    told = json.loads(out)
    data = graph_of(load_dataset("sample"), ids=True).weighted()
    assert told["about"] == wording.about_graph(data)
    assert told["results"][0]["auc"] == compare_links(data, QUICK[1:2]).best.metrics.auc
    assert {entry["id"] for entry in told["object"]["links"]} <= set(data.left.ids)
    code, out, err = recsys("links", "--pairs", "edges.csv", "--json", "-")
    assert code == 0, err
    assert [r["model"].split(":")[0] for r in json.loads(out)["results"]] == ["bilinear", "fm"]


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "say which graph"), (("--to", "n1"), "--to needs --object"), ((*TABLES, "--object", "nn"), "unknown object id 'nn'"),
    ((*TABLES, "--object", "n1", "--side", "top"), "side must be one of"), (("--graph", "cora", "--data-dir", "."), "graph 'cora' needs"),
    (("--graph", "coral"), "did you mean 'cora'"), (("--pairs", "edges.csv", "--cold"), "nothing is known of these objects but their ids"),
    ((*TABLES, "--weighting", "heavy"), "weighting must be one of"),
    ((*TABLES, "--graph", "cora"), "exactly one of --pairs FILE, --graph NAME and --dataset NAME"),
    (("--dataset", "sample", "--graph", "cora"), "exactly one of"),
    (("--left", "nodes.csv"), "exactly one of"),
    (("--dataset", "sample", "--left", "nodes.csv"), "--left, --right, their ids and columns are for --pairs FILE"),
    ((*TABLES, "--min-rating", "3"), "--min-rating and --ids are for --dataset NAME"),
    ((*TABLES, "--ids"), "--min-rating and --ids are for --dataset NAME"),
    ((*TABLES, "--ratio", "nan"), "ratio must be a finite number above 0, not nan"),
    ((*TABLES, "--ratio", "0"), "ratio must be a finite number above 0, not 0.0"),
    ((*TABLES, "--cold", "--ratio", "-1"), "ratio must be a finite number above 0, not -1.0"),
    ((*TABLES, "--ratio", "1e12"), "pairs without a link are wanted, and there are "),
])  # fmt: skip
def test_errors(recsys, graph, arguments, message):  # noqa: F811
    code, _, err = recsys("links", *arguments)
    assert code == 2 and message in err and err.count("\n") == 1, err


def test_a_graph_of_the_data_folder(recsys, data_dir):  # noqa: F811
    code, out, err = recsys("links", "--graph", "cora", "--data-dir", data_dir, "--model", "pairnet:similarity=true,n_components=2,max_iter=5", "--cold", "--json", "-")  # fmt: skip
    assert code == 0, err
    told = json.loads(out)
    assert told["about"].startswith("2,708 papers with 1,433 features, 5,278 links")
    assert told["results"][0]["auc"] > 0.6 and np.isfinite(told["results"][0]["auc_error"])
