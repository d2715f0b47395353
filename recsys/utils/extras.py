"""The command that installs an extra of this package, for messages."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

DISTRIBUTION = "recsys-cpu"


def install_hint(extra: str) -> str:
    """Return a command that works here: with the clone's folder, or what pip installed from (PEP 610).

    >>> install_hint("app").startswith("pip install '")
    True
    """
    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file():
        return f"pip install '{clone}[{extra}]'"
    try:
        distribution = metadata.distribution(DISTRIBUTION)
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    url = origin.get("url", "")
    if "vcs_info" in origin:
        return f"pip install '{DISTRIBUTION}[{extra}] @ {origin['vcs_info']['vcs']}+{url}'"
    path = Path(url2pathname(urlsplit(url).path))
    if url.startswith("file:") and path.exists():
        return f"pip install '{path}[{extra}]'"
    if url.startswith("http"):
        return f"pip install '{DISTRIBUTION}[{extra}] @ {url}'"
    return f"pip install 'recsys_cpu-{distribution.version}-py3-none-any.whl[{extra}]'"
