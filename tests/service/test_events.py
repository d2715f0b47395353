"""Events over HTTP: kept first, applied to a copy, the same after a restart and after a refit."""

import json
import re
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
pytest.importorskip("sqlalchemy")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from recsys import CapabilityError, InputError, cli, make_ranker
from recsys.data import Interactions
from recsys.data.event_database import EventDatabase
from recsys.data.events import Event, fold, with_events
from recsys.errors import DatabaseError
from recsys.rankers import fit_package, load_package
from recsys.rankers._updates import Updatable
from recsys.rankers.registry import RANKERS
from recsys.service import create_app
from recsys.utils.spec import parse_spec

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS = {
    "msdw": {"recency": 0.5}, "ease": {"keep_inverse": True, "regularization": 20.0},
    "cf-komd": {"recency": 1.0},
}  # fmt: skip


def client_of(path, database, **options):
    return TestClient(create_app(path, reload_seconds=60, events=database, **options))


def settled(client):
    """Return the health once every event is applied."""
    for _ in range(600):
        found = client.get("/health").json()
        if found["error"] or found["events"]["kept"] == found["events"]["applied"]:
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def written(tmp_path, name="msdw", rows=None, **params):
    """Write a small table of likes, and a model of it as `recsys fit` does; return both paths."""
    table, model = tmp_path / "likes.csv", tmp_path / "model.recsys"
    rng = np.random.default_rng(0)
    rows = rows or [
        f"u{u},i{i},{1_000_000_000 + int(rng.integers(10**6))}"
        for u in range(20) for i in range(12) if rng.random() < 0.4
    ]  # fmt: skip
    table.write_text("\n".join(["user_id,item_id,timestamp", *rows]) + "\n")
    fit(table, model, name, params)
    return table, model


def fit(table, model, name, params, *more):
    spec = ":".join([name, ",".join(f"{k}={v}" for k, v in params.items())]).rstrip(":")
    columns = ["--user-col", "user_id", "--item-col", "item_id", "--time-col", "timestamp"]
    given = ["fit", "--interactions", str(table), *columns, "--model", spec, "--out", str(model)]
    assert cli.call([*given, "--quiet", *more]) == 0


def random_events(rng, count):
    """Return events of users and items, some of whom nobody knows."""
    made = []
    for _ in range(count):
        action = str(rng.choice(["like", "like", "like", "unlike", "forget"]))
        event = {"user": f"u{rng.integers(26)}", "action": action}
        if action != "forget":
            event |= {"item": f"i{rng.integers(16)}", "time": int(1_002_000_000 + rng.integers(10**6))}
        made.append(event)
    return made


def same_models(one, two):
    for key in ("user_ids", "item_ids", "titles"):
        np.testing.assert_array_equal(getattr(one, key), getattr(two, key))
    assert (one.user_items != two.user_items).nnz == 0 and (one.times != two.times).nnz == 0
    np.testing.assert_array_equal(one.ranker.popularity_, two.ranker.popularity_)
    np.testing.assert_array_equal(one.ranker.row_digests_, two.ranker.row_digests_)
    users = np.arange(len(one.user_ids))
    found, expected = (b.ranker.scores(users, b.user_items) for b in (one, two))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", MODELS)
def test_the_served_model_is_the_restarted_one_and_the_refit(name, tmp_path):
    table, path = written(tmp_path, name, **MODELS[name])
    database, rng = tmp_path / "events.db", np.random.default_rng(1)
    with client_of(path, database) as client:
        for batch in range(12):
            sent = random_events(rng, int(rng.integers(1, 12)))
            answer = client.post("/events", json={"batch": f"b{batch}", "events": sent})
            assert answer.status_code == 200, answer.text
            assert answer.json() == {"batch": f"b{batch}", "events": len(sent), "repeated": False}
            if batch % 3 == 0:
                settled(client)
        assert settled(client)["error"] is None
        served = client.app.state.models.current.package
    with client_of(path, database) as client:  # catches up before it serves
        health = client.get("/health").json()
        assert health["events"]["applied"] == health["events"]["kept"] > 0
        same_models(client.app.state.models.current.package, served)
    fit(table, tmp_path / "refit.recsys", name, MODELS[name], "--events", str(database))
    same_models(load_package(tmp_path / "refit.recsys"), served)
    with client_of(tmp_path / "refit.recsys", database) as client:  # events twice are events once
        same_models(client.app.state.models.current.package, served)


