"""Predictions and gradients of sparse rows, all components of a feature at once.

All parameters lie in one vector: the bias, the linear weights, then each term's (factors, features,
components) table. A term is described by (kind, order, factors, offset). Everything touches the
non-zeros of a row only.

Source: Blondel et al. 2016, Algorithms 1 and 2; Atarashi's thesis (3.20).
"""

from __future__ import annotations

import numba
import numpy as np

from recsys._jit import jit
from recsys.fm._losses import loss_slope

ANOVA, ALL_SUBSETS, PRODUCT, MIXED = range(4)
GUARD = 4.0  # |p x| from which the recursion (3.20), whose error grows with its powers, is left
CHUNKS = 4  # of rows, summed in order: the same bits on any number of threads

# ---- kernels


@jit
def excluded(indptr, indices, data, P, s, i, j, out):
    """Fill out with A^1…A^width of row i and component s without feature j, by the plain recursion."""
    width = len(out)
    out[:] = 0.0
    for q in range(indptr[i], indptr[i + 1]):
        if indices[q] != j:
            z = P[indices[q], s] * data[q]
            for t in range(width - 1, 0, -1):
                out[t] += z * out[t - 1]
            out[0] += z


@jit
def row_forward(z, spec, theta, weights, features, indices, data, begin, end, linear, tables):
    """Return a row's prediction and fill tables, (terms, width, components), for the way back."""
    total = z[0]
    if linear:
        for q in range(begin, end):
            total += z[1 + indices[q]] * data[q]
    k = tables.shape[2]
    for n in range(len(spec)):
        kind, order, factors, offset = spec[n]
        table = tables[n]
        if kind == 0 or kind == 3:
            table[0] = 1.0
            table[1 : order + 1] = 0.0
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                for t in range(order, 0, -1):
                    for s in range(k):
                        table[t, s] += z[at + s] * x * table[t - 1, s]
            first = order if kind == 0 else 1
            for t in range(first, order + 1):
                c = 1.0 if kind == 0 else theta[n, t - 1]
                for s in range(k):
                    total += c * weights[n, s] * table[t, s]
        elif kind == 1:
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
            for s in range(k):
                product = weights[n, s]
                for f in range(factors):
                    product *= table[f, s]
                total += product
    return total


@jit
def row_backward(
    z, spec, theta, weights, features, indices, data, begin, end, linear, tables, r, slopes, out
):  # fmt: skip
    """Out += r · ∂prediction/∂z of the row that row_forward saw last."""
    out[0] += r
    if linear:
        for q in range(begin, end):
            out[1 + indices[q]] += r * data[q]
    k = tables.shape[2]
    for n in range(len(spec)):
        kind, order, factors, offset = spec[n]
        table = tables[n]
        if kind == 0 or kind == 3:
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                c = r * x * (theta[n, 0] if kind == 3 else 1.0 if order == 1 else 0.0)
                for s in range(k):
                    slopes[s] = 1.0
                    out[at + s] += c * weights[n, s]
                for t in range(1, order):
                    c = r * x * (theta[n, t] if kind == 3 else 1.0 if t == order - 1 else 0.0)
                    for s in range(k):
                        slopes[s] = table[t, s] - z[at + s] * x * slopes[s]
                    if c != 0.0:
                        for s in range(k):
                            out[at + s] += c * weights[n, s] * slopes[s]
                if order > 2:
                    for s in range(k):
                        if abs(z[at + s] * x) > GUARD:
                            _mend(z, theta, weights, indices, data, begin, end, q, s, k, n, kind, order,
                                  offset, table, r, out)  # fmt: skip
        elif kind == 1:
            for q in range(begin, end):
                at, x = offset + indices[q] * k, data[q]
                for s in range(k):
                    one = 1.0 + z[at + s] * x
                    if abs(one) > 1e-6:
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
                for g in range(factors):
                    if g != f:
                        for s in range(k):
                            slopes[s] *= table[g, s]
                for q in range(begin, end):
                    at, x = offset + (f * features + indices[q]) * k, data[q]
                    for s in range(k):
                        out[at + s] += slopes[s] * x


