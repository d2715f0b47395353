"""Run the application under uvicorn: in this process, or in several that share a socket."""

from __future__ import annotations

import contextlib
import errno
import functools
import ipaddress
import multiprocessing
import os
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from recsys.errors import InputError
from recsys.service.application import create_app
from recsys.service.model_store import load
from recsys.service.monitoring import SHARED

BACKLOG = 2048
# Seconds that requests have to end when the service stops: more than `limits.BODY_SECONDS`, after which
# a half-sent one is refused.
GRACE_SECONDS = 6
HEALTHCHECK_SECONDS = 60  # without an answer, after which uvicorn replaces a worker
PATIENCE = 10.0  # seconds that a worker waits for a model that can be read
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Listening:
    """Address and options of a service."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0 is any free one
    uds: str | None = None  # a Unix domain socket instead
    workers: int = 1  # processes
    connections: int = 1000  # open at once, of each process
    proxy: str | None = None  # addresses, with commas, of proxies whose X-Forwarded-For says who asks
    options: dict[str, Any] = field(default_factory=dict)  # of `create_app`


def listen(where: Listening) -> socket.socket:
    """Return a bound socket, which workers share.

    Uvicorn binds sockets itself, but ends the process where it cannot, takes a Unix socket away from a
    service that is alive, and does not tell asyncio that its sockets are TCP, which then leaves Nagle's
    delays of 40 ms on.
    """
    if where.uds is not None:
        return _unix(where.uds)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
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
        os.chmod(path, 0o666)  # as other servers do: the permissions of its folder say who may connect
        made.listen(BACKLOG)  # so that another service sees that it is taken
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


def allowed_hosts(where: Listening, given: str | None) -> list[str] | None:
    """Return the names that requests may give in Host, from names with commas; None is any.

    A web page may let its own name resolve to 127.0.0.1 and read what the browser gets from there (DNS
    rebinding); the name in Host is still its own. So a service on a loopback address takes loopback
    names only, unless it is behind a proxy, which passes other names on.
    """
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        for name in names:
            if not name or "*" in name[1:] or (name[0] == "*" and name != "*" and name[1] != "."):
                raise InputError(
                    f"--allowed-hosts {name[:60]!r} is no name: give names such as 'api.example.com', "
                    "'*.example.com' or '*'"
                )
        return names
    if where.uds is not None or where.proxy is not None:
        return None
    with contextlib.suppress(ValueError):
        return list(LOOPBACK) if ipaddress.ip_address(where.host).is_loopback else None
    return list(LOOPBACK) if where.host == "localhost" else None


def settings(app: Any, where: Listening, *, factory: bool = False) -> uvicorn.Config:
    """Return uvicorn's settings for an application, or for what makes one in each worker."""
    return uvicorn.Config(
        app,
        factory=factory,
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        workers=where.workers,
        limit_concurrency=where.connections + 1,  # uvicorn refuses from this number on
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
        proxy_headers=where.proxy is not None or where.uds is not None,
        forwarded_allow_ips="*" if where.uds is not None else where.proxy,
    )


def run(model: str, where: Listening, starting: Callable[[], None] = lambda: None) -> int:
    """Serve a model file until SIGTERM or SIGINT, and return the exit code.

    `starting` is called when the model is read, before the server takes signals for itself.
    """
    listener = listen(where)
    own = os.stat(where.uds).st_ino if where.uds is not None else 0
    more_files()
    try:
        if where.workers == 1:
            return _one(model, where, listener, starting)
        return _several(model, where, listener, starting)
    finally:
        if where.uds is not None:
            with contextlib.suppress(OSError):
                if os.stat(where.uds).st_ino == own:
                    os.unlink(where.uds)


def _one(model: str, where: Listening, listener: socket.socket, starting: Callable[[], None]) -> int:
    server = uvicorn.Server(settings(create_app(model, **where.options), where))
    starting()
    if threading.current_thread() is threading.main_thread():
        # Uvicorn raises the signal again once it has stopped.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _take_connections(where, listener)
    _tell(f"serving {model} on {address(where, listener)}")
    server.run(sockets=[listener])
    return 0 if server.started else 1


def _several(model: str, where: Listening, listener: socket.socket, starting: Callable[[], None]) -> int:
    # A file that cannot be served is refused here: uvicorn would start its workers again and again.
    load(model, mapped=True)
    starting()
    with tempfile.TemporaryDirectory(prefix="recsys-serve-") as folder:
        os.environ[SHARED] = folder
        options = where.options | {
            "item_sets": where.options.get("item_sets") or os.path.join(folder, "item-sets")
        }
        try:
            text = f"serving {model} on {address(where, listener)}"
            make = functools.partial(worker, model, options, text)
            supervisor = Multiprocess(settings(make, where, factory=True), [listener])
            _take_connections(where, listener)
            supervisor.run()
        finally:
            del os.environ[SHARED]
    return 0


def _take_connections(where: Listening, listener: socket.socket) -> None:
    """Let clients connect; they wait for the first process that accepts."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        raise InputError(
            f"{address(where, listener)} cannot be listened on: {error.strerror or error}"
        ) from None


def worker(model: str, options: dict[str, Any], text: str) -> FastAPI:
    """Return the application of one worker, which stops when its parent process has died.

    One that is started while the model is broken waits for the next good file; uvicorn would start it
    again at once.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_stop_after, args=(parent,), daemon=True).start()
    until = time.monotonic() + PATIENCE
    while True:
        try:
            app = create_app(model, mapped=True, **options)
        except InputError as error:
            if time.monotonic() > until:
                _tell(f"recsys: {' '.join(str(error).split())}")
                raise SystemExit(1) from None
            time.sleep(0.5)
        else:
            _tell(f"{text} (process {os.getpid()})")
            return app


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _stop_after(parent: Any) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def more_files() -> None:
    """Let this process, and those that it starts, have as many open files as the system allows."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
