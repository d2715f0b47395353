"""The routes: recommend, similar, explain, events, health, readiness, metrics."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from numpy.typing import ArrayLike
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ValidationError

from recsys.data.events import Event
from recsys.errors import CapabilityError, DatabaseError
from recsys.explain import reasons
from recsys.rankers.catalogue import Profile
from recsys.reranking import rerank
from recsys.reranking import similar as similar_items
from recsys.service.computing import Computing
from recsys.service.model_store import LoadedModel, ModelStore
from recsys.service.schemas import (
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    HealthResponse,
    ProfileRequest,
    ReadyResponse,
    RecommendRequest,
    RecommendResponse,
    SimilarItemsRequest,
    SimilarItemsResponse,
)

Body = TypeVar("Body", bound=BaseModel)

router = APIRouter()


def current_model(request: Request) -> LoadedModel:
    """Return the model that a request is answered from, whatever replaces it meanwhile."""
    return request.app.state.models.current


@router.get("/health", response_model=HealthResponse)
async def health(request: Request) -> dict[str, Any]:
    """Say that the process lives, which model is served, and whether a newer file was refused."""
    models: ModelStore = request.app.state.models
    bundle = models.current.bundle
    return {
        "status": "ok", "model": bundle.ranker.name, "users": len(bundle.user_ids),
        "items": len(bundle.item_ids), "reloads": models.reloads, "error": models.error,
        "events": None
        if models.events is None
        else {"kept": models.kept, "applied": models.current.applied},
    }  # fmt: skip


@router.head("/health", include_in_schema=False)
@router.head("/ready", include_in_schema=False)
async def head(request: Request) -> Response:
    """Answer probes that use HEAD."""
    return Response(status_code=503 if request.app.state.stopping else 200)


@router.get("/ready", response_model=ReadyResponse)
async def ready(request: Request) -> Response:
    """Say whether requests should be sent here: 503 while the service stops."""
    if request.app.state.stopping:
        raise HTTPException(503, "the service is stopping")
    return JSONResponse({"status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return Prometheus metrics."""
    return Response(request.app.state.monitoring.text(), media_type=CONTENT_TYPE_LATEST)


@router.post("/recommend", response_model=RecommendResponse)
async def recommend(asked: RecommendRequest, request: Request) -> Response:
    """Return the best items for a known user or for a posted history."""
    model = current_model(request)
    computing: Computing = request.app.state.computing
    if asked.plain:
        group = (id(model), asked.user is None, asked.n, asked.filter_liked)
        kind = "/recommend known" if asked.history is None else "/recommend history"
        return answer(await computing.together(kind, group, plain_lists_of, (model, asked)))
    kind = "/recommend varied" if asked.diversity or asked.dislikes else "/recommend cut"
    return answer(await computing.one(kind, list_of, model, asked))


@router.get("/users/{user:path}/recommendations", response_model=RecommendResponse)
async def recommend_to_user(user: str, request: Request, n: int = 10) -> Response:
    """Return the best items for a known user."""
    return await recommend(checked(RecommendRequest, user=user, n=n), request)


@router.post("/similar", response_model=SimilarItemsResponse)
async def similar(asked: SimilarItemsRequest, request: Request) -> Response:
    """Return the items most similar to one, filtered and varied."""
    model = current_model(request)
    return answer(await request.app.state.computing.one("/similar", similar_to, model, asked))


@router.get("/items/{item:path}/similar", response_model=SimilarItemsResponse)
async def similar_to_item(item: str, request: Request, n: int = 10) -> Response:
    """Return the items most similar to one."""
    return await similar(checked(SimilarItemsRequest, item=item, n=n), request)


@router.post("/explain", response_model=ExplainResponse)
async def explain(asked: ExplainRequest, request: Request) -> Response:
    """Return what an item's score for a user rests on."""
    model = current_model(request)
    return answer(await request.app.state.computing.one("/explain", reasons_of, model, asked))


@router.post("/events", response_model=EventsResponse)
async def events(asked: EventsRequest, request: Request) -> Response:
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
        new = await request.app.state.keeping.one("/events", models.keep, batch, given)
    except DatabaseError as error:
        raise HTTPException(503, str(error)[:500], {"retry-after": "1"}) from None
    if new:
        request.app.state.monitoring.kept(len(given))
    return JSONResponse({"batch": batch, "events": len(given), "repeated": not new})


