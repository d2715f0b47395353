"""`--test FILE` and the protocol `published` on the command line."""

import json

import numpy as np
import pytest

from recsys import evaluate
from recsys.data import Interactions

ASKED = ("--metric", "recall@20,ndcg@20", "--model", "ease:regularization=5", "--quiet", "--json", "-")


@pytest.fixture
def split(tmp_path):
    """Two tables."""
    rng = np.random.default_rng(0)
    liked, part = rng.random((30, 25)) < 0.35, rng.random((30, 25)) < 0.2
    for name, here in (("train", liked & ~part), ("test", liked & part)):
        (tmp_path / f"{name}.csv").write_text(
            "user,item\n" + "".join(f"{u},{i}\n" for u, i in zip(*here.nonzero(), strict=True))
        )
    return tmp_path


def figures(out):
    report = json.loads(out)
    assert report["protocol"] == "published" and report["folds"] == 1
    return {name: figure["mean"] for name, figure in report["results"][0]["metrics"].items()}


def test_a_split_is_evaluated_in_every_form_alike(recsys, split):
    train, test = (
        Interactions.from_frame(split / f"{name}.csv", user="user", item="item")
        for name in ("train", "test")
    )
    report = evaluate(train, "ease:regularization=5", test=test, metrics=["recall@20", "ndcg@20"])
    expected = {name: figure.mean for name, figure in report.results[0].metrics.items()}
    columns = ("--user-col", "user", "--item-col", "item")
    for given in (
        ("--interactions", "train.csv", *columns, "--test", "test.csv"),
        ("--interactions", "train.csv", "--test", "test.csv", "--protocol", "published"),
    ):
        code, out, err = recsys("evaluate", *given, *ASKED)
        assert code == 0, err
        assert figures(out) == pytest.approx(expected, abs=1e-6), given


def test_notes_say_what_became_of_the_test_half(recsys, split):
    (split / "test.csv").write_text("user,item\n0,3\n0,77\n99,1\n")
    asked = ("--metric", "recall@20", "--model", "popularity", "--interactions", "train.csv")
    code, out, err = recsys("evaluate", "--test", "test.csv", *asked)
    assert code == 0, err
    for note in (
        "test half: pairs: 2, users: 1",
        "test half: not among the interactions, left out: users 1, with pairs 1",
        "test half: items that only it has, ranked, too: 1",
    ):
        assert f"note: train.csv: {note}" in err
    assert "published, folds: 1" in out and "All interactions outside the test half train." in out


def test_a_search_knows_the_training_half_alone(recsys, split):
    pytest.importorskip("optuna")
    asked = (
        "--model",
        "ease",
        "--trials",
        "2",
        "--metric",
        "recall@20+ndcg@20",
        "--quiet",
        "--json",
        "-",
    )
    code, out, err = recsys("tune", "--interactions", "train.csv", "--test", "test.csv", *asked)
    assert code == 0, err
    whole = json.loads(out)
    assert whole["protocol"] == "published" and len(whole["trials"]) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--interactions", "train.csv", "--protocol", "published"),
            "has no test half: pass --test",
        ),
        (
            ("--interactions", "train.csv", "--test", "test.csv", "--protocol", "temporal"),
            "protocol 'temporal' cannot be combined with a test half",
        ),
        (("--interactions", "train.csv", "--test", "absent.csv"), "absent.csv does not exist"),
        (("--test", "test.csv"), "no user id occurs in sample; ids are such as '0' here"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_what_cannot_be_tested_is_one_line_and_2(recsys, split, command, arguments, told):
    code, out, err = recsys(command, *arguments, "--model", "ease", "--quiet")
    assert code == 2 and told in err and err.count("\n") == 1 and not out
