"""The OpenAPI document: what FastAPI makes of the routes, with every answer that is served."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from recsys.service.limits import OPEN, WORK
from recsys.service.schemas import Refusal

REFUSALS = {
    "400": "The body is no text.",
    "401": "There is no bearer token, or another one.",
    "404": "An id that the model does not have.",
    "408": "The body did not come in time.",
    "413": "The body is larger than 1 MiB.",
    "422": "A request that is wrong.",
    "429": "Too many requests from this address; Retry-After says when to come again.",
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
    statuses = set()
    if path not in OPEN:
        statuses = {"429"} | ({"401"} if token else set()) | {"408", "413"}
        if token:
            operation["security"] = [{"token": []}]
    asks = path.rpartition("/")[2] in WORK or path == "/events"
    if asks:
        statuses |= {"422", "503"} | ({"400"} if method == "post" else set())
        statuses |= set() if path == "/events" else {"404"}
    if path == "/ready":
        statuses |= {"503"}
    if path == "/metrics":
        answers["200"]["content"] = TEXT
    for status in sorted(statuses):
        answers[status] = {
            "description": REFUSALS[status],
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
        }
        if status in ("429", "503") and path != "/ready":
            answers[status]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    operation.setdefault("parameters", []).append(ID)
