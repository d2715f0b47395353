"""The compiled passes of coordinate descent on pairs of objects, which `_relational` calls."""

from __future__ import annotations

import numba
import numpy as np

from recsys._jit import jit
from recsys.fm._losses import loss_slope, proximal, with_size, without
from recsys.fm._rows import GUARD

CHUNKS = 2  # of pairs
PARTS = 16  # of pairs whose predictions are moved

# ---- kernels


@jit
def fill_table(indptr, indices, data, p, out):
    """out[u, t] = A^t(p, x_u), t = 0…width − 1."""
    width = out.shape[1]
    for u in range(out.shape[0]):
        out[u, 0] = 1.0
        for t in range(1, width):
            out[u, t] = 0.0
        for q in range(indptr[u], indptr[u + 1]):
            z = p[indices[q]] * data[q]
            for t in range(width - 1, 0, -1):
                out[u, t] += z * out[u, t - 1]


@jit
def _gather_chunk(ptr, entries, partners, y, pred, loss, stale, packed, held, old, c, sums):
    m = len(c) - 1
    total, b = np.empty(m + m * m), np.empty(m)
    for u in range(len(ptr) - 1):
        first, last = ptr[u], ptr[u + 1]
        if m == 2:
            g0 = g1 = h0 = h1 = 0.0
            a, e1 = old[1] * held[u, 1], old[2] * held[u, 0]
            for e in range(first, last):
                i, v = entries[e], partners[e]
                p = pred[i]
                if stale:
                    p += a * packed[v, 0] + e1 * packed[v, 1]
                    pred[i] = p
                r = loss_slope(loss, p, y[i])
                x = packed[v, 3]
                g0 += r * x
                g1 += r
                h0 += x * x
                h1 += x
            sums[u, 0], sums[u, 1] = c[1] * g0, c[2] * g1
            sums[u, 2], sums[u, 4] = c[1] * c[1] * h0, c[1] * c[2] * h1
            sums[u, 3], sums[u, 5] = c[1] * c[2] * h1, c[2] * c[2] * (last - first)
            continue
        if m == 3:
            g0 = g1 = g2 = h00 = h01 = h11 = h0 = h1 = 0.0
            a, e1, e2 = old[1] * held[u, 2], old[2] * held[u, 1], old[3] * held[u, 0]
            for e in range(first, last):
                i, v = entries[e], partners[e]
                p = pred[i]
                if stale:
                    p += a * packed[v, 0] + e1 * packed[v, 1] + e2 * packed[v, 2]
                    pred[i] = p
                r = loss_slope(loss, p, y[i])
                x, z = packed[v, 5], packed[v, 4]
                g0 += r * x
                g1 += r * z
                g2 += r
                h00 += x * x
                h01 += x * z
                h11 += z * z
                h0 += x
                h1 += z
            c1, c2, c3 = c[1], c[2], c[3]
            sums[u, 0], sums[u, 1], sums[u, 2] = c1 * g0, c2 * g1, c3 * g2
            sums[u, 3] = c1 * c1 * h00
            sums[u, 6], sums[u, 7] = c2 * c1 * h01, c2 * c2 * h11
            sums[u, 9], sums[u, 10] = c3 * c1 * h0, c3 * c2 * h1
            sums[u, 11] = c3 * c3 * (last - first)
            continue
        total[:] = 0.0
        for e in range(first, last):
            i, v = entries[e], partners[e]
            p = pred[i]
            if stale:
                for t in range(m):
                    p += old[t + 1] * packed[v, t] * held[u, m - 1 - t]
                pred[i] = p
            r = loss_slope(loss, p, y[i])
            for t in range(m):
                x = packed[v, 2 * m - 1 - t]
                b[t] = x
                total[t] += r * x
                for w in range(t + 1):
                    total[m + t * m + w] += x * b[w]
        for t in range(m):
            sums[u, t] = c[t + 1] * total[t]
            for w in range(t + 1):
                sums[u, m + t * m + w] = c[t + 1] * c[w + 1] * total[m + t * m + w]


@jit(parallel=True)
def gather(ptr, entries, partners, y, pred, loss, stale, packed, held, old, c, sums):
    """Sum, for each object, the gradient and curvature of the loss in its own A^1…A^m over its pairs.

    The change of the last sweep is brought into the predictions on the way: `packed` has, for each
    partner, its factors in that change and its A^0…A^(m−1), `held` the objects' own factors. Chunks of
    pairs are fixed: no result depends on the number of threads, and a thread stays with its own
    predictions. `sums` is (chunks, objects, m gradients and m·m curvatures).
    """
    for chunk in numba.prange(CHUNKS):
        _gather_chunk(
            ptr[chunk], entries, partners, y, pred, loss, stale, packed, held, old, c, sums[chunk]
        )


@jit
def gather_alone(ptr, entries, partners, y, pred, loss, stale, packed, held, old, c, sums):
    """Do the same on this thread, without waking another."""
    for chunk in range(CHUNKS):
        _gather_chunk(
            ptr[chunk], entries, partners, y, pred, loss, stale, packed, held, old, c, sums[chunk]
        )


