"""What estimators share: rows, labels and weights, checked and not changed; two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from recsys.errors import InputError
from recsys.utils.validation import real_array


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the result of scikit-learn's `validate_data`, with a sparse X in canonical form."""
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


class SparseRowsMixin:
    """An estimator that takes sparse rows."""

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that rows may be sparse."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class TwoClassMixin(SparseRowsMixin, ClassifierMixin):
    """A classifier of two classes and sparse rows, whose scores are above 0 for the second class."""

    classes_: NDArray[Any]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        above = self.decision_function(X) > 0  # type: ignore[attr-defined]
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that there are two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def two_classes(y: ArrayLike) -> NDArray[Any]:
    """Return the two classes of y; refuse more or fewer."""
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise InputError(f"Unknown label type: {kind}. y must hold two classes")
    known = np.unique(np.asarray(y))
    if len(known) > 2:
        raise InputError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(known) < 2:
        raise InputError("y must have two classes, and has 1 class")
    return known
