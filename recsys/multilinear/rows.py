"""Predictions and gradients of sparse rows, all components of a feature at once.

All parameters lie in one vector: the bias, the linear weights, then each term's (factors, features,
components) table, as `arrays.Layout` says. Everything touches the non-zeros of a row only.

Source: Blondel et al. 2016, Algorithms 1 and 2; Atarashi's thesis (3.20).
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.multilinear.arrays import weight_mask
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, NEAR_ZERO, POWER, guard_of
from recsys.multilinear.losses import loss_slope

__all__ = ["ROW_CHUNKS", "full_gradient", "predict_rows", "row_backward", "row_forward"]

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
def row_backward(z, layout, rows, i, tables, r, slopes, out):
    """Out += r · ∂prediction/∂z of the row row_forward saw last; `slopes` is room, (components,)."""
    begin, end = rows.indptr[i], rows.indptr[i + 1]
    indices, data, features = rows.indices, rows.data, layout.features
    spec, theta, weights = layout.spec, layout.theta, layout.weights
    out[0] += r
    if layout.linear:
        for q in range(begin, end):
            out[1 + indices[q]] += r * data[q]
    k = tables.shape[2]
    for n in range(len(spec)):
        kind, order, factors, offset = spec[n]
        table = tables[n]
        if kind == ANOVA or kind == MIXED:
            guard = guard_of(order)
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                c = r * x * (theta[n, 0] if kind == MIXED else 1.0 if order == 1 else 0.0)
                for s in range(k):
                    slopes[s] = 1.0
                    out[at + s] += c * weights[n, s]
                for t in range(1, order):
                    c = r * x * (theta[n, t] if kind == MIXED else 1.0 if t == order - 1 else 0.0)
                    for s in range(k):
                        slopes[s] = table[t, s] - z[at + s] * x * slopes[s]
                    if c != 0.0:
                        for s in range(k):
                            out[at + s] += c * weights[n, s] * slopes[s]
                if order > 2:
                    for s in range(k):
                        if abs(z[at + s] * x) > guard:
                            _mend(z, layout, rows, i, q, s, n, table, r, out)
        elif kind == ALL_SUBSETS:
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                for s in range(k):
                    one = 1.0 + z[at + s] * x
                    if abs(one) >= NEAR_ZERO:
                        rest = table[0, s] / one
                    else:
                        rest = 1.0
                        for p in range(begin, end):
                            if p != q:
                                rest *= 1.0 + z[offset + indices[p] * k + s] * data[p]
                    out[at + s] += r * weights[n, s] * x * rest
        else:
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
def _mend(z, layout, rows, i, q, s, n, table, r, out):
    """Replace one entry's contribution, computed by the short recursion, by that of the full one."""
    kind, order, _, offset = layout.spec[n]
    indices, data, k = rows.indices, rows.data, table.shape[1]
    at, x = offset + indices[q] * k + s, data[q]
    rest = np.zeros(order)
    rest[0] = 1.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        if p != q:
            v = z[offset + indices[p] * k + s] * data[p]
            for t in range(order - 1, 0, -1):
                rest[t] += v * rest[t - 1]
    short, wrong, right = 1.0, 0.0, 0.0
    for t in range(order):
        if t > 0:
            short = table[t, s] - z[at] * x * short
        c = layout.theta[n, t] if kind == MIXED else 1.0 if t == order - 1 else 0.0
        wrong += c * short
        right += c * rest[t]
    out[at] += r * x * layout.weights[n, s] * (right - wrong)


@jit
def _gradient_of(z, layout, rows, y, row_weights, loss, pred, first, last, out):
    """Fill pred of the rows first…last − 1, and add their share of the mean loss' gradient to out."""
    k = layout.components
    tables, slopes = np.empty((len(layout.spec), layout.width, k)), np.empty(k)
    mask = weight_mask(row_weights)
    for i in range(first, last):
        pred[i] = row_forward(z, layout, rows, i, tables)
        r = row_weights[i & mask] * loss_slope(loss, pred[i], y[i]) / len(y)
        row_backward(z, layout, rows, i, tables, r, slopes, out)


@jit
def full_gradient(part, stride, z, layout, rows, y, row_weights, loss, pred, parts):
    """Fill pred, and each of parts, (chunks, parameters), with a chunk's share of the gradient."""
    n, chunks = len(y), len(parts)
    for c in range(part, chunks, stride):
        first, last = c * n // chunks, (c + 1) * n // chunks
        _gradient_of(z, layout, rows, y, row_weights, loss, pred, first, last, parts[c])


@jit
def predict_rows(part, stride, z, layout, rows, pred):
    """Fill pred with the prediction of each row."""
    n = len(pred)
    tables = np.empty((len(layout.spec), layout.width, layout.components))
    for i in range(part * n // stride, (part + 1) * n // stride):
        pred[i] = row_forward(z, layout, rows, i, tables)
