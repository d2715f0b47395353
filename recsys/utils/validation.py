"""Checks at the boundary: numbers, index arrays and user × item matrices.

What passes here is clean: kernels below assume it.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError, OutOfRangeError, first_line

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
    matrix = _as_csr(name, user_items)
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
    if not isinstance(matrix.data, np.ndarray) or matrix.data.ndim != 1:
        raise InputError(f"{name} has broken index arrays: its values must be a vector")
    indptr, indices, state = _index_arrays(name, matrix, rows, cols)
    data = matrix.data[: indptr[-1]]
    if data.dtype != np.float32:
        if not np.isfinite(data).all():
            raise InputError(f"{name} contains NaN or infinity; entries must be finite numbers")
        # A tiny positive double must stay liked when it is narrowed.
        tiny, top = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        data = np.where(data > 0, np.clip(data, tiny, top), 0).astype(np.float32)
    elif not np.isfinite(data).all():
        raise InputError(f"{name} contains NaN or infinity; entries must be finite numbers")
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

    Of a CSC matrix only these columns are checked. Messages call it `item_users`.
    """
    name = "item_users"
    if not sp.issparse(matrix) or matrix.format != "csc":
        matrix = clean_matrix(matrix, name=name).tocsc()
    ids = check_ids("ids", ids, matrix.shape[1])
    first, end = (np.asarray(matrix.indptr)[ids + k].astype(np.int64) for k in (0, 1))
    if ((first < 0) | (end < first) | (end > min(len(matrix.indices), len(matrix.data)))).any():
        raise InputError(f"{name} has broken index arrays: indptr leaves the indices")
    where = np.concatenate([np.arange(a, b) for a, b in zip(first, end, strict=True)] or [ids])
    liked = matrix.data[where] > 0
    rows, columns = matrix.indices[where][liked], np.repeat(np.arange(len(ids)), end - first)[liked]
    if len(rows) and not 0 <= rows.min() <= rows.max() < matrix.shape[0]:
        raise InputError(f"{name} has broken index arrays: an index is out of range")
    out = sp.csc_matrix((np.ones(len(rows)), (rows, columns)), (matrix.shape[0], len(ids)))
    out.data[:] = 1.0  # an entry that is there twice is one interaction
    return out


def _as_csr(name: str, given: Any) -> sp.csr_matrix:
    """Return a matrix as CSR; the index arrays of one that was CSR are yet to be checked.

    SciPy's conversions trust index arrays, and its compiled code reads and writes where those point. So
    those of another format pass SciPy's own check first.
    """
    if isinstance(given, (str, bytes)) or given is None:
        raise InputError(f"{name} must be a sparse user × item matrix, not {_short(given)}")
    if not sp.issparse(given):
        return sp.csr_matrix(_dense(name, given))
    if len(given.shape) != 2:
        raise InputError(f"{name} must be a two-dimensional matrix, not {len(given.shape)}-dimensional")
    if given.shape[1] > MOST:
        raise InputError(f"{name} has {given.shape[1]:,} columns; at most {MOST:,} items can be indexed")
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name} has {given.dtype} values; real numbers are needed")
    if given.format == "csr":
        return given
    for what in ("indptr", "indices", "row", "col", "offsets"):
        if np.asarray(getattr(given, what, 0)).dtype.kind not in "iu":
            raise InputError(f"{name} has broken index arrays: {what} must be integers")
    try:
        if given.format in ("csc", "bsr"):
            arrays = (given.data.astype(np.float64), given.indices, given.indptr)
            given = type(given)(arrays, shape=given.shape)
            sizes = given.shape[::-1]
            if given.format == "bsr":
                sizes = tuple(n // block for n, block in zip(given.shape, given.blocksize, strict=True))
            _index_arrays(name, given, *sizes)
        elif given.format == "lil":
            owners = np.repeat(np.arange(given.shape[0]), [len(row) for row in given.rows])
            data = np.array([value for row in given.data for value in row], np.float64)
            columns = np.array([column for row in given.rows for column in row], np.int64)
            given = sp.coo_matrix((data, (owners, columns)), given.shape)
        elif given.format == "dia":
            if (np.abs(np.asarray(given.offsets, np.float64)) >= max(given.shape)).any():
                raise ValueError("an offset is out of range")
            given = sp.dia_matrix((given.data, given.offsets), given.shape)
        elif given.format == "coo":
            data = given.data.astype(np.float64)
            given = sp.coo_matrix((data, (given.row, given.col)), given.shape)
        return sp.csr_matrix(given, dtype=np.float64)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{name} has broken index arrays: {first_line(error)}") from None


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


def _index_arrays(name: str, matrix: Any, rows: int, cols: int) -> tuple[Any, Any, int]:
    """Return indptr and indices of compressed rows, checked, and whether they are in order.

    A row is recommended for in microseconds, SciPy's check takes a hundred, and passes arrays whose
    last indptr is 0.
    """
    indptr, indices = matrix.indptr, matrix.indices
    for array in (indptr, indices):
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise InputError(f"{name} has broken index arrays: they must be vectors")
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise InputError(f"{name} has broken index arrays: indices must be integers")
    if indptr.dtype not in _WIDTHS:
        indptr = indptr.astype(np.int64)
    if indices.dtype not in _WIDTHS:
        indices = indices.astype(np.int64)
    check = _order_of if _check_csr.small(len(indices)) else _check_csr
    state = check(indptr, indices, len(matrix.data), rows, cols)
    if state == _BROKEN:
        raise InputError(f"{name} has broken index arrays: an index out of range or a falling indptr")
    return indptr, indices, state


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
_WIDTHS = (np.dtype(np.int32), np.dtype(np.int64))


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
