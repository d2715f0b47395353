"""Losses and penalties as integer codes in one chain, which compiles once for all pairs."""

from __future__ import annotations

import numpy as np

from recsys._jit import jit

LOSSES = {"squared": 0, "logistic": 1, "squared_hinge": 2, "huber": 3}
# Losses on the difference of a positive and a negative row: the code of the loss they apply to it.
PAIRWISE = {"bpr": 1, "auc": 2}
PENALTIES = {"l2": 0, "l1": 1, "ti": 2, "l21": 3, "cs": 4, "omega": 5}
# Share of e_t that must be left without one size, or the difference is not trusted.
SAFE = 0.1
# Bound on the second derivative, which a coordinate step divides by: the objective cannot rise.
CURVATURE = np.array([1.0, 0.25, 2.0, 1.0])


# ---- kernels


@jit
def loss_value(code, p, y):
    """ℓ(p, y): ½(p − y)²; log(1 + e^(−yp)); max(0, 1 − yp)²; Huber's with threshold 1."""
    if code == 0:
        return 0.5 * (p - y) ** 2
    if code == 1:
        z = -y * p
        return z + np.log1p(np.exp(-z)) if z > 0 else np.log1p(np.exp(z))
    if code == 2:
        left = max(0.0, 1.0 - y * p)
        return left * left
    r = abs(p - y)
    return 0.5 * r * r if r <= 1.0 else r - 0.5


@jit
def loss_slope(code, p, y):
    """∂ℓ/∂p."""
    if code == 0:
        return p - y
    if code == 1:
        z = y * p
        return -y / (1.0 + np.exp(z)) if z < 700 else 0.0
    if code == 2:
        return -2.0 * y * max(0.0, 1.0 - y * p)
    return min(1.0, max(-1.0, p - y))


@jit
def mean_loss(loss, pred, y):
    total = 0.0
    for i in range(len(y)):
        total += loss_value(loss, pred[i], y[i])
    return total / len(y)


@jit
def proximal(value, penalty, threshold, others):
    """Return the proximal step of a penalty on single parameters; `others` is TI's factor."""
    if penalty == 1:
        return np.sign(value) * max(abs(value) - threshold, 0.0)
    if penalty == 2:
        return np.sign(value) * max(abs(value) - threshold * others, 0.0)
    return value


@jit
def symmetric_polynomials(a, up_to):
    """Return e_1…e_up_to of a: e_t is the sum of the products of t distinct entries, K_A^t(a, 1)."""
    e = np.zeros(up_to)
    for j in range(len(a)):
        for t in range(up_to - 1, 0, -1):
            e[t] += a[j] * e[t - 1]
        e[0] += a[j]
    return e


@jit
def without(e, sizes, j, out):
    """Fill out[t], t = 0…len(e), with e_t of all sizes but the j-th.

    The short recursion e_t − a·out[t − 1] cancels where the one size outweighs the others: there the
    sum is taken afresh over the others.
    """
    a = sizes[j]
    out[0] = 1.0
    for t in range(1, len(out)):
        out[t] = e[t - 1] - a * out[t - 1]
        if out[t] < SAFE * e[t - 1]:
            out[1:] = 0.0
            for i in range(len(sizes)):
                if i != j and sizes[i] != 0.0:
                    for u in range(len(out) - 1, 0, -1):
                        out[u] += sizes[i] * out[u - 1]
            return


@jit
def with_size(e, sizes, j, rest, size):
    """Put a size in the j-th place, and bring e_1…e_t up to date from `rest`, what `without` filled."""
    sizes[j] = size
    for t in range(len(e)):
        e[t] = rest[t + 1] + size * rest[t]
