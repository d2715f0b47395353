import os
import re
import shutil
import threading
import time

import numpy as np
import pytest

fastapi = pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.explain import item_attributes, ranker_rule
from recsys.rankers import fit_package
from recsys.service import application, create_app, routes
from tests.service.conftest import wait_until

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def client(path):
    with TestClient(create_app(path, reload_seconds=60)) as client:
        yield client


@pytest.mark.thorough
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


UNKNOWN = [
    ({"history": ["u1", "nope"]}, ["u1", "nope"]), ({"user": 5, "items": ["nope"]}, ["nope"]),
    ({"user": 5, "filter_items": ["nope"]}, ["nope"]), ({"user": 5, "dislikes": ["nope"]}, ["nope"]),
    ({"user": 5, "pinned": ["nope"]}, ["nope"]), ({"user": 5, "boosts": {"nope": 2.0}}, ["nope"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "unknown"), UNKNOWN, ids=str)
def test_unknown_items_are_left_out_and_listed(client, data, body, unknown):
    body = body | ({"user": str(data.user_ids[5])} if "user" in body else {})
    answer = client.post("/recommend", json=body)
    found = answer.json()
    assert answer.status_code == 200 and found["unknown"] == unknown
    if "history" in body:
        popular = client.post("/recommend", json={"history": []}).json()["items"]
        assert found["fallback"] and found["items"] == popular
    else:
        assert not found["fallback"] and len(found["items"]) == (0 if "items" in body else 10)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/similar", {"item": "nope"}), ("/explain", {"history": [], "item": "nope"}),
        ("/rules", {"item": "nope"}), ("/recommend", {"user": "nobody"}),
        ("/scores", {"user": "nobody", "items": []}), ("/explain", {"user": "nobody", "item": "nope"}),
    ],
)  # fmt: skip
def test_an_unknown_user_or_an_item_that_is_asked_about_is_404(client, route, body):
    answer = client.post(route, json=body)
    assert answer.status_code == 404 and answer.json()["detail"].startswith("unknown ")


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


BAD_RULES = [
    ({}, 422, "exactly one of user and history"), ({"user": "u0001", "history": []}, 422, "exactly one of user and history"),
    ({"user": "u0001", "item": "m0001"}, 422, "pass an item alone"), ({"history": [], "item": "m0001"}, 422, "pass an item alone"),
    ({"item": "m0001", "as_of": 5}, 422, "pass an item alone"), ({"user": "u0001", "n": 0}, 422, "n: expected"),
    ({"user": "u0001", "n": 1001}, 422, "n: expected"), ({"user": "nobody"}, 404, "unknown user 'nobody'"),
    ({"item": "nothing"}, 404, "unknown item 'nothing'"), ({"user": "u0001", "top": 5}, 422, "top: there is no such field"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "text"), BAD_RULES, ids=str)
def test_bad_requests_for_a_rule(client, body, status, text):
    answer = client.post("/rules", json=body)
    assert answer.status_code == status and text in answer.json()["detail"]


@pytest.mark.thorough
def test_a_rule_is_of_the_profile_that_is_posted(client, data):
    model = client.app.state.models.current.package
    liked = [str(data.item_ids[k]) for k in data.matrix[5].indices]
    found = client.post("/rules", json={"history": [*liked, "unheard"], "n": 30}).json()
    profile = model.profile(history=liked)
    ranked = model.ranker.recommend(0, profile.row, N=len(model.item_ids), recalculate_user=True).ids
    test = ranker_rule(ranked, item_attributes(data), 30)
    assert found["unknown"] == ["unheard"] and found["searched"] == len(ranked) == 300 - len(liked)
    assert (found["tested"], found["hits"], found["fidelity"]) == (test.tested, test.hits, test.fidelity)
    assert found["clauses"] == [[test.rule.names[k] for k in clause] for clause in test.rule.clauses]
    empty = client.post("/rules", json={"history": []}).json()
    assert empty["rule"] is None and empty["fidelity"] is None and empty["clauses"] == []


