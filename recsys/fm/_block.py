"""Block descent: all components of a feature at once, for the ANOVA kernel.

The step is the exact minimum of the quadratic bound on the feature's row of P, or, under a penalty on
rows (ℓ2,1, CS), a proximal one. Tables hold A^1…A^t of each row and component.
Source: Atarashi et al. 2021, 4.2; Blondel et al. 2016, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm._losses import (
    derivative_of_symmetric,
    loss_slope,
    move_symmetric,
    symmetric_polynomials,
)

# ---- kernels


@jit
def fill_tables(kind, indptr, indices, data, P, out):
    """Fill out[i, s, t − 1] with A^t of row i and component s, t = 1…width; or with Π(1 + p x)."""
    n, k, width = out.shape
    for i in range(n):
        for s in range(k):
            for t in range(width):
                out[i, s, t] = 1.0 if kind == 1 else 0.0
        for p in range(indptr[i], indptr[i + 1]):
            row, x = P[indices[p]], data[p]
            for s in range(k):
                z = row[s] * x
                if kind == 1:
                    out[i, s, 0] *= 1.0 + z
                    continue
                for t in range(width - 1, 0, -1):
                    out[i, s, t] += z * out[i, s, t - 1]
                out[i, s, 0] += z


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
    kind, col_ptr, rows, data, y, pred, P, table, width, loss, curvature, beta, penalty, gamma
):  # fmt: skip
    """Update a feature's whole row at once, for kinds ANOVA and all-subsets.

    Without a penalty on rows the step minimises the quadratic bound exactly; with one (ℓ2,1 or CS)
    it is the proximal step of the bound's largest curvature.
    """
    n, k = len(y), P.shape[1]
    H, g, slopes = np.empty((k, k)), np.empty(k), np.empty(k)
    held = np.empty((4, k))
    norms = np.empty(P.shape[0])
    for j in range(P.shape[0]):
        norms[j] = np.sqrt((P[j] * P[j]).sum())
    sums = symmetric_polynomials(norms, width)
    product = np.log1p(norms).sum()  # of the all-subsets penalty, log Π(1 + ‖p‖)
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
            if kind == 0 and width == 1:
                for s in range(k):
                    slopes[s] = x * (table[i, s, 0] - row[s] * x)
            else:
                for s in range(k):
                    if kind == 1:
                        slopes[s] = x * table[i, s, 0] / (1.0 + row[s] * x)
                        continue
                    b, z = 1.0, row[s] * x
                    for t in range(width):
                        b = table[i, s, t] - z * b
                    slopes[s] = x * b
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
            weight = gamma
            if penalty == 4:
                weight *= (
                    np.exp(product - np.log1p(norms[j]))
                    if kind == 1
                    else derivative_of_symmetric(sums, norms[j], width + 1)
                )
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
            if kind == 0 and width == 1:
                for s in range(k):
                    step += g[s] * (table[i, s, 0] - row[s] * x)
                    table[i, s, 0] += g[s] * x
                step *= x
            else:
                for s in range(k):
                    if kind == 1:
                        one = 1.0 + row[s] * x
                        step += g[s] * x * table[i, s, 0] / one
                        table[i, s, 0] *= (one + g[s] * x) / one
                        continue
                    b, z = 1.0, row[s] * x
                    for t in range(width):
                        held_t = table[i, s, t]
                        table[i, s, t] = held_t + g[s] * x * b
                        b = held_t - z * b
                    step += g[s] * x * b
            pred[i] += step
        size = 0.0
        for s in range(k):
            moved += abs(g[s])
            row[s] += g[s]
            size += row[s] * row[s]
        move_symmetric(sums, norms[j], np.sqrt(size))
        product += np.log1p(np.sqrt(size)) - np.log1p(norms[j])
        norms[j] = np.sqrt(size)
    return moved
