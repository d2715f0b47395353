"""The routes: recommend, similar, explain, health, metrics."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from recsys import __version__
from recsys.errors import InputError
from recsys.explain import reasons
from recsys.reranking import similar as similar_items
from recsys.reranking import steer
from recsys.service.limits import Guard, Metrics
from recsys.service.model import Holder, Served

Id = Annotated[str, Field(min_length=1, max_length=200)]
Ids = Annotated[list[Id], Field(max_length=1000)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Body(BaseModel):
    """What bodies share: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class Ask(Body):
    """Whom to recommend to, how many, and from what."""

    user: Id | None = None
    history: Ids | None = None
    n: Count = 10
    items: Ids | None = None
    filter_items: Ids = []
    filter_liked: bool = True
    dislikes: Ids = []
    diversity: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0


class Near(Body):
    """To which item, how many, and from what."""

    item: Id
    n: Count = 10
    items: Ids | None = None
    filter_items: Ids = []
    diversity: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0


class Why(Body):
    """Whose score of which item to explain."""

    user: Id | None = None
    history: Ids | None = None
    item: Id
    n: Count = 10


def create_app(
    path: str | Path,
    *,
    token: str | None = None,
    at_once: int = 64,
    rate: float | None = None,
    reload_seconds: float = 1.0,
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

    Raises
    ------
    ModelFileError, InputError
        If the file cannot be read.
    """
    holder = Holder(Path(path), reload_seconds)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        yield
        holder.close()

    app = FastAPI(title="recsys", version=__version__, lifespan=lifespan)
    app.state.holder, app.state.metrics = holder, metrics
    app.add_middleware(Guard, metrics=metrics, token=token, at_once=at_once, rate=rate)

    @app.exception_handler(InputError)
    async def refused(request: Any, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)[:500]}, 422)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Any, error: RequestValidationError) -> JSONResponse:
        """Name the field and what it should be; what was sent is not sent back."""
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        return JSONResponse({"detail": f"{where}: {first['msg']}"[:500]}, 422)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Say which model is served, and whether a newer file was refused."""
        served = holder.current
        return {
            "status": "ok", "model": served.bundle.ranker.name, "users": len(served.users),
            "items": len(served.items), "reloads": holder.reloads, "error": holder.error,
        }  # fmt: skip

    @app.get("/metrics")
    async def exposed() -> PlainTextResponse:
        """Return Prometheus metrics."""
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.post("/recommend")
    async def recommend(ask: Ask) -> JSONResponse:
        """Return the best items for a known user or for a posted history."""
        served = holder.current
        user, row, unknown = _whom(served, ask.user, ask.history)
        allowed, strange = _allowed(served, ask)
        away, more = _indices(served, ask.dislikes)
        found = steer(
            served.bundle.ranker, user, row, ask.n, dislikes=away, diversity=ask.diversity,
            item_users=served.item_users, filter_already_liked_items=ask.filter_liked,
            recalculate_user=ask.user is None, **allowed,
        )  # fmt: skip
        body = {"items": _named(served, *found), "fallback": bool(found.fallback)}
        return JSONResponse(body | {"unknown": unknown + strange + more})

    @app.get("/users/{user}/recommendations")
    async def for_user(user: str, n: int = 10) -> JSONResponse:
        """Return the best items for a known user."""
        return await recommend(_checked(Ask, user=user, n=n))

    @app.get("/items/{item}/similar")
    async def similar_to(item: str, n: int = 10) -> JSONResponse:
        """Return the items most similar to one."""
        return await similar(_checked(Near, item=item, n=n))

    @app.post("/similar")
    async def similar(near: Near) -> JSONResponse:
        """Return the items most similar to one, filtered and varied."""
        served = holder.current
        index = _item(served, near.item)
        allowed, strange = _allowed(served, near)
        found = similar_items(
            served.bundle.ranker, index, near.n, diversity=near.diversity,
            item_users=served.item_users, **allowed,
        )  # fmt: skip
        return JSONResponse({"items": _named(served, *found), "unknown": strange})

    @app.post("/explain")
    async def explain(why: Why) -> JSONResponse:
        """Return what an item's score for a user rests on."""
        served = holder.current
        user, row, unknown = _whom(served, why.user, why.history)
        told = reasons(served.bundle.ranker, user, row, _item(served, why.item), why.n)
        ids = np.array([k for k, _ in told.items], dtype=np.int64)
        values = np.array([v for _, v in told.items])
        body = {"kind": told.kind, "score": told.score, "bias": told.bias, "unknown": unknown}
        return JSONResponse(body | {"items": _named(served, ids, values)})

    return app


def _checked(kind: Any, **given: Any) -> Any:
    try:
        return kind(**given)
    except ValueError as error:
        raise HTTPException(422, str(error).split("\n")[2].strip()[:200]) from None


def _whom(served: Served, user: str | None, history: list[str] | None) -> tuple[int, Any, list[str]]:
    if (user is None) == (history is None):
        raise HTTPException(422, "name whom by exactly one of user and history")
    if user is not None:
        if user not in served.users:
            raise HTTPException(404, f"unknown user {user[:60]!r}: post a history instead")
        index = served.users[user]
        return index, served.row(index), []
    row, unknown = served.history(history or [])
    return 0, row, unknown


def _item(served: Served, item: str) -> int:
    if item not in served.items:
        raise HTTPException(404, f"unknown item {item[:60]!r}")
    return served.items[item]


def _indices(served: Served, ids: list[str] | None) -> tuple[list[int], list[str]]:
    given = ids or []
    found = [served.items[i] for i in given if i in served.items]
    return found, [i for i in given if i not in served.items]


def _allowed(served: Served, ask: Ask | Near) -> tuple[dict[str, Any], list[str]]:
    """Return which items may be ranked, as rankers take it, and the ids that are unknown."""
    if ask.items is not None and ask.filter_items:
        raise HTTPException(422, "pass items or filter_items, not both")
    if ask.items is not None:
        found, unknown = _indices(served, ask.items)
        return {"items": found}, unknown
    found, unknown = _indices(served, ask.filter_items)
    return ({"filter_items": found} if found else {}), unknown


def _named(served: Served, ids: Any, scores: Any) -> list[dict[str, Any]]:
    names, titles = served.bundle.item_ids, served.bundle.titles
    return [
        {"item": str(names[k]), "title": str(titles[k]), "score": float(s)}
        for k, s in zip(ids.tolist(), scores.tolist(), strict=True)
    ]