def test_a_batch_sent_again_counts_once(tmp_path):
    _, path = written(tmp_path)
    with client_of(path, tmp_path / "e.db") as client:
        body = {"batch": "one", "events": [{"user": "new", "item": "i1"}]}  # the time is the server's
        first, second = client.post("/events", json=body), client.post("/events", json=body)
        assert (first.json()["repeated"], second.json()["repeated"]) == (False, True)
        assert settled(client)["events"] == {"kept": 1, "applied": 1}
        other = client.post("/events", json=body | {"events": [{"user": "new", "item": "i2"}]})
        assert other.status_code == 422
        assert other.json()["detail"].startswith("batch 'one' was kept with other events: give every")
        unnamed = [client.post("/events", json={"events": body["events"]}).json() for _ in range(2)]
        assert unnamed[0]["batch"] != unnamed[1]["batch"] and not unnamed[1]["repeated"]
        text = client.get("/metrics").text
        assert "recsys_events_total 3.0" in text and "recsys_events_waiting" in text


def test_new_users_and_items_are_recommended_to_and_recommended(tmp_path):
    _, path = written(tmp_path)
    with client_of(path, tmp_path / "e.db") as client:
        assert client.post("/recommend", json={"user": "ada"}).status_code == 404
        likes = [
            {"user": who, "item": item, "time": "2005-01-01"}
            for who in ("ada", "u3")
            for item in ("i1", "tea")
        ]
        client.post("/events", json={"events": likes})
        assert settled(client)["users"] == 20
        found = client.post("/recommend", json={"user": "ada", "n": 50}).json()
        assert not found["fallback"] and not {"i1", "tea"} & {i["item"] for i in found["items"]}
        near = client.get("/items/tea/similar").json()["items"]
        assert near[0]["item"] == "i1" and near[0]["title"] == "i1"
        client.post("/events", json={"events": [{"user": "ada", "action": "forget"}]})
        settled(client)
        assert client.post("/recommend", json={"user": "ada"}).json()["fallback"]


def test_requests_are_answered_while_events_are_applied(tmp_path):
    _, path = written(tmp_path)
    with client_of(path, tmp_path / "e.db") as client:
        models, stop, wrong = client.app.state.models, threading.Event(), []

        def ask():
            while not stop.is_set():
                answer = client.post("/recommend", json={"user": "u3"})
                if answer.status_code != 200:
                    wrong.append(answer.text)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        before, kept = models.current, models.current.package.user_items.copy()
        scores = before.package.ranker.scores(3, before.package.user_items[3])
        rng = np.random.default_rng(2)
        for _ in range(10):
            assert client.post("/events", json={"events": random_events(rng, 5)}).status_code == 200
        settled(client)
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong and models.current is not before
        assert (before.package.user_items != kept).nnz == 0
        np.testing.assert_array_equal(before.package.ranker.scores(3, kept[3]), scores)


def test_an_update_that_is_refused_becomes_a_fit(tmp_path, monkeypatch):
    table, path = written(tmp_path, "ease", **MODELS["ease"])
    monkeypatch.setattr("recsys.rankers.ease.RESIDUAL", -1.0)
    with client_of(path, tmp_path / "e.db") as client:
        client.post(
            "/events", json={"events": [{"user": "u1", "item": "i3"}, {"user": "x", "item": "y"}]}
        )
        assert settled(client)["error"] is None
        served = client.app.state.models.current.package
    fit(table, tmp_path / "refit", "ease", MODELS["ease"], "--events", str(tmp_path / "e.db"))
    same_models(load_package(tmp_path / "refit"), served)


