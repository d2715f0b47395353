"""Fold-in for logistic matrix factorisation: the exact user factors of any row of interactions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import SUMS, jit, over_rows
from recsys.rankers._weighted_least_squares import solve_in_place

BLOCK = 256  # items at a time: their factors stay in the first-level cache
LEAST_RIDGE = 1e-4  # where there is none, what liked items alone say can be without bound
PASSES, HALVINGS = 500, 30
ENOUGH = 1e-7  # what a step changes no coordinate by more than: beyond what float32 tells


def logistic_fold_in(
    rows: sp.csr_matrix,
    items: NDArray[np.float32],
    popularity: NDArray[np.floating],
    ridge: float,
    negatives: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return argmin over x of Σ_{i liked} log(1 + e^−s_i) + m Σ_j p_j log(1 + e^s_j) + ridge/2 ‖x‖².

    s_i = x·y_i with the last coordinate but one of x, the weight of the items' biases, at 1, which ‖x‖
    leaves out. Solved by Newton's method with halved steps, in float64.

    `items` are y of each item, (items, factors + 2), its bias in the last column but one, and the user's
    bias' 1 in the last. p is proportional to `popularity`; cold items are never sampled. m of each user
    is `negatives`: how many items not liked count, in expectation. Without interactions x is 0, but for
    the weight of the biases.

    Source: Johnson, Logistic matrix factorization for implicit feedback data, 2014; with negatives drawn
    by popularity, as implicit draws them, and here all of them at once, in expectation.
    """
    d = items.shape[1]
    seen = np.flatnonzero(popularity > 0)
    share = popularity[seen].astype(np.float64)
    others = np.ascontiguousarray(items[seen].T, dtype=np.float64)
    out = np.zeros((rows.shape[0], d), dtype=np.float32)
    out[:, d - 2] = 1.0
    arrays = (
        rows.indptr, rows.indices, items.astype(np.float64), others, share / max(share.sum(), 1e-300),
        max(float(ridge), LEAST_RIDGE), negatives, out,
    )  # fmt: skip
    if len(out):
        over_rows(len(out), _fold_in_rows, *arrays)
    return out


# ---- kernels


@jit
def _fold_in_rows(first, stride, indptr, indices, items, others, share, ridge, negatives, out):
    d = out.shape[1]
    H, g, x, tried, step = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    scores, weights, part = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for u in range(first, len(out), stride):
        begin, end = indptr[u], indptr[u + 1]
        if begin == end:
            continue
        x[:] = 0.0
        x[d - 2] = 1.0
        liked = indices[begin:end]
        _derivatives(x, liked, items, others, share, ridge, negatives[u], scores, weights, part, g, H)
        for _ in range(PASSES):
            for f in range(d):
                step[f] = -g[f]
            slope = 0.0
            _fix(H, step)
            solve_in_place(H, step)
            largest, t = 0.0, 1.0
            for f in range(d):
                slope += step[f] * g[f]
                largest = max(largest, abs(step[f]))
            if largest < ENOUGH:  # what is left is rounding
                for f in range(d):
                    x[f] += step[f]
                break
            for _ in range(HALVINGS):
                for f in range(d):
                    tried[f] = x[f] + t * step[f]
                _derivatives(
                    tried, liked, items, others, share, ridge, negatives[u], scores, weights, part, g, H
                )
                ahead = 0.0
                for f in range(d):
                    ahead += step[f] * g[f]
                # The derivative along the step rises from below 0. Far above 0, the step was too long.
                if ahead <= -0.9 * slope:
                    break
                t /= 2.0
            for f in range(d):  # entry by entry: assigning an array compiles for seconds
                x[f] = tried[f]
        for f in range(d):
            out[u, f] = x[f]


@jit
def _fix(H, step):
    """Take the weight of the items' biases out of a Newton step."""
    fixed = len(step) - 2
    H[fixed, :] = 0.0
    H[:, fixed] = 0.0
    H[fixed, fixed] = 1.0
    step[fixed] = 0.0


@jit(fastmath=SUMS)
def _derivatives(x, liked, items, others, share, ridge, negative, scores, weights, part, g, H):
    """Fill the gradient of all coordinates but the fixed one, and the upper triangle of the Hessian."""
    d = len(x)
    H[:, :] = 0.0
    for f in range(d):
        g[f] = ridge * x[f]
        H[f, f] = ridge
    g[d - 2] = 0.0
    for p in range(len(liked)):
        y = items[liked[p]]
        score = 0.0
        for f in range(d):
            score += x[f] * y[f]
        missing = 1.0 / (1.0 + np.exp(score))
        curve = missing * (1.0 - missing)
        for f in range(d):
            if f != d - 2:
                g[f] -= missing * y[f]
            w = curve * y[f]
            for k in range(f, d):
                H[f, k] += w * y[k]
    for start in range(0, len(share), BLOCK):
        stop = min(start + BLOCK, len(share))
        n = stop - start
        scores[:n] = 0.0
        for f in range(d):
            row, own = others[f, start:stop], x[f]
            for j in range(n):
                scores[j] += own * row[j]
        for j in range(n):
            likely = 1.0 / (1.0 + np.exp(-scores[j]))
            scores[j] = negative * share[start + j] * likely
            weights[j] = scores[j] * (1.0 - likely)
        for f in range(d):
            row = others[f, start:stop]
            total = 0.0
            for j in range(n):
                total += scores[j] * row[j]
                part[j] = weights[j] * row[j]
            if f != d - 2:
                g[f] += total
            for k in range(f, d):
                other, total = others[k, start:stop], 0.0
                for j in range(n):
                    total += part[j] * other[j]
                H[f, k] += total
