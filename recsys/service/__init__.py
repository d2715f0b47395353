"""An HTTP service over a saved model: `recsys serve`, or `create_app` under any ASGI server."""

from recsys.service.app import create_app

__all__ = ["create_app"]
