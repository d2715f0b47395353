"""Answers of the service, and what it refuses."""

import json
import urllib.parse

import pandas as pd
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from recsys import InputError, Recommender, make_ranker
from recsys.data import Interactions
from recsys.service import create_app, schemas

pytestmark = pytest.mark.filterwarnings("ignore")
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(path):
    with TestClient(create_app(path), raise_server_exceptions=False) as client:
        yield client


def items_of(answer):
    return [one["item"] for one in answer.json()["items"]]


@pytest.mark.thorough
def test_known_users_get_what_the_ranker_recommends(client, data):
    ranker = make_ranker("cf-komd").fit(data.matrix, show_progress=False)
    ids, scores = ranker.recommend(5, data.matrix[5], N=7)
    answer = client.post("/recommend", json={"user": str(data.user_ids[5]), "n": 7}).json()
    assert [one["item"] for one in answer["items"]] == [data.item_ids[k] for k in ids]
    assert [one["score"] for one in answer["items"]] == pytest.approx(scores.tolist())
    assert answer["items"][0]["title"] == data.titles[ids[0]]
    assert answer["unknown"] == [] and not answer["fallback"]
    again = client.get(f"/users/{data.user_ids[5]}/recommendations", params={"n": 7})
    assert again.json() == answer


def test_histories_fold_in_and_unknown_items_are_named(client, data):
    liked = [str(data.item_ids[k]) for k in data.matrix[5].indices]
    known = client.post("/recommend", json={"user": str(data.user_ids[5])}).json()
    posted = client.post("/recommend", json={"history": [*liked, "nope"]}).json()
    assert posted["items"] == known["items"] and posted["unknown"] == ["nope"]
    empty = client.post("/recommend", json={"history": []}).json()
    assert empty["fallback"] and len(empty["items"]) == 10
    unheard = client.post("/recommend", json={"history": ["u1", "nope"]}).json()
    assert unheard["unknown"] == ["u1", "nope"] and unheard["items"] == empty["items"]
    for name in ("items", "filter_items", "dislikes"):
        answer = client.post("/recommend", json={"history": [liked[0]], name: ["nope"]})
        assert answer.status_code == 200 and answer.json()["unknown"] == ["nope"]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/similar", {"item": "nope"}),
        ("/explain", {"history": [], "item": "nope"}),
        ("/recommend", {"user": "nobody"}),
        ("/scores", {"user": "nobody", "items": []}),
        ("/explain", {"user": "nobody", "item": "m0001"}),
    ],
)
def test_an_unknown_user_or_item_of_a_request_is_404(client, route, body):
    answer = client.post(route, json=body)
    assert answer.status_code == 404 and answer.json()["detail"].startswith("unknown ")


def test_filters_dislikes_and_diversity(client, data):
    some = [str(one) for one in data.item_ids[:20]]
    ask = {"history": [some[0]]}
    only = items_of(client.post("/recommend", json={**ask, "items": some, "n": 50}))
    assert set(only) == set(some[1:])
    without = items_of(client.post("/recommend", json={**ask, "filter_items": some}))
    assert len(without) == 10 and not set(without) & set(some)
    liked = {**ask, "filter_liked": False, "items": some, "n": 50}
    assert len(items_of(client.post("/recommend", json=liked))) == 20
    recent = items_of(client.post("/recommend", json={**ask, "filters": {"year": {"min": 1980}}}))
    years = dict(zip(data.item_ids, data.item_features["year"], strict=True))
    assert recent and all(int(years[one]) >= 1980 for one in recent)
    plain = items_of(client.post("/recommend", json=ask))
    disliked = items_of(client.post("/recommend", json={**ask, "dislikes": [plain[0]]}))
    assert plain[0] not in disliked
    varied = items_of(client.post("/recommend", json={**ask, "diversity": 0.8}))
    assert len(set(varied)) == 10 and varied != plain


def test_similar_items_and_users_and_scores(client, data):
    names = [str(one) for one in data.item_ids]
    only = client.post("/similar", json={"item": names[3], "items": names[:9], "n": 20})
    assert set(items_of(only)) == set(names[:9]) - {names[3]}
    plain = client.post("/similar", json={"item": names[3], "n": 4})
    assert plain.json()["items"] == client.get(f"/items/{names[3]}/similar?n=4").json()["items"]
    assert client.get(f"/users/{data.user_ids[2]}/similar").status_code == 422  # cf-komd has none
    user = str(data.user_ids[2])
    scores = client.post("/scores", json={"user": user, "items": [names[3], "nope"]}).json()
    assert scores["unknown"] == ["nope"]
    why = client.post("/explain", json={"user": user, "item": names[3], "n": 100}).json()
    assert why["score"] == pytest.approx(scores["items"][0]["score"], abs=1e-5)
    shares = sum(one["score"] for one in why["items"])
    assert why["score"] == pytest.approx(why["bias"] + shares, abs=1e-5)


WRONG = [
    ({}, "exactly one of user and history"),
    ({"user": "u0001", "history": []}, "exactly one of"),
    ({"user": "u0001", "n": 0}, "n: "),
    ({"user": "u0001", "n": 1001}, "n: "),
    ({"user": "u0001", "n": True}, "n: "),
    ({"user": "u0001", "n": "5"}, "n: "),
    ({"history": ["x"] * 1001}, "history"),
    ({"history": "x"}, "history"),
    ({"user": "u0001", "top": 5}, "unknown field 'top'"),
    ({"history": [""]}, "history.0"),
    ({"user": 7}, "user: "),
    ({"history": ["m0001", "m0001"]}, "twice"),
    ({"user": "u0001", "filters": {"year": {"min": int("9" * 400)}}}, "filters"),
    ({"user": "u0001", "filters": {str(k): 1 for k in range(21)}}, "at most 20"),
    ({"user": "u0001", "items": ["m0001"], "filter_items": ["m0002"]}, "not both"),
    ({"user": "u0001", "diversity": 1.5}, "diversity: "),
    ({"history": [{"item": "m0001", "time": int("9" * 400)}]}, "HistoryItem.time"),
    ({"history": [{"item": "m0001", "weight": -1}]}, "HistoryItem.weight"),
    ({"history": [{"item": "m0001", "time": 5}, "m0002"]}, "all items a time"),
]


