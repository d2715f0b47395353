"""Execution of independent tasks: in this process, in several, or on an existing cluster."""

from recsys.engines.base import Engine
from recsys.engines.choice import engine, opened

__all__ = ["Engine", "engine", "opened"]
