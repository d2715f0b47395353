"""Checks at the boundary: numbers, index arrays and user × item matrices.

What passes here is clean: kernels below assume it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError, OutOfRangeError

MOST = np.iinfo(np.int32).max  # item indices are int32


def check_integer(name: str, given: Any, low: int, high: int | None = None) -> int:
    """Return `given` as an int within low…high."""
    whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    if not whole or given < low or (high is not None and given > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be an integer {span}, not {given!r}")
    return int(given)


def check_real(
    name: str,
    given: Any,
    low: float,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `given` as a finite float within low…high, an end itself excluded where it is open."""
    real = isinstance(given, numbers.Real) and not isinstance(given, bool)
    outside = not real or not abs(given) < np.inf or given < low or given > high
    if outside or (open_low and given == low) or (open_high and given == high):
        bound = f"above {low:g}" if open_low else f"of at least {low:g}"
        if high < np.inf:
            bound += f" and below {high:g}" if open_high else f" and at most {high:g}"
        raise InputError(f"{name} must be a finite number {bound}, not {given!r}")
    return float(given)


def check_flag(name: str, given: Any) -> bool:
    """Return True or False, and refuse all else: the text "no" would be true, an array is neither."""
    if not isinstance(given, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, not {given!r}")
    return bool(given)


def check_choice(name: str, given: Any, known: tuple[str, ...]) -> str:
    """Return `given` if it is one of `known`."""
    if not isinstance(given, str) or given not in known:  # an array has no single answer
        raise InputError(f"{name} must be one of {', '.join(known)}, not {given!r}")
    return str(given)


def texts_of(name: str, given: Any) -> list[str]:
    """Return one text or several as a list."""
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, str) for one in found):
        raise InputError(f"{name} must be text, or a list of texts, not {given!r}")
    return list(found)


def check_ids(name: str, given: ArrayLike, size: int | None) -> NDArray[np.int64]:
    """Return indices as an int64 vector, each within 0…size−1 (any, if size is None)."""
    try:
        ids = np.asarray(given)
    except ValueError:  # lists of unequal lengths
        raise InputError(f"{name} must be integers in one dimension, not {_short(given)}") from None
    if ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    if ids.dtype.kind not in "iu" or ids.ndim > 1:
        raise InputError(f"{name} must be integers in one dimension, not {_short(given)}")
    ids = np.atleast_1d(ids)
    bad = (ids < 0) | (ids >= size) if size is not None else np.zeros(len(ids), bool)
    if bad.any():
        raise OutOfRangeError(f"{name} {_short(ids[bad][0].item())} is not within 0…{(size or 0) - 1}")
    return ids.astype(np.int64)


