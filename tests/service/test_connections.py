"""Clients that are slow, silent, many or rude, and others beside them who must not notice."""

import json
import socket
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httptools")

from recsys.service import connections, create_app, limits, routes

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


@pytest.mark.parametrize(
    "sent, found",
    [(b"", 0), (b"POST /recommend HT", 408), (request(ASK[:3], "/health", declared=9), 405)],
)  # fmt: skip
def test_who_sends_no_whole_request_is_left(path, serving, monkeypatch, sent, found):
    monkeypatch.setattr(connections, "LONGEST", (0.3, 0.3, 0.3))
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    address = serving(create_app(path))
    with connected(address) as silent:
        silent.sendall(sent)
        assert status(silent) == found
        if found:
            assert status(silent) in (0, 408)
    assert asked(address) == 200


def test_fields_behind_a_body_are_not_collected(path, serving):
    address = serving(create_app(path))
    with connected(address) as endless:
        head = b"POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        endless.sendall(head + b"a:b\r\n")
        time.sleep(0.2)
        with pytest.raises(ConnectionError):
            for _ in range(200):
                endless.sendall(b"a:b\r\n" * 1000)
                time.sleep(0.01)
    assert asked(address) == 200


def test_a_refused_request_that_never_ends_is_left_too(path, serving, monkeypatch):
    monkeypatch.setattr(connections, "LONGEST", (0.3, 0.3, 0.3))
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    app = create_app(path, at_once=1)
    address = serving(app)
    app.state.computing.in_flight = 1
    for _ in range(2):  # the second finds the sweeper alive
        with connected(address) as slow:
            slow.sendall(request(b"{", declared=9))
            assert status(slow) == 408 and status(slow) == 0
    app.state.computing.in_flight = 0


def test_a_slow_answer_is_not_cut_by_what_was_sent_behind_its_request(path, serving, monkeypatch):
    monkeypatch.setattr(connections, "LONGEST", (0.2, 0.2, 0.2))
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(routes, "list_of", lambda *_: time.sleep(0.8) or b"{}")
    address = serving(create_app(path))
    with connected(address) as one:
        one.sendall(request() + b"POST /recomm")
        assert status(one) == 200


def test_silent_connections_make_place_for_others(path, serving):
    address = serving(create_app(path), connections=20)
    silent = [connected(address) for _ in range(60)]
    assert [asked(address) for _ in range(5)] == [200] * 5
    assert asked(address, request(b"", "/health", "GET")) == 200
    assert status(silent[0]) == 0, "the one that was silent for longest is closed"
    for one in silent:
        one.close()


def test_where_all_are_busy_one_more_is_refused():
    class Busy:
        idle, since, loop = False, 0.0, None

    class Idle(Busy):
        idle = True

        def __init__(self, since):
            self.since, self.transport = since, self

        def abort(self):
            self.closed = True

    class Loop:
        def call_later(self, *_):
            return object()

    sweeper = connections.Sweeper(2)
    one = Busy()
    one.loop = Loop()
    assert sweeper.add(one) and sweeper.add(Busy()) and not sweeper.add(Busy())
    sweeper = connections.Sweeper(2)
    older, newer = Idle(1.0), Idle(2.0)
    older.loop = Loop()
    assert sweeper.add(older) and sweeper.add(newer) and sweeper.add(Busy())
    assert older.closed and not hasattr(newer, "closed")
    sweeper = connections.Sweeper(3)
    first = [Idle(float(k)) for k in range(3)]
    first[0].loop = Loop()
    for one in [*first, *(Idle(9.0) for _ in range(3))]:  # in one turn of the loop: none is told lost
        assert sweeper.add(one)
    assert all(one.closed for one in first) and len(sweeper.open) == 3


def test_a_full_queue_refuses_before_anything_is_made_of_a_request(path, serving):
    app = create_app(path, at_once=3)
    address = serving(app)
    with connected(address) as one:
        one.sendall(request())
        assert status(one) == 200
        app.state.computing.in_flight = 3
        for _ in range(3):
            one.sendall(request())
            assert status(one) == 503, "and the connection stays"
        one.sendall(request(b"", "/metrics", "GET"))
        assert status(one) == 200
        one.sendall(request()[:50])
        time.sleep(0.05)
        one.sendall(request()[50:])
        assert status(one) == 503
        app.state.computing.in_flight = 0
        one.sendall(request() * 2)
        assert status(one) == status(one) == 200
        app.state.computing.in_flight = 3
        one.sendall(request(more="Connection: close\r\n"))
        assert status(one) == 503 and status(one) == 0
    assert asked(address, request().replace(b"HTTP/1.1", b"HTTP/1.0")) == 503
    app.state.computing.in_flight = 3
    with connected(address) as polite:
        polite.sendall(request(b"", declared=9, more="Expect: 100-continue\r\n"))
        assert status(polite) == 503 and status(polite) == 0, "it would wait for a word"
    with connected(address) as other:
        other.sendall(b"HEAD /recommend HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = b"".join(iter(lambda: other.recv(4096), b""))
        assert got.startswith(b"HTTP/1.1 503") and got.endswith(b"\r\n\r\n"), "and without a body"
    app.state.computing.in_flight = 0
    shed = 'recsys_requests_shed_total{http_route="/recommend"} 7.0'
    assert shed in app.state.monitoring.text().decode()


def test_a_head_has_its_size(path, serving):
    address = serving(create_app(path))
    with connected(address) as large:
        large.sendall(b"GET /health HTTP/1.1\r\n")
        try:
            for k in range(40):
                large.sendall(b"x-%d: " % k + b"y" * 8000 + b"\r\n")
                time.sleep(0.005)
        except OSError:
            pass
        assert status(large) in (431, 0)
    assert asked(address) == 200


def test_who_sends_many_requests_before_the_first_answer_is_left(path, serving):
    address = serving(create_app(path))
    with connected(address) as few:
        few.sendall(request() * 3)
        assert [status(few) for _ in range(3)] == [200] * 3
    with connected(address) as rude:
        rude.sendall(request() * 60)
        found = [status(rude)]
        while found[-1]:
            found.append(status(rude))
        assert found[-1] == 0 and len(found) < 60
    assert asked(address) == 200


def test_who_does_not_read_is_left(path, serving, monkeypatch):
    monkeypatch.setattr(connections, "READ_SECONDS", 0.3)
    monkeypatch.setattr(connections, "PIPELINED", 10**9)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)
    address = serving(create_app(path))
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    deaf.connect(address)
    deaf.settimeout(20)
    ask = request(b"", "/openapi.json", "GET")
    closed = False
    for _ in range(2000):  # each answer is some 20 kB, until the system keeps no more of them
        try:
            deaf.sendall(ask)
            time.sleep(0.001)
        except ConnectionError:
            closed = True
            break
    assert closed
    deaf.close()
    assert asked(address) == 200


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