def test_rules_wait_in_the_queue_and_not_in_the_event_loop(path, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(routes, "rule_of", lambda *_: gate.wait(30) and b"{}")
    monkeypatch.setattr(application, "SLOW_AT_ONCE", 1)
    with TestClient(create_app(path, threads=1)) as client:
        asking = threading.Thread(target=lambda: client.post("/rules", json={"user": "u0001"}))
        asking.start()
        wait_until(lambda: client.app.state.slow.in_flight == 1)
        assert client.get("/health").status_code == 200
        refused = client.post("/rules", json={"item": "m0001"})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        gate.set()
        asking.join()


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


def counted(text, method, status, route):
    """Return how many requests the metrics count."""
    labels = f'http_request_method="{method}",http_response_status_code="{status}",http_route="{route}"'
    found = re.search(rf"http_server_request_duration_seconds_count{{{labels}}} (\S+)", text)
    return float(found[1]) if found else 0


def test_metrics_count_requests(client):
    client.get("/health")
    client.post("/recommend", json={"history": []})
    assert counted(client.get("/metrics").text, "POST", "200", "/recommend") >= 1


def test_too_many_at_once_get_503(path):
    app = create_app(path, at_once=1)
    app.state.computing.in_flight = 1
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
        fit_package(make_ranker("popularity"), data, show_progress=False).save(file)
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
            answer = client.post("/recommend", json={"user": str(data.user_ids[k])})
            while answer.status_code == 503:  # 24 at once may be more than can be answered soon
                time.sleep(0.05)
                answer = client.post("/recommend", json={"user": str(data.user_ids[k])})
            if answer.json() != expected[k]:
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
    names = {"Recommend", "SimilarItems", "Explain", "Rules"}
    wanted = {name + kind for name in names for kind in ("Request", "Response")} | {"HealthResponse"}
    assert wanted <= set(shown["components"]["schemas"])
    for path, about in shown["paths"].items():
        for operation in about.values():
            answer = operation["responses"]["200"]["content"]
            if path != "/metrics":
                assert answer["application/json"]["schema"]["$ref"].endswith("Response"), path
    assert client.get("/docs").status_code == 200


@pytest.mark.thorough
def test_answers_are_as_their_schemas_say(client, data):
    from recsys.service import schemas

    item, user = str(data.item_ids[3]), str(data.user_ids[2])
    schemas.HealthResponse.model_validate(client.get("/health").json(), extra="forbid")
    for route, body, kind in (
        ("/recommend", {"user": user}, schemas.RecommendResponse),
        ("/similar", {"item": item}, schemas.SimilarItemsResponse),
        ("/explain", {"user": user, "item": item}, schemas.ExplainResponse),
        ("/rules", {"user": user}, schemas.RulesResponse),
        ("/rules", {"item": item}, schemas.RulesResponse),
        ("/rules", {"history": []}, schemas.RulesResponse),
    ):
        kind.model_validate(client.post(route, json=body).json(), strict=True, extra="forbid")


def test_metrics_are_explained_and_timed_by_route(path):
    with TestClient(create_app(path)) as client, TestClient(create_app(path)) as other:
        client.post("/recommend", json={"history": []})
        client.post("/explain", json={})
        client.get("/nowhere")
        text = client.get("/metrics").text
        for name in ("http_server_request_duration_seconds", "http_server_active_requests"):
            assert f"# HELP {name} " in text and f"# TYPE {name} " in text
        assert counted(text, "POST", "200", "/recommend") == 1
        assert counted(text, "POST", "422", "/explain") == 1
        assert counted(text, "GET", "404", "other") == 1
        assert 'http_route="/recommend",le="+Inf"} 1.0' in text
        assert "http_server_active_requests 1.0" in text
        assert "/recommend" not in other.get("/metrics").text, "each application counts its own"


@pytest.fixture(scope="module")
def timed(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("timed") / "model.recsys"
    fit_package(make_ranker("ease", recency=0.8), data, show_progress=False).save(file)
    with TestClient(create_app(file, reload_seconds=60)) as client:
        yield client


def ranked(data, items, times, n=10):
    """Return the list that a ranker of these data has for somebody who liked these items then."""
    known = fit_package(make_ranker("ease", recency=0.8), data, show_progress=False)
    row, when = np.zeros((2, 1, data.n_items))
    row[0, items], when[0, items] = 1, times
    ids, scores = known.ranker.recommend(0, row, N=n, recalculate_user=True, times=when)
    return [(str(data.item_ids[k]), pytest.approx(float(s))) for k, s in zip(ids, scores, strict=True)]


def answered(response):
    assert response.status_code == 200, response.text
    return [(one["item"], one["score"]) for one in response.json()["items"]]


def test_histories_are_in_order_or_carry_times(timed, data):
    items = [7, 250, 31, 4]
    names = [str(data.item_ids[k]) for k in items]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        posted = [names[k] for k in order]
        wanted = ranked(data, [items[k] for k in order], [1, 2, 3, 4])
        assert answered(timed.post("/recommend", json={"history": posted})) == wanted
        for stamps in (
            [10, 11.5, 12, 900],
            ["2024-01-01", "2024-01-01T08:00", "2024-01-01T09:00Z", "2024-02-01"],
        ):
            history = [{"item": i, "time": t} for i, t in zip(posted, stamps, strict=True)]
            assert answered(timed.post("/recommend", json={"history": history[::-1]})) == wanted
    alike = [{"item": i, "time": 5} for i in names]
    assert answered(timed.post("/recommend", json={"history": alike})) == ranked(data, items, [0] * 4)
    cut = [{"item": i, "time": f"2024-01-0{k + 1}"} for k, i in enumerate(names)]
    body = {"history": [*cut, {"item": "nope", "time": 3}], "as_of": "2024-01-03"}
    answer = timed.post("/recommend", json=body)
    assert answered(answer) == ranked(data, items[:2], [1, 2]) and answer.json()["unknown"] == ["nope"]


def test_known_users_as_of_a_date(timed, data):
    for user in (5, 217):
        name = str(data.user_ids[user])
        mine = {
            int(i): t for u, i, t in zip(data.users, data.items, data.time, strict=True) if u == user
        }
        middle = sorted(mine.values())[len(mine) // 2]
        before = {i: t for i, t in mine.items() if t < middle}
        wanted = ranked(data, list(before), list(before.values()))
        assert answered(timed.post("/recommend", json={"user": name, "as_of": middle})) == wanted
        now = timed.post("/recommend", json={"user": name})
        assert answered(now) == ranked(data, list(mine), list(mine.values()))
        assert answered(timed.get(f"/users/{name}/recommendations")) == answered(now)
        first = timed.post("/recommend", json={"user": name, "as_of": "1999-01-01"}).json()
        assert first["fallback"] and len(first["items"]) == 10


def test_explanations_carry_how_long_ago(timed, data):
    name = str(data.user_ids[5])
    mine = {
        str(data.item_ids[i]): t
        for u, i, t in zip(data.users, data.items, data.time, strict=True)
        if u == 5
    }
    until = max(mine.values())
    for as_of in (None, "2030-01-01"):
        body = {"user": name, "item": str(data.item_ids[3]), "n": 1000} | (
            {"as_of": as_of} if as_of else {}
        )
        found = timed.post("/explain", json=body).json()
        assert len(found["items"]) == len(mine)
        until = np.datetime64(as_of, "s").astype(float) if as_of else until
        for one in found["items"]:
            when = mine[one["item"]]
            assert one["newer"] == sum(t > when for t in mine.values())
            assert one["days"] == until // 86_400 - when // 86_400
    history = [str(i) for i in data.item_ids[:3]]
    found = timed.post("/explain", json={"history": history, "item": str(data.item_ids[9])}).json()
    assert {i["item"]: (i["newer"], i["days"]) for i in found["items"]} == {
        name: (2 - k, None) for k, name in enumerate(history)
    }


def test_a_model_that_reads_no_times_says_nothing_of_them(client, data):
    body = {"user": str(data.user_ids[5]), "item": str(data.item_ids[3])}
    for one in client.post("/explain", json=body).json()["items"]:
        assert one["newer"] is None and one["days"] is None
    names = [str(i) for i in data.item_ids[:3]]
    plain = client.post("/recommend", json={"history": names}).json()
    assert client.post("/recommend", json={"history": names[::-1]}).json() == plain


NO_TIME = "no time; a number or an ISO date such as 2024-01-31 or 2024-01-31T18:05 is needed"
BAD_TIMES = [
    ('{"history": ["m0001", "m0002", "m0001"]}', "item 'm0001' is in the history twice: name each item once"),
    ('{"history": [{"item": "m0001", "time": 1}, {"item": "m0001", "time": 2}]}', "item 'm0001' is in the history twice"),
    ('{"history": ["m0001", {"item": "m0002", "time": 1}]}', "history has times for 1 of 2 items: give all or none"),
    ('{"history": [{"item": "m0001", "time": NaN}]}', "the body is no JSON: "),
    ('{"history": [{"item": "m0001", "time": Infinity}]}', "the body is no JSON: "),
    ('{"history": [{"item": "m0001", "time": "31/12/2020"}]}', f"history.0.time: time '31/12/2020': {NO_TIME}"),
    ('{"history": [{"item": "m0001", "time": true}]}', "history.0.time: expected int | float | str, got bool"),
    ('{"history": [{"item": "m0001", "time": [1]}]}', "history.0.time: expected int | float | str, got array"),
    ('{"history": [{"item": "m0001", "time": -1}]}', "history.0.time: time -1: before 1970"),
    ('{"history": [{"item": "m0001", "time": "1969-12-31"}]}', "history.0.time: time '1969-12-31': before 1970"),
    ('{"history": [{"item": "m0001", "weight": 0}]}', "history.0.weight: "),
    ('{"history": [{"item": "m0001", "weight": null}]}', "history.0.weight: expected float, got null"),
    ('{"history": [{"item": "m0001", "weight": 2}]}', "ease takes no weights: leave them out"),
    ('{"history": [{"time": 3}]}', "history.0.item: this field is needed"),
    ('{"history": [{"item": "m0001", "time": 3, "rating": 5}]}', "history.0.rating: there is no such field"),
    ('{"history": [7]}', "history.0: an id, or an object of item and time, is needed"),
    ('{"history": ["m0001"], "as_of": 5}', "as of '5': a history without times cannot be cut"),
    ('{"user": "u0001", "as_of": "soon"}', f"as_of: time 'soon': {NO_TIME}"),
    ('{"user": "u0001", "as_of": 2024}', "as of '2024': the times of these data are dates from 2001-09-14 to 2004-11-"),
    ('{"user": "u0001", "as_of": 1e999}', "as_of: number out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD_TIMES)
@pytest.mark.parametrize("route", ["/recommend", "/explain"])
def test_bad_times_are_422_and_one_line(timed, route, body, text):
    if route == "/explain":
        body = (
            body.replace("}", ', "item": "m0009"}')
            if body.count("}") == 1
            else body[:-1] + ', "item": "m0009"}'
        )
    answer = timed.post(route, content=body, headers={"content-type": "application/json"})
    detail = answer.json()["detail"]
    assert answer.status_code == 422 and text in detail and "\n" not in detail, detail


def test_the_schema_shows_both_forms_of_a_history(timed):
    schemas = timed.get("/openapi.json").json()["components"]["schemas"]
    for name in ("RecommendRequest", "ExplainRequest"):
        one = schemas[name]["properties"]["history"]["anyOf"][0]["items"]
        forms = [form.get("type", form.get("$ref", "").split("/")[-1]) for form in one["anyOf"]]
        assert forms == ["string", "HistoryItem"]
        given, nothing = schemas[name]["properties"]["as_of"]["anyOf"]
        assert {form["type"] for form in given["anyOf"]} == {"integer", "number", "string"}
        assert nothing == {"type": "null"} and "2024-01-31" in given["examples"]