def clean_matrix(
    user_items: Any, *, n_items: int | None = None, n_rows: int | None = None, name: str = "user_items"
) -> sp.csr_matrix:
    """Return a user × item matrix as canonical float32 CSR that holds only liked entries.

    A value above 0 is liked; zeros and negatives are dropped, duplicates summed. Indices are int32,
    sorted, without duplicates. It shares memory with the argument where that was clean already; the
    argument is never changed. NaN, infinity, broken index arrays and other sizes than asked for are
    refused.
    """
    matrix = _to_csr(name, user_items)
    rows, cols = matrix.shape
    if n_items is not None and cols != n_items:
        hint = " (it looks transposed)" if rows == n_items else ""
        raise InputError(
            f"{name} has shape ({rows}, {cols}); rows are users and columns are items, and "
            f"this ranker knows {n_items} items{hint}"
        )
    if n_rows is not None and rows != n_rows:
        raise InputError(
            f"{name} has {rows} rows for {n_rows} users asked for; pass one row per user, "
            f"as {name}[userids]"
        )
    indptr, indices, state = _compressed(name, matrix, rows, cols)
    data = matrix.data[: indptr[-1]]
    if data.dtype != np.float32:
        if not np.isfinite(data).all():
            raise InputError(f"{name} holds NaN or infinity; entries must be finite numbers")
        # A tiny positive double must stay liked when it is narrowed.
        tiny, top = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        data = np.where(data > 0, np.clip(data, tiny, top), 0).astype(np.float32)
    elif not np.isfinite(data).all():
        raise InputError(f"{name} holds NaN or infinity; entries must be finite numbers")
    positive = (data > 0).all()
    indices = indices[: indptr[-1]].astype(np.int32, copy=False)
    indptr = indptr.astype(np.int64 if len(data) > 2**31 - 1 else np.int32, copy=False)
    if state == _CANONICAL and positive:
        return _assemble(data, indices, indptr, (rows, cols))
    out = _assemble(np.where(data > 0, data, 0), indices.copy(), indptr.copy(), (rows, cols))
    out.has_sorted_indices = out.has_canonical_format = False
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def take_columns(matrix: Any, ids: ArrayLike) -> sp.csc_matrix:
    """Return some columns of a user × item matrix, (users, n) float64 CSC of ones where it is above 0.

    Of a CSC matrix only the columns asked for are looked at. Messages call it `item_users`.
    """
    name = "item_users"
    if not sp.issparse(matrix) or matrix.format != "csc" or len(matrix.shape) != 2:
        clean = clean_matrix(matrix, name=name)
        out = sp.csc_matrix(clean[:, check_ids("ids", ids, clean.shape[1])], dtype=np.float64)
        out.data[:] = 1.0
        return out
    rows, cols = matrix.shape
    ids, data = check_ids("ids", ids, cols), _values(name, matrix.data)
    indptr, indices = (_indices(name, what, getattr(matrix, what)) for what in ("indptr", "indices"))
    if len(indptr) != cols + 1:
        raise _broken(name)
    first, end = indptr[ids].astype(np.int64), indptr[ids + 1].astype(np.int64)
    if ((first < 0) | (end < first) | (end > min(len(indices), len(data)))).any():
        raise _broken(name)
    where = np.concatenate([np.arange(a, b) for a, b in zip(first, end, strict=True)] or [ids])
    found, liked = indices[where], data[where] > 0
    if len(found) and (found.min() < 0 or found.max() >= rows):
        raise _broken(name)
    owners = np.repeat(np.arange(len(ids)), end - first)
    out = sp.csc_matrix((np.ones(liked.sum()), (found[liked], owners[liked])), (rows, len(ids)))
    out.data[:] = 1.0  # an entry that is there twice is one interaction
    return out


def _to_csr(name: str, given: Any) -> sp.csr_matrix:
    """Return a matrix as CSR; the index arrays of one that was CSR are yet to be checked.

    scipy's conversions believe the index arrays they are given: compiled code then reads and
    writes where those point. So every format is looked at before anything converts it.
    """
    if isinstance(given, (str, bytes)) or given is None:
        raise InputError(f"{name} must be a sparse user × item matrix, not {_short(given)}")
    if not sp.issparse(given):
        return sp.csr_matrix(_dense(name, given))
    if len(given.shape) != 2:
        raise InputError(f"{name} must be a two-dimensional matrix, not {len(given.shape)}-dimensional")
    if given.shape[1] > MOST:
        raise InputError(f"{name} has {given.shape[1]:,} columns; at most {MOST:,} items can be indexed")
    if given.format not in _SOUND:
        raise InputError(
            f"{name} is a sparse matrix of format {given.format!r}; {', '.join(_SOUND)} are taken"
        )
    return _SOUND[given.format](name, given)


def _dense(name: str, given: Any) -> NDArray[np.float64]:
    try:
        dense = np.asarray(given)
    except ValueError:  # rows of unequal lengths
        raise InputError(f"{name} must be a two-dimensional matrix; its rows differ in length") from None
    if dense.dtype.kind not in "biuf" or dense.ndim != 2:
        raise InputError(
            f"{name} must be a two-dimensional matrix of real numbers, not "
            f"{dense.ndim}-dimensional {dense.dtype}"
        )
    return dense.astype(np.float64)


