"""Text and bytes from files that nobody vouches for: encodings, gzip, bombs, odd kinds of file."""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from pathlib import Path

from recsys.errors import InputError

MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 100_000_000
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
