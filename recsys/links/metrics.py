"""The figures of merit of link predictors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from recsys.errors import InputError

__all__ = ["LinkMetrics", "link_metrics"]


class LinkMetrics(NamedTuple):
    """AUC, and at the threshold 0 accuracy, precision and recall (NaN where nothing is predicted).

    Attributes
    ----------
    auc, accuracy, precision, recall : float in [0, 1]

    Examples
    --------
    >>> link_metrics([1, 1, 0, 0], [2.0, -1.0, 0.5, -3.0])
    LinkMetrics(auc=0.75, accuracy=0.5, precision=0.5, recall=0.5)
    """

    auc: float
    accuracy: float
    precision: float
    recall: float


def link_metrics(labels: ArrayLike, scores: ArrayLike) -> LinkMetrics:
    """Return AUC, accuracy, precision and recall of scores against labels of 1 (a link) and 0.

    Raises
    ------
    InputError
        If there are not both labels.
    """
    truth, given = np.asarray(labels) > 0, np.asarray(scores, dtype=np.float64)
    if truth.all() or not truth.any():
        raise InputError("labels must hold both links and pairs without one")
    said = given > 0
    hits = int((said & truth).sum())
    return LinkMetrics(
        float(roc_auc_score(truth, given)), float((said == truth).mean()),
        float(hits / said.sum()) if said.any() else float("nan"), float(hits / truth.sum()),
    )  # fmt: skip
