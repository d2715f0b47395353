"""Rows of features, labels and weights, checked; the caller's arrays are never changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the result of scikit-learn's `validate_data`, with a sparse X in canonical form."""
    from sklearn.utils.validation import validate_data  # late: it takes most of a second to import

    checked = validate_data(estimator, X, y, **options)
    return (_canonical(checked[0]), *checked[1:]) if isinstance(checked, tuple) else _canonical(checked)


def _canonical(X: Any) -> Any:
    """Return a CSR matrix whose rows are sorted without duplicates, copied where it was not; or X."""
    if not sp.issparse(X) or X.format != "csr":
        return X
    # A new matrix, as the flags of the old one may be older than its arrays.
    out = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if not out.has_canonical_format:
        out = out.copy()
        out.sum_duplicates()
    return out


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


def check_sample_weight(given: Any, rows: int) -> NDArray[np.float64]:
    """Return the weights of rows as float64, (rows,): finite, at least 0, not all 0."""
    weights = real_array("sample_weight", given, finite=True)
    if weights.shape != (rows,):
        raise InputError(
            f"sample_weight has shape {weights.shape} for {rows} rows; pass one number each"
        )
    if (weights < 0.0).any() or not weights.any():
        raise InputError("sample_weight must not be negative, and not zero for all rows")
    return weights


def relative_weights(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return weights above 0 scaled to a mean of 1; None where all are alike, as without weights."""
    if weights is None or weights.min() == weights.max():
        return None
    scaled = weights / weights.max()  # whose sum does not overflow
    return np.asarray(scaled / scaled.mean())
