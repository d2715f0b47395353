"""Ranker files: safetensors arrays plus a JSON manifest with checksum, written atomically.

Layout: the safetensors format, whose header's metadata holds one entry, `recsys`: JSON of
{"format", "written_by", "sha256", ...}. The checksum covers the manifest (without itself),
the array table and the array bytes. Nothing in the file is ever executed or imported.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import json
import math
import mmap
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError, ModelFileError
from recsys.utils.atomic import STRETCH, replacing
from recsys.utils.files import shown
from recsys.utils.version import __version__

FORMAT = 2  # 2: arrays by the width of their numbers; 1: by their names
MAX_HEADER = 1 << 20
MAX_ARRAYS = 256
MAX_AXES = 8
MAX_ENTRIES = 1 << 56  # of a shape whose empty axes are left out: NumPy counts these in bytes, too
MAX_MESSAGE = 400  # characters
# Not in Python's module before 3.13; the number of these processors' Linux.
NO_RESERVE = 0x4000 if platform.machine() in ("x86_64", "AMD64", "aarch64", "arm64") else 0
DTYPES = {
    "F32": np.float32,
    "F64": np.float64,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
}
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}

P = ParamSpec("P")
T = TypeVar("T")
Target = str | os.PathLike[str] | IO[bytes]  # a path, or a file that is open


def write(path: Target, manifest: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and manifest to `path`; a crash leaves the old file or the new one.

    To a file that is open the bytes are written where it stands; it is left open.
    """
    path = _target(path)
    table: dict[str, Any] = {}
    payload, offset = [], 0
    # As safetensors does it: wide ones first, so that each begins where numbers of its width may.
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = np.ascontiguousarray(arrays[name])
        table[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        payload.append(array)
        offset += array.nbytes
    manifest = {"format": FORMAT, "written_by": f"recsys {__version__}"} | manifest
    digest = _digest(manifest, table)
    for array in payload:
        digest.update(_bytes(array))
    manifest["sha256"] = digest.hexdigest()
    header = json.dumps(
        {"__metadata__": {"recsys": json.dumps(manifest, default=_plain)}} | table
    ).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise InputError(
            f"{name_of(path)}: the parameters take {len(header):,} bytes; at most {MAX_HEADER:,} fit"
        )
    first = [struct.pack("<Q", len(header)), header]
    try:
        if not isinstance(path, Path):
            _write_open(path, itertools.chain(first, map(_bytes, payload)))
            return
        with replacing(path) as file:
            for part in itertools.chain(first, map(_bytes, payload)):
                file.write(part)
    except OSError as error:
        raise InputError(f"{name_of(path)} cannot be written: {error.strerror or error}") from error


def refuses(reader: Callable[P, T]) -> Callable[P, T]:
    """Let a reader, whose first argument is a path or an open file, raise nothing but ModelFileError.

    Untrusted content may raise any exception while it is read. A caller that waits for the next good
    file, as a service does, has to catch only this one. Messages are one line that UTF-8 can hold.
    """

    @functools.wraps(reader)
    def refusing(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return reader(*args, **kwargs)
        except ModelFileError as error:
            told = _told(str(error))
            if told == str(error):
                raise
            raise ModelFileError(told) from None
        except InputError as error:
            raise ModelFileError(_told(str(error))) from None
        except MemoryError:
            what = "needs more memory than is free"
        except Exception as error:
            what = f"cannot be used: {type(error).__name__}: {error}"
        name = name_of(args[0]) if args else "the ranker file"
        raise ModelFileError(_told(f"{name} {what}"))

    return refusing


def _told(text: str) -> str:
    line = " ".join(text.splitlines()).encode("utf-8", errors="backslashreplace").decode("utf-8")
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}…"


@refuses
def read(
    path: Target, mapped: bool = False, checked: str | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return manifest and arrays of a file that `write` wrote.

    An open file is read from where it stands to its end; it is left open. With `mapped` the arrays
    stay in the file, where processes that read it share one copy in memory; what one of them changes is
    its own.
    The file may be replaced or removed, but never be cut or written to. `checked` is a checksum that the
    file has to name and that the caller has verified; it is not computed again, which would read all of
    the file in every process.
    """
    with _opened(path) as (path, file):
        start = file.tell()
        manifest, table, length = _head(path, file)
        if checked is not None and manifest.get("sha256") != checked:
            raise ModelFileError(f"{name_of(path)} changed after the check")
        arrays = {}
        digest = _digest({k: v for k, v in manifest.items() if k != "sha256"}, table)
        content = _mapped(file.fileno()) if mapped else None
        for name, entry in table.items():
            if content is not None:
                place = start + 8 + length + entry["data_offsets"][0]
                arrays[name] = array = _within(content, place, entry)
            else:
                arrays[name] = array = np.empty(entry["shape"], dtype=DTYPES[entry["dtype"]])
                if array.size and not _fill(file, array.data.cast("B")):
                    raise ModelFileError(f"{name_of(path)} is truncated")
            if checked is None:
                digest.update(array.data.cast("B") if array.size else b"")
    if checked is None and digest.hexdigest() != manifest.get("sha256"):
        raise ModelFileError(f"{name_of(path)} was altered: its checksum does not match its content")
    return manifest, arrays


@contextlib.contextmanager
def _opened(given: Target) -> Iterator[tuple[Any, Any]]:
    """Yield a path or an open file, and the file to read."""
    path = _target(given)
    try:
        if isinstance(path, Path) and not path.is_file():
            raise ModelFileError(f"{path} is not a file")
        with path.open("rb") if isinstance(path, Path) else _reading(path) as file:
            yield path, file
    except OSError as error:
        raise ModelFileError(f"{name_of(path)} cannot be read: {error.strerror or error}") from error


def _head(path: Any, file: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Read a file's head, and return manifest, array table and how many bytes the two take."""
    start = file.tell()
    size = file.seek(0, io.SEEK_END) - start
    file.seek(start)
    first = file.read(8)
    length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise ModelFileError(f"{name_of(path)} is not a ranker file, or is truncated")
    return *_parse(name_of(path), file.read(length), size - 8 - length), length


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
            raise ValueError(f"{key!r} is not the name of a fitted attribute")
        for array in value if isinstance(value, list) else [value]:
            numbers = array.data if sp.issparse(array) else array
            if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
                raise ValueError(f"{key} contains NaN or infinity")
    return state


def sparse(path: Any, name: str, arrays: dict[str, np.ndarray], shape: Any) -> sp.csr_matrix:
    """Take a CSR matrix's three arrays out of `arrays` and return it checked."""
    try:
        return csr(name, arrays, shape)
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None


def csr(name: str, arrays: dict[str, np.ndarray], shape: Any) -> sp.csr_matrix:
    """Do as `sparse`, where there is no file to name."""
    try:
        data, indices, indptr = (arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        rows, cols = (int(size) for size in shape)
        fine = (
            data.ndim == indices.ndim == indptr.ndim == 1
            and len(indptr) == rows + 1
            and data.dtype.kind in "fu"
            and indices.dtype.kind == indptr.dtype.kind == "i"
            and indptr[0] == 0
            and indptr[-1] == len(indices) == len(data)
            and bool((np.diff(indptr) >= 0).all())
            and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < cols))
        )
        if fine:
            matrix = sp.csr_matrix((data, indices, indptr), (rows, cols))
            fine = matrix.has_canonical_format
    except (KeyError, TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise ValueError(f"the index arrays of {name} are broken")
    return matrix


def _target(given: Any) -> Any:
    """Return a Path, or an open file as it is."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    if isinstance(given, io.TextIOBase):
        raise InputError(f"{name_of(given)} is open for text: open it with mode 'wb' or 'rb'")
    if not (hasattr(given, "write") or hasattr(given, "read")):
        raise InputError(f"a path or an open file is needed, not {name_of(given)}")
    return given


def name_of(given: Any) -> str:
    """Return the name of a path or an open file for messages."""
    if isinstance(given, (str, os.PathLike)):
        return shown(given)
    name = getattr(given, "name", None)
    return name if isinstance(name, str) else f"this {type(given).__name__}"


def _bytes(array: np.ndarray) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")


def _write_open(file: Any, parts: Iterable[Any]) -> None:
    try:
        for part in parts:
            left = memoryview(part).cast("B") if len(part) else memoryview(b"")
            while left:
                some = left[:STRETCH]
                taken = file.write(some)  # a file without a buffer may take less
                left = left[len(some) if taken is None else taken :]
    except (AttributeError, TypeError, ValueError) as error:  # io.UnsupportedOperation is a ValueError
        raise InputError(f"{name_of(file)} cannot be written: {error}") from None


def _reading(file: Any) -> Any:
    """Return a context with the file, or with its bytes where it cannot seek; the file stays open."""
    try:
        if file.seekable() and hasattr(file, "readinto"):
            return contextlib.nullcontext(file)
        return io.BytesIO(file.read())
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelFileError(f"{name_of(file)} cannot be read: {error}") from None


def _mapped(descriptor: int) -> mmap.mmap:
    """Return all of an open file; what is written to it changes this process's copy only.

    Linux counts such a mapping as memory that may be needed, and refuses one above what there is, though
    hardly anything of it is ever written to: so none is reserved there.
    """
    if sys.platform == "linux" and NO_RESERVE:
        how = mmap.MAP_PRIVATE | NO_RESERVE
        return mmap.mmap(descriptor, 0, flags=how, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)


def _within(content: mmap.mmap, place: int, entry: dict[str, Any]) -> np.ndarray:
    """Return an array in a mapped file; a copy where its numbers do not begin at their width."""
    kind = np.dtype(DTYPES[entry["dtype"]])
    array = np.frombuffer(content, kind, _product(entry["shape"]), place).reshape(entry["shape"])
    return array if array.flags.aligned else array.copy()


def _fill(file: Any, left: memoryview) -> bool:
    """Read until all is there; a file without a buffer may give less at a time."""
    while left:
        given = file.readinto(left)
        if not given:
            return False
        left = left[given:]
    return True


def _parse(path: str, header: bytes, payload: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check the header against the file's size before anything is allocated."""
    try:
        table = json.loads(header)
        manifest = json.loads(table.pop("__metadata__")["recsys"])
        version = manifest["format"]
        names = sorted(table, key=lambda name: (*table[name]["data_offsets"], name))
        spans = [table[name]["data_offsets"] for name in names]
        sizes = [
            int(np.dtype(DTYPES[table[name]["dtype"]]).itemsize) * _product(table[name]["shape"])
            for name in names
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ModelFileError(f"{path} is not a ranker file of recsys") from None
    if not isinstance(version, int) or version < 1 or version > FORMAT:
        raise ModelFileError(
            f"{path} was written by {str(manifest.get('written_by'))[:40]} "
            f"(format {str(version)[:20]}); this reads up to format {FORMAT}: upgrade recsys"
        )
    end = 0
    for span, size in zip(spans, sizes, strict=True):
        if span != [end, end + size]:
            raise ModelFileError(f"{path}: its array table does not fit its shapes")
        end += size
    if len(names) > MAX_ARRAYS or end != payload:
        raise ModelFileError(f"{path} is truncated or too long ({payload:,} of {end:,} bytes)")
    return manifest, {name: table[name] for name in names}


def _product(shape: Any) -> int:
    """Return the entries of an array of this shape, which NumPy can have."""
    filled = [size for size in shape if size != 0]
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(shape)
    if len(shape) > MAX_AXES or math.prod(filled) > MAX_ENTRIES:
        raise ValueError(shape)
    return math.prod(shape)


def _plain(value: Any) -> Any:
    """Return a parameter that NumPy made as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a parameter of type {type(value).__name__} cannot be saved")


def _digest(manifest: dict[str, Any], table: dict[str, Any]) -> Any:
    text = json.dumps([manifest, table], sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode())
