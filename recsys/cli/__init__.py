"""The command line: parse, call, print. Everything it does is in the modules it calls.

Importing this takes a moment: the signals' handlers stand before anything heavy is imported.
"""

from __future__ import annotations

import sys

from recsys.cli import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from recsys.cli.commands import app

__all__ = ["app", "call", "run"]


def call(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from recsys.cli import exits
    from recsys.cli.commands import app

    return exits.guarded(lambda: app(arguments, standalone_mode=False) or 0)


def run() -> NoReturn:
    """Run the command line and exit."""
    try:
        signals.leave_on_signals()
        from recsys.cli import exits

        exits.open_streams()
        code = call()
        signals.nothing_left_to_clean()
    except BaseException:
        signals.nothing_left_to_clean()
        # A signal while modules were imported comes out as what it is, or as a module's failure.
        code = signals.code_of(0)
        if not code:
            raise
    sys.exit(signals.code_of(code))


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recsys.cli.commands import app

    return app
