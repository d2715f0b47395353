"""Metrics of link predictors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from recsys.errors import InputError
from recsys.utils.features import real_array

__all__ = ["LinkMetrics", "auc_covariance", "link_metrics"]


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
        float(roc_auc_score(truth, given)), float((predicted == truth).mean()),
        float(hits / predicted.sum()) if predicted.any() else float("nan"), float(hits / truth.sum()),
    )  # fmt: skip


def auc_covariance(
    labels: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the AUCs of several predictors on the same pairs, and their covariance.

    Parameters
    ----------
    labels : (pairs,)
        1 (a link) and 0; at least two of each.
    scores : (predictors, pairs)

    Returns
    -------
    (predictors,) and (predictors, predictors) float64
        The covariance takes the pairs as independent, which those that share an object are not quite.

    Raises
    ------
    InputError
        If there are not two of both labels, or not as many finite scores of each predictor as labels.

    Notes
    -----
    Source: DeLong, DeLong & Clarke-Pearson 1988, by mid-ranks (Sun & Xu 2014).

    Examples
    --------
    >>> aucs, covariance = auc_covariance([1, 1, 0, 0], [[2.0, -1.0, 0.5, -3.0]])
    >>> aucs.tolist(), covariance.tolist()
    ([0.75], [[0.125]])
    """
    truth = real_array("labels", labels, 1) > 0
    given = np.atleast_2d(real_array("scores", scores, finite=True))
    if given.ndim != 2 or given.shape[1] != len(truth) or len(given) == 0:
        raise InputError(
            f"scores must be (predictors, {len(truth)} pairs) like labels, not {given.shape}"
        )
    up, down = int(truth.sum()), int((~truth).sum())
    if min(up, down) < 2:
        raise InputError("labels must hold two links and two pairs without one at least")
    ranks = rankdata(given, axis=1)
    # of each link the share of the others that it is above, and of each other that of links above it
    over = (ranks[:, truth] - rankdata(given[:, truth], axis=1)) / down
    under = 1.0 - (ranks[:, ~truth] - rankdata(given[:, ~truth], axis=1)) / up
    covariance = np.atleast_2d(np.cov(over)) / up + np.atleast_2d(np.cov(under)) / down
    return over.mean(axis=1), covariance
