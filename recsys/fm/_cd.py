"""Coordinate descent on multi-linear models: every parameter enters a prediction linearly.

One pass over the features is an epoch. `coordinate` walks a feature's rows once a component;
`block` walks them twice for all components together and takes the exact step of the quadratic
bound on the feature's whole row of P, or, under a penalty on rows, a proximal one.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm._losses import loss_slope

ANOVA, ALL_SUBSETS, PRODUCT = range(3)

# ---- kernels


@jit
def _slope(kind, table, i, s, x, p, width, part):
    """Return ∂prediction/∂p_js of row i, by the O(width) recursion (3.20)."""
    if kind == 0:  # A^m without j, from the tables of A^1…A^(m−1)
        b = 1.0
        for t in range(width):
            b = table[i, s, t] - p * x * b
        return x * b
    if kind == 1:
        rest = 1.0 + p * x
        return x * table[i, s, 0] / rest
    product = x
    for t in range(table.shape[2]):
        if t != part:
            product *= table[i, s, t]
    return product


@jit
def _move(kind, table, i, s, x, p, width, part, change):
    """Bring the tables of row i up to date after p_js has changed."""
    if kind == 0:
        b = 1.0
        for t in range(width):
            old = table[i, s, t]
            table[i, s, t] = old + change * x * b
            b = old - p * x * b
    elif kind == 1:
        table[i, s, 0] *= (1.0 + (p + change) * x) / (1.0 + p * x)
    else:
        table[i, s, part] += change * x


@jit
def linear_epoch(col_ptr, rows, data, y, pred, w, loss, curvature, alpha):
    """Update the linear weights; returns the sum of absolute changes."""
    n, moved = len(y), 0.0
    for j in range(len(w)):
        g = h = 0.0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i = rows[p]
            g += loss_slope(loss, pred[i], y[i]) * data[p]
            h += data[p] * data[p]
        bound = curvature * h / n + alpha
        if bound <= 0.0:
            continue
        change = -(g / n + alpha * w[j]) / bound
        w[j] += change
        moved += abs(change)
        for p in range(col_ptr[j], col_ptr[j + 1]):
            pred[rows[p]] += change * data[p]
    return moved


@jit
def bias_step(y, pred, bias, loss, curvature):
    g = 0.0
    for i in range(len(y)):
        g += loss_slope(loss, pred[i], y[i])
    change = -g / len(y) / curvature
    for i in range(len(y)):
        pred[i] += change
    return bias + change


@jit
def coordinate_epoch(
    kind, col_ptr, rows, data, y, pred, P, table, width, part, loss, curvature, beta, penalty, gamma,
    sums,
):  # fmt: skip
    """Update every p_js in turn; sums[s] holds Σ_j |p_js| for the TI penalty."""
    n, k = len(y), P.shape[1]
    moved = 0.0
    for j in range(P.shape[0]):
        for s in range(k):
            old = P[j, s]
            g = h = 0.0
            for p in range(col_ptr[j], col_ptr[j + 1]):
                i = rows[p]
                d = _slope(kind, table, i, s, data[p], old, width, part)
                g += loss_slope(loss, pred[i], y[i]) * d
                h += d * d
            bound = curvature * h / n + beta
            if bound <= 1e-300:
                continue
            new = old - (g / n + beta * old) / bound
            if penalty == 1:
                new = np.sign(new) * max(abs(new) - gamma / bound, 0.0)
            elif penalty == 2:
                new = np.sign(new) * max(abs(new) - gamma * (sums[s] - abs(old)) / bound, 0.0)
            change = new - old
            if change == 0.0:
                continue
            for p in range(col_ptr[j], col_ptr[j + 1]):
                i, x = rows[p], data[p]
                if kind == 1 and abs(1.0 + old * x) < 1e-6:
                    change = 0.0  # the quotient is not safe here: this coordinate waits
                    break
            if change == 0.0:
                continue
            for p in range(col_ptr[j], col_ptr[j + 1]):
                i, x = rows[p], data[p]
                pred[i] += change * _slope(kind, table, i, s, x, old, width, part)
                _move(kind, table, i, s, x, old, width, part, change)
            sums[s] += abs(new) - abs(old)
            P[j, s] = new
            moved += abs(change)
    return moved


@jit
def _solve(H, g, k):
    """Solve H d = g in place by Cholesky; returns whether H was positive definite."""
    for a in range(k):
        for b in range(a):
            total = H[a, b]
            for c in range(b):
                total -= H[a, c] * H[b, c]
            H[a, b] = total / H[b, b]
        total = H[a, a]
        for c in range(a):
            total -= H[a, c] * H[a, c]
        if total <= 0.0:
            return False
        H[a, a] = np.sqrt(total)
    for a in range(k):
        for c in range(a):
            g[a] -= H[a, c] * g[c]
        g[a] /= H[a, a]
    for a in range(k - 1, -1, -1):
        for c in range(a + 1, k):
            g[a] -= H[c, a] * g[c]
        g[a] /= H[a, a]
    return True


@jit
def block_epoch(
    col_ptr, rows, data, y, pred, P, table, width, loss, curvature, beta, penalty, gamma
):  # fmt: skip
    """Update a feature's whole row at once, ANOVA only.

    Without a penalty on rows the step minimises the quadratic bound exactly; with one (ℓ2,1 or CS)
    it is the proximal step of the bound's largest curvature.
    """
    n, k = len(y), P.shape[1]
    H, g, slope = np.empty((k, k)), np.empty(k), np.empty(k)
    norms = np.empty(P.shape[0])
    total = 0.0
    for j in range(P.shape[0]):
        norms[j] = np.sqrt((P[j] * P[j]).sum())
        total += norms[j]
    moved = 0.0
    rowwise = penalty >= 3
    for j in range(P.shape[0]):
        row = P[j]
        g[:] = 0.0
        H[:] = 0.0
        largest = 0.0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = rows[p], data[p]
            r = loss_slope(loss, pred[i], y[i])
            if width == 1:
                for s in range(k):
                    slope[s] = x * (table[i, s, 0] - row[s] * x)
            else:
                for s in range(k):
                    slope[s] = _slope(0, table, i, s, x, row[s], width, 0)
            square = 0.0
            for s in range(k):
                g[s] += r * slope[s]
                square += slope[s] * slope[s]
            largest += square
            if not rowwise:
                for a in range(k):
                    v = slope[a]
                    for b in range(a + 1):
                        H[a, b] += v * slope[b]
        if rowwise:
            bound = curvature * largest / n + beta
            if bound <= 1e-300:
                continue
            weight = gamma if penalty == 3 else gamma * (total - norms[j])
            size = 0.0
            for s in range(k):
                slope[s] = row[s] - (g[s] / n + beta * row[s]) / bound
                size += slope[s] * slope[s]
            size = np.sqrt(size)
            shrink = max(0.0, 1.0 - weight / bound / size) if size > 0.0 else 0.0
            for s in range(k):
                g[s] = shrink * slope[s] - row[s]
        else:
            for a in range(k):
                for b in range(a + 1):
                    H[a, b] *= curvature / n
                H[a, a] += beta + 1e-12
                g[a] = -(g[a] / n + beta * row[a])
            if not _solve(H, g, k):
                continue
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = rows[p], data[p]
            step = 0.0
            if width == 1:
                for s in range(k):
                    step += g[s] * (table[i, s, 0] - row[s] * x)
                    table[i, s, 0] += g[s] * x
                step *= x
            else:
                for s in range(k):
                    step += g[s] * _slope(0, table, i, s, x, row[s], width, 0)
                    _move(0, table, i, s, x, row[s], width, 0, g[s])
            pred[i] += step
        total -= norms[j]
        size = 0.0
        for s in range(k):
            moved += abs(g[s])
            row[s] += g[s]
            size += row[s] * row[s]
        norms[j] = np.sqrt(size)
        total += norms[j]
    return moved
