"""A link predictor as a ranker is the predictor of recsys.links on histories and items, in every interface."""

import importlib.util
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import recsys
from recsys import cli
from recsys.errors import InputError
from recsys.links import HONFM, FactorizedBilinear, PairDNN, PairFactorizationMachine, PairNet, PairSVM
from recsys.rankers.registry import offered_models
from recsys.tuning import tunable
from tests.contract.drawn import drawn
from tests.neural import TORCH
from tests.reference import rankers as reference

COMMON = {"n_components": 3, "beta": 1e-3, "max_iter": 4, "random_state": 0, "tol": 1e-4}
SPEC = "factors=3,regularization=1e-3,iterations=4"
PREDICTORS = {
    f"bilinear:{SPEC}": FactorizedBilinear(**COMMON),
    f"pairnet:degree=3,{SPEC}": PairNet(degree=3, **COMMON),
    f"fm:{SPEC}": PairFactorizationMachine(degree=2, **COMMON),
    f"hofm:degree=3,{SPEC}": PairFactorizationMachine(degree=3, **COMMON),
    "pair-svm:regularization=4": PairSVM(C=0.25),
}
LAYERS = {"hidden": 5, "layers": 2, "batch_size": 32, "learning_rate": 0.05, "random_state": 0}
NETWORK = "factors=3,iterations=4," + ",".join(f"{name}={value}" for name, value in LAYERS.items())
NETWORKS = {
    f"{name}:degree={degree},{NETWORK}": kind(degree=degree, n_components=3, epochs=4, **LAYERS)
    for name, kind in (("pair-dnn", PairDNN), ("honfm", HONFM))
    for degree in (2, 3)
}
CASES = [*PREDICTORS, *(pytest.param(spec, marks=TORCH) for spec in NETWORKS)]


def with_users():
    """Return drawn data whose users have a feature, and a user who likes nothing."""
    data = drawn()
    data = replace(data, user_ids=np.append(data.user_ids, "cold").astype(object))
    countries = [["FI", "IT"][k % 2] for k in range(data.n_users)]
    return data.with_features(users=pd.DataFrame({"country": countries}, index=data.user_ids))


@pytest.mark.thorough
@pytest.mark.parametrize("spec", CASES)
def test_scores_and_lists_are_those_of_the_predictor(spec, tmp_path):
    data, predictor = with_users(), (PREDICTORS | NETWORKS)[spec]
    model = recsys.Recommender(spec).fit(data)
    ranker, R = model.ranker, data.matrix
    users, items = np.arange(R.shape[0]), np.arange(R.shape[1])
    A, B = ranker._history_features(R, users), ranker._item_features(R.shape[1])
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


def without_torch(monkeypatch):
    """Let no module of PyTorch be found or imported, as where it is not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "recsys.rankers.registry.find_spec", lambda name: None if name == "torch" else found(name)
    )


@pytest.mark.parametrize("name", ["pair-dnn", "honfm"])
def test_without_pytorch_a_network_says_what_to_install(name, monkeypatch, tmp_path, capfd):
    without_torch(monkeypatch)
    assert name not in recsys.list_rankers() and name not in offered_models() and name not in tunable()
    told = r"^the neural link predictors need PyTorch: pip install '.*\[deep\]'$"
    for data in (drawn(), recsys.Interactions.from_ids(["u"], ["i"])):  # also with nothing to learn
        with pytest.raises(InputError, match=told):
            recsys.Recommender(name).fit(data)
    likes = tmp_path / "likes.csv"
    likes.write_text("user_id,item_id\nu,i\nu,j\nv,j\n")
    asked = ["--interactions", str(likes), "--model", name, "--out", str(tmp_path / "m")]
    assert cli.call(["fit", *asked, "--quiet"]) != 0
    assert len(capfd.readouterr().err.strip().splitlines()) == 1


def network(name, R, layers=1):
    """Return a ranker with drawn terms and layers, as if it were fitted, and no PyTorch."""
    rng, factors, hidden = np.random.default_rng(0), 3, 4
    ranker = recsys.make_ranker(name, degree=3, factors=factors, hidden=hidden, layers=layers)
    items, orders = R.shape[1], (2, 3)
    sizes = [factors, *[hidden] * layers, 1]
    whole = name == "honfm"
    width = factors * sum(order + 1 if whole else order - 1 for order in orders)
    ranker.item_factors_ = rng.normal(size=(items, width)).astype(np.float32)
    ranker.weights_ = [
        rng.normal(size=(sizes[k + 1], sizes[k])).astype(np.float32) for k in range(layers + 1)
    ]
    ranker.biases_ = [rng.normal(size=sizes[k + 1]).astype(np.float32) for k in range(layers + 1)]
    ranker.popularity_ = np.asarray(R.sum(axis=0), dtype=np.float32).ravel()
    ranker.lefts_ = [rng.normal(size=(items, factors)) for _ in range(2)]
    ranker.degrees_, ranker.whole_ = [2, 3], [whole] * 2
    ranker.n_users_, ranker.n_items_ = R.shape
    return ranker


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pair-dnn", "honfm"])
def test_a_fitted_network_scores_and_is_kept_without_pytorch(name, monkeypatch, tmp_path):
    without_torch(monkeypatch)
    R = drawn().matrix.tocsr()[:, :9]
    R = R[np.diff(R.indptr) > 0]
    for layers in (0, 1, 2):
        ranker, users = network(name, R, layers), np.arange(R.shape[0])
        scores = ranker.scores(users, R)
        np.testing.assert_allclose(
            scores, reference.network_scores(ranker, R.toarray().astype(float)), rtol=1e-4, atol=1e-4
        )
        ranker.save(tmp_path / "m")
        again = recsys.load_ranker(tmp_path / "m")
        for other in (again.scores(users, R), again.scores(users, R, recalculate_user=True)):
            np.testing.assert_allclose(other, scores, rtol=1e-5, atol=1e-5)
        one = np.vstack([ranker.scores(user, R[user]) for user in users])
        np.testing.assert_allclose(one, scores, rtol=1e-5, atol=1e-5)  # alone as in a batch
        read_only = R.copy()
        for part in (read_only.data, read_only.indices, read_only.indptr):
            part.flags.writeable = False
        np.testing.assert_array_equal(ranker.scores(users, read_only), scores)


@pytest.mark.parametrize("name", [pytest.param(name, marks=TORCH) for name in ("pair-dnn", "honfm")])
def test_networks_rank_cold_items_and_cold_users_by_their_features(name):
    rng = np.random.default_rng(0)
    genre, taste = np.repeat([0, 1], 20), rng.integers(0, 2, 200)
    R = (rng.random((200, 40)) < np.where(taste[:, None] == genre[None], 0.35, 0.03)) * 1.0
    R[:, [0, 20]] = 0
    R[190:] = 0
    R = sp.csr_matrix(R)
    features = {"item_features": np.eye(2)[genre], "user_features": np.eye(2)[taste]}
    ranker = recsys.make_ranker(name).fit(R, show_progress=False, **features)
    scores = ranker.scores(np.arange(200), R)
    found = (scores[:, 0] > scores[:, 20]) == (taste == 0)
    assert found[:190].mean() > 0.9 and found[190:].mean() > 0.9
    again = recsys.make_ranker(name).fit(R, show_progress=False, **features)
    np.testing.assert_array_equal(again.scores(np.arange(200), R), scores)
    for nothing in (np.eye(3), np.ones((3, 4))):  # to learn: what is popular is first
        model = recsys.make_ranker(name).fit(nothing, show_progress=False)
        np.testing.assert_allclose(model.scores(0, nothing[:1])[0], nothing.sum(axis=0))
