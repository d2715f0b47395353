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
from recsys.errors import InputError


def check_integer(name: str, given: Any, low: int, high: int | None = None) -> int:
    """Return `given` as an int within low…high.

    Raises
    ------
    InputError
        If it is no whole number or out of range; the message names parameter and range.
    """
    whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    if not whole or given < low or (high is not None and given > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be a whole number {span}, not {given!r}")
    return int(given)


def check_real(
    name: str, given: Any, low: float, high: float = np.inf, *, open_low: bool = False
) -> float:
    """Return `given` as a finite float within low…high (low itself excluded if open_low).

    Raises
    ------
    InputError
        If it is no number, not finite or out of range.
    """
    real = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not real or not np.isfinite(given) or given < low or given > high or (open_low and given == low):
        bound = f"above {low:g}" if open_low else f"of at least {low:g}"
        bound += f" and at most {high:g}" if high < np.inf else ""
        raise InputError(f"{name} must be a finite number {bound}, not {given!r}")
    return float(given)


def check_choice(name: str, given: Any, known: tuple[str, ...]) -> str:
    """Return `given` if it is one of `known`.

    Raises
    ------
    InputError
        Otherwise, naming what is accepted.
    """
    if given not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {given!r}")
    return str(given)


def check_ids(name: str, given: ArrayLike, size: int | None) -> NDArray[np.int64]:
    """Return indices as an int64 vector, each within 0…size−1 (any, if size is None).

    Raises
    ------
    InputError
        If they are not whole numbers, not one-dimensional or out of range.
    """
    ids = np.asarray(given)
    if ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    if ids.dtype.kind not in "iu" or ids.ndim > 1:
        raise InputError(f"{name} must be whole numbers in one dimension, not {_short(given)}")
    ids = np.atleast_1d(ids)
    bad = (ids < 0) | (ids >= size) if size is not None else np.zeros(len(ids), bool)
    if bad.any():
        raise InputError(f"{name} {_short(ids[bad][0].item())} is not within 0…{(size or 0) - 1}")
    return ids.astype(np.int64)


def clean_matrix(
    user_items: Any, *, n_items: int | None = None, n_rows: int | None = None
) -> sp.csr_matrix:
    """Return a user × item matrix as canonical float32 CSR that holds only liked entries.

    Parameters
    ----------
    user_items : sparse matrix or array of any format and real dtype
        A value above 0 is liked; zeros and negatives are dropped, duplicates summed.
    n_items, n_rows : int, optional
        Sizes that the matrix must have.

    Returns
    -------
    csr_matrix
        int32 indices, sorted, without duplicates, values above 0. Shares memory with the
        argument where that was clean already; the argument is never changed.

    Raises
    ------
    InputError
        If it is no real-valued matrix, holds NaN or infinity, has broken index arrays, or
        has other sizes than asked for.
    """
    matrix = _to_csr(user_items)
    rows, cols = matrix.shape
    if n_items is not None and cols != n_items:
        hint = " (it looks transposed)" if rows == n_items else ""
        raise InputError(
            f"user_items has shape ({rows}, {cols}); rows are users and columns are items, and "
            f"this ranker knows {n_items} items{hint}"
        )
    if n_rows is not None and rows != n_rows:
        raise InputError(
            f"user_items has {rows} rows for {n_rows} users asked for; pass one row per user, "
            "as user_items[userids]"
        )
    state = _check_csr(matrix.indptr, matrix.indices, len(matrix.data), rows, cols)
    if state == _BROKEN:
        raise InputError("user_items has broken index arrays: an index out of range or a falling indptr")
    data = matrix.data[: matrix.indptr[-1]]
    if data.dtype != np.float32:
        if not np.isfinite(data).all():
            raise InputError("user_items holds NaN or infinity; entries must be finite numbers")
        # A tiny positive double must stay liked when it is narrowed.
        tiny, top = np.finfo(np.float32).tiny, np.finfo(np.float32).max
        data = np.where(data > 0, np.clip(data, tiny, top), 0).astype(np.float32)
    elif not np.isfinite(data).all():
        raise InputError("user_items holds NaN or infinity; entries must be finite numbers")
    positive = (data > 0).all()
    indices = matrix.indices[: matrix.indptr[-1]].astype(np.int32, copy=False)
    indptr = matrix.indptr.astype(np.int64 if len(data) > 2**31 - 1 else np.int32, copy=False)
    if state == _CANONICAL and positive:
        return _assemble(data, indices, indptr, (rows, cols))
    out = _assemble(np.where(data > 0, data, 0), indices.copy(), indptr.copy(), (rows, cols))
    out.has_sorted_indices = out.has_canonical_format = False
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def _to_csr(user_items: Any) -> sp.csr_matrix:
    if isinstance(user_items, (str, bytes)) or user_items is None:
        raise InputError(f"user_items must be a sparse user × item matrix, not {_short(user_items)}")
    if not sp.issparse(user_items):
        dense = np.asarray(user_items)
        if dense.dtype.kind not in "biuf" or dense.ndim != 2:
            raise InputError(
                "user_items must be a two-dimensional matrix of real numbers, not "
                f"{dense.ndim}-dimensional {dense.dtype}"
            )
        return sp.csr_matrix(dense.astype(np.float64))
    if user_items.dtype.kind not in "biuf" or user_items.ndim != 2:
        raise InputError(f"user_items holds {user_items.dtype} values; real numbers are needed")
    if user_items.format == "csr":
        return user_items
    coo = user_items.tocoo()
    inside = (coo.row >= 0) & (coo.row < coo.shape[0]) & (coo.col >= 0) & (coo.col < coo.shape[1])
    if not inside.all():
        raise InputError("user_items has broken index arrays: an index out of range")
    return coo.astype(np.float64).tocsr()


def _assemble(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Build a CSR matrix from checked arrays, without scipy's own checks (they cost a call 0.1 ms)."""
    out = sp.csr_matrix(shape, dtype=np.float32)
    out.data, out.indices, out.indptr = data, indices, indptr
    out.has_sorted_indices = out.has_canonical_format = True
    return out


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


# ---- kernels

_CANONICAL, _UNSORTED, _BROKEN = 0, 1, 2


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
