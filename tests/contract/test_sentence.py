"""The project's sentence, clause by clause, for a model of every family it names, through every interface.

"CF-OMD with Boolean kernels, FM/HOFM/sparse-FM and pairwise link predictors behind a common ranker
interface, top-N, explanation rules, AUC and mAP@k."
"""

import inspect
import json

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("fastapi")
pytest.importorskip("streamlit")
from fastapi.testclient import TestClient

import recsys
from recsys import cli
from recsys.evaluation import evaluate
from recsys.evaluation.metrics import parse_metric, ranking_values
from recsys.rankers import Ranker, list_rankers, load_package, make_ranker
from recsys.service import create_app
from recsys.utils.spec import parse_spec
from tests.contract.drawn import drawn

FAMILIES = {
    "CF-OMD": "cf-omd",
    "CF-OMD with a conjunctive kernel": "cf-komd:kernel=mc,degree=2",
    "CF-OMD with a disjunctive kernel": "cf-komd:kernel=md,degree=2",
    "CF-OMD with a normal-form kernel": "cf-komd:kernel=mdnf,d=2,c=2",
    "FM": "fm:iterations=2,factors=3",
    "HOFM": "hofm:iterations=2,factors=2,degree=3",
    "sparse FM": "sparse-fm:iterations=2,factors=3",
    "FM with a penalty": "fm:penalty=ti,gamma=1e-4,iterations=2,factors=3",
    "bilinear link predictor": "bilinear:iterations=2,factors=2",
    "pairwise SVM": "pair-svm",
    "pairwise network": "pairnet:iterations=2,factors=2",
    "pairwise network of a higher order": "pairnet:iterations=2,factors=2,degree=3",
}
N, METRICS = 5, ("auc", "map@10")
DATA = drawn()
USER = "u3"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the likes and the items as files."""
    folder = tmp_path_factory.mktemp("sentence")
    lines = [
        f"{DATA.user_ids[u]},{DATA.item_ids[i]}" for u, i in zip(DATA.users, DATA.items, strict=True)
    ]
    (folder / "likes.csv").write_text("\n".join(["user_id,item_id", *lines]) + "\n")
    DATA.item_features.rename_axis("item_id").to_csv(folder / "items.csv")
    return folder / "likes.csv", folder / "items.csv"


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def model(request, files, tmp_path_factory):
    """Return a specification, a file that `recsys fit` wrote, and the same fitted in Python."""
    file = tmp_path_factory.mktemp("fitted") / "m.recsys"
    likes, items = map(str, files)
    given = ["--interactions", likes, "--items", items, "--model", request.param, "--out", str(file)]
    assert cli.call(["fit", *given, "--quiet"]) == 0
    return request.param, file, recsys.Recommender(request.param).fit(DATA)


def command(capfd, *arguments):
    capfd.readouterr()
    assert cli.call([str(one) for one in arguments]) == 0
    return json.loads(capfd.readouterr().out)


def test_each_family_has_a_name_and_is_behind_the_one_interface(model, tmp_path):
    spec, file, found = model
    name, params = parse_spec(spec)
    assert name in list_rankers()
    ranker = make_ranker(name, **params)
    assert isinstance(ranker, Ranker)
    for method in ("fit", "recommend", "similar_items", "scores", "explain", "save", "load"):
        own, common = (inspect.signature(getattr(one, method)) for one in (type(ranker), Ranker))
        assert list(own.parameters) == list(common.parameters), method
    R = DATA.matrix
    item = int(found.ranker.recommend(3, R[3], N=1).ids[0])
    told = found.ranker.explain(3, R[3], item, N=R.shape[1])
    assert told.bias + sum(v for _, v in told.contributions) == pytest.approx(told.score, abs=1e-5)
    found.ranker.save(tmp_path / "r")
    again = recsys.load_ranker(tmp_path / "r")
    assert np.array_equal(again.scores([3], R[3]), found.ranker.scores([3], R[3]))
    assert load_package(file).ranker.name == name


def test_a_family_whose_rules_are_read_from_its_weights_gives_them(model, capfd):
    """CF-OMD and its Boolean kernels of one connective: formulas over users, by weight."""
    spec, file, found = model
    if not spec.startswith("cf-") or "mdnf" in spec:
        pytest.skip("no formulas are read from this model's weights")
    told = command(capfd, "explain", "--ranker", file, "--user", USER, "--people", "--json", "-")
    weights = [one["weight"] for one in told["formulas"]]
    assert weights and weights == sorted(weights, reverse=True) and told["exact"]


@pytest.fixture(scope="module")
def report():
    return evaluate(DATA, list(FAMILIES.values()), metrics=METRICS, folds=2)


@pytest.mark.thorough
def test_auc_and_map_at_k_are_measured_for_every_family_at_once(report, files, capfd):
    assert [one.model for one in report.results] == list(FAMILIES.values()) and not report.failed
    likes, items = files
    models = [part for one in FAMILIES.values() for part in ("--model", one)]
    measured = [part for one in METRICS for part in ("--metric", one)]
    given = ("--interactions", likes, "--items", items, *models, *measured, "--folds", 2, "--json", "-")
    told = command(capfd, "evaluate", *given)
    for one, other in zip(told["results"], report.results, strict=True):
        assert one["model"] == other.model
        for name in METRICS:
            assert one["metrics"][name]["mean"] == other.metrics[name].mean
            assert 0.0 < one["metrics"][name]["mean"] < 1.0


def test_auc_and_map_at_k_of_what_the_service_scores(model):
    """Half of a profile as a history, the other half to be found: of two, one is scored the higher."""
    _, file, found = model
    liked = DATA.matrix[DATA.user_ids.tolist().index(USER)].indices
    every = [str(one) for one in DATA.item_ids]
    with TestClient(create_app(file)) as client:
        asked = {"history": [every[k] for k in liked[::2]], "items": every}
        served = [one["score"] for one in client.post("/scores", json=asked).json()["items"]]
    halves = [sp.lil_matrix((1, len(every))) for _ in range(2)]
    for half, some in zip(halves, (liked[::2], liked[1::2]), strict=True):
        half[0, some] = 1.0
    seen, hidden = (half.tocsr() for half in halves)
    scores = found.ranker.scores(0, seen, recalculate_user=True)
    np.testing.assert_allclose(served, scores[0], rtol=1e-6, atol=1e-7)
    told = ranking_values(
        [parse_metric(one) for one in METRICS], np.array([served], np.float32), seen, hidden
    )
    pairs = [
        (served[one], served[other])
        for one in liked[1::2]
        for other in range(len(every))
        if other not in liked
    ]
    auc = np.mean([(one > other) + 0.5 * (one == other) for one, other in pairs])
    rest = [k for k in range(len(every)) if k not in liked[::2]]
    first = sorted(rest, key=lambda k: (-served[k], k))[:10]
    hits = [k in liked[1::2] for k in first]
    precisions = [sum(hits[: k + 1]) / (k + 1) for k, hit in enumerate(hits) if hit]
    wanted = [auc, sum(precisions) / min(len(liked[1::2]), 10)]
    assert told[0].tolist() == pytest.approx(wanted, abs=1e-6)
