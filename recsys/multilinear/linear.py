"""Steps on the bias and the linear weights."""

from __future__ import annotations

from recsys._jit import jit
from recsys.multilinear.arrays import Target
from recsys.multilinear.losses import loss_slope, weighted_slopes

__all__ = ["bias_step", "linear_epoch"]


def bias_step(target: Target) -> float:
    """Take the minimum of the loss' quadratic bound along the bias; returns its change."""
    change = -float(weighted_slopes(target).mean()) / target.curvature
    target.pred[:] += change
    return change


# ---- kernels


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
