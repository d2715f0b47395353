"""`recsys serve`."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from recsys.cli.options import RankerFile
from recsys.errors import InputError
from recsys.utils.extras import install_hint
from recsys.utils.validation import check_integer, check_real


def serve(
    ranker: RankerFile,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 is any that is free.")] = 8000,
    uds: Annotated[
        str | None, typer.Option("--uds", help="Listen on this Unix domain socket instead.")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", help="Processes, which share one copy of the model.")
    ] = 1,
    at_once: Annotated[
        int, typer.Option("--at-once", help="Requests computed or waiting, of a process; then 503.")
    ] = 64,
    connections: Annotated[
        int, typer.Option("--connections", help="Open connections, of a process.")
    ] = 1000,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Requests a second from one address, then 429.")
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy",
            help="Addresses or networks, with commas, of proxies whose X-Forwarded-For says who asks.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", help="Storage of POST /events: a file of SQLite, or a database URL."),
    ] = None,
    item_sets: Annotated[
        Path | None,
        typer.Option(
            "--item-sets", help="Folder where PUT /item-sets keeps sets of items; else a temporary one."
        ),
    ] = None,
    allowed_hosts: Annotated[
        str | None,
        typer.Option(
            "--allowed-hosts",
            help="Names, with commas, that requests may give in Host, such as '*.example.com'; '*' is "
            "any. On a loopback address without --proxy: loopback names; else any.",
        ),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write a line of JSON for each request to stdout.")
    ] = False,
    log_ids: Annotated[
        bool, typer.Option("--log-ids", help="The same, with paths, which hold ids, and with addresses.")
    ] = False,
) -> None:
    """Serve a fitted ranker over HTTP; RECSYS_TOKEN sets a bearer token."""
    needed = ("fastapi", "uvicorn", "httptools", "msgspec", "prometheus_client")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        named = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise InputError(f"serve needs {named}: {install_hint('service')}")
    check_integer("--port", port, 0, 65535)
    check_integer("--at-once", at_once, 1)
    check_integer("--workers", workers, 1)
    check_integer("--connections", connections, 1)
    if rate is not None:
        check_real("--rate", rate, 0.0, open_low=True)
    for one in (proxy or "").split(",") if proxy is not None else ():
        try:
            ipaddress.ip_network(one.strip())
        except ValueError:
            raise InputError(
                f"--proxy {one.strip()[:60]!r} is no address: name it as 10.0.0.2"
            ) from None
    if workers > 1 and events is not None:
        raise InputError("--events needs --workers 1: one process writes to the database and follows it")
    if workers > 1 and sys.platform == "win32":
        raise InputError("--workers needs a system with forked sockets; on Windows start one process")
    from recsys.service import server

    where = server.Listening(
        host, port, uds, workers, connections, proxy,
        {
            "token": os.environ.get("RECSYS_TOKEN") or None, "at_once": at_once, "rate": rate,
            "events": events, "access_log": access_log or log_ids, "log_ids": log_ids,
            "item_sets": item_sets,
        },
    )  # fmt: skip
    where.options["hosts"] = server.allowed_hosts(where, allowed_hosts)
    main = threading.current_thread() is threading.main_thread()
    code = server.run(str(ranker), where, leave_to_the_server if main else lambda: None)
    if code:
        raise typer.Exit(code)


def leave_to_the_server() -> None:
    """Let the server answer SIGTERM; it raises the signal once more at its end, which is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
