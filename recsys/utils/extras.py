"""Installation of extras: one sentence for every message."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

DISTRIBUTION = "recsys-cpu"


def install_hint(extra: str) -> str:
    """Return the command that installs an extra of this package, for the end of a message.

    In a clone it names the clone, otherwise the wheel: recsys-cpu is on no public index.

    >>> install_hint("app").startswith("pip install '")
    True
    """
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return f"pip install '{root}[{extra}]'"
    try:
        version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        version = "VERSION"
    return f"pip install 'recsys_cpu-{version}-py3-none-any.whl[{extra}]'"
