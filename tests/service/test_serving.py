"""`recsys serve` as a process: addresses, workers, stops, other clients, and a replaced file."""

import contextlib
import http.client
import json
import os
import re
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
from starlette.testclient import TestClient

from recsys import cli, make_ranker
from recsys.errors import ModelFileError
from recsys.rankers import fit_package
from recsys.service import app as service
from recsys.service import create_app, model_store
from tests.service.conftest import served, wait_until

pytestmark = pytest.mark.filterwarnings("ignore")


class Served:
    """The command, and what it prints."""

    def __init__(self, *arguments):
        command = [str(Path(sys.executable).parent / "recsys"), "serve", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.address = re.search(r"on (\S+)", self.process.stderr.readline())[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # workers, too, which hold the pipe
        self.process.communicate()


def got(url):
    return json.loads(urllib.request.urlopen(url, timeout=30).read())


@pytest.mark.slow
def test_workers_share_a_port_and_a_model(path, data, tmp_path):
    model = tmp_path / "m.recsys"
    shutil.copy(path, model)
    with Served("--ranker", model, "--port", 0, "--workers", 2) as service:
        wait_until(lambda: answers(f"{service.address}/ready"))
        half = socket.create_connection(("127.0.0.1", int(service.address.rpartition(":")[2])))
        half.sendall(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        assert len(got(f"{service.address}/users/u0003/recommendations")["items"]) == 10
        fit_package(make_ranker("popularity"), data, show_progress=False).save(model)
        names = set()
        wait_until(
            lambda: (
                not names.clear()
                and {got(f"{service.address}/health")["model"] for _ in range(9)} == {"popularity"}
            )
        )
        assert service.stop() == 0
        half.close()


def answers(url):
    try:
        return bool(urllib.request.urlopen(url, timeout=5))
    except OSError:
        return False


@pytest.mark.slow
def test_a_unix_socket(path, tmp_path):
    place = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(place))  # and is never removed
    with Served("--ranker", path, "--uds", place) as service:
        assert service.address == f"unix:{place}"

        def get():
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(str(place))
                client.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return b"".join(iter(lambda: client.recv(4096), b""))

        wait_until(lambda: place.exists())
        time.sleep(1)
        assert get().startswith(b"HTTP/1.1 200")
        assert service.stop() == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--workers", "0"], "--workers must be"),
        (["--port", "99999"], "--port must be"),
        (["--uds", "/nowhere/x.sock"], "cannot listen on"),
        (["--host", "256.256.256.256"], "cannot listen on"),
    ],
)
def test_wrong_options_are_one_line(path, capfd, options, text):
    assert cli.call(["serve", "--ranker", str(path), *options]) == 2
    err = capfd.readouterr().err.strip()
    assert text in err and err.count("\n") == 0


def test_a_port_that_is_taken_and_a_broken_token_or_file_are_one_line(
    path, capfd, tmp_path, monkeypatch
):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert cli.call(["serve", "--ranker", str(path), "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in capfd.readouterr().err
    (tmp_path / "x").write_text("hello")
    for workers in ("1", "2"):
        options = ["--ranker", str(tmp_path / "x"), "--port", "0", "--workers", workers]
        assert cli.call(["serve", *options]) == 2
        assert capfd.readouterr().err.strip().count("\n") == 0
    monkeypatch.setenv("RECSYS_TOKEN", "\n")
    assert cli.call(["serve", "--ranker", str(path), "--port", "0"]) == 2
    assert "token" in capfd.readouterr().err


ASK = b'{"history": [], "n": 2}'
HEAD = b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
REQUESTS = {
    "plain": HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(ASK), ASK),
    "a blank after the length": HEAD + b"Content-Length: %d \r\n\r\n%s" % (len(ASK), ASK),
    "chunked with a tab and a blank": HEAD
    + b"Transfer-Encoding: chunked\t \r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ASK), ASK),
    "an offer of HTTP/2": HEAD
    + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nContent-Length: %d\r\n\r\n%s"
    % (len(ASK), ASK),
    "pipelined": (HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(ASK), ASK)) * 2,
}


@pytest.fixture(scope="module")
def address(path):
    with served(create_app(path)) as address:
        yield address


def test_endless_headers_are_refused(address):
    with socket.create_connection(address, timeout=20) as client:
        client.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(ConnectionError):  # refused while it is sending
            for k in range(5000):
                client.sendall(b"X-%d: %s\r\n" % (k, b"y" * 1000))
            pytest.fail("5 MB of headers were read")