def test_a_replaced_file_gets_the_events(tmp_path):
    table, path = written(tmp_path)
    with client_of(path, tmp_path / "e.db") as client:
        client.post("/events", json={"events": [{"user": "ada", "item": "tea"}]})
        settled(client)
        fit(table, path, "cf-komd", {})
        client.app.state.models.check()
        health = client.get("/health").json()
        assert (health["model"], health["users"], health["error"]) == ("cf-komd", 20, None)
        fit(table, path, "popularity", {})  # which takes none: it is served, and said to be behind
        client.app.state.models.check()
        health = client.get("/health").json()
        assert health["model"] == "popularity" and health["events"] == {"kept": 1, "applied": 0}
        assert "events are kept, but not applied: popularity has no exact updates" in health["error"]


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("popularity", {}, "popularity has no exact updates and takes no events: serve cf-komd, ecf-omd, msdw or"),
        ("als", {"factors": 2, "iterations": 1}, "als has no exact updates and takes no events: serve"),
        ("ease", {}, "fit it with keep_inverse=True"),
        ("msdw", {"votes": 1.0}, "msdw with votes or sharpening has no exact updates: fit again"),
    ],
)  # fmt: skip
def test_models_without_updates_take_no_events(name, params, text, tmp_path):
    table, path = written(tmp_path, name, **params)
    with pytest.raises(CapabilityError, match=re.escape(text)) as refused:
        create_app(path, events=tmp_path / "e.db")
    assert "\n" not in str(refused.value)
    good = tmp_path / "good.recsys"
    fit(table, good, "msdw", {})
    with client_of(good, tmp_path / "e.db") as client:  # one that replaces another is served
        path.replace(good)
        client.app.state.models.check()
        health = client.get("/health").json()
        assert (health["model"], health["reloads"]) == (name, 1) and text in health["error"]
        answer = client.post("/events", json={"events": [{"user": "u1", "item": "i1"}]})
        assert answer.status_code == 422 and text in answer.json()["detail"]
        assert client.get("/health").json()["events"] == {"kept": 0, "applied": 0}
        assert client.post("/recommend", json={"user": "u1"}).status_code == 200
        fit(table, good, "msdw", {})
        client.app.state.models.check()
        assert client.get("/health").json()["error"] is None


def test_the_rankers_that_a_refusal_names_are_those_with_updates(tmp_path):
    _, path = written(tmp_path, "popularity")
    with pytest.raises(CapabilityError) as refused:
        load_package(path).check_events()
    named = re.search(r"events: serve (.*), or serve it without", str(refused.value))[1]
    names = re.split(", | or ", named)
    assert {name.partition(":")[0] for name in names} == {
        name for name in RANKERS if issubclass(RANKERS.get(name), Updatable)
    }
    R = load_package(path).user_items
    for spec in names:
        name, params = parse_spec(spec)
        make_ranker(name, **params).fit(R, show_progress=False).check_updates()


def test_recsys_serve_refuses_events_in_one_line(tmp_path, capsys):
    _, path = written(tmp_path, "popularity")
    given = ["serve", "--ranker", str(path), "--port", "0", "--events", str(tmp_path / "e.db")]
    assert cli.call(given) == 2
    told = capsys.readouterr().err
    assert told.startswith("recsys: popularity has no exact updates") and told.count("\n") == 1


def test_a_service_without_a_database_says_how_to_start_it(path):
    with TestClient(create_app(path)) as client:
        answer = client.post("/events", json={"events": [{"user": "u1", "item": "i1"}]})
        assert answer.status_code == 422 and "recsys serve --events FILE" in answer.json()["detail"]
        assert client.get("/health").json()["events"] is None


BAD = [
    ({}, "events: this field is needed"), ({"events": []}, "events: expected array of length >= 1"),
    ({"events": [{"user": "u1"}]}, "an event of action like needs an item"),
    ({"events": [{"user": "u1", "item": "i", "action": "forget"}]}, "an event of action forget needs no item"),
    ({"events": [{"user": "u1", "item": "i", "action": "eat"}]}, "action: one of like, unlike and forget is needed"),
    ({"events": [{"user": "u1", "item": "i", "time": "soon"}]}, "no time; a number or an ISO date"),
    ({"events": [{"user": "u1", "item": "i", "time": 2024}]}, "the times of these data are dates from 2001-09-"),
    ({"events": [{"user": "u\0", "item": "i"}]}, "user: an id holds a character that no text has"),
    ({"events": [{"user": "", "item": "i"}]}, "user: expected str of length >= 1"),
    ({"events": [{"user": "u", "item": "i" * 201}]}, "item: expected str of length <= 200"),
    ({"events": [{"user": "u", "item": "i", "rating": 5}]}, "rating: there is no such field"),
    ({"batch": 7, "events": [{"user": "u", "item": "i"}]}, "batch: a text is needed"),
]  # fmt: skip


@pytest.fixture(scope="module")
def taking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("taking")
    with client_of(written(folder)[1], folder / "e.db") as client:
        yield client


@pytest.mark.parametrize(("body", "text"), BAD, ids=str)
def test_bad_batches_are_refused_whole(taking, body, text):
    if "events" in body and body["events"]:
        body = body | {"events": [{"user": "u1", "item": "i1"}, *body["events"]]}
    answer = taking.post("/events", json=body)
    detail = answer.json()["detail"]
    assert answer.status_code == 422 and text in detail and "\n" not in detail, detail
    assert taking.get("/health").json()["events"]["kept"] == 0


