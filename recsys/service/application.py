"""The ASGI application: routes, limits, monitoring and the model put together."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from recsys import __version__
from recsys.data.event_database import EventDatabase
from recsys.errors import InputError
from recsys.service.access_log import AccessLog
from recsys.service.computing import Computing, Overloaded
from recsys.service.limits import TOO_MANY, WORK, RequestLimits
from recsys.service.model_copies import ModelCopies
from recsys.service.model_store import ModelStore
from recsys.service.monitoring import Monitoring
from recsys.service.openapi import described
from recsys.service.routes import router
from recsys.service.schemas import TAGS

KEEPING_WAIT = 1.0  # seconds that events may wait for the database


def create_app(
    path: str | Path,
    *,
    token: str | None = None,
    at_once: int = 64,
    threads: int | None = None,
    rate: float | None = None,
    reload_seconds: float = 1.0,
    events: str | Path | None = None,
    access_log: bool = False,
    log_ids: bool = False,
    copies: str | Path | None = None,
) -> FastAPI:
    """Return the ASGI application over one model file.

    Parameters
    ----------
    path : path
        What `recsys fit --out` wrote; when it is replaced, the new one is served.
    token : str, optional
        Bearer token that every route but /health and /ready then asks for.
    at_once : int ≥ 1
        Requests that are computed or wait beyond which others get 503. Those that would wait for longer
        than is of use get it sooner.
    threads : int ≥ 1, optional
        That compute; as many as there are processors, at most 4, when not given.
    rate : float > 0, optional
        Requests a second from one address beyond which it gets 429.
    reload_seconds : float > 0
        How often the file is looked at.
    events : str or path, optional
        Where `POST /events` keeps what users like from now on: a file of SQLite or an SQLAlchemy URL.
        What is there already is applied to the model before it is served. No other process may write
        there at the same time.
    access_log : bool
        Write a line of JSON for each request to standard output.
    log_ids : bool
        With paths, which hold ids of users and items, and addresses.
    copies : path, optional
        A folder of this service, where its processes share a copy of the model in memory.

    Raises
    ------
    ModelFileError, InputError
        If the file, or the database of events, cannot be read.
    DatabaseError
        If the database does not answer.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> from recsys.rankers import fit_bundle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.recsys")
    ...     fit_bundle(make_ranker("popularity"), load_dataset("sample")).save(path)
    ...     application = create_app(path)
    >>> application.title
    'recsys'
    """
    app = FastAPI(title="recsys", version=__version__, lifespan=_lifespan)
    database = None if events is None else EventDatabase(events)
    shared = None if copies is None else ModelCopies(Path(copies))
    try:
        models = ModelStore(Path(path), reload_seconds, database, shared)
    except BaseException:
        if database is not None:
            database.close()
        raise
    monitoring = Monitoring()
    computing = Computing(threads or min(4, os.cpu_count() or 1), at_once)
    app.state.models, app.state.monitoring, app.state.computing = models, monitoring, computing
    app.state.keeping = keeping = Computing(1, at_once, KEEPING_WAIT, time.monotonic)
    app.state.refusing = functools.partial(_refusing, computing, monitoring)
    app.state.stopping = False
    monitoring.gauge("recsys_waiting", "Requests computed or waiting.", lambda: computing.in_flight)
    monitoring.gauge(
        "recsys_model_reloads", "Newer files taken by this process.", lambda: models.reloads, "max"
    )
    monitoring.gauge(
        "recsys_model_refused", "Whether the newest file was refused.",
        lambda: float(models.error is not None), "max",
    )  # fmt: skip
    monitoring.gauge(
        "recsys_model_modified_timestamp_seconds", "When the file that is served was written.",
        lambda: models.current.state.modified / 1e9, "min",
    )  # fmt: skip
    if database is not None:
        monitoring.gauge(
            "recsys_keeping", "Batches of events being kept or waiting.", lambda: keeping.in_flight
        )
        monitoring.gauge(
            "recsys_events_waiting",
            "Events not applied yet.",
            lambda: models.kept - models.current.applied,
        )
    app.state.log = log = AccessLog(log_ids) if access_log else None
    app.add_middleware(
        RequestLimits, monitoring=monitoring, computing=computing, token=token, rate=rate, log=log
    )
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(Overloaded, _overloaded)
    app.add_exception_handler(Exception, _failed)
    # Not include_router, whose routers inside routers cost a tenth of a request to find the way through.
    app.router.routes.extend(router.routes)
    app.openapi = lambda: described(app, token is not None)  # type: ignore[method-assign]
    return app


def _refusing(computing: Computing, monitoring: Monitoring, path: str) -> bool:
    """Return whether a request has no place in the queue; it is then counted as refused."""
    kind = WORK.get(path.rpartition("/")[2])
    if kind is None or not computing.full(kind):
        return False
    monitoring.shed(kind)
    return True


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.stopping = False
    refreshing = asyncio.create_task(_refresh(app.state.monitoring))
    yield
    app.state.stopping = True
    refreshing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await refreshing
    app.state.computing.stop()
    app.state.keeping.stop()
    await asyncio.to_thread(app.state.models.close)
    if app.state.log is not None:
        await asyncio.to_thread(app.state.log.flush)


async def _refresh(monitoring: Monitoring) -> None:
    while True:  # other processes read what was written last
        monitoring.refresh()
        await asyncio.sleep(1.0)


async def _refused(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": str(error)[:500]}, 422)


async def _overloaded(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": TOO_MANY.text}, 503, {"retry-after": "1"})


async def _failed(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": "internal error: the log of the service says more"}, 500)


async def _malformed(request: Any, error: Any) -> JSONResponse:
    """Name the field and what it should be; what was sent is not sent back."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        place, why = first["loc"][-1], first.get("ctx", {}).get("error", "it cannot be read")
        return JSONResponse({"detail": f"the body is no JSON: {why} at character {place}"[:500]}, 422)
    named = (str(part) for part in first["loc"][1:] if part not in TAGS.values())
    where = ".".join(named) or "the body"
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "model_attributes_type":
        said = "an object of JSON is needed, sent with content-type: application/json"
    elif first["type"] == "string_type":
        said = 'a text is needed; ids are texts, so "42" and not 42'
    return JSONResponse({"detail": f"{where}: {said}"[:500]}, 422)
