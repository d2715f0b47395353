"""Sets of items by name, and filters by attribute, over HTTP."""

import os

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

import recsys
from recsys.service import create_app
from recsys.service import item_sets as item_sets_module
from recsys.service.limits import MAX_SET_BODY

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "sets"


@pytest.fixture
def client(path, folder):
    with TestClient(create_app(path, reload_seconds=60, item_sets=folder)) as client:
        yield client


def items_of(answer):
    assert answer.status_code == 200, answer.text
    return [one["item"] for one in answer.json()["items"]]


def test_a_set_is_the_list_it_holds(client, data):
    some = [str(i) for i in data.item_ids[:40]]
    kept = client.put("/item-sets/stock", json={"items": [*some, some[0], "nope"]})
    assert kept.json() == {"name": "stock", "size": 41, "unknown": 1}
    assert client.get("/item-sets/stock").json() == kept.json()
    for asked in (
        {"user": str(data.user_ids[5]), "n": 50}, {"history": some[:3], "n": 50},
        {"history": some[:3], "n": 50, "filter_liked": False}, {"history": [], "n": 7},
        {"user": str(data.user_ids[5]), "dislikes": some[4:6]},
        {"user": str(data.user_ids[5]), "diversity": 0.5},
    ):  # fmt: skip
        listed = client.post("/recommend", json=asked | {"items": some}).json()
        assert client.post("/recommend", json=asked | {"item_set": "stock"}).json() == listed
        listed = client.post("/recommend", json=asked | {"filter_items": some}).json()
        assert client.post("/recommend", json=asked | {"filter_item_set": "stock"}).json() == listed
    near = client.post("/similar", json={"item": some[3], "items": some, "n": 60}).json()
    assert client.post("/similar", json={"item": some[3], "item_set": "stock", "n": 60}).json() == near
    both = {"user": str(data.user_ids[5]), "n": 60, "item_set": "stock", "filter_items": some[:20]}
    assert set(items_of(client.post("/recommend", json=both))) <= set(some[20:])


def test_a_set_is_replaced_and_removed(client, data):
    first, second = ([str(i) for i in data.item_ids[a : a + 5]] for a in (0, 5))
    asked = {"history": [], "n": 9, "item_set": "stock"}
    for some in (first, second):
        assert client.put("/item-sets/stock", json={"items": some}).status_code == 200
        assert set(items_of(client.post("/recommend", json=asked))) == set(some)
    assert client.delete("/item-sets/stock").json() == {"name": "stock"}
    for answer in (
        client.post("/recommend", json=asked), client.get("/item-sets/stock"),
        client.delete("/item-sets/stock"), client.post("/similar", json={"item": first[0], "item_set": "stock"}),
    ):  # fmt: skip
        assert answer.status_code == 404
        assert answer.json()["detail"] == "unknown item set 'stock': upload it by PUT /item-sets/stock"
    empty = client.put("/item-sets/empty", json={"items": []})
    assert empty.json()["size"] == 0
    assert items_of(client.post("/recommend", json=asked | {"item_set": "empty"})) == []


def test_processes_share_a_folder_and_a_restart_keeps_it(client, path, folder, data):
    some = [str(i) for i in data.item_ids[:6]]
    asked = {"history": [], "n": 9, "item_set": "stock"}
    with TestClient(create_app(path, reload_seconds=60, item_sets=folder)) as other:
        for these in (some, some[:2]):
            client.put("/item-sets/stock", json={"items": these})
            assert set(items_of(other.post("/recommend", json=asked))) == set(these)
    with TestClient(create_app(path, reload_seconds=60, item_sets=folder)) as again:
        assert set(items_of(again.post("/recommend", json=asked))) == set(some[:2])
    assert [one.name for one in folder.iterdir()] == ["stock.items.json"]
    (folder / "stock.items.json").write_bytes(b"{")
    answer = client.post("/recommend", json=asked)
    assert answer.status_code == 422 and "upload it again" in answer.json()["detail"]


