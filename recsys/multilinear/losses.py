"""The losses, in one registry and one compiled chain of integer codes, and linear steps along them.

A loss is a line in the registry and a branch in each of `loss_values` and `loss_slope`.

The chain dispatches on integers because numba keeps what is compiled for them on disk, once for all
losses; passing a class or a function for each loss would compile every solver again for every one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.registry import Registry

__all__ = [
    "LOSSES",
    "Loss",
    "Target",
    "bias_step",
    "linear_epoch",
    "loss_names",
    "loss_slope",
    "loss_values",
    "mean_loss",
    "weighted_slopes",
]

Vector = NDArray[np.float64]

SQUARED, LOGISTIC, SQUARED_HINGE = range(3)


class Target(NamedTuple):
    """Targets, predictions (changed in place), the loss' code, a bound of its curvature, rows' weights.

    The weights have mean 1.
    """

    y: Vector
    pred: Vector
    loss: int
    curvature: float
    row_weights: Vector


@dataclass(frozen=True)
class Loss:
    """One loss ℓ(p, y) of a prediction and a target, which is −1 or 1 for classes.

    Parameters
    ----------
    name : str
    code : int
        Of the branch in the compiled chain.
    curvature : float > 0
        Bound on ∂²ℓ/∂p², which a descent step divides by: the objective cannot rise.
    for_classes, for_numbers : bool
        Whether targets are two classes, or numbers.
    pairwise : bool
        Whether p is the difference of the predictions of a row of the second class and one of the
        first, and y is 1.

    Examples
    --------
    >>> LOSSES.get("bpr")
    Loss(name='bpr', code=1, curvature=0.25, for_classes=True, for_numbers=False, pairwise=True)
    """

    name: str
    code: int
    curvature: float
    for_classes: bool = False
    for_numbers: bool = False
    pairwise: bool = False


LOSSES: Registry[Loss] = Registry("loss")

for _loss in (
    Loss("squared", SQUARED, 1.0, for_classes=True, for_numbers=True),
    Loss("logistic", LOGISTIC, 0.25, for_classes=True),
    Loss("squared_hinge", SQUARED_HINGE, 2.0, for_classes=True),
    # Rendle et al. 2009; on pairs these are the logistic loss and the squared hinge
    Loss("bpr", LOGISTIC, 0.25, for_classes=True, pairwise=True),
    Loss("auc", SQUARED_HINGE, 2.0, for_classes=True, pairwise=True),
):
    LOSSES.add(_loss.name)(_loss)


def loss_names(
    *, classes: bool | None = None, numbers: bool | None = None, pairwise: bool | None = None
) -> tuple[str, ...]:
    """Return the names of the losses of these kinds, those over pairs last.

    A loss must have the properties that are True and lack those that are False; None accepts both.
    """
    known = sorted((LOSSES.get(name) for name in LOSSES.names()), key=lambda a: (a.pairwise, a.code))
    return tuple(
        loss.name
        for loss in known
        if classes in (None, loss.for_classes)
        and numbers in (None, loss.for_numbers)
        and pairwise in (None, loss.pairwise)
    )


CHUNK = 16384  # rows at a time, which stay in the cache


def mean_loss(target: Target) -> float:
    """Return the mean of the loss times the rows' weights."""
    total = 0.0
    for first in range(0, len(target.y), CHUNK):
        some = slice(first, first + CHUNK)
        values = loss_values(target.loss, target.pred[some], target.y[some])
        total += float((target.row_weights[some] * values).sum())
    return total / len(target.y)


@np.errstate(over="ignore", invalid="ignore")  # of what has diverged: the objective says so
def loss_values(code: int, p: Vector, y: Vector) -> Vector:
    """Return ℓ(p, y): ½(p − y)²; log(1 + e^(−yp)); max(0, 1 − yp)²."""
    if code == SQUARED:
        return 0.5 * (p - y) ** 2
    z = y * p
    if code == LOGISTIC:
        return np.log1p(np.exp(-np.abs(z))) - np.minimum(z, 0.0)
    if code == SQUARED_HINGE:
        return np.maximum(0.0, 1.0 - z) ** 2
    return np.nan * z  # a code without a branch is no loss: the first objective says so


def weighted_slopes(target: Target) -> Vector:
    """Return ∂ℓ/∂p of each row, times its weight."""
    out = np.empty(len(target.y))
    for first in range(0, len(out), CHUNK):
        some = slice(first, first + CHUNK)
        slopes = loss_slope.py_func(target.loss, target.pred[some], target.y[some])
        np.multiply(target.row_weights[some], slopes, out=out[some])
    return out


def bias_step(target: Target) -> float:
    """Take the minimum of the loss' quadratic bound along the bias; returns its change."""
    change = -float(weighted_slopes(target).mean()) / target.curvature
    target.pred[:] += change
    return change


# ---- kernels


@jit
def loss_slope(code, p, y):
    """∂ℓ/∂p, of numbers in compiled code and of arrays in NumPy."""
    if code == SQUARED:
        return p - y
    if code == LOGISTIC:
        return -y / (1.0 + np.exp(np.minimum(y * p, 700.0)))
    if code == SQUARED_HINGE:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * p)
    return np.nan * y


@jit
def linear_epoch(order, columns, target, w, alpha):
    """Update the linear weights in this order; returns the sum of absolute changes."""
    y, pred, row_weights = target.y, target.pred, target.row_weights
    n, moved = len(y), 0.0
    for j in order:
        g = h = 0.0
        for p in range(columns.indptr[j], columns.indptr[j + 1]):
            i = columns.indices[p]
            x = row_weights[i] * columns.data[p]
            g += loss_slope(target.loss, pred[i], y[i]) * x
            h += x * columns.data[p]
        bound = target.curvature * h / n + alpha
        if bound <= 0.0:
            continue
        change = -(g / n + alpha * w[j]) / bound
        w[j] += change
        moved += abs(change)
        for p in range(columns.indptr[j], columns.indptr[j + 1]):
            pred[columns.indices[p]] += change * columns.data[p]
    return moved
