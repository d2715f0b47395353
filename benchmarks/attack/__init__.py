"""Fuzz tests: they try to break the files, the calls, the command line and the service.

Each is a module here with `run(seconds, seed) -> Result`; `python -m benchmarks.attack` runs them
and prints one table. A module is a fuzz test unless it is one of `HELPERS`.
"""

from __future__ import annotations

import pkgutil

HELPERS = ("common", "serving", "tables")


def campaigns() -> list[str]:
    """Return the names of all fuzz tests, in the order they run."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(
        name.replace("_", "-") for name in found if name not in HELPERS and not name.startswith("_")
    )
