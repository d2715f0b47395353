"""The project's sentence, clause by clause, for a model of every family it names, through every interface.

"CF-OMD with Boolean kernels, FM/HOFM/sparse-FM and pairwise link predictors behind a common ranker
interface, top-N, explanation rules, AUC and mAP@k."
"""

import inspect
import json

import numpy as np
import pandas as pd
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
from recsys.recommender.answers import rule_sentences
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


@pytest.fixture(scope="module")
def uploaded():
    """Return the name of the data in the app."""
    from app import state
    from app.uploads import UploadedTable

    return state.keep_table(UploadedTable(DATA), "the sentence")


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


@pytest.mark.thorough
def test_top_n_is_the_same_in_every_door(model, uploaded):
    from tests.app.card_texts import titles
    from tests.app.page_runs import open_page

    spec, file, found = model
    ranker, R = found.ranker, DATA.matrix
    user = DATA.user_ids.tolist().index(USER)
    scores = ranker.scores(user, R[user])[0].astype(float)
    scores[R[user].indices] = -np.inf
    best = np.argsort(-scores, kind="stable")[:N]
    wanted = [str(DATA.item_ids[k]) for k in best]
    assert found.recommend(USER, n=N)["item"].tolist() == wanted
    out = file.with_name("top.csv")
    given = ["--ranker", file, "--user", USER, "-n", N, "--out", out]
    assert cli.call(["recommend", *map(str, given)]) == 0
    assert pd.read_csv(out, dtype=str)["item_id"].tolist() == wanted
    with TestClient(create_app(file)) as client:
        answer = client.post("/recommend", json={"user": USER, "n": N}).json()
    assert [one["item"] for one in answer["items"]] == wanted
    shown = titles(open_page("recommend", data=uploaded, model=spec, user=USER))
    assert shown[:N] == [str(DATA.titles[k]) for k in best]


@pytest.mark.thorough
def test_every_door_explains_and_gives_the_rule(model, uploaded, capfd):
    from tests.app.page_runs import open_page, texts

    spec, file, found = model
    item = found.recommend(USER, n=1)["item"][0]
    why = found.explain(USER, item, model_rule=10)
    assert why.reasons.kind == "exact" and why.rows
    asked = ("--ranker", file, "--user", USER)
    given = ("--item", item, "--model-rule", 10, "--json", "-")
    assert command(capfd, "explain", *asked, *given) == why.as_dict()
    rule = found.model_rule(user=USER, n=10)
    assert command(capfd, "rules", *asked, "-n", 10, "--json", "-") == rule.as_dict()
    with TestClient(create_app(file)) as client:
        answer = client.post("/explain", json={"user": USER, "item": item, "model_rule": 10}).json()
        assert answer == why.as_dict() | {"unknown": []}
        told = client.post("/rules", json={"user": USER, "n": 10}).json()
        assert told == rule.as_dict() | {"unknown": []}
    at = open_page("explain", data=uploaded, model=spec, user=USER, item=item, explain__rule=True)
    shown = texts(at)
    ruled = rule_sentences(why.model_rule)
    ruled += [f"N{note[1:]}." for note in why.notes if note.startswith("no rule ")]
    assert len(ruled) == 2 and set(ruled) <= set(shown)
    assert why.sentence in shown and (not why.rule_text or why.rule_text in shown)
    multiplied = "Which features, and which two together"
    assert (multiplied in [one.label for one in at.expander]) == (why.products is not None)


def test_a_family_whose_rules_are_read_from_its_weights_gives_them(model, capfd):
    """CF-OMD and its Boolean kernels of one connective: formulas over users, by weight."""
    spec, file, found = model
    if not spec.startswith("cf-") or "mdnf" in spec:
        pytest.skip("no formulas are read from this model's weights")
    told = command(capfd, "explain", "--ranker", file, "--user", USER, "--people", "--json", "-")
    weights = [one["weight"] for one in told["formulas"]]
    assert weights and weights == sorted(weights, reverse=True) and told["exact"]


@pytest.mark.slow
def test_the_app_gives_rules_of_what_the_model_puts_first(model, uploaded):
    from app.views.rules import LISTS
    from recsys.explain import discover_rules
    from tests.app.page_runs import open_page, press, texts

    spec, _, found = model
    chosen = {"discover__of": LISTS, "discover__users": 20, "discover__top": 10}
    at = press(open_page("rules", data=uploaded, model=spec, **chosen), "Search for rules")
    wanted = discover_rules(DATA, most=20, ranker=found.ranker, top=10).at(0.05, "any")
    assert wanted.sentences() and set(wanted.sentences()) <= set(texts(at))
    assert all(wanted.sentence(one) in texts(at) for one in wanted.shown[:5])


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


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(one, marks=[] if name == "FM" else pytest.mark.slow)
        for name, one in FAMILIES.items()
    ],
)
def test_the_app_measures_the_same(spec, report, uploaded):
    from tests.app.page_runs import open_page, press

    some = ["popularity", spec]
    chosen = {
        "evaluate__models": some[:1],
        "evaluate__more": some[1],
        "evaluate__metrics": list(METRICS),
    }
    at = open_page("compare", data=uploaded, evaluate__folds=2, **chosen)
    table = press(at, "Run").dataframe[0].value
    row = table[table["model"] == some[1]].iloc[0]
    for name in METRICS:
        assert row[name] == report.result(some[1]).metrics[name].mean
