"""The routes: recommend, similar, explain, rules, events, item sets, health, readiness, metrics."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from numpy.typing import ArrayLike, NDArray
from prometheus_client import CONTENT_TYPE_LATEST

from recsys.data.events import Event
from recsys.errors import CapabilityError, DatabaseError, InputError
from recsys.rankers.catalogue import Profile
from recsys.recommender.explained import explained
from recsys.recommender.filters import merchandising
from recsys.recommender.lists import TOO_FEW
from recsys.recommender.model_rules import item_users_rule, user_rule
from recsys.reranking import Fair, rerank
from recsys.reranking import similar as similar_items
from recsys.service.computing import Computing
from recsys.service.item_sets import ItemSets
from recsys.service.model_store import LoadedModel, ModelStore
from recsys.service.schemas import (
    Body,
    DeletedResponse,
    EventItem,
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    HealthResponse,
    ItemSetRequest,
    ItemSetResponse,
    ProfileRequest,
    ReadyResponse,
    RecommendRequest,
    RecommendResponse,
    RulesRequest,
    RulesResponse,
    ScoresRequest,
    ScoresResponse,
    SimilarItemsRequest,
    SimilarItemsResponse,
    SimilarUsersResponse,
    converted,
    decoded,
    valid_time,
)

MOST_EXPLAINED = 100  # items of a list
router = APIRouter()


def current_model(request: Request) -> LoadedModel:
    """Return the model that a request is answered from, whatever replaces it meanwhile."""
    return request.app.state.models.current


@router.get("/health", response_model=HealthResponse)
async def health(request: Request) -> dict[str, Any]:
    """Say that the process lives, which model is served, and whether a newer file was refused."""
    models: ModelStore = request.app.state.models
    package = models.current.package
    return {
        "status": "ok", "model": package.ranker.name, "users": len(package.user_ids),
        "items": len(package.item_ids), "reloads": models.reloads, "error": models.error,
        "loading": models.loading, "failing": dict(models.background.failing),
        "events": None
        if models.events is None
        else {"kept": models.kept, "applied": models.current.applied},
    }  # fmt: skip


@router.head("/health", include_in_schema=False)
@router.head("/ready", include_in_schema=False)
async def head(request: Request) -> Response:
    """Answer probes that use HEAD."""
    return Response()


@router.get("/ready", response_model=ReadyResponse)
async def ready(request: Request) -> Response:
    """Say that requests may be sent here: a model is served."""
    return JSONResponse({"status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return Prometheus metrics."""
    return Response(request.app.state.monitoring.text(), media_type=CONTENT_TYPE_LATEST)


async def body_of(kind: type[Body], request: Request) -> Body:
    """Return the body of a request.

    A body of another type than JSON is refused: pages of other origins may send those without asking.
    """
    check_media_type(request)
    return decoded(kind, await request.body())


def check_media_type(request: Request) -> None:
    """Refuse a body of another type than JSON."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (
        media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
    ):
        raise InputError(
            "the body: an object of JSON is needed, sent with content-type: application/json"
        )


@router.post("/recommend", response_model=RecommendResponse)
async def recommend(request: Request) -> Response:
    """Return the best items for a known user or for a posted history."""
    return await recommended(await body_of(RecommendRequest, request), request)


@router.get("/users/{user:path}/recommendations", response_model=RecommendResponse)
async def recommend_to_user(user: str, request: Request, n: int = 10) -> Response:
    """Return the best items for a known user."""
    return await recommended(converted(RecommendRequest, user=user, n=n), request)


@router.post("/similar", response_model=SimilarItemsResponse)
async def similar(request: Request) -> Response:
    """Return the items most similar to one, filtered and varied."""
    return await similar_found(await body_of(SimilarItemsRequest, request), request)


@router.get("/items/{item:path}/similar", response_model=SimilarItemsResponse)
async def similar_to_item(item: str, request: Request, n: int = 10) -> Response:
    """Return the items most similar to one."""
    return await similar_found(converted(SimilarItemsRequest, item=item, n=n), request)


@router.get("/users/{user:path}/similar", response_model=SimilarUsersResponse)
async def similar_to_user(user: str, request: Request, n: int = 10) -> Response:
    """Return the users most similar to one."""
    asked = converted(RecommendRequest, user=user, n=n)
    model = current_model(request)
    return answer(await request.app.state.computing.one("/similar users", users_like, model, asked))


@router.post("/scores", response_model=ScoresResponse)
async def scores(request: Request) -> Response:
    """Return the scores of items for a known user or for a posted history."""
    asked = await body_of(ScoresRequest, request)
    model = current_model(request)
    return answer(await request.app.state.computing.one("/scores", scores_of, model, asked))


@router.post("/explain", response_model=ExplainResponse)
async def explain(request: Request) -> Response:
    """Return the explanation of an item's score for a user."""
    asked = await body_of(ExplainRequest, request)
    model = current_model(request)
    wanted = {"formulas": asked.formulas, "changes": asked.changes, "rule": asked.model_rule}
    more = "".join(f" {name}" for name, number in wanted.items() if number)
    line: Computing = request.app.state.slow if more else request.app.state.computing
    return answer(await line.one(f"/explain{more}", reasons_of, model, asked))


