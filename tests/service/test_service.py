import os
import shutil
import threading

import pytest

fastapi = pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.rankers import fit_bundle
from recsys.service import create_app

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def client(path):
    with TestClient(create_app(path, reload_seconds=60)) as client:
        yield client


def test_known_users_get_what_the_ranker_recommends(client, data):
    ranker = make_ranker("cf-komd").fit(data.matrix, show_progress=False)
    ids, scores = ranker.recommend(5, data.matrix[5], N=7)
    answer = client.post("/recommend", json={"user": str(data.user_ids[5]), "n": 7}).json()
    assert [i["item"] for i in answer["items"]] == [data.item_ids[k] for k in ids]
    assert [i["score"] for i in answer["items"]] == pytest.approx(scores.tolist())
    assert (
        answer["items"][0]["title"] == data.titles[ids[0]]
        and answer["unknown"] == []
        and not answer["fallback"]
    )
    again = client.get(f"/users/{data.user_ids[5]}/recommendations", params={"n": 7}).json()
    assert again == answer


def test_histories_fold_in_and_unknown_ids_are_named(client, data):
    liked = [str(data.item_ids[k]) for k in data.matrix[5].indices]
    known = client.post("/recommend", json={"user": str(data.user_ids[5])}).json()
    posted = client.post("/recommend", json={"history": [*liked, "nope"]}).json()
    assert posted["items"] == known["items"] and posted["unknown"] == ["nope"]
    empty = client.post("/recommend", json={"history": []}).json()
    assert empty["fallback"] and len(empty["items"]) == 10


def test_filters(client, data):
    some = [str(i) for i in data.item_ids[:20]]
    only = client.post("/recommend", json={"history": [some[0]], "items": some, "n": 50}).json()
    assert {i["item"] for i in only["items"]} <= set(some) - {some[0]}
    without = client.post("/recommend", json={"history": [some[0]], "filter_items": some, "n": 5}).json()
    assert not {i["item"] for i in without["items"]} & set(some)
    liked = client.post(
        "/recommend", json={"history": [some[0]], "filter_liked": False, "items": some, "n": 50}
    ).json()
    assert len(liked["items"]) == 20
    assert (
        client.post("/recommend", json={"history": [], "items": some, "filter_items": some}).status_code
        == 422
    )


def test_dislikes_and_diversity(client, data):
    liked = [str(data.item_ids[k]) for k in data.matrix[5].indices]
    plain = [i["item"] for i in client.post("/recommend", json={"history": liked}).json()["items"]]
    answer = client.post("/recommend", json={"history": liked, "dislikes": [plain[0], "nope"]}).json()
    assert plain[0] not in [i["item"] for i in answer["items"]] and answer["unknown"] == ["nope"]
    varied = client.post("/recommend", json={"user": str(data.user_ids[5]), "diversity": 0.8}).json()
    assert len({i["item"] for i in varied["items"]}) == 10
    assert [i["item"] for i in varied["items"]] != plain
    assert client.post("/recommend", json={"history": liked, "diversity": 1.5}).status_code == 422


def test_similar_items_filtered_and_varied(client, data):
    names = [str(i) for i in data.item_ids]
    only = client.post("/similar", json={"item": names[3], "items": names[:9], "n": 20}).json()["items"]
    assert {i["item"] for i in only} == set(names[:9]) - {names[3]}
    plain = client.post("/similar", json={"item": names[3]}).json()["items"]
    assert plain == client.get(f"/items/{names[3]}/similar").json()["items"]
    without = client.post(
        "/similar", json={"item": names[3], "filter_items": [plain[0]["item"], "nope"]}
    ).json()
    assert plain[0] not in without["items"] and without["unknown"] == ["nope"]
    varied = client.post("/similar", json={"item": names[3], "diversity": 0.9}).json()["items"]
    assert len(varied) == 10 and varied != plain


def test_similar_and_explain(client, data):
    item = str(data.item_ids[3])
    near = client.get(f"/items/{item}/similar", params={"n": 4}).json()["items"]
    assert len(near) == 4 and item not in {i["item"] for i in near}
    told = client.post("/explain", json={"user": str(data.user_ids[2]), "item": item, "n": 100}).json()
    assert told["score"] == pytest.approx(
        told["bias"] + sum(i["score"] for i in told["items"]), abs=1e-5
    )


