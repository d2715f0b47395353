"""The part of a prediction that is plainly linear: the bias, and one weight a feature."""

from __future__ import annotations

from recsys._jit import jit
from recsys.multilinear.arrays import weight_mask
from recsys.multilinear.losses import loss_slope

__all__ = ["bias_step", "linear_epoch"]

# ---- kernels


@jit
def linear_epoch(order, columns, target, w, alpha):
    """Update the linear weights in this order; returns the sum of absolute changes."""
    y, pred, row_weights = target.y, target.pred, target.row_weights
    n, moved, mask = len(y), 0.0, weight_mask(row_weights)
    for j in order:
        g = h = 0.0
        for p in range(columns.indptr[j], columns.indptr[j + 1]):
            i = columns.indices[p]
            x = row_weights[i & mask] * columns.data[p]
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


@jit
def bias_step(target, bias):
    """Take the minimum of the loss' quadratic bound along the bias; returns the new bias."""
    y, pred, row_weights = target.y, target.pred, target.row_weights
    g, mask = 0.0, weight_mask(row_weights)
    for i in range(len(y)):
        g += row_weights[i & mask] * loss_slope(target.loss, pred[i], y[i])
    change = -g / len(y) / target.curvature
    for i in range(len(y)):
        pred[i] += change
    return bias + change
