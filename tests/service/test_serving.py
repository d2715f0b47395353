"""`recsys serve` as a process: addresses, workers, stops."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httptools")

from recsys import cli, make_ranker
from recsys.errors import InputError
from recsys.rankers import fit_package, load_package
from recsys.service import server

pytestmark = pytest.mark.filterwarnings("ignore")


class Served:
    """The command, and what it says."""

    def __init__(self, *arguments):
        command = [str(Path(sys.executable).parent / "recsys"), "serve", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said = []

    def wait_for(self, text):
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended: {self.said}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, "".join(self.said) + err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def got(url, **more):
    with urllib.request.urlopen(urllib.request.Request(url, **more), timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_a_stop_with_an_unfinished_body_is_soon_and_silent(path):
    with Served("--ranker", path, "--port", 0, "--access-log") as served:
        line = served.wait_for("serving")
        port = int(re.search(r":(\d+)$", line.strip())[1])
        base = f"http://127.0.0.1:{port}"
        assert json.loads(got(f"{base}/health"))["status"] == "ok"
        got(f"{base}/users/u0003/recommendations", headers={"X-Request-ID": "mine-1"})
        half = socket.create_connection(("127.0.0.1", port))
        half.sendall(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        time.sleep(0.3)
        started = time.monotonic()
        code, out, err = served.stop()
        assert code == 0 and time.monotonic() - started < 10
        assert len(err.strip().splitlines()) == 1, "the address and nothing else"
        half.close()
    lines = [json.loads(line) for line in out.splitlines()]
    mine = next(line for line in lines if line["request_id"] == "mine-1")
    assert mine["route"].endswith("/recommendations") and mine["status"] == 200
    assert "u0003" not in out


@pytest.mark.thorough
def test_a_stop_right_after_the_start_is_heard(path):
    with Served("--ranker", path, "--port", 0) as served:
        served.wait_for("serving")
        code, _, err = served.stop()
        assert code == 0 and "Traceback" not in err


def test_a_port_that_is_taken_is_one_line(path, capfd):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert cli.call(["serve", "--ranker", str(path), "--port", str(port)]) == 2
        told = capfd.readouterr().err.strip()
        assert told.count("\n") == 0 and f"port {port} cannot be listened on" in told


def test_addresses_are_those_that_a_browser_takes():
    for host, start in (("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")):
        where = server.Listening(host, 0)
        try:
            listener = server.listen(where)
        except InputError:
            assert host == "::1", "there may be no IPv6"
            continue
        assert listener.proto == socket.IPPROTO_TCP, "else answers wait for 40 ms"
        assert server.address(where, listener) == f"{start}{listener.getsockname()[1]}"
        listener.close()


@pytest.mark.slow
def test_a_unix_socket(path, tmp_path):
    place = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(place))  # and is never removed
    with Served("--ranker", path, "--uds", place) as served:
        assert f"unix:{place}" in served.wait_for("serving")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(place))
            client.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            got = b"".join(iter(lambda: client.recv(4096), b""))
            assert got.startswith(b"HTTP/1.1 200") and b'{"status":"ready"}' in got
        with pytest.raises(InputError, match="cannot be listened on"):
            server.listen(server.Listening(uds=str(place)))
        assert place.exists()
        assert served.stop()[0] == 0
    assert not place.exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be listened on"):
        server.listen(server.Listening(uds=str(tmp_path / "file")))
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "options, told",
    [
        (["--workers", "2", "--events", "x.sqlite"], "--events needs --workers 1"),
        (["--workers", "0"], "--workers must be"),
        (["--connections", "0"], "--connections must be"),
        (["--uds", "/nowhere/x.sock"], "cannot be listened on"),
        (["--host", "256.256.256.256"], "cannot be listened on"),
        (["--proxy", "banana"], "--proxy 'banana' is no address"),
        (["--allowed-hosts", "a*b"], "--allowed-hosts 'a*b' is no name"),
    ],
)
def test_options_that_cannot_be_are_one_line(path, capfd, options, told):
    assert cli.call(["serve", "--ranker", str(path), *options]) == 2
    said = capfd.readouterr().err.strip()
    assert told in said and said.count("\n") == 0, said


def children(pid):
    return [
        int(child)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_share_a_port_a_model_and_their_counts(path, data, tmp_path):
    model = tmp_path / "m.recsys"
    model.write_bytes(path.read_bytes())
    with Served("--ranker", model, "--port", 0, "--workers", 2) as served:
        line = served.wait_for("serving")
        served.wait_for("serving")
        base = re.search(r"http://\S+", line)[0]
        for k in range(40):
            got(f"{base}/users/{data.user_ids[k]}/recommendations")
        time.sleep(1.5)
        counted = re.search(
            r'duration_seconds_count{[^}]*route="/users/{user:path}/recommendations"} (\S+)',
            got(f"{base}/metrics"),
        )
        assert float(counted[1]) == 40, "whoever is asked tells of both"
        before = children(served.process.pid)
        assert len(before) == 2
        for pid in before:
            assert str(model) in Path(f"/proc/{pid}/maps").read_text(), "the file is mapped"
        fit_package(make_ranker("popularity"), data, show_progress=False).save(model)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            seen = {json.loads(got(f"{base}/health"))["model"] for _ in range(20)}
            if seen == {"popularity"}:
                break
            time.sleep(0.2)
        assert seen == {"popularity"}
        good = model.read_bytes()
        (tmp_path / "bad").write_bytes(good[:-5])
        os.replace(tmp_path / "bad", model)  # one that cannot be started from
        os.kill(before[0], signal.SIGKILL)
        for _ in range(40):  # the other one answers all
            assert json.loads(got(f"{base}/health"))["status"] == "ok"
            time.sleep(0.02)
        (tmp_path / "good").write_bytes(good)
        os.replace(tmp_path / "good", model)
        until = time.monotonic() + 60
        while len(set(children(served.process.pid)) - set(before)) != 1:
            assert time.monotonic() < until, "no worker was started in its place"
            time.sleep(0.2)
        assert json.loads(got(f"{base}/health"))["status"] == "ok"
        assert served.stop()[0] == 0
    for pid in before:
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_workers_see_the_same_item_sets(path, data):
    with Served("--ranker", path, "--port", 0, "--workers", 2) as served:
        line = served.wait_for("serving")
        served.wait_for("serving")
        base = re.search(r"http://\S+", line)[0]
        head = {"content-type": "application/json"}
        asked = json.dumps({"history": [], "item_set": "stock"}).encode()
        for some in (data.item_ids[:3], data.item_ids[3:8]):
            body = json.dumps({"items": [str(one) for one in some]}).encode()
            got(f"{base}/item-sets/stock", data=body, method="PUT", headers=head)
            for _ in range(20):  # of both, as each has a connection of its own
                found = json.loads(got(f"{base}/recommend", data=asked, headers=head))["items"]
                assert {one["item"] for one in found} == set(some)
        assert served.stop()[0] == 0


@pytest.mark.slow
def test_workers_that_cannot_start_end_the_service(tmp_path):
    file = tmp_path / "x"
    file.write_text("hello")
    with Served("--ranker", file, "--port", 0, "--workers", 2) as served:
        _, err = served.process.communicate(timeout=60)
        assert served.process.returncode == 2
        assert str(file) in err and "Traceback" not in err


def test_a_mapped_model_is_the_same_and_what_changes_is_its_own(path):
    before = path.read_bytes()
    plain, mapped = load_package(path), load_package(path, mapped=True)
    users = np.arange(40)
    for one, other in zip(
        plain.ranker.recommend(users, plain.user_items[users]),
        mapped.ranker.recommend(users, mapped.user_items[users]),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    mapped.user_items.data[:] = 7.0
    assert path.read_bytes() == before and (plain.user_items.data != 7.0).any()