BAD = [
    ({}, 422), ({"user": "u0001", "history": []}, 422), ({"user": "nobody"}, 404), ({"user": "u0001", "n": 0}, 422),
    ({"user": "u0001", "n": 1001}, 422), ({"history": ["x"] * 1001}, 422), ({"history": "x"}, 422), ({"user": "u0001", "path": "/etc"}, 422),
    ({"history": [""]}, 422), ({"user": 7}, 422),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status"), BAD, ids=str)
def test_bad_requests(client, body, status):
    answer = client.post("/recommend", json=body)
    assert answer.status_code == status and "Traceback" not in answer.text


def test_broken_json_and_large_bodies(client):
    assert client.post("/recommend", content=b"{").status_code == 422
    assert client.post("/recommend", content=b'{"user": NaN}').status_code == 422
    assert client.post("/recommend", content=b"x" * (1 << 20) + b"x").status_code == 413

    def stream():
        for _ in range(40):
            yield b"x" * 60_000

    assert client.post("/recommend", content=stream()).status_code == 413
    assert client.get("/items/none/similar").status_code == 404
    assert client.get("/users/u0001/recommendations", params={"n": 0}).status_code == 422


def test_a_token_is_asked_for_everywhere_but_health(path):
    with TestClient(create_app(path, token="secret")) as client:
        assert client.get("/health").status_code == 200
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert client.get("/metrics", headers=header).status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_metrics_count_requests(client):
    client.get("/health")
    client.post("/recommend", json={"history": []})
    text = client.get("/metrics").text
    assert 'recsys_requests_total{route="/recommend",status="200"} 1' in text
    assert "recsys_request_seconds_count" in text


def test_too_many_at_once_get_503(path):
    app = create_app(path, at_once=1)
    app.state.monitoring.in_flight = 1
    with TestClient(app) as client:
        answer = client.post("/recommend", json={"history": []})
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200


def test_a_new_file_is_served_and_a_broken_one_is_not(path, data, tmp_path):
    file = tmp_path / "m.recsys"
    shutil.copy(path, file)
    app = create_app(file, reload_seconds=60)
    with TestClient(app) as client:
        before = client.post("/recommend", json={"user": "u0003"}).json()
        fit_bundle(make_ranker("popularity"), data, show_progress=False).save(file)
        app.state.models.check()
        assert client.get("/health").json()["model"] == "popularity"
        after = client.post("/recommend", json={"user": "u0003"}).json()
        assert after != before
        broken = tmp_path / "broken"
        broken.write_bytes(b"not a model" * 100)
        os.replace(broken, file)
        app.state.models.check()
        health = client.get("/health").json()
        assert health["model"] == "popularity" and "refused" in health["error"]
        assert client.post("/recommend", json={"user": "u0003"}).json() == after


def test_many_clients_get_their_own_answers(client, data):
    expected = {
        k: client.post("/recommend", json={"user": str(data.user_ids[k])}).json() for k in range(24)
    }
    wrong = []

    def ask(k):
        for _ in range(5):
            if client.post("/recommend", json={"user": str(data.user_ids[k])}).json() != expected[k]:
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_serve_refuses_what_is_not_a_model(tmp_path, capfd):
    from recsys import cli

    file = tmp_path / "x"
    file.write_text("hello")
    assert cli.call(["serve", "--ranker", str(file)]) == 2
    assert len(capfd.readouterr().err.strip().split("\n")) == 1


def test_docs_show_schemas_of_requests_and_answers(client):
    shown = client.get("/openapi.json").json()
    names = {"Recommend", "SimilarItems", "Explain"}
    wanted = {name + kind for name in names for kind in ("Request", "Response")} | {"HealthResponse"}
    assert wanted <= set(shown["components"]["schemas"])
    for path, about in shown["paths"].items():
        for operation in about.values():
            answer = operation["responses"]["200"]["content"]
            if path != "/metrics":
                assert answer["application/json"]["schema"]["$ref"].endswith("Response"), path
    assert client.get("/docs").status_code == 200


def test_answers_are_as_their_schemas_say(client, data):
    from recsys.service import schemas

    item, user = str(data.item_ids[3]), str(data.user_ids[2])
    schemas.HealthResponse.model_validate(client.get("/health").json(), extra="forbid")
    for route, body, kind in (
        ("/recommend", {"user": user}, schemas.RecommendResponse),
        ("/similar", {"item": item}, schemas.SimilarItemsResponse),
        ("/explain", {"user": user, "item": item}, schemas.ExplainResponse),
    ):
        kind.model_validate(client.post(route, json=body).json(), strict=True, extra="forbid")


def test_metrics_are_explained_and_timed_by_route(path):
    with TestClient(create_app(path)) as client, TestClient(create_app(path)) as other:
        client.post("/recommend", json={"history": []})
        client.post("/explain", json={})
        client.get("/nowhere")
        text = client.get("/metrics").text
        for name in ("recsys_requests_total", "recsys_request_seconds", "recsys_in_flight"):
            assert f"# HELP {name} " in text and f"# TYPE {name} " in text
        assert 'recsys_request_seconds_count{route="/recommend"} 1.0' in text
        assert 'recsys_requests_total{route="/explain",status="422"} 1.0' in text
        assert 'recsys_requests_total{route="other",status="404"} 1.0' in text
        assert 'le="+Inf",route="/recommend"} 1.0' in text and "recsys_in_flight 1.0" in text
        assert "/recommend" not in other.get("/metrics").text, "each application counts its own"
