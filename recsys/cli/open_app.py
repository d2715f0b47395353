"""`recsys app`: the Streamlit app, of the package or of a checkout."""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from recsys.errors import InputError
from recsys.utils.distribution import install_hint
from recsys.utils.validation import check_integer


def app_folder() -> Path:
    """Return the folder that holds `app/` and its settings: in the package, or in a source checkout."""
    inside = Path(__file__).parents[1] / "streamlit_app"
    return inside if inside.is_dir() else Path(__file__).parents[2]


def command_line(host: str, port: int, headless: bool) -> list[str]:
    """Return the command that runs the app; its settings are flags, for it runs in any folder."""
    folder = app_folder()
    settings = tomllib.loads((folder / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    flags = _flat(settings) | {
        "server.address": host,
        "server.port": port,
        "server.headless": headless,
        "server.showEmailPrompt": False,
    }
    options = [
        f"--{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in flags.items()
    ]
    return [sys.executable, "-m", "streamlit", "run", str(folder / "app" / "main.py"), *options]


def _flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return the settings of tables in tables by names such as theme.light.primaryColor."""
    flags: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{before}{key}"
        flags |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return flags


def app(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option()] = 8501,
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser.")] = False,
) -> None:
    """Open the app: lists, reasons, metrics and your own tables in a browser."""
    missing = [name for name in ("streamlit", "altair") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"app needs {' and '.join(missing)}: {install_hint('app')}")
    check_integer("--port", port, 1, 65535)
    command = command_line(host, port, headless)
    sys.stdout.flush()
    os.execv(command[0], command)
