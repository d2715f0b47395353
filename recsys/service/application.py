"""The ASGI application: routes, limits, monitoring and the model put together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from recsys import __version__
from recsys.data.event_database import EventDatabase
from recsys.errors import InputError
from recsys.service.access_log import AccessLog
from recsys.service.background import Background
from recsys.service.computing import Computing, Overloaded
from recsys.service.item_sets import ItemSets
from recsys.service.limits import TOO_MANY, WORK, RequestLimits
from recsys.service.model_store import ModelStore
from recsys.service.monitoring import Monitoring
from recsys.service.openapi import described
from recsys.service.routes import router

SLOW_AT_ONCE = 8  # searches for formulas, changes and rules that are computed or wait
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
    mapped: bool = False,
    hosts: Sequence[str] | None = None,
    item_sets: str | Path | None = None,
) -> FastAPI:
    """Return the ASGI application over one model file.

    Parameters
    ----------
    path : path
        What `recsys fit --out` wrote; when it is replaced, the new one is served.
    token : str, optional
        Bearer token that every route but /health and /ready then asks for.
    at_once : int ≥ 1
        Number of requests that run or wait, beyond which further ones get 503. A request that would
        wait too long gets 503 sooner.
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
    mapped : bool
        Leave the model's arrays in the file, so that processes share them in memory. The file must then
        be replaced by renaming, and never be written to.
    hosts : sequence of str, optional
        Names that requests may give in Host, such as ``"*.example.com"``; others are answered with 400.
        None is any name.
    item_sets : path, optional
        Folder where `PUT /item-sets/NAME` keeps sets of items, which may be shared by processes; a
        temporary one when not given.

    Raises
    ------
    ModelFileError, InputError
        If the file, or the database of events, cannot be read; the folder of item sets cannot be made.
    CapabilityError
        With `events`, if the ranker has no exact updates; one in a later file is served without events.
    DatabaseError
        If the database does not answer.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from recsys import make_ranker
    >>> from recsys.datasets import load_dataset
    >>> from recsys.rankers import fit_package
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.recsys")
    ...     fit_package(make_ranker("popularity"), load_dataset("sample")).save(path)
    ...     application = create_app(path)
    >>> application.title
    'recsys'
    """
    app = FastAPI(title="recsys", version=__version__, lifespan=_lifespan)
    monitoring = Monitoring()
    background = Background(monitoring.failed)
    sets = ItemSets(item_sets)
    database = None if events is None else EventDatabase(events)
    try:
        models = ModelStore(Path(path), reload_seconds, database, mapped, background)
    except BaseException:
        if database is not None:
            database.close()
        raise
    computing = Computing(threads or min(4, os.cpu_count() or 1), at_once, background=background)
    app.state.models, app.state.monitoring, app.state.computing = models, monitoring, computing
    app.state.item_sets = sets
    # Searches for formulas, changes and rules wait in a line of their own: a list never waits for one.
    app.state.slow = slow = Computing(1, SLOW_AT_ONCE, background=background)
    app.state.keeping = keeping = Computing(1, at_once, KEEPING_WAIT, time.monotonic, background)
    monitoring.gauge(
        "recsys_waiting", "Requests computed or waiting.", lambda: computing.in_flight + slow.in_flight
    )
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
    app.state.log = log = AccessLog(log_ids, background=background) if access_log else None
    if hosts is not None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
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


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    asyncio.get_running_loop().set_exception_handler(app.state.models.background.loop_failed)
    refreshing = asyncio.create_task(_refresh(app.state.monitoring, app.state.models.background))
    yield
    refreshing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await refreshing
    app.state.computing.stop()
    app.state.slow.stop()
    app.state.keeping.stop()
    await asyncio.to_thread(app.state.models.close)
    await asyncio.to_thread(app.state.item_sets.close)
    if app.state.log is not None:
        await asyncio.to_thread(app.state.log.flush)


async def _refresh(monitoring: Monitoring, background: Background) -> None:
    while True:  # other processes read what was written last
        with background.guard("metrics"):
            monitoring.refresh()
        await asyncio.sleep(1.0)


async def _refused(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": str(error)[:500]}, 422)


async def _overloaded(request: Any, error: Any) -> JSONResponse:
    request.app.state.monitoring.shed(WORK.get(request.url.path.rpartition("/")[2], "/events"))
    return JSONResponse({"detail": TOO_MANY.text}, 503, TOO_MANY.as_text())


async def _failed(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": "internal error: the log of the service says more"}, 500)


async def _malformed(request: Any, error: Any) -> JSONResponse:
    """Name the parameter of the query and what it should be; what was sent is not sent back."""
    first = error.errors()[0]
    return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}"[:500]}, 422)
