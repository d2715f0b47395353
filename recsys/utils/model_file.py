"""Ranker files: safetensors arrays plus a JSON manifest with checksum, written atomically.

Layout: the safetensors format, whose header's metadata has one entry, `recsys`: JSON of
{"format", "written_by", "sha256", ...}. The checksum covers the manifest (without itself),
the array table and the array bytes. Nothing in the file is ever executed or imported.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError, ModelFileError
from recsys.utils.distribution import __version__
from recsys.utils.files import replacing, shown
from recsys.utils.tasks import why

FORMAT = 2  # 2: arrays by the width of their numbers; 1: by their names
MAX_HEADER = 1 << 20
MAX_ARRAYS = 256
DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

Reader = TypeVar("Reader", bound=Callable[..., Any])


def write(path: str | Path, manifest: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and manifest to `path`; a crash leaves the old file or the new one."""
    # Wide numbers first, as in safetensors, so that each array begins at a multiple of its width.
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    content = [np.ascontiguousarray(arrays[name]).ravel() for name in names]
    table, end = {}, 0
    for name, array in zip(names, content, strict=True):
        start, end = end, end + array.nbytes
        table[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [start, end],
        }
    manifest = {"format": FORMAT, "written_by": f"recsys {__version__}"} | manifest
    manifest["sha256"] = _checksum(manifest, table, content)
    text = json.dumps(manifest, default=np.generic.item)
    header = json.dumps({"__metadata__": {"recsys": text}} | table).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise InputError(
            f"{shown(path)}: the parameters take {len(header):,} bytes; at most {MAX_HEADER:,} fit"
        )
    with replacing(path) as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for array in content:
            file.write(array)


def refuses(reader: Reader) -> Reader:
    """Let a reader, whose first argument is a path, raise only ModelFileError."""

    @functools.wraps(reader)
    def refusing(*args: Any, **kwargs: Any) -> Any:
        try:
            return reader(*args, **kwargs)
        except ModelFileError:
            raise
        except Exception as error:  # content of strangers may raise anything
            raise ModelFileError(f"{shown(args[0])} cannot be used: {why(error)}") from error

    return refusing  # type: ignore[return-value]


@refuses
def read(path: str | Path, mapped: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return manifest and arrays of a file that `write` wrote.

    A `mapped` file is one copy for all processes; changes of one process are its own. It may be replaced
    or removed, but must not be changed in place.
    """
    if not os.path.isfile(path):
        raise ModelFileError(f"{shown(path)} is not a file")
    with open(path, "rb") as file:
        size, prefix = os.fstat(file.fileno()).st_size, file.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise ModelFileError(f"{shown(path)} is not a ranker file, or is truncated")
        manifest, table = _header(shown(path), file.read(length), size - 8 - length)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None
        arrays = {}
        for name, entry in table.items():
            dtype, entries = DTYPES[entry["dtype"]], math.prod(entry["shape"])
            if content is None:
                array = np.fromfile(file, dtype, entries)
            else:
                array = np.frombuffer(content, dtype, entries, 8 + length + entry["data_offsets"][0])
                array = array if array.flags.aligned else array.copy()
            arrays[name] = array.reshape(entry["shape"])
    checksum = manifest.pop("sha256", None)
    if checksum != _checksum(manifest, table, [array.ravel() for array in arrays.values()]):
        raise ModelFileError(f"{shown(path)} was altered: its checksum does not match its content")
    return manifest, arrays


def _header(path: str, header: bytes, payload: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return manifest and array table, checked against the file's size before anything is allocated."""
    try:
        table = json.loads(header)
        manifest = json.loads(table.pop("__metadata__")["recsys"])
        version = manifest["format"]
        table = dict(sorted(table.items(), key=lambda item: (*item[1]["data_offsets"], item[0])))
        end, fits = 0, len(table) <= MAX_ARRAYS
        for entry in table.values():
            start, end = end, end + DTYPES[entry["dtype"]].itemsize * math.prod(entry["shape"])
            fits &= entry["data_offsets"] == [start, end] and min(entry["shape"], default=0) >= 0
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ModelFileError(f"{path} is not a ranker file of recsys") from None
    if version not in range(1, FORMAT + 1):
        writer = ascii(manifest.get("written_by"))[:40]
        raise ModelFileError(
            f"{path} was written by {writer} (format {ascii(version)[:20]}); "
            f"this reads up to format {FORMAT}: upgrade recsys"
        )
    if not fits or end != payload:
        raise ModelFileError(f"{path} is truncated, or its array table does not fit its arrays")
    return manifest, table


def _checksum(manifest: dict[str, Any], table: dict[str, Any], content: list[np.ndarray]) -> str:
    text = json.dumps([manifest, table], sort_keys=True, default=np.generic.item)
    digest = hashlib.sha256(text.encode())
    for array in content:
        digest.update(array.data)
    return digest.hexdigest()


def packed(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return fitted attributes as JSON values and as arrays.

    A CSR matrix `x_` is `x_.data`, `x_.indices` and `x_.indptr`; a list of arrays `x_.0`, `x_.1`, ….
    """
    scalars: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for key, value in sorted(state.items()):
        if isinstance(value, np.ndarray):
            arrays[key] = value
        elif sp.issparse(value):
            arrays |= {f"{key}.{name}": getattr(value, name) for name in ("data", "indices", "indptr")}
            scalars[f"{key}.shape"] = list(value.shape)
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            arrays |= {f"{key}.{k}": array for k, array in enumerate(value)}
        elif value is not None:
            scalars[key] = value
    return scalars, arrays


def unpacked(scalars: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the attributes that `packed` took apart, checked; their arrays are taken out."""
    state = dict(scalars)
    for key in [key for key in state if key.endswith("_.shape")]:
        name = key.removesuffix(".shape")
        state[name] = csr(name, arrays, state.pop(key))
    fitted = [key for key in arrays if key.partition(".")[0].endswith("_")]
    for key in sorted(fitted, key=lambda key: (len(key), key)):  # x_.2 before x_.10
        name, _, number = key.partition(".")
        if number:
            state.setdefault(name, []).append(arrays.pop(key))
        else:
            state[name] = arrays.pop(key)
    for key, value in state.items():
        if not key.isidentifier() or not key.endswith("_") or key.startswith("__"):
            raise InputError(f"{key!r} is not the name of a fitted attribute")
        for array in value if isinstance(value, list) else [value]:
            numbers = array.data if sp.issparse(array) else array
            if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
                raise InputError(f"{key} contains NaN or infinity")
    return state


def csr(name: str, arrays: dict[str, np.ndarray], shape: Any) -> sp.csr_matrix:
    """Take a CSR matrix's three arrays out of `arrays` and return it checked."""
    data, indices, indptr = (arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
    try:
        if (indptr[1:] < indptr[:-1]).any():  # SciPy does not look where the last one is 0
            raise ValueError
        matrix = sp.csr_matrix((data, indices, indptr), shape)
        matrix.check_format(full_check=True)
        if data.dtype.kind in "fu" and indices.dtype.kind == "i" and matrix.has_canonical_format:
            return matrix
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"the index arrays of {name} are broken")
