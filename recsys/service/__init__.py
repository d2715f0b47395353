"""An HTTP service over a saved ranker: `recsys serve`, or `create_app` under any ASGI server."""

from recsys.service.application import create_app

__all__ = ["create_app"]
