"""`recsys serve`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from recsys.cli.options import RankerFile
from recsys.errors import InputError
from recsys.utils.distribution import install_hint
from recsys.utils.validation import check_integer

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


def serve(
    ranker: RankerFile,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any free port.")] = 8000,
    uds: Annotated[str | None, typer.Option(help="Listen on this Unix domain socket instead.")] = None,
    workers: Annotated[int, typer.Option(help="Processes; they share one copy of the model.")] = 1,
    proxy: Annotated[
        str | None,
        typer.Option(help="Addresses of proxies in front of the service, separated by commas."),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write a line for each request, with its path.")
    ] = False,
) -> None:
    """Serve a fitted ranker over HTTP; RECSYS_TOKEN sets a bearer token."""
    if any(
        importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "prometheus_client")
    ):
        raise InputError(f"serve needs fastapi, uvicorn and more: {install_hint('service')}")
    check_integer("--port", port, 0, 65535)
    check_integer("--workers", workers, 1)
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from recsys.service.app import check_token, from_environment
    from recsys.service.http import Protocol
    from recsys.service.model_store import load

    check_token(os.environ.get("RECSYS_TOKEN"))
    listener = listen(host, port, uds)
    # A web page may let its own name resolve to this machine (DNS rebinding); Host still has the name.
    hosts = LOOPBACK if uds is None and proxy is None and host in LOOPBACK else ("*",)
    options = {"path": str(ranker), "mapped": workers > 1, "hosts": hosts}
    os.environ["RECSYS_SERVE"] = json.dumps(options)
    if workers > 1:
        load(ranker, mapped=True)  # a broken file is refused here and not by each worker
    config = uvicorn.Config(
        "recsys.service.app:from_environment" if workers > 1 else from_environment(),
        factory=workers > 1,
        workers=workers,
        http=Protocol,
        ws="none",
        log_level="info" if access_log else "error",
        access_log=access_log,
        server_header=False,
        limit_concurrency=1001,
        timeout_graceful_shutdown=6,
        proxy_headers=proxy is not None or uds is not None,
        forwarded_allow_ips="*" if uds else proxy,
    )
    shown = f"[{host}]" if ":" in host else host
    where = f"unix:{uds}" if uds else f"http://{shown}:{listener.getsockname()[1]}"
    print(f"serving {ranker} on {where}", file=sys.stderr, flush=True)
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    if workers > 1:
        Multiprocess(config, [listener]).run()
    else:
        uvicorn.Server(config).run([listener])


def listen(host: str, port: int, uds: str | None) -> socket.socket:
    """Return a bound socket; uvicorn's own exits with a code of its own, and keeps Nagle's delays."""
    address: Any = uds
    family, kind, protocol = getattr(socket, "AF_UNIX", 0), socket.SOCK_STREAM, 0
    try:
        if uds is None:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        elif Path(uds).is_socket():
            os.unlink(uds)  # of a service that was killed
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        if uds is not None:
            os.chmod(uds, 0o666)  # the permissions of its folder say who may connect
    except OSError as error:
        where = uds or f"{host} port {port}"
        raise InputError(f"cannot listen on {where}: {error.strerror or error}") from None
    listener.set_inheritable(True)
    return listener