@router.post("/rules", response_model=RulesResponse)
async def rules(request: Request) -> Response:
    """Return the rule that the model's list for a user follows, or for whom it puts an item first."""
    asked = await body_of(RulesRequest, request)
    model = current_model(request)
    kind = "/rules user" if asked.item is None else "/rules item"
    return answer(await request.app.state.slow.one(kind, rule_of, model, asked))


@router.post("/events", response_model=EventsResponse)
async def events(request: Request) -> Response:
    """Keep a batch of interactions; the answer comes when they are in the database."""
    models: ModelStore = request.app.state.models
    asked = await body_of(EventsRequest, request)
    if models.events is None:
        raise CapabilityError("this service keeps no events: start it with `recsys serve --events FILE`")
    batch = asked.batch or uuid.uuid4().hex
    try:
        new = await request.app.state.keeping.one("/events", keep, models, batch, asked.events)
    except DatabaseError as error:
        raise HTTPException(503, str(error)[:500], {"retry-after": "1"}) from None
    if new:
        request.app.state.monitoring.kept(len(asked.events))
    return JSONResponse({"batch": batch, "events": len(asked.events), "repeated": not new})


@router.put("/item-sets/{name}", response_model=ItemSetResponse)
async def put_item_set(name: str, request: Request) -> Response:
    """Keep a set of items that requests may name, in the place of one of the same name."""
    check_media_type(request)
    body = await request.body()
    return await about_set(request, put_set, name, body)


@router.get("/item-sets/{name}", response_model=ItemSetResponse)
async def get_item_set(name: str, request: Request) -> Response:
    """Return the size of a set of items."""
    return await about_set(request, told_of_set, name)


@router.delete("/item-sets/{name}", response_model=DeletedResponse)
async def delete_item_set(name: str, request: Request) -> Response:
    """Remove a set of items."""
    state = request.app.state
    await state.keeping.one("/item-sets", state.item_sets.delete, name)
    return JSONResponse({"name": name})


async def about_set(request: Request, tell: Callable[..., dict[str, Any]], *given: Any) -> Response:
    """Return the answer to a request about a set, which is read or written in a thread."""
    state = request.app.state
    model = current_model(request)
    return JSONResponse(await state.keeping.one("/item-sets", tell, model, state.item_sets, *given))


def put_set(model: LoadedModel, sets: ItemSets, name: str, body: bytes) -> dict[str, Any]:
    """Keep a set; return what there is to say of it."""
    sets.put(name, decoded(ItemSetRequest, body).items)
    return told_of_set(model, sets, name)


def told_of_set(model: LoadedModel, sets: ItemSets, name: str) -> dict[str, Any]:
    """Return the size of a set, and how many of its ids the model does not know."""
    items = sets.read(name)
    return {"name": name, "size": len(items), "unknown": len(model.package.known_items(items)[1])}


async def recommended(asked: RecommendRequest, request: Request) -> Response:
    """Return the answer to a request for a list."""
    model = current_model(request)
    computing: Computing = request.app.state.computing
    sets: ItemSets = request.app.state.item_sets
    if asked.plain:
        group = (
            id(model), asked.user is None, asked.n, asked.filter_liked, asked.item_set,
            asked.filter_item_set,
        )  # fmt: skip
        kind = "/recommend known" if asked.history is None else "/recommend history"
        return answer(await computing.together(kind, group, plain_lists_of, (model, sets, asked)))
    if asked.why:
        if asked.n > MOST_EXPLAINED:
            raise InputError(f"why is for at most {MOST_EXPLAINED} items: lower n")
        slow: Computing = request.app.state.slow
        return answer(await slow.one("/recommend why", list_of, model, sets, asked))
    kind = "/recommend varied" if asked.diversity or asked.dislikes else "/recommend cut"
    return answer(await computing.one(kind, list_of, model, sets, asked))