def test_a_folder_of_its_own_ends_with_the_service(path, data):
    with TestClient(create_app(path, reload_seconds=60)) as client:
        client.put("/item-sets/stock", json={"items": [str(data.item_ids[0])]})
        own = client.app.state.item_sets.folder
        assert os.listdir(own) == ["stock.items.json"]
    assert not own.exists()


BAD = [
    ("stock", {"items": "abc"}), ("stock", {"items": [7]}), ("stock", {"items": [""]}), ("stock", {}),
    ("stock", ["a"]), ("stock", {"items": [], "name": "x"}), ("Stock", {"items": []}),
    (".hidden", {"items": []}), ("a" * 65, {"items": []}), ("..%2fmodel", {"items": []}),
    ("stock%0a", {"items": []}), ("st%00ock", {"items": []}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), BAD, ids=str)
def test_wrong_sets_are_refused_in_a_line(client, folder, name, body):
    answer = client.put(f"/item-sets/{name}", json=body)
    assert answer.status_code in (404, 422) and "\n" not in answer.json()["detail"]
    assert list(folder.iterdir()) == []


def test_names_and_types_are_checked(client, data):
    user = {"user": str(data.user_ids[5])}
    for wrong in ({"item_set": "No such"}, {"item_set": 7}, {"filter_item_set": "../x"}):
        answer = client.post("/recommend", json=user | wrong)
        assert answer.status_code == 422 and answer.json()["detail"].startswith(next(iter(wrong)))
    plain = client.put("/item-sets/a", content=b'{"items": []}', headers={"content-type": "text/plain"})
    assert plain.status_code == 422


def test_sets_are_bounded(client, data, monkeypatch):
    large = b'{"items": ["' + b"x" * MAX_SET_BODY + b'"]}'
    sent = {"headers": {"content-type": "application/json"}}
    assert client.put("/item-sets/a", content=large, **sent).status_code == 413
    assert client.post("/recommend", content=large[: 2 << 20], **sent).status_code == 413
    many = [f"{k:020}" for k in range(60_000)]  # more than the megabyte of other bodies
    assert client.put("/item-sets/a", json={"items": many}).json()["size"] == 60_000
    monkeypatch.setattr(item_sets_module, "MOST_SETS", 1)
    assert client.put("/item-sets/b", json={"items": []}).status_code == 422
    assert client.put("/item-sets/a", json={"items": []}).status_code == 200


def test_the_token_is_asked_for(path):
    with TestClient(create_app(path, reload_seconds=60, token="secret")) as client:
        answers = [
            client.put("/item-sets/a", json={"items": []}), client.get("/item-sets/a"),
            client.delete("/item-sets/a"),
        ]  # fmt: skip
        assert [one.status_code for one in answers] == [401, 401, 401]


def test_filters_are_those_of_python(client, path, data):
    model, user = recsys.load(path), str(data.user_ids[5])
    for given, wanted in (
        ({"year": {"min": 1970, "max": 1985}}, {"year": (1970, 1985)}),
        ({"year": {"min": 1980}, "genres": ["Drama", "War"]}, {"year": (1980, None), "genres": ["Drama", "War"]}),
        ({"genres": "Comedy"}, {"genres": "Comedy"}),
    ):  # fmt: skip
        found = model.recommend(user, 20, filters=wanted, why=False)["item"].tolist()
        assert (
            items_of(client.post("/recommend", json={"user": user, "n": 20, "filters": given})) == found
        )
        near = model.similar(str(data.item_ids[3]), 20, filters=wanted)["item"].tolist()
        asked = {"item": str(data.item_ids[3]), "n": 20, "filters": given}
        assert items_of(client.post("/similar", json=asked)) == near


@pytest.mark.parametrize(
    "filters",
    [{"yaer": 1980}, {"year": {"min": "x"}}, {"year": {"low": 1}}, {"genres": {"min": 1}}, {"year": [[1]]}, "year", {"year": None}],
    ids=str,
)  # fmt: skip
def test_wrong_filters_are_refused(client, data, filters):
    answer = client.post("/recommend", json={"user": str(data.user_ids[5]), "filters": filters})
    assert answer.status_code == 422 and "\n" not in answer.json()["detail"]


