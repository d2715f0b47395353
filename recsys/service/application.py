"""The ASGI application: routes, limits, monitoring and the model put together."""

from __future__ import annotations

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
from recsys.service.limits import RequestLimits
from recsys.service.model_store import ModelStore
from recsys.service.monitoring import Monitoring
from recsys.service.routes import router
from recsys.service.schemas import TAGS


def create_app(
    path: str | Path,
    *,
    token: str | None = None,
    at_once: int = 64,
    rate: float | None = None,
    reload_seconds: float = 1.0,
    events: str | Path | None = None,
) -> FastAPI:
    """Return the ASGI application over one model file.

    Parameters
    ----------
    path : path
        What `recsys fit --out` wrote; when it is replaced, the new one is served.
    token : str, optional
        Bearer token that every route but /health then asks for.
    at_once : int ≥ 1
        Requests in flight beyond which others get 503.
    rate : float > 0, optional
        Requests a second from one address beyond which it gets 429.
    reload_seconds : float > 0
        How often the file is looked at.
    events : str or path, optional
        Where `POST /events` keeps what users like from now on: a file of SQLite or an SQLAlchemy URL.
        What is there already is applied to the model before it is served. No other process may write
        there at the same time.

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
    try:
        app.state.models = models = ModelStore(Path(path), reload_seconds, database)
    except BaseException:
        if database is not None:
            database.close()
        raise
    app.state.monitoring = Monitoring()
    if database is not None:
        app.state.monitoring.waiting(lambda: models.kept - models.current.applied)
    app.add_middleware(
        RequestLimits, monitoring=app.state.monitoring, token=token, at_once=at_once, rate=rate
    )
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    # Not include_router, whose routers inside routers cost a tenth of a request to find the way through.
    app.router.routes.extend(router.routes)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.models.close()


async def _refused(request: Any, error: Any) -> JSONResponse:
    return JSONResponse({"detail": str(error)[:500]}, 422)


async def _malformed(request: Any, error: Any) -> JSONResponse:
    """Name the field and what it should be; what was sent is not sent back."""
    first = error.errors()[0]
    named = (str(part) for part in first["loc"][1:] if part not in TAGS.values())
    where = ".".join(named) or "the body"
    said = first["msg"].removeprefix("Value error, ")
    return JSONResponse({"detail": f"{where}: {said}"[:500]}, 422)