@jit
def _careful_slopes(x, u, indptr, indices, data, p, j, b):
    """Fill b with ∂A^t/∂p_j, t = 1…m, of object u by the plain recursion, where (3.20) cancels."""
    b[:] = 0.0
    b[0] = 1.0
    for q in range(indptr[u], indptr[u + 1]):
        if indices[q] != j:
            z = p[indices[q]] * data[q]
            for t in range(len(b) - 1, 0, -1):
                b[t] += z * b[t - 1]
    for t in range(len(b)):
        b[t] *= x


@jit
def sweep(
    order, col_ptr, rows, data, p, table, sums, n, curvature, beta, penalty, gamma, totals, sizes,
    offset, degree, indptr, indices, values,
):  # fmt: skip
    """Descend feature by feature on the objects' quadratics; p, table and sums change in place.

    `sizes` are the |p| of both sides, this one's from `offset`; `totals` their symmetric polynomials.
    """
    m = table.shape[1] - 1
    moved = 0.0
    b, rest = np.empty(m), np.empty(len(totals) + 1)
    for j in order:
        old = p[j]
        g = h = 0.0
        careful = False
        if m > 2:
            for q in range(col_ptr[j], col_ptr[j + 1]):
                careful = careful or abs(old * data[q]) > GUARD
        for q in range(col_ptr[j], col_ptr[j + 1]):
            u, x = rows[q], data[q]
            if m == 2:
                b1 = x * (table[u, 1] - old * x)
                g += x * sums[u, 0] + b1 * sums[u, 1]
                h += x * (x * sums[u, 2] + 2.0 * b1 * sums[u, 4]) + b1 * b1 * sums[u, 5]
            else:
                if careful and abs(old * x) > GUARD:
                    _careful_slopes(x, u, indptr, indices, values, p, j, b)
                else:
                    b[0] = x
                    for t in range(1, m):
                        b[t] = x * (table[u, t] - old * b[t - 1])
                for t in range(m):
                    g += b[t] * sums[u, t]
                    inner = 0.0
                    for w in range(t):
                        inner += sums[u, m + t * m + w] * b[w]
                    h += b[t] * (2.0 * inner + sums[u, m + t * m + t] * b[t])
        bound = curvature * h / n + beta
        if bound <= 1e-300:
            continue
        others = 0.0
        if penalty == 2:
            without(totals, sizes, offset + j, rest)
            others = rest[degree - 1]
        new = proximal(old - (g / n + beta * old) / bound, penalty, gamma / bound, others)
        change = new - old
        if change == 0.0:
            continue
        moved += abs(change)
        if penalty == 2:
            with_size(totals, sizes, offset + j, rest, abs(new))
        for q in range(col_ptr[j], col_ptr[j + 1]):
            u, x = rows[q], data[q]
            if m == 2:
                b1 = x * (table[u, 1] - old * x)
                sums[u, 0] += curvature * change * (sums[u, 2] * x + sums[u, 4] * b1)
                sums[u, 1] += curvature * change * (sums[u, 4] * x + sums[u, 5] * b1)
                table[u, 1] += change * x
                table[u, 2] += change * b1
            else:
                if careful and abs(old * x) > GUARD:
                    _careful_slopes(x, u, indptr, indices, values, p, j, b)
                else:
                    b[0] = x
                    for t in range(1, m):
                        b[t] = x * (table[u, t] - old * b[t - 1])
                for t in range(m):
                    total = 0.0
                    for w in range(t + 1):
                        total += sums[u, m + t * m + w] * b[w]
                    for w in range(t + 1, m):
                        total += sums[u, m + w * m + t] * b[w]
                    sums[u, t] += curvature * change * total
                    table[u, t + 1] += change * b[t]
        p[j] = new
    return moved


@jit
def _add_some(left, right, TA, TB, c, symmetric, out, first, last):
    m = len(c) - 1
    for i in range(first, last):
        u, v = left[i], right[i]
        total = 0.0
        for t in range(m + 1):
            total += c[t] * TA[u, t] * TB[v, m - t]
        if symmetric:
            for t in range(m + 1):
                total += c[t] * TA[v, t] * TB[u, m - t]
        out[i] += total


@jit(parallel=True)
def add_products(left, right, TA, TB, c, symmetric, out):
    """Out += Σ_t c_t·TA[left, t]·TB[right, m − t], plus, symmetric, the same with the ends exchanged."""
    n = len(left)
    for part in numba.prange(PARTS):
        first, last = part * n // PARTS, (part + 1) * n // PARTS
        _add_some(left, right, TA, TB, c, symmetric, out, first, last)


@jit
def add_products_alone(left, right, TA, TB, c, symmetric, out):
    """Do the same on this thread, without waking another."""
    _add_some(left, right, TA, TB, c, symmetric, out, 0, len(left))


@jit
def slopes_of(loss, pred, y):
    out = np.empty(len(y))
    for i in range(len(y)):
        out[i] = loss_slope(loss, pred[i], y[i])
    return out
