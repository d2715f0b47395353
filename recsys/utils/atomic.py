"""Files of our own, replaced atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.utils.files import shown

TEMPORARY = ".recsys-tmp"  # ending of a file that is being written
STRETCH = 1 << 24  # bytes a call writes


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse at once what `replacing` would refuse in the end."""
    try:
        folder = _target(path).parent
        if not folder.is_dir():
            raise InputError(f"{shown(path)}: the folder {shown(folder)} does not exist")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{shown(path)}: the folder {shown(folder)} is not writable")
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield a binary file to write; it replaces `path` when the block ends without error.

    A crash leaves the old file or the new one: the new one is written beside it under a temporary
    name, flushed to disk and renamed. A link is followed. A new file has the mode that the umask gives,
    one that replaces another has that one's mode.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "list.csv")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"user,item")
    ...     path.read_bytes()
    b'user,item'
    """
    try:
        target = _target(path)
        name = target.parent / f".{secrets.token_hex(8)}{TEMPORARY}"
        try:
            with open(name, "xb") as file:
                if target.exists():
                    os.chmod(name, stat.S_IMODE(target.stat().st_mode) & 0o777)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        if os.name != "nt":  # which opens no folders
            handle = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file behind links; a folder, a device or a pipe is refused."""
    if "\0" in os.fspath(path):
        raise InputError(f"{str(path)[:60]!r} is not a file name: it contains a NUL")
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{shown(path)} is a folder; name a file")
        if not stat.S_ISREG(mode):
            raise InputError(f"{shown(path)} is not a regular file; name a file on disk")
    return Path(os.path.realpath(path))
