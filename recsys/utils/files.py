"""Files: sizes that are safe to read, and files that are replaced atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recsys.errors import InputError

TEMPORARY = ".recsys-tmp"  # ending of a file that is being written
MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 10_000_000  # text of interactions is packed to a third, not to a 200th
MOST_SHOWN = 200  # characters of a path in a message


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a message, the middle of a long one left out."""
    text = os.fspath(path)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]}…{text[-MOST_SHOWN // 2 :]}"


def check_file(path: Path) -> int:
    """Return the size of a regular, readable file."""
    try:
        size = _regular_size(path)
        with path.open("rb"):
            return size
    except FileNotFoundError:
        raise InputError(f"{shown(path)} does not exist") from None
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read: {error.strerror or error}") from None


def check_growth(path: Path, packed: int, grown: int) -> None:
    """Refuse what takes too many bytes once it is unpacked, or like a bomb many more than before."""
    if grown > MAX_BYTES or grown > max(BOMB_BYTES, BOMB_RATIO * packed):
        raise InputError(
            f"{shown(path)}: {packed:,} bytes unpack to more than {grown:,}, as in a "
            "decompression bomb. Unpack the file yourself or convert it to CSV"
        )


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
    name, flushed to disk and renamed. A link is followed, and the mode of an old file is kept.
    """
    try:
        target = _target(path)
        temporary = target.parent / f".{secrets.token_hex(8)}{TEMPORARY}"
        try:
            with open(temporary, "xb") as file:
                if target.exists():
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode) & 0o777)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if os.name != "nt":  # which opens no folders
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file behind links."""
    with suppress(FileNotFoundError):
        _regular_size(path)
    return Path(os.path.realpath(path))


def _regular_size(path: str | os.PathLike[str]) -> int:
    try:
        info = os.stat(path)
    except ValueError:
        raise InputError(f"{str(path)[:60]!r} is not a file name: it contains a NUL") from None
    if stat.S_ISDIR(info.st_mode):
        raise InputError(f"{shown(path)} is a folder; name a file")
    if not stat.S_ISREG(info.st_mode):
        raise InputError(f"{shown(path)} is not a regular file; name a file on disk")
    return info.st_size
