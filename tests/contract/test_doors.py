"""Lists, explanations and metrics are the same in Python, on the command line, from the service and in the app.

One model of each family of the project's sentence: CF-OMD with Boolean kernels, FM/HOFM/sparse-FM and
pairwise link predictors behind a common ranker interface, top-N, explanation rules, AUC and mAP@k.
"""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("streamlit")
from fastapi.testclient import TestClient

import recsys
from recsys import cli
from recsys.evaluation import evaluate
from recsys.rankers import load_package
from recsys.service import create_app
from tests.contract.drawn import drawn
from tests.reference import counts

FAMILIES = {
    "CF-OMD": "cf-omd",
    "CF-OMD with a conjunctive kernel": "cf-komd:kernel=mc,degree=2",
    "CF-OMD with a disjunctive kernel": "cf-komd:kernel=md,degree=2",
    "CF-OMD with a normal-form kernel": "cf-komd:kernel=mdnf,d=2,c=2",
    "FM": "fm:iterations=2,factors=3",
    "HOFM": "hofm:iterations=2,factors=2,degree=3",
    "sparse FM": "sparse-fm:iterations=2,factors=3",
    "bilinear link predictor": "bilinear:iterations=2,factors=2",
    "pairwise SVM": "pair-svm",
    "pairwise network": "pairnet:iterations=2,factors=2,degree=3",
    "EASE": "ease",
    "ALS": "als:factors=4,iterations=3",
    "blend": "blend:models=ease+msdw",
}
N, METRICS, USER = 5, ("auc", "map@10"), "u3"
DATA = drawn()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the likes and the items as files."""
    folder = tmp_path_factory.mktemp("doors")
    likes = pd.DataFrame({"user_id": DATA.user_ids[DATA.users], "item_id": DATA.item_ids[DATA.items]})
    likes.to_csv(folder / "likes.csv", index=False)
    DATA.item_features.rename_axis("item_id").to_csv(folder / "items.csv")
    return str(folder / "likes.csv"), str(folder / "items.csv")


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def model(request, files, tmp_path_factory):
    """Return a specification, a file that `recsys fit` wrote, and the same fitted in Python."""
    file = str(tmp_path_factory.mktemp("fitted") / "m.recsys")
    likes, items = files
    asked = ["--interactions", likes, "--items", items, "--model", request.param, "--out", file]
    assert cli.call(["fit", *asked, "--quiet"]) == 0
    return request.param, file, recsys.Recommender(request.param).fit(DATA)


def command(capfd, *arguments):
    capfd.readouterr()
    assert cli.call([str(one) for one in arguments]) == 0
    return json.loads(capfd.readouterr().out)


def test_python_lists_the_highest_scores(model):
    _, file, found = model
    user = DATA.user_ids.tolist().index(USER)
    scores = found.ranker.scores(user, DATA.matrix[user])[0].astype(float)
    scores[DATA.matrix[user].indices] = -np.inf
    best = [str(DATA.item_ids[k]) for k in np.argsort(-scores, kind="stable")[:N]]
    assert found.recommend(USER, n=N)["item"].tolist() == best
    again = load_package(file).ranker.scores(user, DATA.matrix[user])[0]
    np.testing.assert_allclose(again, found.ranker.scores(user, DATA.matrix[user])[0], rtol=1e-6)


def test_the_command_line_lists_and_explains_the_same(model, tmp_path, capfd):
    _, file, found = model
    listed = found.recommend(USER, n=N)["item"].tolist()
    out = tmp_path / "top.csv"
    assert (
        cli.call(["recommend", "--ranker", file, "--user", USER, "-n", str(N), "--out", str(out)]) == 0
    )
    assert pd.read_csv(out, dtype=str)["item_id"].tolist() == listed
    asked = ("--ranker", file, "--user", USER, "--item", listed[0], "--changes", 2, "--json", "-")
    assert_close(command(capfd, "explain", *asked), found.explain(USER, listed[0], changes=2).as_dict())


def test_the_service_lists_and_explains_the_same(model):
    _, file, found = model
    listed = found.recommend(USER, n=N)["item"].tolist()
    with TestClient(create_app(file)) as client:
        answer = client.post("/recommend", json={"user": USER, "n": N, "why": True}).json()["items"]
        assert [one["item"] for one in answer] == listed
        for one in answer:
            assert_close(one["why"], found.explain(USER, one["item"]).as_dict())
        asked = {"user": USER, "item": listed[0], "changes": 2}
        why = client.post("/explain", json=asked).json()
        assert why.pop("unknown") == []
        assert_close(why, found.explain(USER, listed[0], changes=2).as_dict())
        users = client.get(f"/users/{USER}/similar", params={"n": 3})
        assert users.status_code == 200 or "similar" in users.json()["detail"]


def test_the_app_lists_and_explains_the_same(model):
    from app.catalog import catalog_of
    from app.parts import lists
    from app.parts.person import Person

    _, _, found = model
    catalog = catalog_of("the doors", DATA, None)
    who = Person(USER, catalog.history(USER), [], [], [], "likes", "dislikes")
    listed = found.recommend(USER, n=N)["item"].tolist()
    assert lists.recommend(found, catalog, who, N)["item"].tolist() == listed
    why = lists.explain(found, catalog, who, listed[0], N)
    assert_close(why.as_dict(), found.explain(USER, listed[0], N).as_dict())


@pytest.mark.thorough
def test_the_command_line_measures_as_python_does(files, capfd):
    report = evaluate(DATA, list(FAMILIES.values()), metrics=METRICS, folds=2)
    assert [one.model for one in report.results] == list(FAMILIES.values()) and not report.failed
    likes, items = files
    models = [part for one in FAMILIES.values() for part in ("--model", one)]
    measured = [part for one in METRICS for part in ("--metric", one)]
    asked = ("--interactions", likes, "--items", items, *models, *measured, "--folds", 2, "--json", "-")
    for one, other in zip(command(capfd, "evaluate", *asked)["results"], report.results, strict=True):
        assert one["model"] == other.model
        for name in METRICS:
            mean = other.metrics[name].mean
            assert one["metrics"][name]["mean"] == pytest.approx(mean, rel=1e-6) and 0 < mean < 1


@pytest.mark.thorough
def test_the_numbers_of_an_explanation_are_those_of_brute_force(model):
    _, _, found = model
    ranker, R = found.ranker, DATA.matrix
    sets = counts.likes(R)
    rng = np.random.default_rng(5)
    for user, item in zip(
        rng.integers(DATA.n_users, size=9), rng.integers(DATA.n_items, size=9), strict=True
    ):
        why = found.explain(str(DATA.user_ids[user]), str(DATA.item_ids[item]), 4, changes=2).as_dict()
        # als explains factors that are computed from the row, which those of the fit come close to
        fold_in = ranker.name == "als"
        score = float(ranker.scores(user, R[user], recalculate_user=fold_in)[0, item])
        assert why["score"] == pytest.approx(score, abs=1e-6)
        if why["kind"] == "exact":
            shares = sum(one["score"] for one in why["items"])
            assert why["bias"] + shares == pytest.approx(score, abs=1e-4)
            assert len(why["items"]) + why["unlisted"] == len(sets[user])
        if why["parts"]:
            assert sum(one["adds"] for one in why["parts"]) == pytest.approx(score, abs=1e-4)
        if why["rule"] is not None:
            items = [DATA.item_ids.tolist().index(one["item"]) for one in why["rule"]["items"]]
            seen = [why["rule"][name] for name in ("support", "hits", "others", "others_hits")]
            assert set(items) <= sets[user] - {item}
            assert seen == list(counts.witnesses(sets, items, item, user))
        for one in why["changes"]["listed"]:
            rest = R[user].tolil()
            rest[0, DATA.item_ids.tolist().index(one["item"])] = 0
            alone = ranker.scores(user, rest.tocsr(), recalculate_user="fold-in" in ranker.capabilities)
            assert one["score"] == pytest.approx(float(alone[0, item]), abs=1e-6)


def assert_close(one, other):
    """Compare nested JSON, numbers to 1e-6."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_close(first, second)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-7)
    else:
        assert one == other
