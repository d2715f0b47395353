"""`recsys serve`."""

from __future__ import annotations

import importlib.util
import os
import threading
from typing import Annotated

import typer

from recsys.cli import terminal
from recsys.cli.options import RankerFile
from recsys.cli.signals import leave_to_the_server
from recsys.errors import InputError
from recsys.utils.validation import check_integer, check_real


def serve(
    ranker: RankerFile,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port")] = 8000,
    at_once: Annotated[int, typer.Option("--at-once", help="Requests in flight beyond which 503.")] = 64,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Requests a second from one address, then 429.")
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            "--events", help="Where POST /events keeps likes: a file of SQLite, or a database URL."
        ),
    ] = None,
) -> None:
    """Serve a fitted ranker over HTTP; RECSYS_TOKEN sets a bearer token."""
    needed = ("fastapi", "uvicorn", "prometheus_client")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"serve needs {' and '.join(missing)}: pip install 'recsys[service]'")
    check_integer("--port", port, 0, 65535)
    check_integer("--at-once", at_once, 1)
    if rate is not None:
        check_real("--rate", rate, 0.0, open_low=True)
    import uvicorn

    from recsys.service import create_app

    application = create_app(
        ranker, token=os.environ.get("RECSYS_TOKEN") or None, at_once=at_once, rate=rate, events=events
    )
    if threading.current_thread() is threading.main_thread():
        leave_to_the_server()
    terminal.say(f"serving {ranker} on http://{host}:{port}")
    uvicorn.run(application, host=host, port=port, log_level="warning", timeout_graceful_shutdown=8)
