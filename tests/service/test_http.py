"""HTTP on raw sockets: what is refused, by whom, and clients that are slow."""

import json
import socket
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httptools")

from recsys.service import create_app, limits, server

pytestmark = pytest.mark.filterwarnings("ignore")
ASK = json.dumps({"history": [], "n": 2}).encode()


def request(body=ASK, path="/recommend", method="POST", more="", declared=None):
    size = len(body) if declared is None else declared
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{more}\r\n"
    return head.encode() + body


def connected(address):
    made = socket.create_connection(address, timeout=20)
    made.settimeout(20)
    return made


def status(connection):
    """Return the status of the next answer, which is read whole; 0 where the connection is closed."""
    head, body = b"", b""
    try:
        while not head.endswith(b"\r\n\r\n"):
            some = connection.recv(1)
            if not some:
                return 0
            head += some
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        while len(body) < size:
            body += connection.recv(size - len(body))
    except ConnectionError:
        return 0
    return int(head.split()[1])


def asked(address, sent=None):
    with connected(address) as connection:
        connection.sendall(request() if sent is None else sent)
        return status(connection)


def test_half_sent_bodies_hold_nothing(path, serving, monkeypatch):
    address = serving(create_app(path, at_once=4))
    half = [connected(address) for _ in range(140)]
    for k, one in enumerate(half):
        one.sendall(request(b"{", ("/health", "/recommend")[k % 2], declared=9))
    assert [status(one) for one in half[::2]] == [405] * 70, "no body is waited for"
    assert [asked(address) for _ in range(5)] == [200] * 5
    assert asked(address, request(b"", "/health", "GET")) == 200
    for one in half:
        one.close()


def test_a_body_has_its_time(path, serving, monkeypatch):
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    address = serving(create_app(path))
    with connected(address) as slow:
        slow.sendall(request(ASK[:5], declared=len(ASK)))
        assert status(slow) == 408 and status(slow) == 0
    assert asked(address) == 200


def test_a_full_queue_refuses_and_ends_the_connection(path, serving):
    app = create_app(path, at_once=3)
    address = serving(app)
    with connected(address) as one:
        one.sendall(request() * 2)
        assert status(one) == status(one) == 200
        app.state.computing.in_flight = 3
        one.sendall(request(b"", "/metrics", "GET"))
        assert status(one) == 200
        one.sendall(request() * 60)  # none of those behind the first is computed
        assert status(one) == 503 and status(one) == 0
    assert asked(address, request().replace(b"HTTP/1.1", b"HTTP/1.0")) == 503
    with connected(address) as polite:
        polite.sendall(request(b"", declared=9, more="Expect: 100-continue\r\n"))
        assert status(polite) == 503, "no body is asked for"
    app.state.computing.in_flight = 0
    shed = 'recsys_requests_shed_total{http_route="/recommend"} 3.0'
    assert shed in app.state.monitoring.text().decode()


HEALTH = b"GET /health HTTP/1.1\r\n%s\r\n"
CHUNKED = (
    b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: %%s\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ASK), ASK)
)
ROWS = {
    "OPTIONS *": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "GET *?/": (b"GET *?/ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "no Host": (HEALTH % b"", 400),
    "no Host in HTTP/1.0": (b"GET /health HTTP/1.0\r\n\r\n", 200),
    "two Hosts": (HEALTH % b"Host: x\r\nHost: y\r\n", 400),
    "a long target": (b"GET /users/%s/recommendations HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9000), 414),
    "a long query": (b"GET /health?%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9000), 414),
    "chunked": (CHUNKED % b"Chunked", 200),
    "gzip, chunked": (CHUNKED % b"gzip, chunked", 501),
    # What the parser of uvicorn decides.
    "a target of 66,000 bytes": (b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 66_000), 400),
    "length and chunked": (request(more="Transfer-Encoding: chunked\r\n"), 400),
    "two lengths": (request(more="Content-Length: 7\r\n"), 400),
    "a space before the colon": (HEALTH % b"Host : x\r\n", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
}


@pytest.fixture(scope="module")
def open_service(path):
    from tests.service.conftest import served

    with served(create_app(path)) as address:
        yield address


@pytest.mark.parametrize("row", ROWS)
def test_odd_requests_get_their_status(open_service, capfd, row):
    sent, found = ROWS[row]
    assert asked(open_service, sent) == found
    assert asked(open_service) == 200
    assert "Traceback" not in capfd.readouterr().err


def test_of_many_requests_on_one_connection_all_are_answered(open_service):
    with connected(open_service) as one:
        one.sendall(request() * 100)
        assert [status(one) for _ in range(100)] == [200] * 100


@pytest.mark.parametrize(
    "host, found",
    [("localhost", 200), ("127.0.0.1:8000", 200), ("[::1]:80", 200), ("LOCALHOST", 200), ("evil.example", 400), ("", 400)],
)  # fmt: skip
def test_names_of_other_hosts_are_refused(path, serving, host, found):
    hosts = server.allowed_hosts(server.Listening(), None)
    address = serving(create_app(path, hosts=hosts))
    assert asked(address, HEALTH % b"Host: %s\r\n" % host.encode()) == found


@pytest.mark.parametrize(
    "where, given, found",
    [
        ({"host": "localhost"}, None, True), ({"host": "::1"}, None, True), ({"host": "0.0.0.0"}, None, False),
        ({"proxy": "127.0.0.1"}, None, False), ({"uds": "x"}, None, False), ({"host": "0.0.0.0"}, "a.b, *.c", True),
    ],
)  # fmt: skip
def test_hosts_are_checked_where_a_browser_could_be_misled(where, given, found):
    names = server.allowed_hosts(server.Listening(**where), given)
    assert (names is not None) == found
    assert given is None or names == ["a.b", "*.c"]


def test_forwarded_addresses_count_only_from_a_proxy(path, serving):
    def refused(address):
        found = [
            asked(address, request(more=f"X-Forwarded-For: 10.0.0.{k}\r\n")) for k in range(6)
        ]  # fmt: skip
        return found.count(429)

    assert refused(serving(create_app(path, rate=0.01))) == 5
    assert refused(serving(create_app(path, rate=0.01), proxy="127.0.0.1")) == 0


def test_a_stop_does_not_wait_for_who_has_not_asked(path, serving):
    app = create_app(path)
    address = serving(app)
    half = connected(address)
    half.sendall(request(ASK[:4], declared=len(ASK)))
    time.sleep(0.1)
    silent = connected(address)
    # The fixture stops it, and asserts that it ends.
    assert asked(address) == 200
    silent.close()
