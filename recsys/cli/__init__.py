"""The command line: parse, call, print. Everything it does is in the modules it calls."""

from __future__ import annotations

import sys
from typing import NoReturn

from recsys.cli import exits
from recsys.cli.commands import app

__all__ = ["app", "call", "run"]


def call(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return exits.guarded(lambda: app(arguments, standalone_mode=False) or 0)


def run() -> NoReturn:
    """Run the command line and exit."""
    exits.leave_on_signals()
    sys.exit(call())
