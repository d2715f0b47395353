"""Where independent units of work run: in this process, in several, or on a cluster that is there."""

from recsys.engines.base import Engine
from recsys.engines.choice import engine, opened

__all__ = ["Engine", "engine", "opened"]
