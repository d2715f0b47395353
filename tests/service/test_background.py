"""The loops beside the requests: each survives an exception and reports it in /health and the metrics."""

import asyncio
import errno
import io
import os
import shutil
import subprocess
import sys
import threading

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

from recsys.service import create_app
from recsys.service.background import Background
from recsys.service.model_store import ModelStore
from tests.service.conftest import wait_until

pytestmark = pytest.mark.filterwarnings("ignore")


class Once:
    """Raise at the first call, and do what was done before from then on."""

    def __init__(self, does):
        self.does, self.calls = does, 0

    def __call__(self, *args, **more):
        self.calls += 1
        if self.calls == 1:
            raise OverflowError("planted")
        return self.does(*args, **more)


def counted(app, loop):
    text = app.state.monitoring.text().decode()
    return f'recsys_background_failures_total{{loop="{loop}"}} 1.0' in text


def test_connections_without_a_descriptor_are_one_line_a_minute_and_counted(capsys):
    class Loop:
        now, told = 1000.0, []

        def time(self):
            return self.now

        def default_exception_handler(self, context):
            self.told.append(context)

    counts, loop = [], Loop()
    background = Background(counts.append)
    for seconds in (0, 1, 58, 1, 1):
        loop.now += seconds
        background.loop_failed(loop, {"exception": OSError(errno.EMFILE, "Too many open files")})
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "ulimit -n" in said[0] and counts == ["connections"] * 5
    others = [{"message": "m"}, {"exception": OSError(errno.EIO, "x")}, {"exception": ValueError()}]
    for context in others:
        background.loop_failed(loop, context)
    assert loop.told == others and not capsys.readouterr().err


@pytest.mark.thorough
def test_requests_are_counted_when_no_file_can_be_opened(tmp_path):
    code = """
import os, resource
from recsys.service.monitoring import Monitoring
monitoring = Monitoring()
opened = []
while True:
    try:
        opened.append(os.dup(0))
    except OSError:
        break
    if len(opened) == 3:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened) + 1,) * 2)
monitoring.seen("POST", "/recommend", 200, 0.1)
monitoring.seen("GET", "/other", 404, 0.1)
monitoring.failed("connections")
monitoring.shed("/events")
monitoring.kept(3)
monitoring.refresh()
"""
    env = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, stdin=subprocess.DEVNULL)


def test_the_service_tells_its_loop_so(model):
    app = create_app(model)

    async def handler():
        return asyncio.get_running_loop().get_exception_handler()

    with TestClient(app) as client:
        assert client.portal.call(handler) == app.state.models.background.loop_failed


def test_a_file_that_is_away_for_long_is_served_when_it_is_back(model, path):
    store = ModelStore(model, every=3600)
    try:
        os.unlink(model)
        for _ in range(1100):  # 2.0**1024 leaves the range of floats
            store.check()
        shutil.copy(path, model)
        store.check()
        assert store.error is None and store.reloads == 1
    finally:
        store.close()


def watcher(app, monkeypatch):
    monkeypatch.setattr(app.state.models, "check", Once(app.state.models.check))


def follower(app, monkeypatch):
    monkeypatch.setattr(app.state.models, "catch_up", Once(app.state.models.catch_up))
    app.state.models._arrived.set()


def computing(app, monkeypatch):
    monkeypatch.setattr(app.state.computing, "clock", Once(app.state.computing.clock))


def log(app, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", Once(stream.write))
    app.state.log.stream = stream


def metrics(app, monkeypatch):
    monkeypatch.setattr(app.state.monitoring, "refresh", Once(app.state.monitoring.refresh))


@pytest.mark.parametrize(
    "loop, plant",
    [
        ("model watcher", watcher), ("events", follower), ("computing", computing), ("access log", log),
        ("metrics", metrics),
    ],
)  # fmt: skip
def test_each_loop_survives_what_its_work_raises(model, tmp_path, monkeypatch, loop, plant):
    seen = []
    app = create_app(model, reload_seconds=0.01, events=tmp_path / "e.db", access_log=True)
    with TestClient(app, raise_server_exceptions=False) as client:
        background = app.state.models.background
        kept = background.failed
        # In the thread that fails, before a later pass of its loop succeeds.
        background.failed = lambda name: (kept(name), seen.append((name, dict(background.failing))))
        plant(app, monkeypatch)
        ask = lambda: client.post("/recommend", json={"history": [], "n": 1}).status_code  # noqa: E731
        first = ask()
        assert first == (500 if loop == "computing" else 200)
        wait_until(lambda: seen)
        assert seen == [(loop, {loop: "OverflowError: planted"})]
        assert counted(app, loop)
        assert ask() == 200
        app.state.models._arrived.set()
        wait_until(lambda: client.get("/health").json()["failing"] == {})


def test_health_tells_what_fails(path):
    app = create_app(path)
    with TestClient(app) as client:
        with app.state.models.background.guard("planted"):
            raise ValueError("a\nb")
        assert client.get("/health").json()["failing"] == {"planted": "ValueError: a b"}


def test_a_guard_lets_a_stop_pass():
    with pytest.raises(KeyboardInterrupt), Background().guard("x"):
        raise KeyboardInterrupt


def test_answers_that_are_too_few_leave_no_request_waiting(path, monkeypatch):
    from recsys.service import routes

    monkeypatch.setattr(routes, "plain_lists_of", lambda asked: [])
    with TestClient(create_app(path), raise_server_exceptions=False) as client:
        assert client.post("/recommend", json={"history": []}).status_code == 500


def test_events_are_checked_outside_the_event_loop(path, tmp_path, monkeypatch):
    app = create_app(path, events=tmp_path / "e.db")
    where = []
    package = type(app.state.models.current.package)
    real = package.check_ids
    monkeypatch.setattr(
        package, "check_ids", lambda *a: (where.append(threading.get_ident()), real(*a))[1]
    )
    with TestClient(app) as client:
        loop = client.portal.call(threading.get_ident)
        assert (
            client.post("/events", json={"events": [{"user": "u0001", "item": "m0001"}]}).status_code
            == 200
        )
    assert where and where[0] != loop
