"""The configuration of nginx that the pages give, in front of the service: TLS, slow clients, addresses."""

import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httptools")

from tests.service.test_serving import Served

NGINX = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").exists() else None)
CONFIGURATION = Path(__file__).parents[2] / "docs" / "howto" / "nginx.conf"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NGINX and shutil.which("openssl")), reason="needs nginx and openssl"),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def behind(path, tmp_path):
    """Yield the port of nginx, which runs the configuration with paths and times of this test."""
    port = free_port()
    keys = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    keys += ["-keyout", str(tmp_path / "recsys.key"), "-out", str(tmp_path / "recsys.pem")]
    subprocess.run(keys, check=True, capture_output=True)
    text = CONFIGURATION.read_text()
    for old, new in (
        ("/run/recsys/recsys.sock", tmp_path / "s.sock"), ("/etc/ssl/", f"{tmp_path}/"),
        ("/run/nginx-recsys.pid", tmp_path / "pid"), ("listen 443", f"listen 127.0.0.1:{port}"),
        ("client_header_timeout 5s", "client_header_timeout 1s"), ("client_body_timeout 5s", "client_body_timeout 1s"),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, str(new))
    (tmp_path / "nginx.conf").write_text(text)
    command = [NGINX, "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path), "-g", "daemon off;"]
    with Served("--ranker", path, "--uds", tmp_path / "s.sock", "--rate", "1000") as served:
        served.wait_for("serving")
        tmp_path.chmod(0o755)
        for parent in tmp_path.parents:
            if str(parent).startswith("/tmp/"):
                parent.chmod(0o755)  # the workers of nginx are of another user
        nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield port
        finally:
            nginx.terminate()
            nginx.wait(10)


def test_behind_nginx(behind):
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    def got(url):
        return urllib.request.urlopen(f"https://127.0.0.1:{behind}{url}", context=trusting, timeout=20)

    answer = got("/users/u0003/recommendations")
    assert answer.status == 200 and re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
    with pytest.raises(urllib.error.HTTPError, match="403"):
        got("/metrics")
    slow = []
    for _ in range(60):
        one = secured(behind, "127.0.0.2")
        one.sendall(b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        slow.append(one)
    assert all(got("/ready").status == 200 for _ in range(5))
    slow[0].settimeout(10)
    assert slow[0].recv(4096)[:12] in (b"", b"HTTP/1.1 408"), "it is closed by the proxy"
    with socket.create_connection(("127.0.0.1", behind)) as silent:
        silent.settimeout(10)
        assert silent.recv(100) == b"", "who does not even begin is closed, too"
    large = b"x" * (1 << 20) + b"y"
    with pytest.raises(urllib.error.HTTPError, match="413"):
        asked = urllib.request.Request(f"https://127.0.0.1:{behind}/recommend", data=large)
        urllib.request.urlopen(asked, context=trusting, timeout=20)
    for one in slow:
        one.close()


def secured(port, source="127.0.0.1", **more):
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port), source_address=(source, 0), timeout=30)
    return trusting.wrap_socket(plain, **more)


def asked(port, sent):
    with secured(port) as one:
        one.sendall(sent)
        return one.recv(12)


BODY = b'{"history": [], "n": 1000, "diversity": 0.5}'
HEAD = b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
ASK = HEAD % len(BODY) + b"\r\n" + BODY
KNOWN = b"GET /users/u0003/recommendations HTTP/1.1\r\nHost: x\r\n\r\n"


def idle(port):
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(500)]


def half_sent(port):
    found = [secured(port, "127.0.0.2") for _ in range(200)]
    for one in found:
        one.sendall(HEAD % 9 + b"\r\n{")
    return found


def never_reading(port):
    """Return a hundred connections with a request for a long list each, whose answers are never read."""
    found = [secured(port, "127.0.0.2") for _ in range(100)]
    for one in found:
        one.sendall(ASK)
    return found


@pytest.mark.parametrize("clients", [idle, half_sent, never_reading])
def test_clients_that_hold_connections_do_not_keep_others_from_their_answers(behind, clients):
    held = clients(behind)
    try:
        assert [asked(behind, KNOWN) for _ in range(30)] == [b"HTTP/1.1 200"] * 30
    finally:
        for one in held:
            one.close()
    assert asked(behind, KNOWN) == b"HTTP/1.1 200"


def test_a_request_whose_client_sends_no_more_is_answered(behind):
    raw = secured(behind)
    raw.sendall(KNOWN)
    raw.settimeout(30)
    # The half-close of TLS is a message, and that of TCP follows it.
    socket.socket.shutdown(raw, socket.SHUT_WR)
    assert raw.recv(12) == b"HTTP/1.1 200"
    raw.close()
