"""Rankers that take weights: an explanation is of the weights that the list is of."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import recsys
from recsys import Interactions, Recommender, list_rankers, make_ranker
from recsys.cli import call
from recsys.explain import what_if
from tests.contract.test_rankers import FAST

WEIGHTED = [name for name in list_rankers() if make_ranker(name).weighted]
STORED = ("als", "lmf", "bpr")  # lists are by what was fitted for the user


def purchases():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"who": rng.integers(0, 40, 500), "what": rng.integers(0, 30, 500), "n": rng.integers(1, 9, 500)}
    )
    return table.astype({"who": str, "what": str}).drop_duplicates(["who", "what"])


@pytest.fixture(scope="module")
def table():
    return purchases()


def test_some_rankers_take_weights():
    assert {"als", "cosine", "tfidf", "bm25", "user-knn"} <= set(WEIGHTED)


@pytest.mark.parametrize("name", WEIGHTED)
def test_the_profile_of_a_user_has_the_weights_of_the_fit(table, name):
    data = Interactions.from_frame(table, user="who", item="what", weight="n")
    model = Recommender(make_ranker(name, **FAST.get(name, {}))).fit(data)
    for user in ("3", "17"):
        row = model.package.profile(user).row
        wanted = dict(table[table.who == user][["what", "n"]].itertuples(index=False))
        ids = model.item_ids
        assert {ids[k]: v for k, v in zip(row.indices, row.data, strict=True)} == wanted


@pytest.mark.parametrize("name", WEIGHTED)
def test_an_explained_score_is_that_of_the_list(table, name):
    data = Interactions.from_frame(table, user="who", item="what", weight="n")
    model = Recommender(make_ranker(name, **FAST.get(name, {}))).fit(data)
    found = model.recommend("17", n=5, why=False)
    for item, score, place in zip(found["item"], found["score"], found["rank"], strict=True):
        told = model.explain("17", item, changes=1)
        if name not in STORED:
            assert told.score == pytest.approx(score, rel=1e-5)
            assert told.changes["rank"] == place and not told.notes
        elif abs(told.score - score) > 2e-3 * max(1, abs(told.score)):
            assert any(f"its score is {score:.4g}" in note for note in told.notes)


@pytest.mark.parametrize("name", ["als", "cosine"])
def test_a_history_with_weights_is_ranked_and_explained_by_them(table, name):
    data = Interactions.from_frame(table, user="who", item="what", weight="n")
    model = Recommender(make_ranker(name, **FAST.get(name, {}))).fit(data)
    mine = table[table.who == "17"]
    history, weights = mine.what.tolist(), mine.n.tolist()
    row, order = np.zeros((2, 1, data.n_items))
    items = [data.item_ids.tolist().index(one) for one in history]
    row[0, items], order[0, items] = weights, np.arange(1, len(items) + 1)
    ids, scores = model.ranker.recommend(
        0, sp.csr_matrix(row, dtype=np.float32), N=5, recalculate_user=True, times=sp.csr_matrix(order)
    )
    found = model.recommend_history(history, n=5, weights=weights)
    assert found["item"].tolist() == data.item_ids[ids].tolist()
    assert found["score"].tolist() == pytest.approx(scores.tolist(), rel=1e-5)
    told = model.explain(item=found["item"][0], history=history, weights=weights)
    assert told.score == pytest.approx(found["score"][0], rel=1e-5)
    plain = model.recommend_history(history, n=5)
    assert plain["score"].tolist() != pytest.approx(found["score"].tolist(), rel=1e-3)


def test_the_command_explains_what_it_lists(table, tmp_path, capsys):
    table.to_csv(tmp_path / "n.csv", index=False)
    model, out = str(tmp_path / "m.recsys"), str(tmp_path / "e.json")
    data = ["--interactions", str(tmp_path / "n.csv"), "--weight-col", "n"]
    assert call(["fit", *data, "--model", "cosine", "--out", model]) == 0
    best = recsys.load(model).recommend("17", n=1)
    assert (
        call(["explain", "--ranker", model, "--user", "17", "--item", best["item"][0], "--json", out])
        == 0
    )
    with open(out, encoding="utf-8") as file:
        assert json.load(file)["score"] == pytest.approx(best["score"][0], rel=1e-5)


@pytest.mark.parametrize("name", ["cosine"])
def test_the_service_lists_and_explains_as_python_does(table, tmp_path, name):
    testclient = pytest.importorskip("starlette.testclient")
    from recsys.service import create_app

    data = Interactions.from_frame(table, user="who", item="what", weight="n")
    model = Recommender(name).fit(data)
    model.save(tmp_path / "m.recsys")
    found = model.recommend("17", n=3, why=False)
    with testclient.TestClient(create_app(tmp_path / "m.recsys")) as client:
        listed = client.post("/recommend", json={"user": "17", "n": 3}).json()["items"]
        asked = {"user": "17", "item": found["item"][0]}
        score = client.post("/explain", json=asked).json()["score"]
        mine = table[table.who == "17"]
        history = [{"item": i, "weight": int(w)} for i, w in zip(mine.what, mine.n, strict=True)]
        posted = client.post("/recommend", json={"history": history, "n": 3}).json()["items"]
        assert posted == [{**one, "score": pytest.approx(one["score"], rel=1e-5)} for one in listed]
        for wrong in (0, -1, 1e10, "2"):
            body = {"history": [{"item": "3", "weight": wrong}]}
            assert client.post("/recommend", json=body).status_code == 422
    assert [one["item"] for one in listed] == found["item"].tolist()
    assert [one["score"] for one in listed] == pytest.approx(found["score"].tolist(), rel=1e-5)
    assert score == pytest.approx(found["score"][0], rel=1e-5)


@pytest.mark.parametrize("name", ["cosine", "user-knn"])
def test_ranks_without_and_with_items_are_of_the_weights(table, name):
    """By brute force: the row of the fit without one item, or with one more at a weight of 1."""
    data = Interactions.from_frame(table, user="who", item="what", weight="n")
    model = Recommender(make_ranker(name, **FAST.get(name, {}))).fit(data)
    ranker, profile = model.ranker, model.package.profile("17")
    item = model.package.items([model.recommend("17", n=4)["item"][3]])[0]
    dense = profile.row.toarray()
    assert dense.max() > 1

    def rank(row, free):
        scores = ranker.scores([0], sp.csr_matrix(row), recalculate_user=True)[0]
        others = np.setdiff1d(np.flatnonzero(free), [item])
        ahead = (scores[others] > scores[item]) | ((scores[others] == scores[item]) & (others < item))
        return float(scores[item]), 1 + int(ahead.sum())

    found = what_if(ranker, profile.userid, profile.row, int(item), most=99)
    for change in found.changes:
        row = dense.copy()
        row[0, change.without] = 0
        wanted, place = rank(row, dense[0] == 0)
        assert change.score == pytest.approx(wanted, rel=1e-5) and change.rank == place