@jit
def _mend(
    z, theta, weights, indices, data, begin, end, q, s, k, n, kind, order, offset, table, r, out
):  # fmt: skip
    """Replace one entry's contribution, computed by the short recursion, by that of the full one."""
    at, x = offset + indices[q] * k + s, data[q]
    rest = np.zeros(order)
    rest[0] = 1.0
    for p in range(begin, end):
        if p != q:
            v = z[offset + indices[p] * k + s] * data[p]
            for t in range(order - 1, 0, -1):
                rest[t] += v * rest[t - 1]
    short, wrong, right = 1.0, 0.0, 0.0
    for t in range(order):
        if t > 0:
            short = table[t, s] - z[at] * x * short
        c = theta[n, t] if kind == 3 else 1.0 if t == order - 1 else 0.0
        wrong += c * short
        right += c * rest[t]
    out[at] += r * x * weights[n, s] * (right - wrong)


@jit(parallel=True)
def full_gradient(
    z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred, out
):  # fmt: skip
    """Fill pred, and out with the mean loss' gradient."""
    n = len(y)
    parts = np.zeros((CHUNKS, len(z)))
    for c in numba.prange(CHUNKS):
        tables, slopes = np.empty((len(spec), width, k)), np.empty(k)
        for i in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
            begin, end = indptr[i], indptr[i + 1]
            pred[i] = row_forward(
                z, spec, theta, weights, features, indices, data, begin, end, linear, tables
            )
            r = loss_slope(loss, pred[i], y[i]) / n
            row_backward(
                z, spec, theta, weights, features, indices, data, begin, end, linear, tables, r,
                slopes, parts[c],
            )  # fmt: skip
    out[:] = 0.0
    for c in range(CHUNKS):
        out += parts[c]


@jit(parallel=True)
def predict_rows(
    z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred
):  # fmt: skip
    n = len(pred)
    for c in numba.prange(CHUNKS):
        tables = np.empty((len(spec), width, k))
        for i in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
            pred[i] = row_forward(
                z, spec, theta, weights, features, indices, data, indptr[i], indptr[i + 1], linear,
                tables,
            )  # fmt: skip