ID = st.sampled_from(["u1", "i1", "", "\0", "🎬", "x" * 201]) | st.text(max_size=4)
ODD = st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | ID | st.lists(ID, max_size=2)
ONE = st.fixed_dictionaries(
    {"user": ID, "time": ODD},
    optional={"item": ID | ODD, "action": st.sampled_from(["like", "unlike", "forget", "eat"]) | ODD},
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.fixed_dictionaries(
        {"events": st.lists(ONE | ODD, max_size=3) | ODD}, optional={"batch": ODD}
    )
)
def test_batches_of_any_shape_are_kept_or_refused(body, fuzzed):
    answer = fuzzed.post(
        "/events", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code in (200, 422) and "Traceback" not in answer.text
    if answer.status_code == 422:
        assert "\n" not in answer.json()["detail"]
    health = fuzzed.get("/health").json()
    assert health["error"] is None, health


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with client_of(written(folder)[1], folder / "e.db") as client:
        yield client
        assert settled(client)["error"] is None


def test_surrogates_are_no_text(taking):
    body = b'{"events": [{"user": "\\ud800", "item": "i1"}]}'
    answer = taking.post("/events", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_a_time_is_needed_where_times_are_no_dates(tmp_path):
    rows = [f"u{u},i{i},{u + i + 1}" for u in range(6) for i in range(4) if (u + i) % 3]
    _, path = written(tmp_path, rows=rows)
    with client_of(path, tmp_path / "e.db") as client:
        answer = client.post("/events", json={"events": [{"user": "u1", "item": "i1"}]})
        assert (
            answer.status_code == 422
            and "an event has no time, and the times of these data are no dates" in answer.text
        )
        answer = client.post(
            "/events", json={"events": [{"user": "u1", "item": "i1", "time": "2024-01-01"}]}
        )
        assert answer.status_code == 422 and "are no dates, but numbers from 2 to" in answer.text
        assert (
            client.post(
                "/events", json={"events": [{"user": "u1", "item": "i1", "time": 12}]}
            ).status_code
            == 200
        )


def test_ids_that_are_whole_numbers_stay_so(tmp_path):
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((20, 12)) < 0.4)
    data = Interactions.from_ids(users, items + 100)
    fit_package(make_ranker("msdw"), data, show_progress=False).save(tmp_path / "m")
    with client_of(tmp_path / "m", tmp_path / "e.db") as client:
        for wrong in ({"user": "abc"}, {"user": "007"}, {"user": "7.0"}, {"item": "tea"}):
            event = {"user": "7", "item": "101"} | wrong
            answer = client.post("/events", json={"events": [event]})
            told = " ".join(f"{role} id {one!r}" for role, one in wrong.items())
            assert answer.status_code == 422, answer.text
            assert answer.json()["detail"] == f"{told}: the ids of these data are integers"
        assert settled(client)["events"] == {"kept": 0, "applied": 0}
        events = [{"user": "7", "item": "101"}, {"user": "999", "item": "555"}]
        assert client.post("/events", json={"events": events}).status_code == 200
        health = settled(client)
        wanted = (len(set(users)) + 1, len(set(items)) + 1)
        assert health["error"] is None and (health["users"], health["items"]) == wanted
        served = client.app.state.models.current.package
        assert {type(one) for one in [*served.user_ids, *served.item_ids]} == {int}
        row = served.user_items[list(served.user_ids).index(7)]
        liked = {i + 100 for u, i in zip(users, items, strict=True) if u == 7} | {101}
        assert {served.item_ids[k] for k in row.indices} == liked
        assert not client.post("/recommend", json={"user": "999"}).json()["fallback"]


def test_a_database_that_fails_is_503_and_nothing_is_acknowledged(tmp_path, monkeypatch):
    _, path = written(tmp_path)
    with client_of(path, tmp_path / "e.db") as client:
        database = client.app.state.models.events

        def broken(*_):
            from sqlalchemy.exc import OperationalError

            raise OperationalError("insert", {}, Exception("disk I/O error"))

        monkeypatch.setattr(database, "_digest_of", broken)
        answer = client.post("/events", json={"events": [{"user": "u1", "item": "i1"}]})
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert answer.json()["detail"].endswith("could not be written: disk I/O error")
        assert client.get("/health").json()["events"] == {"kept": 0, "applied": 0}


# ---- the database and what events leave


@pytest.mark.parametrize("where", ["{}/e.db", "sqlite:///{}/e.db"])
def test_batches_are_kept_whole_or_not_at_all(where, tmp_path):
    with EventDatabase(where.format(tmp_path)) as database:
        good = [Event("ada", "tea", 1.0), Event("ada", None, 2.0, "forget")]
        assert database.append("good", good) == 2
        with pytest.raises(DatabaseError, match="could not be written: NOT NULL constraint failed"):
            database.append("bad", [Event("bob", "tea", 3.0), Event(None, "tea", 3.0)])
        assert [event for _, event in database.after(0)] == good and database.last() == 2
        assert database.append("bad", good) == 4 and [k for k, _ in database.after(1)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("where", "error", "text"),
    [
        ("nowhere://x", InputError, "nowhere://x: no such kind of database; known are sqlite:///events.db or"),
        ("://", InputError, "is no database URL such as sqlite:///events.db"),
        ("postgresql://me:secret@localhost/x", InputError, r"postgresql://me:\*\*\*@localhost/x needs a driver: pip install psycopg"),
        ("{folder}/no/such/e.db", InputError, "the folder of the event database does not exist"),
        ("{folder}/text.db", DatabaseError, "could not be opened: file is not a database"),
    ],
)  # fmt: skip
def test_databases_that_cannot_be_opened(where, error, text, tmp_path):
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(error, match=text) as found:
        EventDatabase(where.format(folder=tmp_path))
    assert "\n" not in str(found.value) and "secret" not in str(found.value)


def test_without_sqlalchemy_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(InputError, match=r"events need sqlalchemy: pip install '.*\[events\]'"):
        EventDatabase(tmp_path / "e.db")


def test_serve_refuses_a_database_that_is_none(path, capfd):
    assert cli.call(["serve", "--ranker", str(path), "--events", "nowhere://x"]) == 2
    told = capfd.readouterr().err.strip()
    assert told.count("\n") == 0 and "no such kind of database" in told


def test_fit_names_a_database_that_is_not_there(tmp_path, capfd):
    code = cli.call(
        ["fit", "--out", str(tmp_path / "m"), "--events", str(tmp_path / "none.db"), "--quiet"]
    )
    assert code == 2 and "no event database at" in capfd.readouterr().err
    assert not (tmp_path / "none.db").exists()


def test_events_on_a_table_are_likes_as_a_loop_has_them():
    rng = np.random.default_rng(5)
    for timed in (True, False):
        pairs = [(f"u{u}", f"i{i}") for u in range(8) for i in range(6) if rng.random() < 0.5]
        data = Interactions.from_ids(
            *zip(*pairs, strict=True), time=np.arange(len(pairs)) + 1.0 if timed else None
        )
        likes = {pair: k + 1.0 for k, pair in enumerate(pairs)}
        events = [
            Event(e["user"], e.get("item"), float(e.get("time", 0)), e["action"])
            for e in random_events(rng, 60)
        ]
        for e in events:
            if e.action == "like":
                likes[e.user, e.item] = e.time
            elif e.action == "unlike":
                likes.pop((e.user, e.item), None)
            else:
                likes = {pair: when for pair, when in likes.items() if pair[0] != e.user}
        now = with_events(data, fold(events))
        found = {
            (now.user_ids[u], now.item_ids[i]): None if now.time is None else now.time[k]
            for k, (u, i) in enumerate(zip(now.users, now.items, strict=True))
        }
        assert found == (likes if timed else dict.fromkeys(likes)) and len(found) == len(now.users)
        again = with_events(now, fold(events))
        np.testing.assert_array_equal(again.matrix.toarray(), now.matrix.toarray())
        package = fit_package(make_ranker("msdw"), data, show_progress=False).updated(fold(events))
        np.testing.assert_array_equal(package.user_items.toarray(), now.matrix.toarray())
        np.testing.assert_array_equal(package.user_ids, now.user_ids)
        np.testing.assert_array_equal(package.item_ids, now.item_ids)


def test_a_package_without_updates_refuses_events():
    data = Interactions.from_ids(["a", "b"], ["x", "x"])
    package = fit_package(make_ranker("popularity"), data, show_progress=False)
    with pytest.raises(CapabilityError, match="popularity has no exact updates and takes no events"):
        package.updated(fold([Event("a", "y", 1.0)]))
