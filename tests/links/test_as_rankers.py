"""A link predictor as a ranker is the predictor of recsys.links on histories and items, in every door."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import cli
from recsys.links import FactorizedBilinear, PairFactorizationMachine, PairNet
from tests.contract.drawn import drawn

COMMON = {"n_components": 3, "beta": 1e-3, "max_iter": 4, "random_state": 0, "tol": 1e-4}
SPEC = "factors=3,regularization=1e-3,iterations=4"
PREDICTORS = {
    f"bilinear:{SPEC}": FactorizedBilinear(**COMMON),
    f"pairnet:degree=3,{SPEC}": PairNet(degree=3, **COMMON),
    f"fm:{SPEC}": PairFactorizationMachine(degree=2, **COMMON),
    f"hofm:degree=3,{SPEC}": PairFactorizationMachine(degree=3, **COMMON),
}


def with_users():
    """Return drawn data whose users have a feature, and a user who likes nothing."""
    data = drawn()
    data = replace(data, user_ids=np.append(data.user_ids, "cold").astype(object))
    countries = [["FI", "IT"][k % 2] for k in range(data.n_users)]
    return data.with_features(users=pd.DataFrame({"country": countries}, index=data.user_ids))


@pytest.mark.parametrize("spec", PREDICTORS)
def test_scores_and_lists_are_those_of_the_predictor(spec, tmp_path):
    data, predictor = with_users(), PREDICTORS[spec]
    model = recsys.Recommender(spec).fit(data)
    ranker, R = model.ranker, data.matrix
    users, items = np.arange(R.shape[0]), np.arange(R.shape[1])
    A, B = ranker._rows(R, users), ranker._items(R.shape[1])
    predictor.fit(*ranker._training_pairs(R))
    pairs = np.stack(np.meshgrid(users, items, indexing="ij"), axis=-1).reshape(-1, 2)
    wanted = predictor.decision_function(A, B, pairs).reshape(R.shape)
    scores = ranker.scores(users, R)
    # What is the same for all items of a user changes no list.
    shift = wanted - scores
    assert np.allclose(shift, shift[:, :1], atol=1e-5)
    model.save(tmp_path / "m.recsys")
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from recsys.service import create_app

    with TestClient(create_app(tmp_path / "m.recsys")) as client:
        for user in ("u3", "cold"):  # of whom the feature is known alone
            at = data.user_ids.tolist().index(user)
            line = wanted[at].copy()
            line[R[at].indices] = -np.inf
            best = [str(data.item_ids[k]) for k in np.argsort(-line, kind="stable")[:5]]
            assert model.recommend(user, n=5)["item"].tolist() == best
            answer = client.post("/recommend", json={"user": user, "n": 5}).json()
            assert [one["item"] for one in answer["items"]] == best and not answer["fallback"]
            file = tmp_path / f"{user}.csv"
            asked = ["--ranker", str(tmp_path / "m.recsys"), "--user", user, "-n", "5"]
            assert cli.call(["recommend", *asked, "--out", str(file)]) == 0
            assert pd.read_csv(file, dtype=str)["item_id"].tolist() == best


def test_objects_of_one_kind_are_users_and_items():
    """Each link is an interaction both ways; the object itself is left out of its list."""
    groups = np.random.default_rng(0).integers(0, 3, 30)
    links = [(a, b) for a in range(30) for b in range(a) if groups[a] == groups[b] and (a + b) % 3]
    ids = [[f"n{a}" for pair in links for a in order(pair)] for order in (tuple, lambda p: p[::-1])]
    nodes = pd.DataFrame({"group": [f"g{g}" for g in groups]}, [f"n{k}" for k in range(30)])
    data = recsys.Interactions.from_ids(*ids).with_features(users=nodes, items=nodes)
    model = recsys.Recommender("pairnet:iterations=30,factors=4").fit(data)
    hits, chance = 0, 0.0
    for k in range(30):
        known = {a + b - k for a, b in links if k in (a, b)}
        left = {j for j in range(30) if groups[j] == groups[k]} - known - {k}
        listed = model.recommend(f"n{k}", n=len(left) or 1, exclude=[f"n{k}"])["item"]
        found = {int(one[1:]) for one in listed}
        assert not found & known and k not in found
        hits, chance = hits + len(found & left), chance + len(left) ** 2 / (29 - len(known))
    assert hits > 3 * chance > 0  # links are within groups, and what lacks there is put first