async def similar_found(asked: SimilarItemsRequest, request: Request) -> Response:
    """Return the answer to a request for similar items."""
    model = current_model(request)
    state = request.app.state
    return answer(await state.computing.one("/similar", similar_to, model, state.item_sets, asked))


def keep(models: ModelStore, batch: str, items: list[EventItem]) -> bool:
    """Check a batch of events and keep it; return whether it is new.

    In a thread, as ten thousand events take longer to check than the event loop may be held.
    """
    package = models.current.package
    package.check_events()
    storable("batch", batch)
    for k, one in enumerate(items):
        storable(f"events.{k}.user", one.user)
        if one.item is not None:
            storable(f"events.{k}.item", one.item)
        if (one.item is None) != (one.action == "forget"):
            wanted = "no item" if one.action == "forget" else "an item"
            raise InputError(f"events.{k}: an event of action {one.action} needs {wanted}")
    package.check_ids((one.user for one in items), (one.item for one in items if one.item is not None))
    given = [Event(one.user, one.item, package.time_of_event(one.time), one.action) for one in items]
    return models.keep(batch, given)


def storable(what: str, name: str) -> None:
    """Refuse what databases do not take as text."""
    if "\0" in name:
        raise InputError(f"{what}: an id holds a character that no text has")


def plain_lists_of(asked: Sequence[tuple[LoadedModel, ItemSets, RecommendRequest]]) -> list[bytes]:
    """Return the answers to plain requests of one group, made in one call."""
    model, sets, first = asked[0]
    if len(asked) == 1:
        return [list_of(model, sets, first)]
    left_out = candidates_of(model, sets, first)[0]
    profiles = [profile_of(model, one) for *_, one in asked]
    found = model.package.ranker.recommend(
        [profile.userid for profile in profiles],
        stacked([profile.row for profile in profiles]),
        N=first.n,
        filter_already_liked_items=first.filter_liked,
        filter_items=left_out,
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


def list_of(model: LoadedModel, sets: ItemSets, asked: RecommendRequest) -> bytes:
    """Return the answer to a request for a list."""
    profile = profile_of(model, asked)
    left_out, strange = candidates_of(model, sets, asked)
    disliked, more = model.package.known_items(asked.dislikes)
    new = model.package.known_items([*asked.pinned, *asked.boosts])[1]
    fair = None
    if asked.fair is not None:
        group = model.passing(msgspec.json.encode(asked.fair.protected, order="sorted"))
        fair = Fair(group, asked.fair.p, asked.fair.alpha)
    rules = merchandising(
        model.package,
        [one for one in asked.pinned if one in model.package.item_index],
        {one: factor for one, factor in asked.boosts.items() if one in model.package.item_index},
        asked.at_most,
        fair,
    )
    found = rerank(
        model.package.ranker, profile.userid, profile.row, asked.n, dislikes=disliked,
        diversity=asked.diversity, item_users=model.item_users if asked.diversity else None,
        filter_already_liked_items=asked.filter_liked, recalculate_user=profile.fold_in,
        times=profile.new_times, filter_items=left_out, merchandising=rules,
    )  # fmt: skip
    items = named(model, *found)
    body: dict[str, Any] = {"items": items, "fallback": bool(found.fallback)}
    body |= {"unknown": [*profile.unknown, *strange, *more, *new]}
    if asked.why:
        for k, one in zip(found.ids.tolist(), items, strict=True):
            one["why"] = explained(model.package, profile, model.package.item_ids[k]).as_dict()
    if fair is not None and not fair.met(found.ids):
        body["note"] = f"the list has {TOO_FEW}"
    return encoded(body)


def similar_to(model: LoadedModel, sets: ItemSets, asked: SimilarItemsRequest) -> bytes:
    """Return the answer to a request for similar items."""
    item = item_of(model, asked.item)
    left_out, strange = candidates_of(model, sets, asked)
    found = similar_items(
        model.package.ranker, item, asked.n, diversity=asked.diversity,
        item_users=model.item_users if asked.diversity else None, filter_items=left_out,
    )  # fmt: skip
    return encoded({"items": named(model, *found), "unknown": strange})


def users_like(model: LoadedModel, asked: RecommendRequest) -> bytes:
    """Return the answer to a request for similar users."""
    user = profile_of(model, asked).userid
    ids, scores = model.package.ranker.similar_users(user, N=asked.n, filter_users=[user])
    names = model.package.user_ids
    return encoded({
        "users": [
            {"user": str(names[k]), "score": float(s)} for k, s in zip(ids, scores, strict=True)
        ]
    })  # fmt: skip


def scores_of(model: LoadedModel, asked: ScoresRequest) -> bytes:
    """Return the answer to a request for scores."""
    profile = profile_of(model, asked)
    items, strange = model.package.known_items(asked.items)
    ranker = model.package.ranker
    found = ranker.scores(
        profile.userid, profile.row, recalculate_user=profile.fold_in, times=profile.new_times
    )[0]
    empty = ranker.falls_back(None if profile.fold_in else np.array([profile.userid]), profile.row)
    body = {"items": named(model, items, found[items]), "fallback": bool(empty[0])}
    return encoded(body | {"unknown": [*profile.unknown, *strange]})


def reasons_of(model: LoadedModel, asked: ExplainRequest) -> bytes:
    """Return the answer to a request for what a score rests on."""
    profile = profile_of(model, asked)
    item = model.package.item_ids[item_of(model, asked.item)]
    why = explained(
        model.package, profile, item, asked.n, formulas=asked.formulas, changes=asked.changes,
        model_rule=asked.model_rule, attributes=model.attributes if asked.model_rule else None,
    )  # fmt: skip
    return encoded(why.as_dict() | {"unknown": list(profile.unknown)})


def rule_of(model: LoadedModel, asked: RulesRequest) -> bytes:
    """Return the answer to a request for a rule."""
    if asked.item is not None:
        if asked.user is not None or asked.history is not None or asked.as_of is not None:
            raise InputError("pass an item alone, or a user or a history")
        found = item_users_rule(model.package, item_of(model, asked.item), asked.n)
        return encoded(found.as_dict() | {"unknown": []})
    profile = profile_of(model, asked)
    whose = "this history" if asked.user is None else asked.user
    found = user_rule(model.package, profile, model.attributes, asked.n, whose)
    return encoded(found.as_dict() | {"unknown": list(profile.unknown)})


def encoded(body: dict[str, Any]) -> bytes:
    """Return an answer as it is sent; here, where the event loop does not wait for it."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def answer(body: bytes) -> Response:
    """Return the response that sends this body."""
    return Response(body, media_type="application/json")


def profile_of(model: LoadedModel, asked: ProfileRequest) -> Profile:
    """Return for whom a request asks; an unknown user is 404, unknown items are told in the answer."""
    user = asked.user
    if user is not None and asked.history is None and user not in model.package.user_index:
        raise HTTPException(404, f"unknown user {user[:60]!r}: post a history instead")
    if asked.as_of is not None:
        valid_time("as_of", asked.as_of)
    return model.package.profile(
        user, asked.items_liked, times=asked.times_liked, weights=asked.weights_liked, as_of=asked.as_of,
        skip_unknown=True,
    )  # fmt: skip


def item_of(model: LoadedModel, item: str) -> int:
    """Return an item's index; an unknown one is 404."""
    if item not in model.package.item_index:
        raise HTTPException(404, f"unknown item {item[:60]!r}")
    return model.package.item_index[item]


def candidates_of(
    model: LoadedModel, sets: ItemSets, asked: RecommendRequest | SimilarItemsRequest
) -> tuple[NDArray[np.intp] | None, list[str]]:
    """Return the items that are left out, None where none are, and the ids that are unknown.

    An unknown set is 404; ids of a set that the model does not have are not named.
    """
    if asked.items is not None and asked.filter_items:
        raise HTTPException(422, "pass items or filter_items, not both")
    keep = np.ones(len(model.package.item_ids), dtype=bool)
    unknown: list[str] = []
    if asked.items is not None:
        found, unknown = model.package.known_items(asked.items)
        keep[:] = False
        keep[found] = True
    if asked.filter_items:
        found, unknown = model.package.known_items(asked.filter_items)
        keep[found] = False
    if asked.item_set is not None:
        keep &= model.in_set(sets.read, asked.item_set, sets.state(asked.item_set))
    if asked.filter_item_set is not None:
        keep &= ~model.in_set(sets.read, asked.filter_item_set, sets.state(asked.filter_item_set))
    if asked.filters:
        keep &= model.passing(msgspec.json.encode(asked.filters, order="sorted"))
    return (None if keep.all() else np.flatnonzero(~keep)), unknown


def named(model: LoadedModel, ids: ArrayLike, scores: ArrayLike) -> list[dict[str, Any]]:
    """Return items as they are answered: id, title and score."""
    names, titles = model.package.item_ids, model.package.titles
    return [
        {"item": str(names[k]), "title": str(titles[k]), "score": float(s)}
        for k, s in zip(np.asarray(ids).tolist(), np.asarray(scores).tolist(), strict=True)
    ]
