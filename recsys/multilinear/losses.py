"""The losses, in one registry and one compiled chain of integer codes.

A loss is a line in the registry and a branch in each of `loss_value` and `loss_slope`: all of it in this
file. Factorization machines, link predictors and rankers take their lists of losses from here.

The chain dispatches on integers because numba keeps what is compiled for them on disk, once for all
losses; passing a class or a function for each loss would compile every solver again for every one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recsys._jit import jit
from recsys.multilinear.arrays import weight_mask
from recsys.registry import Registry

__all__ = [
    "LOSSES",
    "Loss",
    "loss_names",
    "loss_slope",
    "loss_value",
    "mean_loss",
    "slopes_of",
]

SQUARED, LOGISTIC, SQUARED_HINGE = range(3)


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

    A loss must be what is True, and must not be what is False; None takes either.
    """
    known = sorted((LOSSES.get(name) for name in LOSSES.names()), key=lambda a: (a.pairwise, a.code))
    return tuple(
        loss.name
        for loss in known
        if classes in (None, loss.for_classes)
        and numbers in (None, loss.for_numbers)
        and pairwise in (None, loss.pairwise)
    )


# ---- kernels


@jit
def loss_value(code, p, y):
    """ℓ(p, y): ½(p − y)²; log(1 + e^(−yp)); max(0, 1 − yp)²."""
    if code == SQUARED:
        return 0.5 * (p - y) ** 2
    if code == LOGISTIC:
        z = -y * p
        return z + np.log1p(np.exp(-z)) if z > 0 else np.log1p(np.exp(z))
    if code == SQUARED_HINGE:
        left = max(0.0, 1.0 - y * p)
        return left * left
    return np.nan  # a code without a branch is no loss: the first objective says so


@jit
def loss_slope(code, p, y):
    """∂ℓ/∂p."""
    if code == SQUARED:
        return p - y
    if code == LOGISTIC:
        z = y * p
        return -y / (1.0 + np.exp(z)) if z < 700 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * p)
    return np.nan


@jit
def mean_loss(loss, pred, y, row_weights):
    """Return the mean of the loss times the rows' weights: of mean 1, or `ALIKE`."""
    total, mask = 0.0, weight_mask(row_weights)
    for i in range(len(y)):
        total += row_weights[i & mask] * loss_value(loss, pred[i], y[i])
    return total / len(y)


@jit
def slopes_of(loss, pred, y):
    """Return ∂ℓ/∂p of each row."""
    out = np.empty(len(y))
    for i in range(len(y)):
        out[i] = loss_slope(loss, pred[i], y[i])
    return out
