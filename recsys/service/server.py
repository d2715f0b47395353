"""A process, or several, that listen and answer: sockets, deadlines, stops."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from recsys.errors import InputError
from recsys.service.application import create_app
from recsys.service.connections import GuardedConnection
from recsys.service.monitoring import SHARED
from recsys.service.supervisor import Supervisor

BACKLOG = 2048
GRACE_SECONDS = 4  # that answers which are being made have when the service stops
# How long a thread that computes may keep the event loop from a request; Python's own 5 ms are half of
# what an answer takes.
SWITCH_SECONDS = 0.0002
SPARE_FILES = 64  # descriptors that are not connections


class Config(uvicorn.Config):
    """Uvicorn's settings, and how many connections may be open."""

    limit_connections: int
    full: Callable[[str], bool]  # whether a request for a path would be refused by the queue


@dataclass(frozen=True)
class Listening:
    """Where a service listens, and with what.

    Attributes
    ----------
    host, port : str, int
        0 is any free port.
    uds : str, optional
        A Unix domain socket instead.
    workers : int
        Processes.
    connections : int
        Open at once, of each process.
    proxy : str, optional
        Addresses, with commas, of proxies whose X-Forwarded-For says who asks.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None
    workers: int = 1
    connections: int = 1000
    proxy: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def listen(where: Listening) -> list[socket.socket]:
    """Return a bound socket for each worker; the system spreads connections over them.

    Raises
    ------
    InputError
        If the address cannot be listened on.
    """
    if where.uds is not None:
        return [_unix(where.uds)] * where.workers
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found: list[socket.socket] = []
        for _ in range(where.workers):
            # With its protocol: asyncio turns Nagle's delays of 40 ms off for what says to be TCP only.
            one = socket.socket(family, kind, protocol)
            found.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if where.workers > 1:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind(address)
            address = (address[0], one.getsockname()[1], *address[2:])  # of port 0: that of the first
        if where.workers > 1:
            _refuse_taken(family, kind, address)
    except OSError as error:
        raise InputError(
            f"{where.host} port {where.port} cannot be listened on: {error.strerror or error}; choose "
            "another --port or --host"
        ) from None
    return found


def _refuse_taken(family: int, kind: int, address: Any) -> None:
    """Refuse a port on which another service listens that shares it, too."""
    with socket.socket(family, kind) as probe:
        probe.settimeout(1.0)
        if probe.connect_ex(address) == 0:
            raise OSError(98, "Address already in use")


def _unix(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            if made.connect_ex(path) != 0 and _is_socket(path):
                os.unlink(path)  # what a killed service left
            made.close()
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(path)
        os.chmod(path, 0o666)  # as other servers do: who may come here is a matter of its folder
    except OSError as error:
        made.close()
        raise InputError(f"{path} cannot be listened on: {error.strerror or error}") from None
    return made


def _is_socket(path: str) -> bool:
    return stat.S_ISSOCK(os.stat(path).st_mode)


def address(where: Listening, listener: socket.socket) -> str:
    """Return the address that a browser takes, or the path of the socket."""
    if where.uds is not None:
        return f"unix:{where.uds}"
    host = f"[{where.host}]" if ":" in where.host else where.host
    return f"http://{host}:{listener.getsockname()[1]}"


def run(model: str, where: Listening, starting: Callable[[], None] = lambda: None) -> int:
    """Serve until a signal ends it, and return the exit code.

    Parameters
    ----------
    model : str
        Path of the file.
    where : Listening
    starting : callable
        Called when the model is read, before the server takes signals for itself.

    Raises
    ------
    ModelFileError, InputError, DatabaseError
        As `create_app`, where there is one process; also if the address cannot be listened on.
    """
    sockets = listen(where)
    try:
        return _run(model, where, sockets, starting)
    finally:
        if where.uds is not None:
            with contextlib.suppress(OSError):
                os.unlink(where.uds)


def _run(
    model: str, where: Listening, sockets: list[socket.socket], starting: Callable[[], None]
) -> int:
    most = _connections(where.connections)
    text = f"serving {model} on {address(where, sockets[0])}"
    if where.workers == 1:
        make = functools.partial(create_app, model, **where.options)
        return _serve(make, where, most, sockets[0], text, starting)
    with tempfile.TemporaryDirectory(prefix="recsys-") as folder:
        for name in ("model", "metrics"):
            os.mkdir(os.path.join(folder, name))
        os.environ[SHARED] = os.path.join(folder, "metrics")
        make = functools.partial(
            create_app, model, copies=os.path.join(folder, "model"), **where.options
        )
        starting()
        return Supervisor(
            [
                functools.partial(_serve, make, where, most, one, f"{text} (worker {k})")
                for k, one in enumerate(sockets, 1)
            ],
            GRACE_SECONDS + 1,
            mark_process_dead,
        ).run()


def _serve(
    make: Any,
    where: Listening,
    most: int,
    listener: socket.socket,
    text: str,
    starting: Callable[[], None] = lambda: None,
) -> int:
    """Serve in this process."""
    server = make_server(make(), where, most)
    starting()
    sys.setswitchinterval(SWITCH_SECONDS)
    listener.listen(BACKLOG)  # who connects from now on is answered
    print(text, file=sys.stderr, flush=True)
    server.run(sockets=[listener])
    return 0 if server.started else 1


def make_server(app: Any, where: Listening, most: int) -> uvicorn.Server:
    """Return a server of an application, with at most so many connections."""
    config = Config(
        app,
        http=GuardedConnection,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_SECONDS,
        proxy_headers=where.proxy is not None or where.uds is not None,
        forwarded_allow_ips="*" if where.uds is not None else where.proxy,
    )
    config.limit_connections = most
    config.full = app.state.refusing
    return uvicorn.Server(config)


def _connections(wanted: int) -> int:
    """Return how many connections the system lets this process have, at most as many as are wanted."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted + SPARE_FILES:
        more = (
            wanted + SPARE_FILES if hard == resource.RLIM_INFINITY else min(hard, wanted + SPARE_FILES)
        )
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        soft = more
    return max(1, min(wanted, soft - SPARE_FILES))
