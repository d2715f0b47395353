"""An HTTP service over a saved model: `recsys serve`, or `create_app` under any ASGI server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.service.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # A worker process of uvicorn imports `http` before it answers; one that takes seconds is replaced.
    from recsys.service.app import create_app

    return create_app
