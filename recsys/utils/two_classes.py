"""Labels of two classes, and what their classifiers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from recsys.errors import InputError


class TwoClassMixin(ClassifierMixin):
    """A classifier of two classes and sparse rows, whose scores are above 0 for the second class."""

    classes_: NDArray[Any]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row."""
        above = self.decision_function(X) > 0  # type: ignore[attr-defined]
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn: two classes, sparse rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
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