def test_merchandising_is_that_of_python(client, path, data):
    model, user = recsys.load(path), str(data.user_ids[5])
    rules = {
        "pinned": [str(data.item_ids[60])],
        "boosts": {str(data.item_ids[9]): 2.0},
        "at_most": {"genres": 2},
    }
    found = model.recommend(user, 8, filter_liked=False, why=False, **rules)
    asked = {"user": user, "n": 8, "filter_liked": False} | rules
    answer = client.post("/recommend", json=asked).json()
    assert [one["item"] for one in answer["items"]] == found["item"].tolist()
    assert [one["score"] for one in answer["items"]] == found["score"].tolist()
    strange = client.post("/recommend", json={"user": user, "pinned": ["no"], "boosts": {"nope": 2}})
    assert strange.json()["unknown"] == ["no", "nope"]
    for wrong in (
        {"boosts": {"a": -1}},
        {"boosts": {"a": "x"}},
        {"at_most": {"genres": 0}},
        {"at_most": {"x": 1}},
        {"pinned": "a"},
    ):
        answer = client.post("/recommend", json={"user": user} | wrong)
        assert answer.status_code == 422 and "\n" not in answer.json()["detail"]


def test_fair_lists_are_those_of_python(client, path, data):
    model, user = recsys.load(path), str(data.user_ids[5])
    group = {"genres": ["War"], "year": (None, 1990)}
    found = model.recommend(user, 8, why=False, fair={"protected": group, "p": 0.7, "alpha": 0.2})
    asked = {"protected": {"genres": ["War"], "year": {"max": 1990}}, "p": 0.7, "alpha": 0.2}
    answer = client.post("/recommend", json={"user": user, "n": 8, "fair": asked}).json()
    assert [one["item"] for one in answer["items"]] == found["item"].tolist()
    assert not answer.get("note")
    title = {"title": str(data.item_features["title"].iloc[7])}
    few = client.post("/recommend", json={"user": user, "n": 30, "fair": {"protected": title}}).json()
    assert "fewer items of the protected group" in few["note"]
    for wrong in (
        {},
        {"protected": {}},
        {"protected": {"x": 1}},
        asked | {"p": 1},
        asked | {"alpha": 0},
        asked | {"q": 1},
    ):
        answer = client.post("/recommend", json={"user": user, "fair": wrong})
        assert answer.status_code == 422 and "\n" not in answer.json()["detail"]


def test_scores_are_those_of_python(client, path, data):
    model, user = recsys.load(path), str(data.user_ids[5])
    some = [str(data.item_ids[k]) for k in (7, 3, 200)]
    answer = client.post("/scores", json={"user": user, "items": [*some, "nope"]}).json()
    found = model.predict(user, some)
    assert [one["item"] for one in answer["items"]] == some and answer["unknown"] == ["nope"]
    assert [one["score"] for one in answer["items"]] == pytest.approx(found["score"].tolist())
    folded = client.post("/scores", json={"history": [], "items": some}).json()
    assert folded["fallback"] and folded["items"][0]["score"] == model.ranker.popularity_[7]
    assert client.post("/scores", json={"user": "nobody", "items": some}).status_code == 404
    assert client.post("/scores", json={"user": user}).status_code == 422


def test_similar_users_are_those_of_python(client, data, tmp_path):
    user = str(data.user_ids[5])
    assert client.get(f"/users/{user}/similar").status_code == 422  # cf-komd has none
    model = recsys.Recommender("als:factors=8,iterations=2").fit(data)
    model.save(tmp_path / "als.recsys")
    with TestClient(create_app(tmp_path / "als.recsys", reload_seconds=60)) as other:
        answer = other.get(f"/users/{user}/similar", params={"n": 4}).json()["users"]
        assert [one["user"] for one in answer] == model.similar_users(user, 4)["user"].tolist()
        assert other.get("/users/nobody/similar").status_code == 404
