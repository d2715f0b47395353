"""Reading files that others made, within limits."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from recsys.errors import InputError

MAX_BYTES = 4_000_000_000
BOMB_RATIO, BOMB_BYTES = 200, 10_000_000  # text of interactions is packed to a third, not to a 200th
MOST_SHOWN = 200  # characters of a path in a message
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


def check_growth(path: Path, packed: int, grown: int) -> None:
    """Refuse what takes too many bytes once it is unpacked, or like a bomb many more than before."""
    if grown > MAX_BYTES or grown > max(BOMB_BYTES, BOMB_RATIO * packed):
        raise InputError(
            f"{shown(path)}: {packed:,} bytes unpack to more than {grown:,}, as in a "
            "decompression bomb. Unpack the file yourself or convert it to CSV"
        )
