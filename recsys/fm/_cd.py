"""Coordinate descent on multi-linear models: every parameter enters a prediction linearly.

One pass over the features, component by component, is an epoch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.fm._losses import loss_slope, proximal, symmetric_polynomials, with_size, without
from recsys.fm._rows import GUARD, NEAR_ZERO, excluded, product_without

RARE = 0.01  # share of the rows below which a column is rare


def visiting_order(counts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return the columns as the descents visit them, given how many rows each is in.

    Rare ones first, for what frequent columns explain first leaves nothing for the many rare ones, and
    under a penalty on interactions they would never come up. The rare ones are taken backwards and the
    others forwards: of rows that are pairs, the columns of one side are then together as far as can be.
    """
    rare = counts < RARE * rows
    every = np.arange(len(counts))
    return np.concatenate([every[rare][::-1], every[~rare]])


# ---- kernels


@jit
def slope(kind, table, i, x, p, part, theta):
    """Return ∂prediction/∂p_j of row i for one component, by the O(degree) recursion (3.20)."""
    if kind == 0:  # A^m without j, from the table of A^1…A^(m−1)
        b = 1.0
        for t in range(table.shape[1]):
            b = table[i, t] - p * x * b
        return x * b
    if kind == 1:
        return x * table[i, 0] / (1.0 + p * x)
    if kind == 3:  # Σ_t θ_t A^t
        b, total = 1.0, theta[0]
        for t in range(table.shape[1] - 1):
            b = table[i, t] - p * x * b
            total += theta[t + 1] * b
        return x * total
    product = x
    for t in range(table.shape[1]):
        if t != part:
            product *= table[i, t]
    return product


@jit
def move(kind, table, i, x, p, part, change):
    """Bring the table of row i up to date after p_j has changed."""
    if kind == 0 or kind == 3:
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
def _careful_slope(kind, rest, x, theta):
    """Return ∂prediction/∂p_j from A^1… without feature j."""
    if kind == 0:
        return x * (rest[len(rest) - 1])
    total = theta[0]
    for t in range(len(rest) - 1):
        total += theta[t + 1] * rest[t]
    return x * total


