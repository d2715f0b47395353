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
NEAR_ZERO = 1e-6  # |1 + p x| below which Π(1 + p x) is not divided by it
CHUNKS = 4  # of rows, summed in order: the same bits on any number of threads
PAYS = 8.0  # entries of a window of batches for each feature: then its proximal step costs little beside

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
def product_without(indptr, indices, data, P, s, i, j):
    """Return Π(1 + p x) of row i and component s without feature j, where the quotient would be 0/0."""
    rest = 1.0
    for q in range(indptr[i], indptr[i + 1]):
        if indices[q] != j:
            rest *= 1.0 + P[indices[q], s] * data[q]
    return rest


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


@jit
def _gradient_of(
    z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred, first,
    last, out,
):  # fmt: skip
    """Fill pred of the rows first…last − 1, and add their share of the mean loss' gradient to out."""
    tables, slopes = np.empty((len(spec), width, k)), np.empty(k)
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        pred[i] = row_forward(
            z, spec, theta, weights, features, indices, data, begin, end, linear, tables
        )
        r = loss_slope(loss, pred[i], y[i]) / len(y)
        row_backward(
            z, spec, theta, weights, features, indices, data, begin, end, linear, tables, r, slopes, out
        )


@jit(parallel=True)
def full_gradient(
    z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred, parts
):  # fmt: skip
    """Fill pred, and each of parts, (chunks, parameters), with a chunk's share of the gradient."""
    n, chunks = len(y), len(parts)
    for c in numba.prange(chunks):
        _gradient_of(
            z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred,
            c * n // chunks, (c + 1) * n // chunks, parts[c],
        )  # fmt: skip


@jit
def full_gradient_alone(
    z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred, parts
):  # fmt: skip
    """Do the same on this thread, without waking another."""
    n, chunks = len(y), len(parts)
    for c in range(chunks):
        _gradient_of(
            z, spec, theta, weights, features, indptr, indices, data, y, loss, linear, width, k, pred,
            c * n // chunks, (c + 1) * n // chunks, parts[c],
        )  # fmt: skip


@jit
def _predict_some(
    z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred, first, last
):  # fmt: skip
    tables = np.empty((len(spec), width, k))
    for i in range(first, last):
        pred[i] = row_forward(
            z, spec, theta, weights, features, indices, data, indptr[i], indptr[i + 1], linear, tables
        )


@jit(parallel=True)
def predict_rows(
    z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred
):  # fmt: skip
    n = len(pred)
    for c in numba.prange(CHUNKS):
        _predict_some(
            z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred,
            c * n // CHUNKS, (c + 1) * n // CHUNKS,
        )  # fmt: skip


@jit
def predict_rows_alone(
    z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred
):  # fmt: skip
    _predict_some(
        z, spec, theta, weights, features, indptr, indices, data, linear, width, k, pred, 0, len(pred)
    )


@jit
def stochastic_epoch(
    z, state, clock, spec, theta, weights, features, indptr, indices, data, y, first, second, loss,
    curvature, linear, intercept, width, k, batch, rate, adaptive, alpha, beta, gamma, penalty, share,
):  # fmt: skip
    """Walk the samples first[i] (paired with second[i], if not −1) in mini-batches; returns the change.

    A feature's ℓ2 penalty is shared among the samples that contain it: its expectation is the penalty,
    and a step touches the samples' non-zeros only. `share` is 1 / (expected touches a sample). The
    sparse penalties are not shared, for what is shared selects nothing: their proximal operator is that
    of the whole table, taken after a window of batches with the steps of the window summed.
    `state` sums squared gradients; `clock` counts batches, sums squared slopes of the loss, and has the
    steps since the last proximal step.
    """
    tables, slopes = np.empty((len(spec), width, k)), np.empty(k)
    gradient = np.zeros(len(z))
    touched = np.empty(features, dtype=np.int64)
    times = np.zeros(features, dtype=np.int64)
    batches = (len(first) + batch - 1) // batch
    entries = max(len(data) / max(len(y), 1) * batch, 1.0)  # of a batch
    shortest = int(np.ceil(PAYS * features / entries))  # a proximal step costs no more than its window
    window = min(batches, shortest)
    moved = 0.0
    for start in range(0, len(first), batch):
        stop = min(start + batch, len(first))
        size = stop - start
        count = 0
        squares = 0.0
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
                r = loss_slope(loss, pred, y[i])
                squares += r * r
                r /= size
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
                r = loss_slope(loss, up - down, 1.0)
                squares += r * r
                r /= size
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
                    moved += _move_row(z, state, gradient, at, k, rate, adaptive, beta * part, penalty)
        clock[0] += 1.0
        clock[1] += squares / size
        clock[2] += 1.0
        if penalty > 0 and (clock[2] >= window or stop == len(first)):
            moved += _proximal_step(
                z, state, spec, features, k, rate, adaptive, gamma * clock[2], penalty
            )
            clock[2] = 0.0
            longest = _window(
                z, state, clock, spec, features, k, rate, adaptive, penalty, curvature * batch
            )
            window = max(shortest, min(batches, longest))
    return moved


