"""Reading files that others made, within limits."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recsys.errors import InputError

MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 10_000_000  # text of interactions is packed to a third, not to a 200th
MOST_SHOWN = 200  # characters of a path in a message
BLOCK = 1 << 18  # bytes that are taken apart at once: cells take many times as much memory
MOST_LINE = 50_000_000  # bytes
GZIP_MAGIC = b"\x1f\x8b"
KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
}


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a message, the middle of a long one left out."""
    text = os.fspath(path)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN // 2]}…{text[-MOST_SHOWN // 2 :]}"


def is_folder(path: Any) -> bool:
    """Return whether a path names a folder: it ends in a slash, or a folder is there.

    >>> is_folder("top/"), is_folder("top.parquet"), is_folder(".")
    (True, False, True)
    """
    if not isinstance(path, (str, os.PathLike)):
        return False
    text = os.fspath(path)
    ends = (os.sep, os.altsep or os.sep)
    return isinstance(text, str) and (text.endswith(ends) or ("\0" not in text and os.path.isdir(text)))


def check_file(path: Path) -> int:
    """Return the size of a regular, readable file."""
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise InputError(f"{shown(path)} is a folder; name a file")
        if not stat.S_ISREG(info.st_mode):
            raise InputError(f"{shown(path)} is not a regular file; name a file on disk")
        with path.open("rb"):
            return info.st_size
    except FileNotFoundError:
        raise InputError(f"{shown(path)} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{shown(path)} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def check_growth(path: Path, packed: int, grown: int, max_bytes: int = MAX_BYTES) -> None:
    """Refuse what takes too many bytes once it is unpacked, or like a bomb many more than before."""
    if grown > max_bytes or grown > max(BOMB_BYTES, BOMB_RATIO * packed):
        raise InputError(
            f"{shown(path)}: {packed:,} bytes of it unpack to more than {grown:,}; refused, as bombs do "
            "so. If it is none, unpack it or write it as CSV"
        )


def read_blocks(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """Give a file's content in blocks, decompressed if it is gzip."""
    size = check_file(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(GZIP_MAGIC))
            file.seek(0)
            packed = start == GZIP_MAGIC
            if not packed and path.suffix == ".gz" and size:
                raise InputError(f"{shown(path)} is named .gz but is not gzip; rename or compress it")
            if not packed and size > max_bytes:
                raise InputError(f"{shown(path)} has {size:,} bytes; at most {max_bytes:,} are read")
            if packed:  # before anything is made of it
                grown, stream = 0, gzip.GzipFile(fileobj=file)
                while block := stream.read(BLOCK):
                    grown += len(block)
                    # Of what was read so far: a bomb need not be read to its end to be one.
                    check_growth(path, file.tell(), grown, max_bytes)
                file.seek(0)
            whole: Any = gzip.GzipFile(fileobj=file) if packed else file
            while block := whole.read(BLOCK):
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{shown(path)} is a truncated or damaged gzip file: {error}") from None
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read: {error.strerror or error}") from None


def text_blocks(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Give a file's text with Unix line ends in blocks of whole lines; a byte order mark is dropped.

    A line end must be the byte in the encoding that it is in ASCII. What is no text, or a line of more
    than `MOST_LINE` bytes, is refused by line and byte.
    """
    lines = 0
    for block in _whole_lines(path):
        if lines == 0:
            _check_kind(path, block)
        if b"\x00" in block:
            line = lines + _line_of(block, block.index(b"\x00"))
            raise InputError(f"{shown(path)}, line {line}: a NUL byte; this is not a text file")
        try:
            text = block.decode("utf-8-sig" if lines == 0 and encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            line = lines + _line_of(block, error.start)
            raise InputError(
                f"{shown(path)}, line {line}: byte 0x{block[error.start]:02x} is not {encoding}; save "
                "it as UTF-8"
            ) from None
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines += text.count("\n")
        yield text


def _line_of(block: bytes, position: int) -> int:
    before = block[:position].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return before.count(b"\n") + 1


def _check_kind(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{shown(path)} is UTF-16 text; save it as UTF-8")
    for magic, kind in KINDS.items():
        if start.startswith(magic):
            raise InputError(f"{shown(path)} is {kind}, not text")


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Give the blocks of a file, each cut at its last line end."""
    kept: list[bytes] = []
    length = 0
    for block in read_blocks(path):
        # a \r at the very end may be the first half of a line end
        cut = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
        if kept and kept[-1].endswith(b"\r") and not block.startswith(b"\n"):
            yield b"".join(kept)
            kept, length = [], 0
        if cut:
            yield b"".join((*kept, block[:cut]))
            kept, length = [], 0
        if cut < len(block):
            kept.append(block[cut:])
            length += len(block) - cut
        if length > MOST_LINE:
            raise InputError(
                f"{shown(path)} has a line of more than {MOST_LINE:,} bytes; it is no table"
            )
    if kept:
        yield b"".join(kept)


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text as `text_blocks` gives it, with its errors."""
    return "".join(text_blocks(path, encoding))
