"""Factorization machines by enumeration."""

from itertools import combinations

import numpy as np


def anova(p, x, m):
    return sum(np.prod([p[j] * x[j] for j in some]) for some in combinations(range(len(x)), m))


def predict_fm(X, b, w, matrices, orders):
    return np.array(
        [
            b
            + w @ x
            + sum(
                anova(P[:, s], x, m)
                for P, m in zip(matrices, orders, strict=True)
                for s in range(P.shape[1])
            )
            for x in X
        ]
    )


def predict_all_subsets(X, b, w, P):
    return np.array([b + w @ x + sum(np.prod(1 + P[:, s] * x) for s in range(P.shape[1])) for x in X])


def predict_network(X, b, w, U):
    return b + X @ w + np.prod([X @ u for u in U], axis=0).sum(axis=1)


def combinations_in_rows(P, X, order):
    """Return (features, weight, rows) of the combinations that some row of X, dense, has all of."""
    found = []
    for some in combinations(range(X.shape[1]), order):
        rows = sum(all(x[j] != 0 for j in some) for x in X)
        if rows:
            weight = sum(np.prod([P[j, s] for j in some]) for s in range(P.shape[1]))
            found.append((some, weight, rows))
    return found


def area(y, scores):
    """Return the share of pairs of a positive and a negative that are in order, ties a half."""
    pairs = [(a, b) for a in scores[y > 0] for b in scores[y <= 0]]
    return sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)


def predict_powers(X, b, w, P, gamma, degree, weights):
    """(γ_s + ⟨p_s, x⟩)^m, each power multiplied out and each component weighed."""
    out = []
    for x in X:
        total = b + w @ x
        for s in range(P.shape[1]):
            one = 1.0
            for _ in range(degree):
                one *= gamma[s] + sum(P[j, s] * x[j] for j in range(len(x)))
            total += weights[s] * one
        out.append(total)
    return np.array(out)


def interaction_slopes(X, slopes, order, curvature):
    """Return {features: (g, h)} of the combinations that some row of X, dense, has all of."""
    found = {}
    for some in combinations(range(X.shape[1]), order):
        product = np.prod(X[:, some], axis=1)
        if np.any(product != 0):
            found[some] = (float(np.mean(slopes * product)), curvature * float(np.mean(product**2)))
    return found


LOSSES = {
    "squared": lambda p, y: 0.5 * (p - y) ** 2,
    "logistic": lambda p, y: np.log(1.0 + np.exp(-y * p)),
    "squared_hinge": lambda p, y: np.maximum(0.0, 1.0 - y * p) ** 2,
}


def weighted_objective(X, y, weights, b, w, matrices, orders, loss, alpha, beta):
    """The weighted mean of the loss, and half the squares of w and of each P."""
    pred = predict_fm(X, b, w, matrices, orders)
    mean = sum(v * LOSSES[loss](p, t) for v, p, t in zip(weights, pred, y, strict=True)) / sum(weights)
    return mean + 0.5 * alpha * w @ w + 0.5 * beta * sum((P**2).sum() for P in matrices)
