"""The installed package: its version, and the command that installs one of its extras."""

from __future__ import annotations

__version__ = "0.3.0"
DISTRIBUTION = "recsys-cpu"


def install_hint(extra: str) -> str:
    """Return a command that works here: with the clone, or what pip installed from (PEP 610)."""
    import json  # late: `import recsys` is fast
    from importlib import metadata
    from pathlib import Path

    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file():
        return f"pip install '{clone}[{extra}]'"
    try:
        found = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        found = None
    origin = json.loads(found or "{}")
    vcs = origin.get("vcs_info", {}).get("vcs")
    url = f" @ {f'{vcs}+' if vcs else ''}{origin['url']}" if origin else ""
    return f"pip install '{DISTRIBUTION}[{extra}]{url}'"