@jit
def _step(z, state, gradient, at, rate, adaptive, shrink):
    g = gradient[at]
    eta = rate
    if len(state) > 1:
        state[at] += g * g
    if adaptive:
        eta = rate / (np.sqrt(state[at]) + 1e-10)
    old = z[at]
    z[at] = (old - eta * g) / (1.0 + eta * shrink)  # the ℓ2 part implicitly: stable at any share
    return abs(z[at] - old)


@jit
def _row_rate(state, at, k, rate, adaptive):
    """Return the one step of a feature's row, which a penalty on the row's length needs."""
    if not adaptive:
        return rate
    total = 0.0
    for s in range(k):
        total += state[at + s]
    return rate / (np.sqrt(total / k) + 1e-10)


@jit
def _move_row(z, state, gradient, at, k, rate, adaptive, shrink, penalty):
    """Step on one feature's row."""
    moved = 0.0
    if penalty < 3:
        for s in range(k):
            moved += _step(z, state, gradient, at + s, rate, adaptive, shrink)
            gradient[at + s] = 0.0
        return moved
    for s in range(k):
        state[at + s] += gradient[at + s] ** 2
    eta = _row_rate(state, at, k, rate, adaptive)
    for s in range(k):
        old = z[at + s]
        z[at + s] = (old - eta * gradient[at + s]) / (1.0 + eta * shrink)
        gradient[at + s] = 0.0
        moved += abs(z[at + s] - old)
    return moved


@jit
def _proximal_step(z, state, spec, features, k, rate, adaptive, strength, penalty):
    """Take the proximal step of each whole table in the metric of the steps; returns the change.

    TI of order 2 is ½‖p_s‖₁² − ½‖p_s‖², CS the same of the rows' lengths: the second half joins the
    gradient, and the first half's operator takes c_j·S from each (1 + c_j)·|p_js|, where c_j is the
    step of p_js times the strength and S the sum of what is left (Atarashi et al. 2021, Theorems 3 and
    7, with a step for each).
    """
    moved = 0.0
    sizes, cuts = np.empty(features), np.empty(features)
    for n in range(len(spec)):
        for f in range(spec[n, 2]):
            base = spec[n, 3] + f * features * k
            if penalty < 3:
                for s in range(k):
                    for j in range(features):
                        at = base + j * k + s
                        sizes[j] = abs(z[at])
                        eta = rate / (np.sqrt(state[at]) + 1e-10) if adaptive else rate
                        cuts[j] = eta * strength
                    _take(sizes, cuts, penalty == 2)
                    for j in range(features):
                        at = base + j * k + s
                        moved += abs(abs(z[at]) - sizes[j])
                        z[at] = np.copysign(sizes[j], z[at]) if sizes[j] > 0.0 else 0.0
            else:
                norms = np.empty(features)
                for j in range(features):
                    square = 0.0
                    for s in range(k):
                        square += z[base + j * k + s] ** 2
                    norms[j] = sizes[j] = np.sqrt(square)
                    cuts[j] = _row_rate(state, base + j * k, k, rate, adaptive) * strength
                _take(sizes, cuts, penalty == 4)
                for j in range(features):
                    factor = sizes[j] / norms[j] if norms[j] > 0.0 else 0.0
                    moved += norms[j] - sizes[j]
                    for s in range(k):
                        z[base + j * k + s] *= factor
    return moved


@jit
def _take(sizes, cuts, squared):
    """Put the sizes after the operator of Σ|p| or, squared, of ½(Σ|p|)² − ½Σp² in their place."""
    if not squared:
        for j in range(len(sizes)):
            sizes[j] = max(sizes[j] - cuts[j], 0.0)
        return
    left = -1.0  # S, by Newton's method on a concave increasing function, from below: finite, exact
    while True:
        top, bottom = 0.0, 1.0
        for j in range(len(sizes)):
            if (1.0 + cuts[j]) * sizes[j] > cuts[j] * left:
                top += (1.0 + cuts[j]) * sizes[j]
                bottom += cuts[j]
        if top / bottom <= left:
            break
        left = top / bottom
    for j in range(len(sizes)):
        sizes[j] = max((1.0 + cuts[j]) * sizes[j] - cuts[j] * left, 0.0)


@jit
def _window(z, state, clock, spec, features, k, rate, adaptive, penalty, curvature):
    """Return for how many batches the steps may be summed: up to half the inverse of the curvature.

    A parameter's curvature is bounded by that of the loss times its mean squared slope, which is the
    mean squared gradient over the mean squared slope of the loss.
    """
    most = 1e-300
    for n in range(len(spec)):
        for row in range(spec[n, 2] * features):
            at = spec[n, 3] + row * k
            for s in range(k):
                if state[at + s] > 0.0:
                    if penalty >= 3:
                        eta = _row_rate(state, at, k, rate, adaptive)
                    else:
                        eta = rate / (np.sqrt(state[at + s]) + 1e-10) if adaptive else rate
                    most = max(most, eta * state[at + s])
    longest = 0.5 * clock[1] / (curvature * most)
    return int(min(longest, 1e9))
