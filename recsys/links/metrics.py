"""Metrics of link predictors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from recsys.errors import InputError
from recsys.utils.features import real_array

__all__ = ["LinkMetrics", "auc_error", "link_metrics"]


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
        If there are not both labels, or not as many finite scores as labels.
    """
    truth, given = real_array("labels", labels, 1) > 0, real_array("scores", scores, 1, finite=True)
    if len(truth) != len(given):
        raise InputError(f"there are {len(truth)} labels and {len(given)} scores; one a pair is needed")
    if truth.all() or not truth.any():
        raise InputError("labels must hold both links and pairs without one")
    predicted = given > 0
    hits = int((predicted & truth).sum())
    return LinkMetrics(
        float(roc_auc_score(truth, given)),
        float((predicted == truth).mean()),
        float(hits / predicted.sum()) if predicted.any() else float("nan"),
        float(hits / truth.sum()),
    )


def auc_error(labels: NDArray[Any], scores: NDArray[np.float64]) -> float:
    """Return the standard error of the AUC, by ranks (DeLong et al. 1988)."""
    truth = labels == 1
    up, down = int(truth.sum()), int((~truth).sum())
    ranks = rankdata(scores)
    # of each link the share of the others that it is above, and of each other that of links above it
    over = (ranks[truth] - rankdata(scores[truth])) / down
    under = 1.0 - (ranks[~truth] - rankdata(scores[~truth])) / up
    return float(np.sqrt(over.var(ddof=1) / up + under.var(ddof=1) / down))