@jit
def stochastic_epoch(
    z, state, spec, theta, weights, features, indptr, indices, data, y, first, second, loss, linear,
    intercept, width, k, batch, rate, adaptive, alpha, beta, gamma, penalty, share,
):  # fmt: skip
    """Walk the samples first[i] (paired with second[i], if not −1) in mini-batches; returns the change.

    A feature's penalty is shared among the samples that contain it: its expectation is the penalty,
    and a step touches the samples' non-zeros only. `share` is 1 / (expected touches a sample).
    """
    tables, slopes = np.empty((len(spec), width, k)), np.empty(k)
    gradient = np.zeros(len(z))
    touched = np.empty(features, dtype=np.int64)
    times = np.zeros(features, dtype=np.int64)
    held = np.zeros((len(spec), k))  # Σ_j |p_js| for TI; Σ_j ‖p_j‖ in its first column for CS
    if penalty == 2 or penalty == 4:
        _totals(z, spec, features, k, penalty, held)
    moved = 0.0
    for start in range(0, len(first), batch):
        stop = min(start + batch, len(first))
        size = stop - start
        count = 0
        for b in range(start, stop):
            i, other = first[b], second[b]
            for side in range(2 if other >= 0 else 1):
                row = i if side == 0 else other
                for q in range(indptr[row], indptr[row + 1]):
                    if times[indices[q]] == 0:
                        touched[count] = indices[q]
                        count += 1
                    times[indices[q]] += 1
            if other < 0:
                begin, end = indptr[i], indptr[i + 1]
                pred = row_forward(
                    z, spec, theta, weights, features, indices, data, begin, end, linear, tables
                )
                r = loss_slope(loss, pred, y[i]) / size
                row_backward(
                    z, spec, theta, weights, features, indices, data, begin, end, linear, tables, r,
                    slopes, gradient,
                )  # fmt: skip
            else:
                down = row_forward(
                    z, spec, theta, weights, features, indices, data, indptr[other],
                    indptr[other + 1], linear, tables,
                )  # fmt: skip
                up = row_forward(
                    z, spec, theta, weights, features, indices, data, indptr[i], indptr[i + 1],
                    linear, tables,
                )  # fmt: skip
                r = loss_slope(loss, up - down, 1.0) / size
                row_backward(
                    z, spec, theta, weights, features, indices, data, indptr[i], indptr[i + 1],
                    linear, tables, r, slopes, gradient,
                )  # fmt: skip
                row_forward(
                    z, spec, theta, weights, features, indices, data, indptr[other],
                    indptr[other + 1], linear, tables,
                )  # fmt: skip
                row_backward(
                    z, spec, theta, weights, features, indices, data, indptr[other],
                    indptr[other + 1], linear, tables, -r, slopes, gradient,
                )  # fmt: skip
        if intercept:
            moved += _step(z, state, gradient, 0, rate, adaptive, 0.0)
        gradient[0] = 0.0
        for c in range(count):
            j = touched[c]
            part = times[j] * share[j] / size
            times[j] = 0
            if linear:
                moved += _step(z, state, gradient, 1 + j, rate, adaptive, alpha * part)
                gradient[1 + j] = 0.0
            for n in range(len(spec)):
                for f in range(spec[n, 2]):
                    at = spec[n, 3] + (f * features + j) * k
                    moved += _move_row(
                        z, state, gradient, at, k, rate, adaptive, beta * part, gamma * part, penalty,
                        held[n],
                    )  # fmt: skip
    return moved


@jit
def _step(z, state, gradient, at, rate, adaptive, shrink):
    g = gradient[at]
    eta = rate
    if adaptive:
        state[at] += g * g
        eta = rate / (np.sqrt(state[at]) + 1e-10)
    old = z[at]
    z[at] = (old - eta * g) / (1.0 + eta * shrink)  # the ℓ2 part implicitly: stable at any share
    return abs(z[at] - old)


@jit
def _move_row(z, state, gradient, at, k, rate, adaptive, shrink, gamma, penalty, held):
    """Step on one feature's row, then apply its share of the penalty's proximal operator."""
    moved = before = after = 0.0
    if penalty >= 3:
        for s in range(k):
            before += z[at + s] * z[at + s]
        before = np.sqrt(before)
    slowest = 0.0
    for s in range(k):
        old = z[at + s]
        moved += _step(z, state, gradient, at + s, rate, adaptive, shrink)
        gradient[at + s] = 0.0
        eta = rate / (np.sqrt(state[at + s]) + 1e-10) if adaptive else rate
        slowest = max(slowest, eta)
        if penalty == 1 or penalty == 2:
            others = max(held[s] - abs(old), 0.0) if penalty == 2 else 1.0
            value = z[at + s]
            z[at + s] = np.sign(value) * max(abs(value) - eta * gamma * others, 0.0)
            held[s] += abs(z[at + s]) - abs(old)
    if penalty >= 3:
        for s in range(k):
            after += z[at + s] * z[at + s]
        after = np.sqrt(after)
        others = max(held[0] - before, 0.0) if penalty == 4 else 1.0
        factor = max(0.0, 1.0 - slowest * gamma * others / after) if after > 0.0 else 0.0
        for s in range(k):
            z[at + s] *= factor
        held[0] += factor * after - before
    return moved


@jit
def _totals(z, spec, features, k, penalty, held):
    for n in range(len(spec)):
        for row in range(spec[n, 2] * features):
            at = spec[n, 3] + row * k
            square = 0.0
            for s in range(k):
                square += z[at + s] * z[at + s]
                if penalty == 2:
                    held[n, s] += abs(z[at + s])
            if penalty == 4:
                held[n, 0] += np.sqrt(square)
