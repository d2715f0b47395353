"""The OpenAPI document: what FastAPI makes of the routes, with every answer that is served."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from recsys.service.limits import ITEM_SETS, OPEN, WORK
from recsys.service.schemas import BODIES, REFERENCE, Refusal, request_schemas

REFUSALS = {
    "400": "There is not one Host header, or its name is not allowed.",
    "401": "There is no bearer token, or another one.",
    "404": "An id that the model does not have, or an item set that there is not.",
    "408": "The body did not come in time.",
    "413": "The body is larger than 1 MiB, or 8 MiB of an item set.",
    "414": "The target of the request is longer than 8 KiB.",
    "422": "A request that is wrong.",
    "429": "Too many requests from this address; Retry-After says when to come again.",
    "501": "A transfer encoding other than chunked.",
    "503": "More requests at once than can be answered soon; Retry-After says when to come again.",
}
ID = {
    "name": "X-Request-ID", "in": "header", "required": False,
    "description": "Given back in the answer, and in the log.", "schema": {"type": "string"},
}  # fmt: skip
TEXT = {"text/plain": {"schema": {"type": "string"}}}


def described(app: FastAPI, token: bool) -> dict[str, Any]:
    """Return the document of an application; with a token, where it is asked for."""
    if app.openapi_schema:
        return app.openapi_schema
    found = get_openapi(
        title=app.title, version=app.version, routes=app.routes,
        description="Recommendations, similar items and explanations from one fitted ranker.",
    )  # fmt: skip
    schemas = found["components"]["schemas"]
    schemas |= request_schemas()
    schemas["Refusal"] = Refusal.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    if token:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation, token)
    app.openapi_schema = found
    return found


def _complete(path: str, method: str, operation: dict[str, Any], token: bool) -> None:
    answers: dict[str, Any] = operation["responses"]
    answers.pop("422", None)
    statuses = {"400", "414", "501"}
    if path not in OPEN:
        statuses |= {"429"} | ({"401"} if token else set()) | {"408", "413"}
        if token:
            operation["security"] = [{"token": []}]
    asks = path.rpartition("/")[2] in WORK or path == "/events" or path.startswith(ITEM_SETS)
    if asks:
        statuses |= {"422", "503"}
        statuses |= set() if path == "/events" or method == "put" else {"404"}
    if path in BODIES and method in ("post", "put"):
        schema = {"$ref": REFERENCE.format(name=BODIES[path].__name__)}
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    if path == "/metrics":
        answers["200"]["content"] = TEXT
    for status in sorted(statuses):
        answers[status] = {
            "description": REFUSALS[status],
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
        }
        if status in ("429", "503"):
            answers[status]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    operation.setdefault("parameters", []).append(ID)
