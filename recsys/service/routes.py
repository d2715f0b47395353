"""The routes: recommend, similar, explain, events, health, metrics."""

from __future__ import annotations

import uuid
from typing import Any, TypeVar

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from numpy.typing import ArrayLike
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from recsys.data.events import Event
from recsys.errors import CapabilityError, DatabaseError
from recsys.explain import reasons
from recsys.rankers.catalogue import Profile
from recsys.reranking import rerank
from recsys.reranking import similar as similar_items
from recsys.service.model_store import LoadedModel, ModelStore
from recsys.service.schemas import (
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    HealthResponse,
    ProfileRequest,
    RecommendRequest,
    RecommendResponse,
    Refusal,
    SimilarItemsRequest,
    SimilarItemsResponse,
)

Body = TypeVar("Body", bound=BaseModel)

REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"model": Refusal, "description": "An id that the model does not have."},
    422: {"model": Refusal, "description": "A request that is wrong."},
}
KEEPING: dict[int | str, dict[str, Any]] = {
    422: {"model": Refusal, "description": "Events that are wrong, or a model that takes none."},
    503: {"model": Refusal, "description": "The database does not answer: nothing was kept."},
}
router = APIRouter()


def current_model(request: Request) -> LoadedModel:
    """Return the model that a request is answered from, whatever replaces it meanwhile."""
    return request.app.state.models.current


@router.get("/health", response_model=HealthResponse)
async def health(request: Request) -> dict[str, Any]:
    """Say which model is served, and whether a newer file was refused."""
    models: ModelStore = request.app.state.models
    bundle = models.current.bundle
    return {
        "status": "ok", "model": bundle.ranker.name, "users": len(bundle.user_ids),
        "items": len(bundle.item_ids), "reloads": models.reloads, "error": models.error,
        "events": None
        if models.events is None
        else {"kept": models.kept, "applied": models.current.applied},
    }  # fmt: skip


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return Prometheus metrics."""
    return PlainTextResponse(request.app.state.monitoring.text(), media_type=CONTENT_TYPE_LATEST)


@router.post("/recommend", response_model=RecommendResponse, responses=REFUSALS)
async def recommend(asked: RecommendRequest, request: Request) -> JSONResponse:
    """Return the best items for a known user or for a posted history."""
    model = current_model(request)
    profile = profile_of(model, asked)
    allowed, strange = candidates_of(model, asked.items, asked.filter_items)
    disliked, more = model.bundle.known_items(asked.dislikes)
    found = rerank(
        model.bundle.ranker, profile.userid, profile.row, asked.n, dislikes=disliked,
        diversity=asked.diversity, item_users=model.item_users,
        filter_already_liked_items=asked.filter_liked, recalculate_user=profile.fold_in,
        times=profile.new_times, **allowed,
    )  # fmt: skip
    body = {"items": named(model, *found), "fallback": bool(found.fallback)}
    return JSONResponse(body | {"unknown": [*profile.unknown, *strange, *more]})


@router.get(
    "/users/{user}/recommendations", response_model=RecommendResponse, responses=REFUSALS
)  # fmt: skip
async def recommend_to_user(user: str, request: Request, n: int = 10) -> JSONResponse:
    """Return the best items for a known user."""
    return await recommend(checked(RecommendRequest, user=user, n=n), request)


@router.post("/similar", response_model=SimilarItemsResponse, responses=REFUSALS)
async def similar(asked: SimilarItemsRequest, request: Request) -> JSONResponse:
    """Return the items most similar to one, filtered and varied."""
    model = current_model(request)
    item = item_of(model, asked.item)
    allowed, strange = candidates_of(model, asked.items, asked.filter_items)
    found = similar_items(
        model.bundle.ranker, item, asked.n, diversity=asked.diversity, item_users=model.item_users,
        **allowed,
    )  # fmt: skip
    return JSONResponse({"items": named(model, *found), "unknown": strange})


@router.get("/items/{item}/similar", response_model=SimilarItemsResponse, responses=REFUSALS)
async def similar_to_item(item: str, request: Request, n: int = 10) -> JSONResponse:
    """Return the items most similar to one."""
    return await similar(checked(SimilarItemsRequest, item=item, n=n), request)


@router.post("/explain", response_model=ExplainResponse, responses=REFUSALS)
async def explain(asked: ExplainRequest, request: Request) -> JSONResponse:
    """Return what an item's score for a user rests on."""
    model = current_model(request)
    profile = profile_of(model, asked)
    item = item_of(model, asked.item)
    found = reasons(
        model.bundle.ranker, profile.userid, profile.row, item, asked.n, times=profile.times,
        as_of=profile.as_of,
    )  # fmt: skip
    items = named(model, [k for k, _ in found.items], [value for _, value in found.items])
    for answer, (k, _) in zip(items, found.items, strict=True):
        age = found.ages.get(k)
        answer.update(newer=None, days=None) if age is None else answer.update(
            newer=age.newer, days=age.days
        )
    body = {"kind": found.kind, "score": found.score, "bias": found.bias}
    return JSONResponse(body | {"unknown": list(profile.unknown), "items": items})


