"""Files of our own, replaced atomically."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.utils.files import shown

TEMPORARY = ".recsys-tmp"  # ending of a file that is being written
OLD_SECONDS = 24 * 3600.0  # without a write, after which a temporary file was left by a killed process
STDOUT = 1  # the descriptor
STRETCH = 1 << 24  # bytes a call writes


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse at once what `replacing` would refuse in the end."""
    try:
        if _is_stream(path):
            return
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise InputError(f"{shown(path)}: the folder {shown(folder)} does not exist")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{shown(path)}: nothing can be written in {shown(folder)}")
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is what standard output goes to, as /dev/stdout is."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(STDOUT))
    except (OSError, ValueError):
        return False


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield a binary file to write; it replaces `path` when the block ends without error.

    A crash leaves the old file or the new one: the new one is written beside it under a temporary
    name, flushed to disk and renamed. A link is followed. A new file has the mode that the umask gives,
    one that replaces another has that one's mode. Standard output and /dev/null get the content in the
    end; BrokenPipeError is raised where the reader of standard output has gone.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "list.csv")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"user,item")
    ...     path.read_bytes()
    b'user,item'
    """
    try:
        if _is_stream(path):
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                if sys.stdout is not None:
                    sys.stdout.flush()  # what was printed before comes before
                with open(os.dup(STDOUT) if is_stdout(path) else path, "wb") as out:
                    shutil.copyfileobj(file, out)
            return
        target = Path(os.path.realpath(path))
        name = _temporary(target.parent)
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
        _flush_folder(target.parent)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error


def create(path: str | os.PathLike[str], content: bytes) -> bool:
    """Write a small file where there is none, and return whether this call did.

    Of several calls at once one does.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "job.json")
    ...     create(path, b"one"), create(path, b"other"), path.read_bytes()
    (True, False, b'one')
    """
    name = _temporary(Path(path).parent)
    try:
        with replacing(name) as file:
            file.write(content)
        try:
            os.link(name, path)  # unlike a rename, this never replaces a file
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            os.replace(name, path)
        return True
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            os.unlink(name)


def sweep_folder(folder: Path) -> None:
    """Remove temporary files in a folder that have not been written to for a day."""
    try:
        for entry in os.scandir(folder):
            if entry.name.startswith(".") and entry.name.endswith(TEMPORARY):
                with suppress(OSError):  # another process removes it, too, or it is not ours
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > OLD_SECONDS:
                        os.unlink(entry.path)
    except OSError as error:
        raise InputError(f"{shown(folder)} cannot be read: {error.strerror or error}") from error


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system opens folders."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary(folder: Path) -> str:
    return os.path.join(folder, f".{secrets.token_hex(8)}{TEMPORARY}")


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is standard output or /dev/null, which are written to as they are.

    OSError is raised where that cannot be found out, as in a loop of links.
    """
    if "\0" in os.fspath(path):
        raise InputError(f"{str(path)[:60]!r} is no name of a file: it holds a NUL")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise InputError(f"{shown(path)} is a folder; name a file")
    if is_stdout(path) or os.path.realpath(path) == os.devnull:
        return True
    if not stat.S_ISREG(mode):
        raise InputError(f"{shown(path)} is not a regular file; name a file on disk")
    return False