@jit
def fill_component(kind, indptr, indices, data, P, s, table):
    """Fill the table of one component: A^1…A^width, Π(1 + p x), or one linear form a factor."""
    n, width = table.shape
    for i in range(n):
        for t in range(width):
            table[i, t] = 1.0 if kind == 1 else 0.0
        for q in range(indptr[i], indptr[i + 1]):
            j, x = indices[q], data[q]
            if kind == 0 or kind == 3:
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
def linear_epoch(order, col_ptr, rows, data, y, pred, w, loss, curvature, alpha):
    """Update the linear weights in this order; returns the sum of absolute changes."""
    n, moved = len(y), 0.0
    for j in order:
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
    kind, indptr, indices, xdata, order, col_ptr, rows, data, y, pred, P, table, theta, weights, loss,
    curvature, beta, penalty, gamma, degree,
):  # fmt: skip
    """Update every parameter of P, (factors, features, components), component by component.

    Features are visited in the order given.

    The table is of one component at a time, so that it stays in the cache.
    """
    n, moved, width = len(y), 0.0, table.shape[1]
    longest = 1
    largest = np.zeros(len(col_ptr) - 1)
    for j in range(len(col_ptr) - 1):
        longest = max(longest, col_ptr[j + 1] - col_ptr[j])
        for p in range(col_ptr[j], col_ptr[j + 1]):
            largest[j] = max(largest[j], abs(data[p]))
    kept, rest = np.empty(longest), np.empty(width)
    sizes = np.empty(P.shape[1])
    held, others_of = np.zeros(max(degree - 1, 1)), np.empty(max(degree, 2))
    product = 0.0
    multilinear = (kind == 0 or kind == 3) and width > 1
    for s in range(P.shape[2]):
        weight = weights[s]
        fill_component(kind, indptr, indices, xdata, P, s, table)
        for part in range(P.shape[0]):
            if penalty == 2:
                sizes[:] = np.abs(P[part, :, s])
                if kind == 1:
                    product = np.log1p(sizes).sum()  # log Π(1 + |p|)
                else:
                    held = symmetric_polynomials(sizes, max(degree - 1, 1))
            for j in order:
                begin, end = col_ptr[j], col_ptr[j + 1]
                old = P[part, j, s]
                g = h = 0.0
                careful = multilinear and abs(old) * largest[j] > GUARD
                if kind == 0 and width == 1:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        d = weight * x * (table[i, 0] - old * x)
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                elif careful:
                    for p in range(begin, end):
                        i = rows[p]
                        excluded(indptr, indices, xdata, P[0], s, i, j, rest)
                        d = weight * _careful_slope(kind, rest, data[p], theta)
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                elif kind == 0:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        b = 1.0
                        for t in range(width):
                            b = table[i, t] - old * x * b
                        d = weight * x * b
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                else:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        if kind == 1 and abs(1.0 + old * x) < NEAR_ZERO:
                            d = x * product_without(indptr, indices, xdata, P[part], s, i, j)
                        else:
                            d = slope(kind, table, i, x, old, part, theta)
                        d *= weight
                        kept[p - begin] = d
                        g += loss_slope(loss, pred[i], y[i]) * d
                        h += d * d
                bound = curvature * h / n + beta
                if bound <= 1e-300:
                    continue
                others = 1.0  # what multiplies |p_js| in Ω
                if penalty == 2 and kind == 1:
                    others = np.exp(product - np.log1p(sizes[j]))
                elif penalty == 2:
                    without(held, sizes, j, others_of)
                    others = others_of[degree - 1]
                new = proximal(old - (g / n + beta * old) / bound, penalty, gamma / bound, others)
                change = new - old
                if change == 0.0:
                    continue
                if kind == 0 and width == 1:
                    for p in range(begin, end):
                        i = rows[p]
                        pred[i] += change * kept[p - begin]
                        table[i, 0] += change * data[p]
                else:
                    for p in range(begin, end):
                        i, x = rows[p], data[p]
                        pred[i] += change * kept[p - begin]
                        if careful:
                            excluded(indptr, indices, xdata, P[0], s, i, j, rest)
                            for t in range(width):
                                table[i, t] = rest[t] + new * x * (1.0 if t == 0 else rest[t - 1])
                        elif kind == 0:
                            b = 1.0
                            for t in range(width):
                                held_t = table[i, t]
                                table[i, t] = held_t + change * x * b
                                b = held_t - old * x * b
                        elif kind == 1 and abs(1.0 + old * x) < NEAR_ZERO:
                            rest_of = product_without(indptr, indices, xdata, P[part], s, i, j)
                            table[i, 0] = rest_of * (1.0 + new * x)
                        else:
                            move(kind, table, i, x, old, part, change)
                if penalty == 2 and kind == 1:
                    product += np.log1p(abs(new)) - np.log1p(sizes[j])
                    sizes[j] = abs(new)
                elif penalty == 2:
                    with_size(held, sizes, j, others_of, abs(new))
                P[part, j, s] = new
                moved += abs(change)
    return moved


@jit
def field_ends(col_ptr, rows, n):
    """Return the columns that start a new run of columns no two of which share a row."""
    seen = np.full(n, -1, dtype=np.int64)
    ends = []
    field = 0
    for j in range(len(col_ptr) - 1):
        clash = False
        for q in range(col_ptr[j], col_ptr[j + 1]):
            if seen[rows[q]] == field:
                clash = True
                break
        if clash:
            field += 1
            ends.append(j)
        for q in range(col_ptr[j], col_ptr[j + 1]):
            seen[rows[q]] = field
    return np.array(ends, dtype=np.int64) if len(ends) > 0 else np.empty(0, dtype=np.int64)