@pytest.mark.parametrize("size", [10_000, 1])
@pytest.mark.parametrize("name", REQUESTS)
def test_legal_requests_are_answered(address, name, size):
    with socket.create_connection(address, timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(REQUESTS[name]), size):
            client.sendall(REQUESTS[name][start : start + size])
        answers = client.makefile("rb")
        for _ in range(REQUESTS[name].count(b"POST")):
            assert answers.readline().split()[1] == b"200"
            headers = http.client.parse_headers(answers)
            body = json.loads(answers.read(int(headers["content-length"])))
            assert len(body["items"]) == 2 and headers["content-type"] == "application/json"


@pytest.mark.parametrize("at_once", [0, 1000])
def test_plain_requests_do_not_wait_for_slow_ones_and_too_many_are_refused(path, monkeypatch, at_once):
    gate, explained, counted = threading.Event(), service.explained, "recsys_waiting 1.0"
    monkeypatch.setattr(service, "explained", lambda *a, **k: gate.wait(30) and explained(*a, **k))
    monkeypatch.setattr(service, "MOST_WAITING", 0)
    app, answers, ask = create_app(path), [], {"user": "u0001"}
    app.state.models.current.at_once = at_once
    with TestClient(app) as client:
        asking = threading.Thread(
            target=lambda: answers.append(client.post("/explain", json=ask | {"item": "m0001"}))
        )
        asking.start()
        wait_until(lambda: counted in client.get("/metrics").text)
        assert client.post("/recommend", json=ask).status_code == 200
        for slow in ({"why": True}, {"diversity": 0.5}, {"dislikes": ["m0002"]}):
            refused = client.post("/recommend", json=ask | slow)
            assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        gate.set()
        asking.join()
        assert answers[0].status_code == 200
        label = 'http_response_status_code="503",http_route="/recommend"'
        assert label in client.get("/metrics").text


@pytest.mark.thorough
def test_new_files_under_load_fail_no_request(path, data, tmp_path):
    file = tmp_path / "m.recsys"
    shutil.copy(path, file)
    fit_package(make_ranker("popularity"), data, show_progress=False).save(tmp_path / "other")
    contents = [path.read_bytes(), (tmp_path / "other").read_bytes(), path.read_bytes()[:100]]
    app = create_app(file, reload_seconds=0.005)
    failed, stop = [], threading.Event()
    with TestClient(app, raise_server_exceptions=False) as client:

        def ask(k):
            while not stop.is_set():
                answer = client.post("/recommend", json={"user": str(data.user_ids[k]), "n": 3})
                if answer.status_code != 200 or len(answer.json()["items"]) != 3:
                    failed.append(answer.text)

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        refused = 0
        for k in range(30):
            (tmp_path / "fresh").write_bytes(contents[k % 3])
            os.replace(tmp_path / "fresh", file)
            time.sleep(0.02)
            app.state.models.check()
            refused += client.get("/health").json()["error"] is not None
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed and refused == 10


def test_scores_that_are_not_finite_are_refused(data, tmp_path):
    package = fit_package(make_ranker("ease"), data, show_progress=False)
    package.ranker.weights_[:] = 3e38  # finite, and so are not its sums
    package.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="not finite"):
        create_app(tmp_path / "m")


@pytest.mark.parametrize("mapped", [False, True])
def test_no_kind_of_file_ends_it(model, path, mapped):
    store = model_store.ModelStore(Path(model), 3600, mapped=mapped)
    for replace in (
        lambda: Path(model).write_bytes(b""),
        lambda: Path(model).write_bytes(path.read_bytes()[:-9]),
        lambda: os.mkfifo(model),
        lambda: os.mkdir(model),
        lambda: os.symlink(model, model),
        lambda: os.symlink("/dev/zero", model),
    ):
        os.unlink(model)
        replace()
        store.check()
        assert "refused" in store.error and store.reloads == 0
        if os.path.isdir(model):
            os.rmdir(model)
            Path(model).touch()
    os.unlink(model)
    shutil.copy(path, model)
    store.check()
    assert store.error is None and store.reloads == 1
    store.close()


def test_what_failed_is_tried_again_later(model, path, monkeypatch):
    store = model_store.ModelStore(Path(model), 3600)
    real = model_store.load_package
    monkeypatch.setattr(model_store, "load_package", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    os.utime(model, ns=(1, 1))
    store.check()
    assert "out of memory" in store.error
    monkeypatch.setattr(model_store, "load_package", real)
    store.check()
    assert store.error is not None, "not at once"
    monkeypatch.setattr(model_store, "RETRY_SECONDS", 0.0)
    store.check()
    assert store.error is None and store.reloads == 1
    store.close()