def _values(name: str, values: Any, ndim: int = 1) -> Any:
    """Refuse values that are no array of real numbers of this many dimensions."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{name} holds {kind} values; real numbers are needed")
    if values.ndim != ndim:
        raise InputError(f"{name} has broken arrays: its values are {values.ndim}-dimensional")
    return values


def _indices(name: str, what: str, given: Any) -> Any:
    """Return an index array as int32 or int64; refuse what is no vector of integers."""
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "iu" or given.ndim != 1:
        found = (
            f"{given.ndim}-dimensional {given.dtype}"
            if isinstance(given, np.ndarray)
            else type(given).__name__
        )
        raise InputError(
            f"{name} has broken index arrays: {what} must be integers in one dimension, not {found}"
        )
    if given.dtype == np.int32 or given.dtype == np.int64:
        return given
    if given.size and given.max() > np.iinfo(np.int64).max:
        raise _broken(name)
    return given.astype(np.int64)


def _broken(name: str) -> InputError:
    return InputError(f"{name} has broken index arrays: an index out of range or a falling indptr")


def _compressed(name: str, matrix: Any, major: int, minor: int) -> tuple[Any, Any, int]:
    """Return indptr, indices and order of a compressed matrix, checked."""
    _values(name, matrix.data, 3 if matrix.format == "bsr" else 1)
    indptr = _indices(name, "indptr", matrix.indptr)
    indices = _indices(name, "indices", matrix.indices)
    check = _order_of if _check_csr.small(len(indices)) else _check_csr
    state = check(indptr, indices, len(matrix.data), major, minor)
    if state == _BROKEN:
        raise _broken(name)
    return indptr, indices, state


def _from_csr(name: str, matrix: Any) -> Any:
    return matrix  # the caller's to check: a row is recommended for in microseconds


def _from_csc(name: str, matrix: Any) -> sp.csr_matrix:
    rows, cols = matrix.shape
    indptr, indices, _ = _compressed(name, matrix, cols, rows)
    size = indptr[-1]  # arrays may be longer; scipy's tocoo() would read the rest
    owners = np.repeat(np.arange(cols), np.diff(indptr))
    return _from_triples(matrix.data[:size], indices[:size], owners, (rows, cols))


def _from_bsr(name: str, matrix: Any) -> sp.csr_matrix:
    rows, cols = matrix.shape
    _values(name, matrix.data, 3)
    _, tall, wide = matrix.data.shape
    if tall < 1 or wide < 1 or rows % tall or cols % wide:
        raise InputError(
            f"{name} has broken arrays: blocks of {tall} × {wide} in a {rows} × {cols} matrix"
        )
    indptr, indices, _ = _compressed(name, matrix, rows // tall, cols // wide)
    size = indptr[-1]
    owners = np.repeat(np.arange(rows // tall), np.diff(indptr))
    block, r, c = np.indices((size, tall, wide)).reshape(3, -1)
    i, j = owners[block] * tall + r, indices[:size].astype(np.int64)[block] * wide + c
    return _from_triples(matrix.data[:size].ravel(), i, j, (rows, cols))


def _from_coo(name: str, matrix: Any) -> sp.csr_matrix:
    data = _values(name, matrix.data)
    i, j = (_indices(name, what, getattr(matrix, what)) for what in ("row", "col"))
    return _placed(name, data, i, j, matrix.shape)


def _from_dok(name: str, matrix: Any) -> sp.csr_matrix:
    keys, values = list(matrix.keys()), list(matrix.values())
    return _from_lists(name, keys, values, matrix.shape)


def _from_lil(name: str, matrix: Any) -> sp.csr_matrix:
    rows, data = matrix.rows, matrix.data
    try:
        fine = len(rows) == len(data) == matrix.shape[0] and all(
            len(places) == len(values) for places, values in zip(rows, data, strict=True)
        )
        keys = [(i, j) for i, places in enumerate(rows) for j in places] if fine else []
        values = [value for some in data for value in some] if fine else []
    except TypeError:
        fine = False
    if not fine:
        raise InputError(f"{name} has broken index arrays: its rows and values differ in length")
    return _from_lists(name, keys, values, matrix.shape)


def _from_lists(name: str, keys: list[Any], values: list[Any], shape: tuple[int, int]) -> sp.csr_matrix:
    """Return CSR from (row, column) pairs and numbers that are Python objects."""
    if not keys:
        return sp.csr_matrix(shape, dtype=np.float64)
    try:
        places, data = np.array(keys), np.array(values)
        fine = places.ndim == 2 and places.shape[1] == 2
    except ValueError:  # nested lists of unequal lengths
        fine = False
    if not fine:
        raise _broken(name)
    i, j = _indices(name, "row", places[:, 0]), _indices(name, "col", places[:, 1])
    return _placed(name, _values(name, data), i, j, shape)


def _from_dia(name: str, matrix: Any) -> sp.csr_matrix:
    rows, cols = matrix.shape
    data = _values(name, matrix.data, 2)
    offsets = _indices(name, "offsets", matrix.offsets)
    if len(offsets) != len(data) or ((offsets <= -rows) | (offsets >= cols)).any():
        raise InputError(
            f"{name} has broken index arrays: one diagonal within the matrix per row of values is needed"
        )
    # An entry's position along its diagonal is its column.
    which, j = np.nonzero(data)
    i = j - offsets[which].astype(np.int64)
    inside = (i >= 0) & (i < rows) & (j < cols)
    return _from_triples(data[which, j][inside], i[inside], j[inside], (rows, cols))


def _placed(name: str, data: Any, i: Any, j: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return CSR from triples, once each lies within the matrix."""
    if not len(data) == len(i) == len(j):
        raise InputError(
            f"{name} has broken index arrays: {len(i)} rows and {len(j)} columns for {len(data)} values"
        )
    for places, size in ((i, shape[0]), (j, shape[1])):
        if len(places) and (places.min() < 0 or places.max() >= size):
            raise _broken(name)
    return _from_triples(data, i, j, shape)


