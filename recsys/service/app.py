"""The application: limits of requests, threads for slow ones, and routes."""

from __future__ import annotations

import hmac
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from numpy.typing import ArrayLike, NDArray
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, Histogram, generate_latest
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.middleware.trustedhost import TrustedHostMiddleware

from recsys import __version__
from recsys.errors import InputError
from recsys.rankers.package import Profile
from recsys.recommender.explained import explained
from recsys.reranking import rerank
from recsys.reranking import similar as similar_items
from recsys.service import schemas
from recsys.service.model_store import LONG_PROFILE, ModelStore, ServedModel

PROCESSORS = os.cpu_count() or 1
MAX_BODY = 1 << 20
MOST_WAITING = 8 * PROCESSORS  # requests for a thread; further ones get 503
OPEN = ("/health", "/ready")  # without a token
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
Count = Annotated[int, Query(ge=1, le=1000)]

router = APIRouter()


class AnyText(StringConvertor):
    """Path parameters with slashes and line ends."""

    regex = "(?s:.+)"


register_url_convertor("text", AnyText())


class Limits:
    """ASGI middleware: the token, the size of the body, and seconds of requests."""

    def __init__(self, app: Any, seconds: Histogram, token: str | None) -> None:
        self.app, self.seconds = app, seconds
        self.token = None if token is None else token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, size = time.perf_counter(), 500, 0

        async def receive_limited() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY:
                raise HTTPException(413, "the body is larger than 1 MiB", {"connection": "close"})
            return message

        async def send_seen(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if self._has_token(scope):
                await self.app(scope, receive_limited, send_seen)
            else:
                response = _refusal(401, "a bearer token is needed", {"www-authenticate": "Bearer"})
                await response(scope, receive, send_seen)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in METHODS else "_OTHER"
            self.seconds.labels(method, route, str(status)).observe(time.perf_counter() - start)

    def _has_token(self, scope: Any) -> bool:
        if self.token is None or scope["path"] in OPEN:
            return True
        kind, _, token = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.token)


