"""Coordinate descent on multi-linear models: every parameter enters a prediction linearly.

One pass over the features is an epoch. `coordinate_epoch` walks a feature's rows for each component;
`block_epoch` walks them twice for all components together and takes the exact step of the quadratic
bound on the feature's whole row of P, or, under a penalty on rows, a proximal one.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm._losses import loss_slope

ANOVA, ALL_SUBSETS, PRODUCT = range(3)

# ---- kernels


@jit
def slope(kind, table, i, x, p, part):
    """Return ∂prediction/∂p_j of row i for one component, by the O(degree) recursion (3.20)."""
    if kind == 0:  # A^m without j, from the table of A^1…A^(m−1)
        b = 1.0
        for t in range(table.shape[1]):
            b = table[i, t] - p * x * b
        return x * b
    if kind == 1:
        return x * table[i, 0] / (1.0 + p * x)
    product = x
    for t in range(table.shape[1]):
        if t != part:
            product *= table[i, t]
    return product


@jit
def _move(kind, table, i, x, p, part, change):
    """Bring the table of row i up to date after p_j has changed."""
    if kind == 0:
        b = 1.0
        for t in range(table.shape[1]):
            old = table[i, t]
            table[i, t] = old + change * x * b
            b = old - p * x * b
    elif kind == 1:
        table[i, 0] *= (1.0 + (p + change) * x) / (1.0 + p * x)
    else:
        table[i, part] += change * x


@jit
def fill_component(kind, indptr, indices, data, P, s, table):
    """Fill the table of one component: A^1…A^width, Π(1 + p x), or one linear form a factor."""
    n, width = table.shape
    for i in range(n):
        for t in range(width):
            table[i, t] = 1.0 if kind == 1 else 0.0
        for q in range(indptr[i], indptr[i + 1]):
            j, x = indices[q], data[q]
            if kind == 0:
                z = P[0, j, s] * x
                for t in range(width - 1, 0, -1):
                    table[i, t] += z * table[i, t - 1]
                table[i, 0] += z
            elif kind == 1:
                table[i, 0] *= 1.0 + P[0, j, s] * x
            else:
                for t in range(width):
                    table[i, t] += P[t, j, s] * x


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
def _apply(value, penalty, gamma, bound, others):
    """Return the proximal step of a penalty on single parameters."""
    if penalty == 1:
        return np.sign(value) * max(abs(value) - gamma / bound, 0.0)
    if penalty == 2:
        return np.sign(value) * max(abs(value) - gamma * others / bound, 0.0)
    return value


@jit
def coordinate_epoch(
    kind, indptr, indices, xdata, col_ptr, rows, data, y, pred, P, table, loss, curvature, beta,
    penalty, gamma,
):  # fmt: skip
    """Update every parameter of P, (factors, features, components), component by component.

    The table is of one component at a time, so that it stays in the cache.
    """
    n, moved = len(y), 0.0
    longest = 1
    for j in range(len(col_ptr) - 1):
        longest = max(longest, col_ptr[j + 1] - col_ptr[j])
    kept = np.empty(longest)
    for s in range(P.shape[2]):
        fill_component(kind, indptr, indices, xdata, P, s, table)
        for part in range(P.shape[0]):
            total = 0.0
            for j in range(P.shape[1]):
                total += abs(P[part, j, s])
            for j in range(P.shape[1]):
                begin, end = col_ptr[j], col_ptr[j + 1]
                old = P[part, j, s]
                g = h = 0.0
                safe = True
                if kind == 0 and table.shape[1] == 1:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        d = x * (table[i, 0] - old * x)
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                else:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        if kind == 1 and abs(1.0 + old * x) < 1e-6:
                            safe = False  # the quotient cancels here: this coordinate waits
                            break
                        d = slope(kind, table, i, x, old, part)
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                bound = curvature * h / n + beta
                if bound <= 1e-300 or not safe:
                    continue
                new = old - (g / n + beta * old) / bound
                new = _apply(new, penalty, gamma, bound, total - abs(old))
                change = new - old
                if change == 0.0:
                    continue
                if kind == 0 and table.shape[1] == 1:
                    for p in range(begin, end):
                        i = rows[p]
                        pred[i] += change * kept[p - begin]
                        table[i, 0] += change * data[p]
                else:
                    for p in range(begin, end):
                        pred[rows[p]] += change * kept[p - begin]
                        _move(kind, table, rows[p], data[p], old, part, change)
                total += abs(new) - abs(old)
                P[part, j, s] = new
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
def _gather_squares(rows, H):
    """H += rowsᵀ rows for four rows."""
    k = len(H)
    for a in range(k):
        v0, v1, v2, v3 = rows[0, a], rows[1, a], rows[2, a], rows[3, a]
        for b in range(k):
            H[a, b] += (v0 * rows[0, b] + v1 * rows[1, b]) + (v2 * rows[2, b] + v3 * rows[3, b])


@jit
def block_epoch(
    col_ptr, rows, data, y, pred, P, table, width, loss, curvature, beta, penalty, gamma
):  # fmt: skip
    """Update a feature's whole row at once, ANOVA only.

    Without a penalty on rows the step minimises the quadratic bound exactly; with one (ℓ2,1 or CS)
    it is the proximal step of the bound's largest curvature.
    """
    n, k = len(y), P.shape[1]
    H, g, slopes = np.empty((k, k)), np.empty(k), np.empty(k)
    held = np.empty((4, k))
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
        largest, count = 0.0, 0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            i, x = rows[p], data[p]
            r = loss_slope(loss, pred[i], y[i])
            if width == 1:
                for s in range(k):
                    slopes[s] = x * (table[i, s, 0] - row[s] * x)
            else:
                for s in range(k):
                    slopes[s] = slope(0, table[i], s, x, row[s], 0)
            square = 0.0
            for s in range(k):
                g[s] += r * slopes[s]
                square += slopes[s] * slopes[s]
            largest += square
            if not rowwise:
                held[count] = slopes
                count += 1
                if count == 4:  # four rows at once: a quarter of the passes over H
                    _gather_squares(held, H)
                    count = 0
        if count:
            held[count:] = 0.0
            _gather_squares(held, H)
        if rowwise:
            bound = curvature * largest / n + beta
            if bound <= 1e-300:
                continue
            weight = gamma if penalty == 3 else gamma * (total - norms[j])
            size = 0.0
            for s in range(k):
                slopes[s] = row[s] - (g[s] / n + beta * row[s]) / bound
                size += slopes[s] * slopes[s]
            size = np.sqrt(size)
            shrink = max(0.0, 1.0 - weight / bound / size) if size > 0.0 else 0.0
            for s in range(k):
                g[s] = shrink * slopes[s] - row[s]
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
                    step += g[s] * slope(0, table[i], s, x, row[s], 0)
                    _move(0, table[i], s, x, row[s], 0, g[s])
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
