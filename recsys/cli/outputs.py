"""Files that a command writes, looked at before it does anything."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from recsys.errors import InputError
from recsys.utils.atomic import check_target, is_stdout
from recsys.utils.files import is_folder

OUTPUTS = ("--out", "--json", "--users-out", "--items-out", "--curve")
FOLDERS = ("--out",)  # may be folders, of options whose type is text
READ_TEXTS = ("--events",)  # files that are read, of options whose type is text


def checks_outputs(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command refuse outputs that cannot be written, or that are its inputs or each other.

    `--json` gets - where it names what standard output goes to.
    """
    hints = get_type_hints(command, include_extras=True)
    options = {name: option_name(hint) for name, hint in hints.items()}
    outputs = [name for name, option in options.items() if option in OUTPUTS]
    if not outputs:
        return command
    inputs = [
        name
        for name, option in options.items()
        if option is not None and (option in READ_TEXTS or _holds(hints[name], Path))
        and name not in outputs
    ]  # fmt: skip

    @functools.wraps(command)
    def checked(**given: Any) -> None:
        taken: list[tuple[str, Any]] = []
        for name in outputs:
            path = given.get(name)
            if path in (None, "-"):
                continue
            option = str(options[name])
            if option == "--json" and is_stdout(path):
                given[name] = "-"
                continue
            if not (option in FOLDERS and isinstance(path, str) and is_folder(path)):
                check_target(path)
            for other in inputs:
                for read in _texts(given.get(other)):
                    if _same(path, read):
                        raise InputError(
                            f"{option} {path} is the file that {options[other]} reads; name another one"
                        )
            for before, written in taken:
                if _same(path, written):
                    raise InputError(f"{before} and {option} are the same file; name another one")
            taken.append((option, path))
        command(**given)

    return checked


def option_name(hint: Any) -> str | None:
    """Return the name of an option, None for a parameter that is no option."""
    for told in getattr(hint, "__metadata__", ()):
        # the first name that Typer is given stands where the default of older code does
        names = (getattr(told, "default", None), *(getattr(told, "param_decls", None) or ()))
        named = [name for name in names if isinstance(name, str) and name.startswith("--")]
        if named:
            return named[0].split("/")[0]
    return None


def _holds(hint: Any, kind: type) -> bool:
    return hint is kind or any(_holds(part, kind) for part in get_args(hint))


def _texts(value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, (str, Path)):
            yield os.fspath(one)


def _same(path: Any, other: Any) -> bool:
    """Return whether two paths are one file, also where there is none yet."""
    try:
        if os.path.exists(path) and os.path.exists(other):
            return os.path.samefile(path, other)
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):
        return False
