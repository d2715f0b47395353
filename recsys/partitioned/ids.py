"""Ids of users and items: integers as int64, text as Arrow has it; sorted, hashed, and numbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.digests import mixed

Ids = Any  # (n,) int64, or a pyarrow LargeStringArray


def sorted_distinct(parts: Sequence[Ids]) -> Ids:
    """Return the ids of all parts, ascending, each once; text by its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(parts[0], np.ndarray):
        return distinct(np.concatenate(parts))
    found = pc.unique(pa.chunked_array(parts))
    return found.take(pc.sort_indices(found))


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return different numbers, ascending: by sorting, tenfold faster than by NumPy's hashing."""
    found = np.sort(numbers)
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


def numbers(ids: Ids, known: Ids) -> NDArray[np.int32]:
    """Return where each id stands among sorted ones that hold it."""
    found, codes = _encoded(ids)
    if isinstance(known, np.ndarray):
        places = np.searchsorted(known, found)
        every = bool((places < len(known)).all()) and bool((known[places] == found).all())
    else:
        import pyarrow.compute as pc

        index = pc.index_in(found, value_set=known)
        every = not index.null_count
        places = index.to_numpy(zero_copy_only=False)
    if not every:
        raise InputError(
            "an item id came up that was not there before: the files were changed meanwhile"
        )
    found_places: NDArray[np.int32] = np.asarray(places, dtype=np.int32)
    return found_places[codes]


def ranked(ids: Ids) -> tuple[Ids, NDArray[np.int64]]:
    """Return the different ids, ascending, and which of them each is."""
    if isinstance(ids, np.ndarray):
        distinct, codes = np.unique(ids, return_inverse=True)
        return distinct, codes.astype(np.int64, copy=False)
    import pyarrow.compute as pc

    distinct, codes = _encoded(ids)
    order = pc.sort_indices(distinct)
    place = np.empty(len(distinct), dtype=np.int64)
    place[order.to_numpy()] = np.arange(len(distinct))
    return distinct.take(order), place[codes]


def buckets(ids: Ids, count: int) -> NDArray[np.uint16]:
    """Return the bucket of each id: by its digits or bytes alone, the same on every machine."""
    if isinstance(ids, np.ndarray):
        return (mixed(ids) % np.uint64(count)).astype(np.uint16)
    distinct, codes = _encoded(ids)
    offsets, content = _parts(distinct)
    out = np.empty(len(distinct), dtype=np.int64)
    _hashes(offsets, content, out)
    return (mixed(out) % np.uint64(count)).astype(np.uint16)[codes]


def packed(name: str, ids: Ids) -> dict[str, NDArray[Any]]:
    """Return ids as arrays to write."""
    if isinstance(ids, np.ndarray):
        return {name: ids}
    offsets, content = _parts(ids)
    return {f"{name}.offsets": offsets - offsets[0], f"{name}.bytes": content[offsets[0] : offsets[-1]]}


def unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> Ids:
    """Return the ids from which `packed` made these bytes."""
    import pyarrow as pa

    if name in arrays:
        return arrays[name]
    offsets, content = arrays[f"{name}.offsets"], arrays[f"{name}.bytes"]
    inside = len(offsets) and offsets[0] >= 0 and offsets[-1] <= len(content)
    if not inside or (offsets[1:] < offsets[:-1]).any():
        raise InputError("the ids of a work folder are damaged: remove the folder")
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(content)
    )


def plain(ids: Ids) -> list[Any]:
    """Return ids as Python has them."""
    return ids.tolist() if isinstance(ids, np.ndarray) else ids.to_pylist()


def _encoded(ids: Ids) -> tuple[Ids, NDArray[np.int64]]:
    """Return the different ids in any order, and which of them each is."""
    import pyarrow as pa

    found = (pa.array(ids) if isinstance(ids, np.ndarray) else ids).dictionary_encode()
    codes = found.indices.to_numpy().astype(np.int64)
    distinct = found.dictionary
    return (distinct.to_numpy() if isinstance(ids, np.ndarray) else distinct), codes


def _parts(ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return offsets and bytes of an Arrow array of text."""
    _, offsets, content = ids.buffers()
    begins = (
        np.frombuffer(offsets, np.int64, len(ids) + 1, 8 * ids.offset)
        if len(ids)
        else np.zeros(1, np.int64)
    )
    held = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return begins, held


# ---- kernels


@jit
def _hashes(offsets, content, out):
    """FNV-1a of each text."""
    for k in range(len(out)):
        h = np.uint64(14695981039346656037)
        for p in range(offsets[k], offsets[k + 1]):
            h = (h ^ np.uint64(content[p])) * np.uint64(1099511628211)
        out[k] = np.int64(h)
