"""Files that nobody vouches for, read with care, and files of our own, replaced whole or not at all."""

from __future__ import annotations

import glob
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recsys.errors import InputError

MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 100_000_000
TEMPORARY = ".recsys-tmp"  # ending of a file that is not whole yet
STRETCH = 1 << 24  # bytes a call writes
GZIP_MAGIC = b"\x1f\x8b"
KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
}


def check_file(path: Path) -> int:
    """Return the size of a regular, readable file.

    Raises
    ------
    InputError
        If it is absent, a folder, a device or pipe, or unreadable.
    """
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise InputError(f"{path} is a folder; name a file")
        if not stat.S_ISREG(info.st_mode):
            raise InputError(f"{path} is not a regular file; name a file on disk")
        with path.open("rb"):
            return info.st_size
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return a file's content, decompressed if it is gzip.

    Raises
    ------
    InputError
        If it cannot be read, is a broken gzip, or grows beyond `max_bytes` or like a bomb.
    """
    size = check_file(path)
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        if start != GZIP_MAGIC:
            if path.suffix == ".gz" and size:
                raise InputError(f"{path} is named .gz but is not gzip; rename or compress it")
            if size > max_bytes:
                raise InputError(f"{path} has {size:,} bytes; at most {max_bytes:,} are read")
            return file.read()
        out = io.BytesIO()
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                while chunk := stream.read(1 << 20):
                    out.write(chunk)
                    grown = out.tell()
                    bomb = grown > BOMB_BYTES and grown > BOMB_RATIO * size
                    if grown > max_bytes or bomb:
                        raise InputError(f"{path} unpacks to more than {grown:,} bytes; refused")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path} is a truncated or damaged gzip file: {error}") from None
        return out.getvalue()


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text with Unix line ends; a byte order mark is dropped.

    Raises
    ------
    InputError
        If it is no text in `encoding`; the message names the line and the byte.
    """
    data = read_bytes(path)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is UTF-16 text; save it as UTF-8")
    for magic, kind in KINDS.items():
        if data.startswith(magic):
            raise InputError(f"{path} is {kind}, not text")
    if b"\x00" in data:
        line = data.count(b"\n", 0, data.index(b"\x00")) + 1
        raise InputError(f"{path}, line {line}: a NUL byte; this is not a text file")
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not {encoding}; save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Give a binary file to write, which takes the place of `path` when the block ends without error.

    A crash leaves the old file or the new one: the new one is written beside it under a temporary
    name, flushed to disk and renamed, and the folder flushed. What a killed process left is swept
    away. A link is followed and stays; the new file is readable by everybody.

    Parameters
    ----------
    path : path
        Of a regular file, or of none yet, in a folder that exists.

    Yields
    ------
    binary file
        Without a buffer: each call to `write` writes all it is given.

    Raises
    ------
    InputError
        If it cannot be written; an old file is then untouched, and nothing else is left.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "list.csv")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"user,item")
    ...     path.read_bytes()
    b'user,item'
    """
    if "\0" in os.fspath(path):
        raise InputError(f"{str(path)[:60]!r} is no name of a file: it holds a NUL")
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise InputError(f"{path} is a folder; name a file")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is not a regular file; name a file on disk")
        for stale in target.parent.glob(f".{glob.escape(target.name)}.*{TEMPORARY}"):
            _sweep(stale)
        handle, name = tempfile.mkstemp(TEMPORARY, f".{target.name}.{os.getpid()}.", target.parent)
        try:
            with _Handle(handle) as file:
                yield file
                os.fsync(handle)
            os.chmod(name, 0o644)
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


class _Handle(io.RawIOBase):
    """An open descriptor as a file whose `write` goes on after a short write."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        left = memoryview(data)
        left = left.cast("B") if left.nbytes else memoryview(b"")  # an empty view cannot be cast
        size = len(left)
        while left:
            left = left[os.write(self.handle, left[:STRETCH]) :]
        return size

    def tell(self) -> int:
        return os.lseek(self.handle, 0, os.SEEK_CUR)

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self.handle)


def _sweep(stale: Path) -> None:
    """Remove what a killed process left, unless it still lives and writes."""
    pid = stale.name.removesuffix(TEMPORARY).split(".")[-2]
    alive = pid.isdigit() and int(pid) != os.getpid() and Path(f"/proc/{pid}").exists()
    if not alive:
        stale.unlink(missing_ok=True)
