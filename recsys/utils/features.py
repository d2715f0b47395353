"""Rows of features at the boundary: in native byte order, and never the caller's own arrays to change.

SciPy sorts and merges the entries of a CSR matrix in place when it compares, multiplies or converts it,
and cannot convert numbers in the other byte order. So what an estimator, a kernel or a map is given goes
through one of these functions first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError

__all__ = [
    "as_array",
    "as_labels",
    "check_sample_weight",
    "checked_rows",
    "native",
    "real_array",
    "relative_weights",
]

INDEX_ARRAYS = ("indptr", "indices", "row", "col", "offsets")


def native(X: Any) -> Any:
    """Return an array or a sparse matrix in native byte order: itself, where it is that or neither.

    >>> import numpy as np
    >>> native(np.array([1.0, 2.0], dtype=">f8")).dtype.isnative
    True
    """
    if isinstance(X, np.ndarray):
        return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
    if not sp.issparse(X):
        return X
    names = [name for name in INDEX_ARRAYS if isinstance(getattr(X, name, None), np.ndarray)]
    if X.dtype.isnative and all(getattr(X, name).dtype.isnative for name in names):
        return X
    out = X.astype(X.dtype.newbyteorder("="))
    for name in names:
        setattr(out, name, native(getattr(out, name)))
    return out


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the result of scikit-learn's `validate_data`, with a sparse X in canonical form.

    X is never changed: a CSR matrix whose rows are not sorted, or hold a feature twice, is copied, and
    entries of one feature are summed. Errors are those of `validate_data`: its messages are what
    scikit-learn's checks ask for.
    """
    from sklearn.utils.validation import validate_data  # late: it takes most of a second to import

    found = validate_data(estimator, native(X), native(y), **options)
    return (_canonical(found[0]), *found[1:]) if isinstance(found, tuple) else _canonical(found)


def _canonical(X: Any) -> Any:
    """Return a CSR matrix whose rows are sorted without duplicates, copied where it was not; or X."""
    if not sp.issparse(X) or X.format != "csr":
        return X
    # The flags that SciPy keeps are not asked: they may be of before the arrays were last changed.
    owner = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    same = owner[1:] == owner[:-1]
    if (X.indices[: len(owner)][1:] > X.indices[: len(owner)][:-1])[same].all():
        return X
    out = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    out.has_sorted_indices = out.has_canonical_format = False
    out.sum_duplicates()
    return out


def as_array(name: str, given: Any) -> NDArray[Any]:
    """Return an array from an array or nested lists, in native byte order."""
    if np.ma.is_masked(given):
        raise InputError(f"{name} has masked entries: fill them or leave them out")
    try:
        return np.asarray(native(np.asarray(given)))
    except ValueError:
        raise InputError(f"{name} must be an array; its rows differ in length") from None
    except TypeError as error:  # a tensor that is not on the processor, say
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
    """Return an array of real numbers as native float64, finite and of `ndim` dimensions where asked.

    >>> real_array("q", [1, 2])
    array([1., 2.])
    """
    found = as_array(name, given)
    if found.dtype.kind not in "biuf" and found.size:
        raise InputError(f"{name} must be an array of real numbers, not of dtype {found.dtype}")
    if ndim is not None and found.ndim != ndim:
        raise InputError(f"{name} must have {ndim} dimensions, not {found.ndim}")
    try:
        out = found.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be an array of real numbers, not {type(given).__name__}"
        ) from None
    if finite and not np.isfinite(out).all():
        raise InputError(f"{name} contains NaN or infinity; finite numbers are needed")
    return out


def check_sample_weight(given: Any, rows: int, what: str = "rows") -> NDArray[np.float64]:
    """Return the weights of rows as float64, (rows,): finite, at least 0, not all 0, of a finite sum.

    >>> check_sample_weight([1, 0, 2], 3)
    array([1., 0., 2.])
    """
    found = real_array("sample_weight", given, finite=True)
    if found.shape != (rows,):
        raise InputError(
            f"sample_weight has shape {found.shape} for {rows} {what}; pass one number each"
        )
    if (found < 0.0).any():
        raise InputError(f"sample_weight contains {found.min():g}; weights must not be negative")
    if not found.any():
        raise InputError(f"sample_weight is 0 for all {rows} {what}")
    with np.errstate(over="ignore"):
        if not np.isfinite(found.sum()):
            raise InputError("the sum of sample_weight is too large for a float; scale the weights")
    return found


def relative_weights(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return weights above 0 scaled to a mean of 1; None where all are alike, as without weights.

    >>> import numpy as np
    >>> relative_weights(np.array([1.0, 3.0])), relative_weights(np.array([2.0, 2.0]))
    (array([0.5, 1.5]), None)
    """
    if weights is None or weights.min() == weights.max():
        return None
    scaled = weights / weights.max()  # whose sum does not overflow
    return np.asarray(scaled / scaled.mean())