def _from_triples(data: Any, i: Any, j: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.csr_matrix((data.astype(np.float64), (i, j)), shape=shape)


_SOUND: dict[str, Callable[[str, Any], sp.csr_matrix]] = {
    "csr": _from_csr,
    "csc": _from_csc,
    "bsr": _from_bsr,
    "coo": _from_coo,
    "lil": _from_lil,
    "dok": _from_dok,
    "dia": _from_dia,
}


def _assemble(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Build a CSR matrix from checked arrays, without scipy's own checks (they cost a call 0.1 ms)."""
    out = sp.csr_matrix(shape, dtype=np.float32)
    out.data, out.indices, out.indptr = data, indices, indptr
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "…"


# ---- kernels

_CANONICAL, _UNSORTED, _BROKEN = 0, 1, 2


def _order_of(indptr: Any, indices: Any, size: int, rows: int, cols: int) -> int:
    """Do as `_check_csr`, in NumPy."""
    if len(indptr) != rows + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return _BROKEN
    entries = indptr[rows]
    if entries > len(indices) or entries > size:
        return _BROKEN
    used = indices[:entries]
    if entries and (used.min() < 0 or used.max() >= cols):
        return _BROKEN
    rising = np.ones(entries, dtype=np.bool_)
    rising[1:] = used[1:] > used[:-1]
    rising[indptr[:-1][indptr[:-1] < entries]] = True  # the first of a row
    return _CANONICAL if rising.all() else _UNSORTED


@jit
def _check_csr(indptr, indices, size, rows, cols):
    if len(indptr) != rows + 1 or indptr[0] != 0:
        return 2
    state = 0
    for r in range(rows):
        if indptr[r + 1] < indptr[r]:
            return 2
    if indptr[rows] > len(indices) or indptr[rows] > size:
        return 2
    for r in range(rows):
        last = -1
        for p in range(indptr[r], indptr[r + 1]):
            if indices[p] < 0 or indices[p] >= cols:
                return 2
            if indices[p] <= last:
                state = 1
            last = indices[p]
    return state
