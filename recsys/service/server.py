"""A process, or several, that listen and answer: sockets, deadlines, stops."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from recsys.errors import InputError
from recsys.service.application import create_app
from recsys.service.connections import GuardedConnection
from recsys.service.monitoring import SHARED
from recsys.service.supervisor import Supervisor

BACKLOG = 2048
PREFIX = "recsys-serve-"  # of temporary folders
GRACE_SECONDS = 4  # that answers which are being made have when the service stops
# How long a thread that computes may keep the event loop from a request; Python's own 5 ms are half of
# what an answer takes.
SWITCH_SECONDS = 0.0002
ACCEPTED = 64  # connections taken in one turn of the event loop
SPARE_FILES = 192  # descriptors that are not connections, or are about to be closed


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
    drain : float
        Seconds that a service which is to stop goes on, while /ready says that it stops.
    options : dict
        Of `create_app`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None
    workers: int = 1
    connections: int = 1000
    proxy: str | None = None
    drain: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)


def listen(where: Listening) -> socket.socket:
    """Return a bound socket, which workers share.

    Raises
    ------
    InputError
        If the address cannot be listened on.
    """
    if where.uds is not None:
        return _unix(where.uds)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol: asyncio turns Nagle's delays of 40 ms off for what says to be TCP only.
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise InputError(
            f"{where.host} port {where.port} cannot be listened on: {error.strerror or error}; choose "
            "another --port or --host"
        ) from None
    return made


def _unix(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                if probe.connect_ex(path) == errno.ECONNREFUSED:
                    os.unlink(path)  # what a killed service left
        made.bind(path)
        os.chmod(path, 0o666)  # as other servers do: who may come here is a matter of its folder
        made.listen(BACKLOG)  # so that another one sees that it is taken; asked too early, it waits
    except OSError as error:
        made.close()
        raise InputError(f"{path} cannot be listened on: {error.strerror or error}") from None
    return made


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
    listener = listen(where)
    own = os.stat(where.uds).st_ino if where.uds is not None else 0
    try:
        return _run(model, where, listener, starting)
    finally:
        if where.uds is not None:
            with contextlib.suppress(OSError):
                if os.stat(where.uds).st_ino == own:
                    os.unlink(where.uds)


def _run(model: str, where: Listening, listener: socket.socket, starting: Callable[[], None]) -> int:
    most = _connections(where.connections)
    text = f"serving {model} on {address(where, listener)}"
    if where.workers == 1:
        make = functools.partial(create_app, model, **where.options)
        return _serve(make, where, most, listener, text, starting)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, alone_in(folder):
        for name in ("model", "metrics"):
            os.mkdir(os.path.join(folder, name))
        os.environ[SHARED] = os.path.join(folder, "metrics")
        make = functools.partial(
            create_app, model, copies=os.path.join(folder, "model"), **where.options
        )
        starting()
        try:
            return Supervisor(
                [
                    functools.partial(_serve, make, where, most, listener, f"{text} (worker {k + 1})")
                    for k in range(where.workers)
                ],
                where.drain + GRACE_SECONDS + 1,
                mark_process_dead,
            ).run()
        finally:
            del os.environ[SHARED]


@contextlib.contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Mark a temporary folder as one in use, and remove those of services that were killed."""
    import fcntl

    with open(os.path.join(folder, "alive"), "w") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        for other in Path(folder).parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError), open(other / "alive") as its:
                fcntl.flock(its, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other, ignore_errors=True)
        yield


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
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):  # also before uvicorn's own are there
            signal.signal(number, server.handle_exit)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        listener.listen(BACKLOG)  # who connects from now on is answered
    except OSError as error:
        raise InputError(
            f"{address(where, listener)} cannot be listened on: {error.strerror or error}"
        ) from None
    print(text, file=sys.stderr, flush=True)
    server.run(sockets=[listener])
    if not server.started:
        return 1
    return 130 if server.stopped_by == signal.SIGINT else 0


def make_server(app: Any, where: Listening, most: int) -> Server:
    """Return a server of an application, with at most so many connections."""
    config = Config(
        app,
        http=GuardedConnection,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=1 if where.workers > 1 else ACCEPTED,  # see Server.startup
        timeout_graceful_shutdown=GRACE_SECONDS,
        proxy_headers=where.proxy is not None or where.uds is not None,
        forwarded_allow_ips="*" if where.uds is not None else where.proxy,
    )
    config.limit_connections = most
    config.full = app.state.refusing
    return Server(config, where.drain)


class Server(uvicorn.Server):
    """Uvicorn's server, which shares its socket fairly and tells that it stops before it does.

    Parameters
    ----------
    config : Config
        Of an application of `create_app`.
    drain : float
        Seconds between a signal and the stop.
    """

    def __init__(self, config: Config, drain: float) -> None:
        super().__init__(config)
        self.drain = drain
        self.stopped_by = 0
        self._until: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes as many connections in a turn as it lets wait: few, and many wait."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Say that it stops; a second signal stops it at once."""
        self.config.app.state.stopping = True  # type: ignore[union-attr]
        self.stopped_by = self.stopped_by or sig
        if self.drain and self._until is None:
            self._captured_signals.append(sig)
            self._until = time.monotonic() + self.drain
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop."""
        over = self._until is not None and time.monotonic() > self._until
        return await super().on_tick(counter) or over


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