@pytest.mark.parametrize(("body", "text"), WRONG, ids=lambda one: str(one)[:40])
def test_wrong_requests_are_422_and_say_why(client, body, text):
    answer = client.post("/recommend", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422 and text in answer.json()["detail"]


def test_a_problem_is_said_once(client):
    said = [
        client.post("/recommend", content=body, headers=JSON).json()["detail"]
        for body in (b'{"top": 5}', b'{"user": ')
    ]
    assert said == [
        "body: Value error, unknown field 'top'",
        "body.9: JSON decode error: Expecting value",
    ]


def test_broken_json_other_media_types_and_large_bodies(client):
    def post(content, **headers):
        return client.post("/recommend", content=content, headers=headers or JSON).status_code

    assert post(b"{") == 422 and post(b'{"user": NaN}') == 422
    assert post(b"[" * 100_000) in (400, 422)
    assert post(b'{"history": []}', **{"content-type": "text/plain"}) == 422
    assert post(b"x" * ((1 << 20) + 1)) == 413
    assert post(b"x" * 60_000 for _ in range(40)) == 413
    assert post(b'{"history": ["\\ud800"]}') == 422


def test_a_token_is_needed_everywhere_but_on_health_and_ready(path):
    with TestClient(create_app(path, token="secret\n")) as client:
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        for header in ("", "Bearer wrong", "secret", "Basic secret", "Bearer Secret"):
            assert client.get("/metrics", headers={"Authorization": header}).status_code == 401
        for header in ("Bearer secret", "bearer secret", "Bearer secret  "):
            assert client.get("/metrics", headers={"Authorization": header}).status_code == 200
    for token in ("", "\n", "two words", "naïve"):
        with pytest.raises(InputError, match="token"):
            create_app(path, token=token)


def test_other_hosts_are_refused_where_hosts_are_named(path):
    with TestClient(create_app(path, hosts=["localhost"]), base_url="http://localhost") as client:
        assert client.get("/health").status_code == 200
        assert client.get("/health", headers={"host": "evil.example.com"}).status_code == 400


def test_ids_with_slashes_and_line_ends_are_reached_by_paths(tmp_path):
    pairs = [(f"u\r\n/{u}", f"a\n{i}") for u in range(6) for i in range(8) if (u * i) % 5]
    data = Interactions.from_frame(pd.DataFrame(pairs, columns=["user_id", "item_id"]))
    Recommender("ease").fit(data).save(tmp_path / "m")
    with TestClient(create_app(tmp_path / "m")) as client:
        for url, posted, body in (
            ("/users/{}/recommendations", "/recommend", {"user": "u\r\n/2"}),
            ("/items/{}/similar", "/similar", {"item": "a\n3"}),
        ):
            answer = client.get(url.format(urllib.parse.quote(next(iter(body.values())), safe="")))
            assert answer.status_code == 200
            assert answer.json() == client.post(posted, json=body).json()


def test_the_cost_of_reasons_is_bounded(client, monkeypatch):
    monkeypatch.setattr(schemas, "MOST_REASONS", 20)
    ask = {"history": [f"m{k:04d}" for k in range(1, 11)], "why": True}
    assert "why" in client.post("/recommend", json={**ask, "n": 2}).json()["items"][0]
    refused = client.post("/recommend", json={**ask, "n": 3})
    assert refused.status_code == 422 and "at most 2" in refused.json()["detail"]


KNOWN = st.sampled_from(["u0001", "u0005", "m0001", "m0009", "", "nope", "🎬"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=9) | KNOWN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
IDS = st.lists(KNOWN, max_size=5)
FILTERS = st.dictionaries(st.sampled_from(["year", "genres", "x"]), ANY, max_size=2)
PROFILE = {"user": KNOWN, "history": IDS}
FIELDS = {
    "/recommend": PROFILE
    | {
        "n": st.integers(-1, 1200),
        "items": IDS,
        "filter_items": IDS,
        "filter_liked": st.booleans(),
        "dislikes": IDS,
        "diversity": st.floats(0, 1),
        "filters": FILTERS,
        "why": st.booleans(),
    },
    "/similar": {"item": KNOWN, "n": st.integers(0, 50), "items": IDS, "diversity": st.floats(0, 1)},
    "/explain": PROFILE | {"item": KNOWN, "n": st.integers(0, 20), "changes": st.integers(0, 3)},
}


@st.composite
def bodies(draw, fields):
    """A body that is right but for a field or two."""
    body = {key: draw(fields[key]) for key in draw(st.sets(st.sampled_from(sorted(fields))))}
    for key in draw(st.sets(st.sampled_from([*sorted(fields), "path"]), max_size=1)):
        body[key] = draw(ANY)
    return body


@pytest.mark.slow
@pytest.mark.parametrize("route", FIELDS)
def test_no_body_makes_it_fail(client, route):
    @settings(
        max_examples=200,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(bodies(FIELDS[route]))
    def ask(body):
        answer = client.post(route, content=json.dumps(body), headers=JSON)
        assert answer.status_code in (200, 404, 422), answer.text
        assert answer.status_code == 200 or answer.json()["detail"]

    ask()
