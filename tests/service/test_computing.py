"""The queue that is never long, and answers that are computed together."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.rankers import fit_package
from recsys.service import computing, create_app, routes
from recsys.service.computing import Computing, Overloaded
from recsys.service.item_sets import ItemSets
from recsys.service.model_store import FileState, prepared
from recsys.service.schemas import RecommendRequest
from tests.service.conftest import wait_until

pytestmark = pytest.mark.filterwarnings("ignore")


def test_more_than_may_wait_is_refused_and_counted_at_arrival():
    async def run():
        pool, gate = Computing(2, 5), threading.Event()
        tasks = [asyncio.create_task(pool.one("k", gate.wait)) for _ in range(8)]
        await asyncio.sleep(0.05)
        refused = [task for task in tasks if task.done()]
        assert len(refused) == 3 and all(isinstance(t.exception(), Overloaded) for t in refused)
        assert pool.in_flight == 5 and pool.full("k")
        gate.set()
        await asyncio.wait(tasks)
        assert pool.in_flight == 0 and not pool.full("k")
        pool.stop()

    asyncio.run(run())


def test_what_would_wait_for_too_long_is_refused():
    async def run():
        pool, gate = Computing(1, 1000), threading.Event()
        pool._taken = {"slow": 0.1, "quick": 0.001}
        slow = [asyncio.create_task(pool.one("slow", gate.wait)) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert pool.full("quick"), "0.3 s are more than 15 ms and more than 3 times 1 ms"
        assert not pool.full("slow"), "0.3 s are 3 times 0.1 s"
        more = asyncio.create_task(pool.one("slow", gate.wait))
        await asyncio.sleep(0.01)
        assert pool.full("slow")
        gate.set()
        await asyncio.gather(*slow, more)
        pool.stop()

    asyncio.run(run())


def test_what_a_kind_takes_is_learnt_from_the_processor_and_not_from_one_request():
    async def run():
        pool = Computing(1, 10)
        await pool.one("sleeps", time.sleep, 0.05)
        assert pool._taken["sleeps"] < 0.002, "a sleep takes no processor"
        end = []

        def spin():
            until = time.thread_time() + 0.01
            while time.thread_time() < until:
                end.append(1)

        for _ in range(60):
            await pool.one("spins", spin)
        assert 0.005 < pool._taken["spins"] < 0.05
        pool.stop()

    asyncio.run(run())


def test_what_waits_for_a_database_is_known_by_the_clock_on_the_wall():
    async def run():
        pool = Computing(1, 100, 0.1, time.monotonic)
        for _ in range(40):
            await pool.one("keep", time.sleep, 0.02)
        assert 0.01 < pool._taken["keep"]
        pool._taken["keep"] = 0.5
        tasks = [asyncio.create_task(pool.one("keep", time.sleep, 0.01)) for _ in range(9)]
        await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(t.exception(), Overloaded) for t in tasks) == 5, "1.5 s may wait"
        pool.stop()

    asyncio.run(run())


def test_whatever_one_request_raises_the_others_are_answered():
    def stop(kind):
        raise kind

    async def run():
        pool = Computing(1, 3)
        for kind in (StopIteration, SystemExit, KeyError, MemoryError):
            with pytest.raises((RuntimeError, kind)):
                await pool.one("k", stop, kind)
        assert await pool.one("k", len, "four") == 4 and pool.in_flight == 0
        pool.stop()

    asyncio.run(run())


def test_jobs_of_one_group_share_a_call_and_each_gets_its_own():
    calls = []

    def squares(numbers):
        calls.append(len(numbers))
        if 3 in numbers and len(numbers) > 1:
            raise ValueError("not together")
        if numbers == [3]:
            raise KeyError("three")
        return [n * n for n in numbers]

    async def run():
        pool, gate = Computing(1, 100), threading.Event()
        first = asyncio.create_task(pool.one("k", gate.wait))
        await asyncio.sleep(0.02)
        waiting = [asyncio.create_task(pool.together("k", "a", squares, n)) for n in range(6)]
        other = asyncio.create_task(pool.together("k", "b", squares, 7))
        await asyncio.sleep(0.02)
        gate.set()
        await first
        found = await asyncio.gather(*waiting, other, return_exceptions=True)
        assert [f for f in found if not isinstance(f, KeyError)] == [0, 1, 4, 16, 25, 49]
        assert isinstance(found[3], KeyError)
        pool.stop()

    asyncio.run(run())
    assert calls[0] == 6 and calls[-1] == 1, "the last is of another group"


@pytest.mark.parametrize("name", ["cf-komd", "ease", "als", "popularity", "slist", "msdw"])
def test_computed_together_is_computed_alone(name, data):
    params = {"iterations": 2} if name == "als" else {}
    package = fit_package(make_ranker(name, **params), data, show_progress=False)
    model = prepared(package, FileState(0, 0, 0))
    sets, rng = ItemSets(), np.random.default_rng(0)
    known = [RecommendRequest(user=str(u), n=7) for u in data.user_ids[:12]]
    new = [
        RecommendRequest(
            history=[*map(str, rng.permutation(data.item_ids)[: k % 9]), *["?"] * (k % 2)], n=7
        )
        for k in range(12)
    ]
    liked = [
        RecommendRequest(user=str(u), n=300, filter_liked=bool(k))
        for k in range(2)
        for u in data.user_ids[:5]
    ]
    groups = [known, new, liked[:5], liked[5:]] if "fold-in" in package.ranker.capabilities else [known]
    for group in groups:
        alone = [routes.list_of(model, sets, one) for one in group]
        assert routes.plain_lists_of([(model, sets, one) for one in group]) == alone


def test_health_answers_while_all_threads_compute(path, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(routes, "list_of", lambda *_: gate.wait(30) and b"{}")
    found = []
    with TestClient(create_app(path, at_once=3, threads=2)) as client:

        def ask():
            found.append(client.post("/recommend", json={"history": [], "diversity": 0.5}))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: client.app.state.computing.in_flight == 3)
        refused = client.post("/recommend", json={"history": []})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert refused.json() == {"detail": "too many requests at once"}
        assert client.get("/health").status_code == client.get("/metrics").status_code == 200
        assert "recsys_waiting 3.0" in client.get("/metrics").text
        gate.set()
        for thread in threads:
            thread.join()
        assert [one.status_code for one in found] == [200] * 3
        assert client.post("/recommend", json={"history": []}).status_code == 200


@pytest.mark.parametrize(
    ("route", "made", "asked"),
    [("/explain", "reasons_of", {"changes": 3}), ("/explain", "reasons_of", {"formulas": 3}), ("/rules", "rule_of", {})],
)  # fmt: skip
def test_lists_are_made_while_searches_wait(path, monkeypatch, data, route, made, asked):
    gate = threading.Event()
    monkeypatch.setattr(routes, made, lambda *_: gate.wait(30) and b"{}")
    item, found = str(data.item_ids[0]), []
    with TestClient(create_app(path, threads=1)) as client:

        def ask():
            found.append(client.post(route, json={"history": [], "item": item, **asked}))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: client.app.state.slow.in_flight == 2)
        assert client.app.state.computing.in_flight == 0
        assert client.post("/recommend", json={"history": []}).status_code == 200
        gate.set()
        for thread in threads:
            thread.join()
        assert [one.status_code for one in found] == [200] * 2


def test_one_unknown_user_among_others_is_404_alone(path, data):
    with TestClient(create_app(path, threads=1)) as client:
        pool, gate = client.app.state.computing, threading.Event()
        found = {}

        def ask(user):
            found[user] = client.post("/recommend", json={"user": user}).status_code

        client.portal.start_task_soon(pool.one, "/x", gate.wait)
        users = [*map(str, data.user_ids[:5]), "nobody"]
        threads = [threading.Thread(target=ask, args=(user,)) for user in users]
        for thread in threads:
            thread.start()
        wait_until(lambda: pool.in_flight == 7)
        gate.set()
        for thread in threads:
            thread.join()
    assert found == {user: 404 if user == "nobody" else 200 for user in users}
    assert computing.TOGETHER > 6


def test_answers_are_compact_json_of_text(path, data):
    with TestClient(create_app(path)) as client:
        answer = client.post("/recommend", json={"user": str(data.user_ids[0])})
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.content) == answer.json()