def plain_lists_of(asked: Sequence[tuple[LoadedModel, RecommendRequest]]) -> list[bytes]:
    """Return the answers to plain requests of one model, one kind and one length, made in one call."""
    model, first = asked[0]
    if len(asked) == 1:
        return [list_of(model, first)]
    profiles = [profile_of(model, one) for _, one in asked]
    found = model.bundle.ranker.recommend(
        [profile.userid for profile in profiles],
        stacked([profile.row for profile in profiles]),
        N=first.n,
        filter_already_liked_items=first.filter_liked,
        recalculate_user=profiles[0].fold_in,
        times=stacked([profile.times for profile in profiles]) if profiles[0].fold_in else None,
    )
    return [
        encoded({
            "items": named(model, ids[ids >= 0], scores[ids >= 0]), "fallback": bool(fallback),
            "unknown": list(profile.unknown),
        })
        for ids, scores, fallback, profile in zip(
            *found, np.atleast_1d(found.fallback), profiles, strict=True
        )
    ]  # fmt: skip


def stacked(rows: Sequence[Any]) -> sp.csr_matrix:
    """Return rows of one width as one matrix, without what scipy's vstack takes for its checks."""
    ends = np.cumsum([0, *(row.nnz for row in rows)])
    data, indices = (
        np.concatenate([getattr(row, part) for row in rows]) for part in ("data", "indices")
    )
    return sp.csr_matrix((data, indices, ends), shape=(len(rows), rows[0].shape[1]))


def list_of(model: LoadedModel, asked: RecommendRequest) -> bytes:
    """Return the answer to a request for a list."""
    profile = profile_of(model, asked)
    allowed, strange = candidates_of(model, asked.items, asked.filter_items)
    disliked, more = model.bundle.known_items(asked.dislikes)
    found = rerank(
        model.bundle.ranker, profile.userid, profile.row, asked.n, dislikes=disliked,
        diversity=asked.diversity, item_users=model.item_users if asked.diversity else None,
        filter_already_liked_items=asked.filter_liked, recalculate_user=profile.fold_in,
        times=profile.new_times, **allowed,
    )  # fmt: skip
    body = {"items": named(model, *found), "fallback": bool(found.fallback)}
    return encoded(body | {"unknown": [*profile.unknown, *strange, *more]})


def similar_to(model: LoadedModel, asked: SimilarItemsRequest) -> bytes:
    """Return the answer to a request for similar items."""
    item = item_of(model, asked.item)
    allowed, strange = candidates_of(model, asked.items, asked.filter_items)
    found = similar_items(
        model.bundle.ranker, item, asked.n, diversity=asked.diversity,
        item_users=model.item_users if asked.diversity else None, **allowed,
    )  # fmt: skip
    return encoded({"items": named(model, *found), "unknown": strange})


def reasons_of(model: LoadedModel, asked: ExplainRequest) -> bytes:
    """Return the answer to a request for what a score rests on."""
    profile = profile_of(model, asked)
    item = item_of(model, asked.item)
    found = reasons(
        model.bundle.ranker, profile.userid, profile.row, item, asked.n, times=profile.times,
        as_of=profile.as_of,
    )  # fmt: skip
    items = named(model, [k for k, _ in found.items], [value for _, value in found.items])
    for entry, (k, _) in zip(items, found.items, strict=True):
        age = found.ages.get(k)
        entry.update(newer=None, days=None) if age is None else entry.update(
            newer=age.newer, days=age.days
        )
    body = {"kind": found.kind, "score": found.score, "bias": found.bias}
    return encoded(body | {"unknown": list(profile.unknown), "items": items})


def encoded(body: dict[str, Any]) -> bytes:
    """Return an answer as it is sent; here, where the event loop does not wait for it."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def answer(body: bytes) -> Response:
    """Return the response that sends this body."""
    return Response(body, media_type="application/json")


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
    except ValidationError as error:
        raise RequestValidationError(
            [{**one, "loc": ("path", *one["loc"])} for one in error.errors()]
        ) from None
