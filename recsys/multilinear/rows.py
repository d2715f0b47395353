"""Predictions and gradients of sparse rows, all components of a feature at once.

All parameters lie in one vector: the bias, the linear weights, then each term's (factors, features,
components) table, as `arrays.Layout` says. Everything touches the non-zeros of a row only.

Source: Blondel et al. 2016, Algorithms 1 and 2.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, POWER
from recsys.multilinear.losses import loss_slope

__all__ = ["ROW_CHUNKS", "full_gradient", "predict_rows", "room_for", "row_backward", "row_forward"]

ROW_CHUNKS = 4  # of rows, summed in order: the same bits on any number of threads

# ---- kernels


@jit
def row_forward(z, layout, rows, i, tables):
    """Return row i's prediction and fill tables, (terms, width, components), for the way back."""
    begin, end = rows.indptr[i], rows.indptr[i + 1]
    indices, data, features = rows.indices, rows.data, layout.features
    spec, theta, weights = layout.spec, layout.theta, layout.weights
    total = z[0]
    if layout.linear:
        for q in range(begin, end):
            total += z[1 + indices[q]] * data[q]
    k = tables.shape[2]
    for n in range(len(spec)):
        kind, order, factors, offset = spec[n]
        table = tables[n]
        if kind == ANOVA or kind == MIXED:
            table[0] = 1.0
            table[1 : order + 1] = 0.0
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                for t in range(order, 0, -1):
                    for s in range(k):
                        table[t, s] += z[at + s] * x * table[t - 1, s]
            first = order if kind == ANOVA else 1
            for t in range(first, order + 1):
                c = 1.0 if kind == ANOVA else theta[n, t - 1]
                for s in range(k):
                    total += c * weights[n, s] * table[t, s]
        elif kind == ALL_SUBSETS:
            table[0] = 1.0
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                for s in range(k):
                    table[0, s] *= 1.0 + z[at + s] * x
            for s in range(k):
                total += weights[n, s] * table[0, s]
        else:
            table[:factors] = 0.0
            for f in range(factors):
                for q in range(begin, end):
                    at, x = offset + (f * features + indices[q]) * k, data[q]
                    for s in range(k):
                        table[f, s] += z[at + s] * x
            times = order if kind == POWER else factors  # a power is a product with one table
            for s in range(k):
                product = weights[n, s]
                for f in range(times):
                    product *= table[0 if kind == POWER else f, s]
                total += product
    return total


@jit
def room_for(layout, rows):
    """Return room for `row_backward`: a table for each feature of the longest row, and one more."""
    longest = 0
    for i in range(len(rows.indptr) - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    return np.empty((longest + 1, layout.width, layout.components))


@jit
def row_backward(z, layout, rows, i, tables, r, room, out):
    """Out += r · ∂prediction/∂z of the row row_forward saw last.

    Tables of the features before each one are kept in `room` and meet those of the features behind it:
    nothing is taken away or divided, which would lose digits where one entry outweighs the others.
    """
    begin, end = rows.indptr[i], rows.indptr[i + 1]
    indices, data, features = rows.indices, rows.data, layout.features
    spec, theta, weights = layout.spec, layout.theta, layout.weights
    out[0] += r
    if layout.linear:
        for q in range(begin, end):
            out[1 + indices[q]] += r * data[q]
    k = tables.shape[2]
    behind = room[end - begin]
    for n in range(len(spec)):
        kind, order, factors, offset = spec[n]
        if kind == ANOVA or kind == MIXED:
            room[0, 0] = 1.0
            room[0, 1:order] = 0.0
            for q in range(begin, end - 1):
                at, x = offset + indices[q] * k, data[q]
                before, then = room[q - begin], room[q - begin + 1]
                then[0] = 1.0
                for t in range(1, order):
                    for s in range(k):
                        then[t, s] = before[t, s] + z[at + s] * x * before[t - 1, s]
            for t in range(1, order + 1):
                c = theta[n, t - 1] if kind == MIXED else 1.0 if t == order else 0.0
                for s in range(k):
                    behind[t, s] = r * c * weights[n, s]
            for q in range(end - 1, begin - 1, -1):
                at, x = offset + indices[q] * k, data[q]
                before = room[q - begin]
                for t in range(1, order + 1):
                    for s in range(k):
                        out[at + s] += x * behind[t, s] * before[t - 1, s]
                for t in range(1, order):
                    for s in range(k):
                        behind[t, s] += z[at + s] * x * behind[t + 1, s]
        elif kind == ALL_SUBSETS:
            room[0, 0] = 1.0
            for q in range(begin, end - 1):
                at, x = offset + indices[q] * k, data[q]
                for s in range(k):
                    room[q - begin + 1, 0, s] = room[q - begin, 0, s] * (1.0 + z[at + s] * x)
            for s in range(k):
                behind[0, s] = r * weights[n, s]
            for q in range(end - 1, begin - 1, -1):
                at, x = offset + indices[q] * k, data[q]
                for s in range(k):
                    out[at + s] += x * behind[0, s] * room[q - begin, 0, s]
                    behind[0, s] *= 1.0 + z[at + s] * x
        else:
            table, slopes = tables[n], behind[0]
            for f in range(factors):
                for s in range(k):
                    slopes[s] = r * weights[n, s]
                if kind == POWER:
                    for s in range(k):
                        slopes[s] *= order
                        for _ in range(order - 1):
                            slopes[s] *= table[0, s]
                for g in range(factors):
                    if g != f:
                        for s in range(k):
                            slopes[s] *= table[g, s]
                for q in range(begin, end):
                    at, x = offset + (f * features + indices[q]) * k, data[q]
                    for s in range(k):
                        out[at + s] += slopes[s] * x


@jit
def full_gradient(part, stride, z, layout, rows, target, parts):
    """Fill the predictions, and parts, (chunks, parameters), with each chunk's share of the gradient."""
    n, chunks = len(target.y), len(parts)
    tables = np.empty((len(layout.spec), layout.width, layout.components))
    room = room_for(layout, rows)
    for c in range(part, chunks, stride):
        for i in range(c * n // chunks, (c + 1) * n // chunks):
            target.pred[i] = row_forward(z, layout, rows, i, tables)
            r = target.row_weights[i] * loss_slope(target.loss, target.pred[i], target.y[i]) / n
            row_backward(z, layout, rows, i, tables, r, room, parts[c])


@jit
def predict_rows(part, stride, z, layout, rows, pred):
    """Fill pred with the prediction of each row."""
    n = len(pred)
    tables = np.empty((len(layout.spec), layout.width, layout.components))
    for i in range(part * n // stride, (part + 1) * n // stride):
        pred[i] = row_forward(z, layout, rows, i, tables)
