"""Checks at the boundary: numbers, index arrays and user × item matrices.

What passes here is clean: compiled code trusts it.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

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
    """Return True or False; the text "no" would be true."""
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


def as_array(name: str, given: Any) -> NDArray[Any]:
    """Return an array from an array or nested lists."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array: {error}") from None


def as_labels(name: str, given: Any) -> NDArray[Any]:
    """Return class labels, one a row, that can be compared and ordered; their shape is not checked."""
    labels = as_array(name, given)
    try:
        np.sort(labels, axis=None)
    except TypeError:
        raise InputError(f"{name} must contain numbers or text, not labels without an order") from None
    return labels


def real_array(name: str, given: Any, ndim: int | None = None, *, finite: bool = False) -> NDArray[Any]:
    """Return an array of real numbers as float64, finite and of `ndim` dimensions where asked."""
    array = as_array(name, given)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be an array of real numbers, not of dtype {array.dtype}")
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name} must have {ndim} dimensions, not {array.ndim}")
    if finite and not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity; finite numbers are needed")
    return array.astype(np.float64, copy=False)


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
    """Return a user × item matrix as canonical float32 CSR of its entries above 0, duplicates summed.

    It shares memory with the argument where that was clean already; the argument is never changed.
    """
    matrix = _csr(name, user_items)
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
    if not np.isfinite(matrix.data).all():
        raise InputError(f"{name} contains NaN or infinity; entries must be finite in float32")
    if not matrix.has_canonical_format or not (matrix.data > 0).all():
        liked = np.maximum(matrix.data, 0)
        matrix = sp.csr_matrix((liked, matrix.indices, matrix.indptr), matrix.shape, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def take_columns(matrix: Any, ids: ArrayLike) -> sp.csc_matrix:
    """Return columns of `item_users` as float64 CSC of ones; of a CSC matrix only these are checked."""
    name = "item_users"
    if not sp.issparse(matrix) or matrix.format != "csc":
        matrix = clean_matrix(matrix, name=name).tocsc()
    ids = check_ids("ids", ids, matrix.shape[1])
    spans = list(map(slice, matrix.indptr[ids], matrix.indptr[ids + 1]))
    indptr = np.append(0, np.cumsum(matrix.indptr[ids + 1] - matrix.indptr[ids]))
    rows, values = (
        np.concatenate([array[span] for span in spans]) if spans else array[:0]
        for array in (matrix.indices, matrix.data)
    )
    try:
        out = sp.csc_matrix((values > 0, rows, indptr), (matrix.shape[0], len(ids)))
        out.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} has broken index arrays: {first_line(error)}") from None
    out.sum_duplicates()
    out.eliminate_zeros()
    return out.astype(np.float64)


def _csr(name: str, given: Any) -> sp.csr_matrix:
    """Return a matrix as float32 CSR with checked index arrays, which SciPy's compiled code trusts."""
    if isinstance(given, (str, bytes)) or given is None:
        raise InputError(f"{name} must be a sparse user × item matrix, not {_short(given)}")
    if not sp.issparse(given):
        given = sp.csr_matrix(real_array(name, given, 2))
    if len(given.shape) != 2:
        raise InputError(f"{name} must be a two-dimensional matrix, not {len(given.shape)}-dimensional")
    if given.shape[1] > MOST:
        raise InputError(f"{name} has {given.shape[1]:,} columns; at most {MOST:,} items can be indexed")
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name} has {given.dtype} values; real numbers are needed")
    try:
        for array in ("indptr", "indices", "row", "col", "offsets"):
            if np.asarray(getattr(given, array, 0)).dtype.kind not in "iu":
                raise ValueError(f"{array} must be integers")
        with np.errstate(over="ignore"):
            if given.format == "csr":
                return _compressed(sp.csr_matrix, given)
            if given.format in ("csc", "bsr"):
                given = _compressed(type(given), given)
            elif given.format == "coo":
                given = sp.coo_matrix((given.data, given.coords), given.shape, dtype=np.float32)
            return _compressed(sp.csr_matrix, given.tocsr())
    except (AttributeError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"{name} has broken index arrays: {first_line(error)}") from None


def _compressed(kind: type[Any], given: Any) -> Any:
    """Return a float32 matrix with the arrays of a CSR, CSC or BSR matrix, checked."""
    arrays = (given.data, given.indices, given.indptr)
    matrix = kind(arrays, given.shape, dtype=np.float32)
    if (np.diff(matrix.indptr) < 0).any():  # SciPy does not look where the last one is 0
        raise ValueError("indptr falls")
    matrix.check_format(full_check=True)
    return matrix


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "…"