@router.post("/events", response_model=EventsResponse, responses=KEEPING)
async def events(asked: EventsRequest, request: Request) -> JSONResponse:
    """Keep a batch of likes; the answer comes when they are in the database."""
    models: ModelStore = request.app.state.models
    if models.events is None:
        raise CapabilityError("this service keeps no events: start it with `recsys serve --events FILE`")
    bundle = models.current.bundle
    bundle.check_events()
    bundle.check_ids(
        (e.user for e in asked.events), (e.item for e in asked.events if e.item is not None)
    )
    batch = asked.batch or uuid.uuid4().hex
    given = [Event(e.user, e.item, bundle.time_of_event(e.time), e.action) for e in asked.events]
    try:
        new = await run_in_threadpool(models.keep, batch, given)
    except DatabaseError as error:
        raise HTTPException(503, str(error)[:500], {"retry-after": "1"}) from None
    if new:
        request.app.state.monitoring.kept(len(given))
    return JSONResponse({"batch": batch, "events": len(given), "repeated": not new})


def profile_of(model: LoadedModel, asked: ProfileRequest) -> Profile:
    """Return for whom a request asks; an unknown user is 404, unknown items are told in the answer."""
    user = asked.user
    if user is not None and asked.history is None and user not in model.bundle.user_index:
        raise HTTPException(404, f"unknown user {user[:60]!r}: post a history instead")
    return model.bundle.profile(
        user, asked.items_liked, times=asked.times_liked, as_of=asked.as_of, skip_unknown=True
    )


def item_of(model: LoadedModel, item: str) -> int:
    """Return an item's index; an unknown one is 404."""
    if item not in model.bundle.item_index:
        raise HTTPException(404, f"unknown item {item[:60]!r}")
    return model.bundle.item_index[item]


def candidates_of(
    model: LoadedModel, items: list[str] | None, filter_items: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return which items may be ranked, as rankers take it, and the ids that are unknown."""
    if items is not None and filter_items:
        raise HTTPException(422, "pass items or filter_items, not both")
    if items is not None:
        found, unknown = model.bundle.known_items(items)
        return {"items": found}, unknown
    found, unknown = model.bundle.known_items(filter_items)
    return ({"filter_items": found} if found else {}), unknown


def named(model: LoadedModel, ids: ArrayLike, scores: ArrayLike) -> list[dict[str, Any]]:
    """Return items as they are answered: id, title and score."""
    names, titles = model.bundle.item_ids, model.bundle.titles
    return [
        {"item": str(names[k]), "title": str(titles[k]), "score": float(s)}
        for k, s in zip(np.asarray(ids).tolist(), np.asarray(scores).tolist(), strict=True)
    ]


def checked(kind: type[Body], **given: Any) -> Body:
    """Return a body made of what a path and a query hold; what is wrong with it is 422."""
    try:
        return kind(**given)
    except ValueError as error:
        raise HTTPException(422, str(error).split("\n")[2].strip()[:200]) from None
