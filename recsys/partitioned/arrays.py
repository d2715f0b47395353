"""Files of the work folder: named arrays one behind the other, mapped when they are read.

Unlike a ranker's file they have no checksum: one process writes what another of the same run reads a
part of, many times.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.utils.atomic import replacing
from recsys.utils.files import shown
from recsys.utils.mapping import mapped
from recsys.utils.model_file import Pieces

MAGIC = b"RECSYSW1"
WIDTH = 64  # bytes: where arrays begin


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays, whole or in `Pieces`, to a file that appears when it is whole."""
    table, at = {}, 0
    for name, array in arrays.items():
        table[name] = (np.dtype(array.dtype).str, list(array.shape), at)
        at += -(-array.nbytes // WIDTH) * WIDTH
    header = json.dumps(table).encode()
    header += b" " * (-(len(header) + 16) % WIDTH)
    with replacing(path) as file:
        file.write(MAGIC + struct.pack("<Q", len(header)) + header)
        for array in arrays.values():
            if isinstance(array, Pieces):
                for stretch in array.stretches():
                    file.write(stretch)
            else:
                file.write(np.ascontiguousarray(array).data if array.size else b"")
            file.write(b"\0" * (-array.nbytes % WIDTH))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, left in it: what is not read takes no memory.

    They can be written to, which changes only this process's copy: arrays that cannot be written to
    would have compiled code made anew for them.
    """
    try:
        with path.open("rb") as file:
            first = file.read(16)
            if first[:8] != MAGIC or len(first) < 16:
                raise InputError(f"{shown(path)} is no file of a work folder: remove the folder")
            (length,) = struct.unpack("<Q", first[8:])
            if length > os.fstat(file.fileno()).st_size:
                raise ValueError("a header longer than the file")
            table = json.loads(file.read(length))
            content = mapped(file.fileno())
            found = {}
            for name, (kind, shape, at) in table.items():
                if min(shape, default=0) < 0:
                    raise ValueError("a count below 0")
                count = int(np.prod(shape, dtype=np.int64))
                array = np.frombuffer(content, np.dtype(kind), count, 16 + length + at)
                found[name] = array.reshape(shape)
            return found
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError):
        raise InputError(f"{shown(path)} is damaged: remove the work folder") from None