def _refusal(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": detail[:500]}, status, headers)


def check_token(token: str | None) -> str | None:
    """Return a token without surrounding blanks."""
    if token is None:
        return None
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError("the token must be ASCII text without spaces, and not empty: see RECSYS_TOKEN")
    return token


def create_app(
    path: str | Path,
    *,
    token: str | None = None,
    reload_seconds: float = 1.0,
    mapped: bool = False,
    hosts: Sequence[str] = ("*",),
) -> FastAPI:
    """Return the ASGI application over one model file.

    Parameters
    ----------
    path : path
        A file of `recsys fit --out`; the service loads its replacements.
    token : str, optional
        Bearer token for every route except /health and /ready.
    reload_seconds : float > 0
        Seconds between checks of the file.
    mapped : bool
        Whether to map the file into memory, so that processes share it. The file must then be replaced
        by renaming, and not be changed in place.
    hosts : sequence of str
        Accepted host names, such as ``*.example.com``.
    """
    token = check_token(token)
    models, registry = ModelStore(Path(path), reload_seconds, mapped), CollectorRegistry()
    plain, slow = CapacityLimiter(PROCESSORS), CapacityLimiter(1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        models.close()

    app = FastAPI(
        title="recsys",
        version=__version__,
        lifespan=lifespan,
        responses={status: {"model": schemas.Refusal} for status in (401, 404, 413, 422, 503)},
    )
    app.state.models, app.state.registry, app.state.plain, app.state.slow = models, registry, plain, slow
    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "waiting": ("Waiting or computed in threads.", lambda: _active(plain) + _active(slow)),
        "model_reloads": ("Newer files taken.", lambda: models.reloads),
        "model_refused": ("The newest file is refused.", lambda: bool(models.error)),
        "model_modified_timestamp_seconds": (
            "When the file was written.",
            lambda: models.current.state[2] / 1e9,
        ),
    }
    for name, (text, value) in gauges.items():
        Gauge(f"recsys_{name}", text, registry=registry).set_function(value)
    seconds = Histogram(
        "http_server_request_duration_seconds",
        "Seconds a request took.",
        ("http_request_method", "http_route", "http_response_status_code"),
        registry=registry,
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Limits, seconds=seconds, token=token)
    app.add_exception_handler(InputError, lambda _, error: _refusal(422, str(error)))
    app.add_exception_handler(RequestValidationError, _malformed)
    app.include_router(router)
    return app


def from_environment() -> FastAPI:
    """Return the application of a worker process of `recsys serve`."""
    options = json.loads(os.environ["RECSYS_SERVE"])
    return create_app(token=os.environ.get("RECSYS_TOKEN"), **options)


def _malformed(_: Request, error: Any) -> JSONResponse:
    """Name the invalid field without its value."""
    first = max(error.errors(), key=lambda one: len(one["loc"]))  # of a union, what fits furthest
    where, text = ".".join(map(str, first["loc"])), first["msg"]
    problem = str(first.get("ctx", {}).get("error", ""))
    return _refusal(422, f"{where}: {text if text.endswith(problem) else f'{text}: {problem}'}")


def _active(threads: CapacityLimiter) -> int:
    return threads.borrowed_tokens + threads.statistics().tasks_waiting


async def answer(
    request: Request,
    slow: bool,
    liked: int,
    compute: Callable[..., dict[str, Any]],
    model: ServedModel,
    *args: Any,
) -> JSONResponse:
    """Compute an answer: at once if that is quick, else in a thread; slow requests share one."""
    if not slow and liked <= model.at_once:
        return JSONResponse(compute(model, *args))
    slow = slow or liked > LONG_PROFILE
    threads = request.app.state.slow if slow else request.app.state.plain
    if _active(threads) >= MOST_WAITING + threads.total_tokens:
        raise HTTPException(503, "too many requests at once", {"retry-after": "1"})
    return JSONResponse(await to_thread.run_sync(compute, model, *args, limiter=threads))


# ---- routes; each answers from the model that is current when it begins


@router.get("/health")
async def health(request: Request) -> dict[str, Any]:
    """Return the current model, and the error of a refused file."""
    models: ModelStore = request.app.state.models
    package = models.current.package
    return {
        "status": "ok",
        "model": package.ranker.name,
        "users": len(package.user_ids),
        "items": len(package.item_ids),
        "reloads": models.reloads,
        "error": models.error,
    }


@router.get("/ready")
async def ready() -> dict[str, str]:
    """Return whether the service is ready."""
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus."""
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)


@router.post("/recommend", response_model=schemas.RecommendResponse)
async def recommend(body: schemas.RecommendRequest, request: Request) -> Response:
    """Return the best items for a known user or a history."""
    model = request.app.state.models.current
    profile = profile_of(model, body)
    return await answer(request, body.slow, profile.row.nnz, _recommended, model, profile, body)


def _recommended(model: ServedModel, profile: Profile, body: schemas.RecommendRequest) -> dict[str, Any]:
    package = model.package
    most = schemas.MOST_REASONS // max(profile.row.nnz, 1)
    if body.why and body.n > most:
        raise InputError(f"n must be at most {most} for {profile.row.nnz} liked items with why")
    left_out, unknown = filtered_items(model, body)
    disliked, unknown_dislikes = package.known_items(body.dislikes)
    result = rerank(
        package.ranker,
        profile.userid,
        profile.row,
        body.n,
        dislikes=disliked,
        diversity=body.diversity,
        item_users=package.item_users if body.diversity else None,
        filter_already_liked_items=body.filter_liked,
        filter_items=left_out,
        **profile.options,
    )
    items = named(model, *result)
    if body.why:
        for item in items:
            item["why"] = explained(package, profile, item["item"]).as_dict()
    unknown = [*profile.unknown, *unknown, *unknown_dislikes]
    return {"items": items, "fallback": bool(result.fallback), "unknown": unknown}


@router.get("/users/{user:text}/recommendations", response_model=schemas.RecommendResponse)
async def recommend_to_user(user: str, request: Request, n: Count = 10) -> Response:
    """Return the best items for a known user."""
    return await recommend(schemas.RecommendRequest(user=user, n=n), request)


@router.post("/similar", response_model=schemas.ItemsResponse)
async def similar(body: schemas.SimilarRequest, request: Request) -> Response:
    """Return the items most similar to one."""
    model = request.app.state.models.current
    return await answer(request, body.diversity > 0, 0, _similar, model, body)


def _similar(model: ServedModel, body: schemas.SimilarRequest) -> dict[str, Any]:
    package, item = model.package, item_of(model, body.item)
    left_out, unknown = filtered_items(model, body)
    result = similar_items(
        package.ranker,
        item,
        body.n,
        diversity=body.diversity,
        item_users=package.item_users if body.diversity else None,
        filter_items=left_out,
    )
    return {"items": named(model, *result), "unknown": unknown}


@router.get("/items/{item:text}/similar", response_model=schemas.ItemsResponse)
async def similar_to_item(item: str, request: Request, n: Count = 10) -> Response:
    """Return the items most similar to one."""
    return await similar(schemas.SimilarRequest(item=item, n=n), request)


@router.get("/users/{user:text}/similar")
async def similar_users(user: str, request: Request, n: Count = 10) -> Response:
    """Return the users most similar to one."""
    model = request.app.state.models.current
    return await answer(request, True, 0, _similar_users, model, user, n)


def _similar_users(model: ServedModel, user: str, n: int) -> dict[str, Any]:
    package = model.package
    if user not in package.user_index:
        raise HTTPException(404, f"unknown user {user[:60]!r}")
    index, names = package.user_index[user], package.user_ids
    ids, scores = package.ranker.similar_users(index, N=n, filter_users=[index])
    users = [{"user": str(names[k]), "score": float(s)} for k, s in zip(ids, scores, strict=True)]
    return {"users": users}


@router.post("/scores", response_model=schemas.RecommendResponse)
async def scores(body: schemas.ScoresRequest, request: Request) -> Response:
    """Return the scores of items for a known user or a history."""
    model = request.app.state.models.current
    profile = profile_of(model, body)
    return await answer(request, False, profile.row.nnz, _scored, model, profile, body.items)


def _scored(model: ServedModel, profile: Profile, ids: list[str]) -> dict[str, Any]:
    ranker = model.package.ranker
    items, unknown = model.package.known_items(ids)
    scores = ranker.scores(profile.userid, profile.row, **profile.options)[0]
    users = None if profile.fold_in else np.array([profile.userid])
    return {
        "items": named(model, items, scores[items]),
        "fallback": bool(ranker.falls_back(users, profile.row)[0]),
        "unknown": [*profile.unknown, *unknown],
    }


@router.post("/explain")
async def explain(body: schemas.ExplainRequest, request: Request) -> Response:
    """Return the explanation of an item's score, as in `recsys explain --json`."""
    model = request.app.state.models.current
    return await answer(request, True, 0, _explanation, model, body)


def _explanation(model: ServedModel, body: schemas.ExplainRequest) -> dict[str, Any]:
    item_of(model, body.item)
    profile = profile_of(model, body)
    why = explained(model.package, profile, body.item, body.n, changes=body.changes)
    return why.as_dict() | {"unknown": list(profile.unknown)}


def profile_of(model: ServedModel, body: schemas.ProfileRequest) -> Profile:
    """Return the profile of a known user, or of a history without unknown items."""
    if body.history is None:
        if body.user not in model.package.user_index:
            raise HTTPException(404, f"unknown user {str(body.user)[:60]!r}: post a history instead")
        return model.package.profile(body.user)
    ids = [item if isinstance(item, str) else item.item for item in body.history]
    times: list[Any] = [getattr(item, "time", None) for item in body.history]
    if None in times and any(time is not None for time in times):
        raise InputError("history: give all items a time, or none")
    weights = [getattr(item, "weight", None) for item in body.history]
    return model.package.profile(
        history=ids,
        times=None if None in times or not times else times,
        weights=None if not any(weights) else [1.0 if one is None else one for one in weights],
        skip_unknown=True,
    )


def item_of(model: ServedModel, item: str) -> int:
    """Return an item's index; an unknown one is 404."""
    if item not in model.package.item_index:
        raise HTTPException(404, f"unknown item {item[:60]!r}")
    return model.package.item_index[item]


def filtered_items(
    model: ServedModel, body: schemas.Candidates
) -> tuple[NDArray[np.intp] | None, list[str]]:
    """Return the items to leave out, or None, and the unknown ids."""
    if body.items is None and not body.filter_items and not body.filters:
        return None, []
    keep = np.full(len(model.package.item_ids), body.items is None)
    known, unknown = model.package.known_items(body.filter_items if body.items is None else body.items)
    keep[known] = body.items is not None
    if body.filters:
        filters = body.model_dump(include={"filters"})["filters"]
        keep &= model.passing(json.dumps(filters, sort_keys=True))
    return np.flatnonzero(~keep), unknown


def named(model: ServedModel, ids: ArrayLike, scores: ArrayLike) -> list[dict[str, Any]]:
    """Return items with their titles and scores."""
    names, titles = model.package.item_ids, model.package.titles
    return [
        {"item": str(names[k]), "title": str(titles[k]), "score": float(score)}
        for k, score in zip(np.asarray(ids).tolist(), np.asarray(scores).tolist(), strict=True)
    ]
