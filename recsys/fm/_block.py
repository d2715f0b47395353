"""Block descent: all components of a feature at once, for the ANOVA kernel.

The step is the exact minimum of the quadratic bound on the feature's row of P, or, under a penalty on
rows (ℓ2,1, CS), a proximal one. Where rounding leaves the bound's matrix without a Cholesky factor, the
step is that of a diagonal above it, by Gershgorin: never none at all. Tables hold A^1…A^t of each row
and component.
Source: Atarashi et al. 2021, 4.2; Blondel et al. 2016, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from recsys._jit import jit
from recsys.fm._losses import loss_slope, symmetric_polynomials, with_size, without
from recsys.fm._rows import NEAR_ZERO, product_without

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
    """Solve H d = g in place by Cholesky; returns whether H was positive definite to rounding."""
    for a in range(k):
        least = 1e-13 * k * H[a, a]
        for b in range(a):
            total = H[a, b]
            for c in range(b):
                total -= H[a, c] * H[b, c]
            H[a, b] = total / H[b, b]
        total = H[a, a]
        for c in range(a):
            total -= H[a, c] * H[a, c]
        if not total > least:
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
    kind, indptr, indices, xdata, order, col_ptr, rows, data, y, pred, P, table, width, loss, curvature,
    beta, penalty, gamma,
):  # fmt: skip
    """Update a feature's whole row at once, for kinds ANOVA and all-subsets, in the order given.

    Without a penalty on rows the step minimises the quadratic bound exactly; with one (ℓ2,1 or CS)
    it is the proximal step of the bound's largest curvature.
    """
    n, k = len(y), P.shape[1]
    H, g, slopes = np.empty((k, k)), np.empty(k), np.empty(k)
    held = np.empty((4, k))
    norms = np.empty(P.shape[0])
    for j in range(P.shape[0]):
        norms[j] = np.sqrt((P[j] * P[j]).sum())
    above = np.empty(k)  # Σ_b |H_ab|: diag(above) − H is positive semi-definite
    sums, rest = symmetric_polynomials(norms, width), np.empty(width + 1)
    product = np.log1p(norms).sum()  # of the all-subsets penalty, log Π(1 + ‖p‖)
    moved = 0.0
    rowwise = penalty >= 3
    for j in order:
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
                        one = 1.0 + row[s] * x
                        if abs(one) < NEAR_ZERO:
                            slopes[s] = x * product_without(indptr, indices, xdata, P, s, i, j)
                        else:
                            slopes[s] = x * table[i, s, 0] / one
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
                if kind == 1:
                    weight *= np.exp(product - np.log1p(norms[j]))
                else:
                    without(sums, norms, j, rest)
                    weight *= rest[width]
            size = 0.0
            for s in range(k):
                slopes[s] = row[s] - (g[s] / n + beta * row[s]) / bound
                size += slopes[s] * slopes[s]
            size = np.sqrt(size)
            shrink = max(0.0, 1.0 - weight / bound / size) if size > 0.0 else 0.0
            for s in range(k):
                g[s] = shrink * slopes[s] - row[s]
        else:
            above[:] = 0.0
            for a in range(k):
                for b in range(a + 1):
                    H[a, b] *= curvature / n
                    above[a] += abs(H[a, b])
                    if b < a:
                        above[b] += abs(H[a, b])
                H[a, a] = H[a, a] * (1.0 + 1e-10) + beta  # of its own size: no scale is lost
                slopes[a] = g[a] = -(g[a] / n + beta * row[a])
            if not _solve(H, g, k):
                for a in range(k):
                    bound = above[a] + beta
                    g[a] = slopes[a] / bound if bound > 1e-300 else 0.0
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
                        if abs(one) < NEAR_ZERO:
                            others = product_without(indptr, indices, xdata, P, s, i, j)
                        else:
                            others = table[i, s, 0] / one
                        step += g[s] * x * others
                        table[i, s, 0] = others * (one + g[s] * x)
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
        if penalty == 4 and kind == 1:
            product += np.log1p(np.sqrt(size)) - np.log1p(norms[j])
            norms[j] = np.sqrt(size)
        elif penalty == 4:
            with_size(sums, norms, j, rest, np.sqrt(size))
    return moved
