"""Requests at the edges of what is promised: tokens, ids, numbers, paths, and the document of it all."""

import io
import json
import threading

import pandas as pd
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package
from recsys.service import access_log, create_app

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client(path):
    with TestClient(create_app(path)) as client:
        yield client


@pytest.mark.parametrize(
    "header, found",
    [
        ("Bearer secret", 200), ("bearer secret", 200), ("BEARER secret", 200), ("Basic secret", 401),
        ("secret", 401), ("Bearer Secret", 401), ("Bearer  secret", 401), ("", 401),
    ],
)  # fmt: skip
def test_the_scheme_of_a_token_is_in_any_case(path, header, found):
    with TestClient(create_app(path, token="secret")) as client:
        answer = client.post("/recommend", json={"history": []}, headers={"authorization": header})
        assert answer.status_code == found
        for open_to_all in ("/health", "/ready"):
            assert client.get(open_to_all).status_code == 200
        assert client.get("/metrics").status_code == 401


def test_wrong_tokens_are_limited_too(path):
    with TestClient(create_app(path, token="secret", rate=1.0)) as client:
        found = [
            client.get("/docs", headers={"authorization": f"Bearer {k}"}).status_code for k in range(5)
        ]
    assert found[0] == 401 and found[1:] == [429] * 4


@pytest.mark.parametrize("n", [True, "5", 0, 1001, 2.5, None])
def test_counts_are_whole_numbers(client, n):
    answer = client.post("/recommend", json={"history": [], "n": n})
    assert answer.status_code == 422 and answer.json()["detail"].startswith("n: ")


@pytest.mark.parametrize("url", ["/users/u0003/recommendations?n=0", "/items/m0003/similar?n=5001", "/items/m0003/similar?n=abc"])  # fmt: skip
def test_what_was_sent_is_not_sent_back(client, url):
    answer = client.get(url)
    assert answer.status_code == 422
    told = answer.json()["detail"]
    assert told.startswith("n: ") and "input" not in told and "5001" not in told and "abc" not in told


def test_broken_json_is_named_by_its_place(client):
    answer = client.post(
        "/recommend", content=b'{"history": [}', headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert (
        answer.json()["detail"].startswith("the body is no JSON: ") and "13" in answer.json()["detail"]
    )


def test_ids_with_slashes_are_reached_by_paths(tmp_path):
    pairs = [(f"u/{u}", f"a/{i}") for u in range(6) for i in range(8) if (u * i) % 5]
    data = Interactions.from_frame(pd.DataFrame(pairs, columns=["user_id", "item_id"]))
    fit_package(make_ranker("ease"), data, show_progress=False).save(tmp_path / "m")
    with TestClient(create_app(tmp_path / "m")) as client:
        for url, posted, body in (
            ("/users/u%2F2/recommendations", "/recommend", {"user": "u/2"}),
            ("/items/a%2F3/similar", "/similar", {"item": "a/3"}),
        ):
            answer = client.get(url)
            assert answer.status_code == 200 and answer.json() == client.post(posted, json=body).json()


def test_a_request_keeps_its_id(client):
    given = client.get("/health", headers={"x-request-id": "abc-1.2"}).headers["x-request-id"]
    made = [client.get("/health", headers={"x-request-id": bad}).headers["x-request-id"] for bad in ("", "a b", "x" * 65)]  # fmt: skip
    assert (
        given == "abc-1.2"
        and len(set(made)) == 3
        and all(access_log.ID.fullmatch(m.encode()) for m in made)
    )


@pytest.mark.parametrize("ids", [False, True])
def test_the_log_has_no_ids_unless_asked(path, ids):
    stream = io.StringIO()
    app = create_app(path, access_log=True, log_ids=ids)
    with TestClient(app) as client:
        app.state.log.stream = stream
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        client.get(
            "/users/u0003/recommendations", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        )
        client.get("/nowhere/u0003")
    app.state.log.flush(20)
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["route"] == "/users/{user:path}/recommendations" and first["trace_id"] == trace
    assert first["method"] == "GET" and first["status"] == 200 and first["ms"] > 0
    assert second["route"] == "other" and second["status"] == 404 and "trace_id" not in second
    assert ("u0003" in stream.getvalue()) == ids and ("client" in first) == ids


def test_a_log_that_nobody_reads_stops_nobody(path, monkeypatch):
    gate = threading.Event()

    class Stalled(io.StringIO):
        def write(self, text):
            gate.wait(30)
            return super().write(text)

    monkeypatch.setattr(access_log, "WAITING", 5)
    stream = Stalled()
    app = create_app(path, access_log=True)
    app.state.log.stream = stream
    with TestClient(app) as client:
        for _ in range(30):
            assert client.get("/health").status_code == 200
        gate.set()
        app.state.log.flush(20)
        client.get("/health")
        app.state.log.flush(20)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    dropped = sum(line.get("dropped", 0) for line in lines)
    assert dropped and len(lines) + dropped == 31


def test_a_log_that_cannot_be_written_stops_nobody(path):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    log = access_log.AccessLog(stream=Full())
    for _ in range(3):
        log.write({"method": "GET", "path": "/"}, {}, "/", 200, 0.1, b"x")
        log.flush(20)
    assert not log._lines.unfinished_tasks, "its thread goes on"


def test_the_document_has_every_answer(client, path):
    found = client.get("/openapi.json").json()
    for url, operations in found["paths"].items():
        for operation in operations.values():
            answers = operation["responses"]
            assert "default" not in answers and "200" in answers
            for status, answer in answers.items():
                if status != "200":
                    schema = answer["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Refusal"}
            if url not in ("/health", "/ready"):
                assert {"413", "429", "408"} <= set(answers)
    posted = found["paths"]["/recommend"]["post"]["responses"]
    assert set(posted) == {"200", "400", "404", "408", "413", "414", "422", "429", "501", "503"}
    assert list(found["paths"]["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
    assert len(found["components"]["schemas"]["RecommendRequest"]["oneOf"]) == 2
    with TestClient(create_app(path, token="x")) as other:
        guarded = other.get("/openapi.json", headers={"authorization": "Bearer x"}).json()
    assert "401" in guarded["paths"]["/recommend"]["post"]["responses"]
    assert guarded["paths"]["/health"]["get"]["responses"].keys() == {"200", "400", "414", "501"}
