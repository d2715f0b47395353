"""Requests of any shape, replaced files under load, rates, and a stop that finishes what it began."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from recsys import make_ranker
from recsys.datasets import load_dataset
from recsys.rankers import fit_package
from recsys.service import create_app
from recsys.service.limits import Rate

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client(path):
    with TestClient(create_app(path, reload_seconds=60), raise_server_exceptions=False) as client:
        yield client


SAMPLE = load_dataset("sample")
KNOWN = st.sampled_from(
    [*map(str, SAMPLE.user_ids[:5]), *map(str, SAMPLE.item_ids[:9]), "", "nope", "🎬"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=9) | KNOWN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ROUTES = {
    "/recommend": {
        "user": KNOWN, "history": st.lists(KNOWN, max_size=6), "n": st.integers(-1, 1200),
        "items": st.lists(KNOWN, max_size=6), "filter_items": st.lists(KNOWN, max_size=6),
        "filter_liked": st.booleans(), "dislikes": st.lists(KNOWN, max_size=4),
        "diversity": st.floats(0, 1), "item_set": KNOWN, "filter_item_set": KNOWN,
        "filters": st.dictionaries(st.sampled_from(["year", "genres", "x"]), ANY, max_size=2),
    },
    "/similar": {"item": KNOWN, "n": st.integers(0, 50), "items": st.lists(KNOWN), "diversity": st.floats(0, 1)},
    "/explain": {"user": KNOWN, "history": st.lists(KNOWN, max_size=5), "item": KNOWN, "n": st.integers(0, 20)},
    "/rules": {"user": KNOWN, "history": st.lists(KNOWN, max_size=5), "item": KNOWN, "n": st.integers(0, 20)},
}  # fmt: skip


@st.composite
def bodies(draw, route):
    """Return a body that is right but for a field or two."""
    fields = ROUTES[route]
    chosen = draw(st.sets(st.sampled_from(sorted(fields))))
    body = {key: draw(fields[key]) for key in chosen}
    for key in draw(st.sets(st.sampled_from([*sorted(fields), "path", "model"]), max_size=1)):
        body[key] = draw(ANY)
    return body


def check(answer):
    assert answer.status_code in (200, 404, 422), answer.text
    assert "Traceback" not in answer.text
    found = answer.json()
    if answer.status_code != 200:
        assert found["detail"]
    for entry in found.get("items", ()):
        assert entry["score"] == entry["score"]


MANY = settings(
    max_examples=300, deadline=None, database=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_no_body_makes_it_fail(client, route):
    @MANY
    @given(bodies(route))
    def ask(body):
        check(client.post(route, content=json.dumps(body), headers={"content-type": "application/json"}))

    ask()


@pytest.mark.thorough
def test_no_path_or_query_makes_it_fail(client):
    @settings(MANY, max_examples=200)
    @given(st.text(max_size=30), st.text(max_size=10), st.sampled_from(["users/{}/recommendations", "items/{}/similar"]))  # fmt: skip
    def ask(name, n, route):
        quoted = urllib.request.quote(name.encode("utf-8", "replace"), safe="")
        answer = client.get("/" + route.format(quoted), params={"n": n.encode("utf-8", "replace")})
        assert answer.status_code in (200, 307, 404, 405, 422), answer.text

    ask()


@pytest.mark.thorough
def test_fifty_new_files_under_load_fail_no_request(path, data, tmp_path):
    file = tmp_path / "m.recsys"
    shutil.copy(path, file)
    fit_package(make_ranker("popularity"), data, show_progress=False).save(tmp_path / "other")
    contents = [path.read_bytes(), (tmp_path / "other").read_bytes()]
    app = create_app(file, reload_seconds=0.005)
    failed, asked, stop = [], [0], threading.Event()
    with TestClient(app, raise_server_exceptions=False) as client:

        def ask(k):
            while not stop.is_set():
                answer = client.post("/recommend", json={"user": str(data.user_ids[k]), "n": 3})
                asked[0] += 1
                if answer.status_code != 200 or len(answer.json()["items"]) != 3:
                    failed.append(answer.text)

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        refused = 0
        for k in range(50):
            fresh = tmp_path / "fresh"
            fresh.write_bytes(contents[k // 2 % 2] if k % 2 == 0 else contents[0][: 100 + k])
            os.replace(fresh, file)
            time.sleep(0.02)
            app.state.models.check()
            refused += client.get("/health").json()["error"] is not None
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed and asked[0] > 50 and refused >= 20


def test_a_rate_is_kept_for_each_address(path):
    rate = Rate(2.0, addresses=2)
    assert [rate.wait("a", 0.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert rate.wait("b", 0.0) == 0.0 and rate.wait("a", 0.5) == 0.0 and rate.wait("a", 0.6) > 0
    with TestClient(create_app(path, rate=1.0)) as client:
        assert client.post("/recommend", json={"history": []}).status_code == 200
        answer = client.post("/recommend", json={"history": []})
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200


@pytest.mark.slow
def test_sigterm_ends_it_with_0_and_idle_connections_do_not_block(path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen(
        [str(Path(sys.executable).parent / "recsys"), "serve", "--ranker", str(path), "--port", str(port)],
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        slow = socket.create_connection(("127.0.0.1", port))
        slow.sendall(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9")
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 0
        for connection in [*idle, slow]:
            connection.close()
    finally:
        child.kill()
        child.wait()
