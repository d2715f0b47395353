"""Link predictors by enumeration."""

import itertools

import numpy as np

from tests.reference.fm import anova


def pair_kernel(u, v, a, b, m, whole=False):
    """P^m of (3.6); `whole` adds the two one-sided orders, which makes it A^m of the concatenation."""
    low, high = (0, m + 1) if whole else (1, m)
    return sum(anova(u, a, t) * anova(v, b, m - t) for t in range(low, high))


def predict(terms, intercept, A, B, pairs, symmetric, whole=False):
    out = []
    for i, j in pairs:
        total = intercept
        for left, right, weights, m in terms:
            for s in range(left.shape[1]):
                one = pair_kernel(left[:, s], right[:, s], A[i], B[j], m, whole)
                if symmetric:
                    one = 0.5 * (one + pair_kernel(left[:, s], right[:, s], A[j], B[i], m, whole))
                total += weights[s] * one
        out.append(total)
    return np.array(out)


def auc_covariance(labels, scores):
    """AUCs and DeLong's covariance, from every pair of a link and another pair."""
    up, down = scores[:, labels == 1], scores[:, labels == 0]
    over = (up[:, :, None] > down[:, None, :]) + 0.5 * (up[:, :, None] == down[:, None, :])
    aucs = over.mean(axis=(1, 2))
    by_up, by_down = over.mean(axis=2) - aucs[:, None], over.mean(axis=1) - aucs[:, None]
    m, n = up.shape[1], down.shape[1]
    return aucs, by_up @ by_up.T / (m - 1) / m + by_down @ by_down.T / (n - 1) / n


def parts(terms, a, b, symmetric):
    """Each product of features, shared by its pairs across the ends; or its end's own."""
    pairs, alone = np.zeros((len(a), len(b))), [0.0, 0.0]
    for coefficients, left, right, weights in terms:
        m = len(coefficients) - 1
        for flipped in (False, True) if symmetric else (False,):
            p, q = (right, left) if flipped else (left, right)
            for t in range(m + 1):
                c = coefficients[m - t if flipped else t] * (0.5 if symmetric else 1.0)
                for mine in itertools.combinations(np.flatnonzero(a), t):
                    for other in itertools.combinations(np.flatnonzero(b), m - t):
                        value = c * sum(
                            weights[s]
                            * np.prod([p[f, s] * a[f] for f in mine])
                            * np.prod([q[f, s] * b[f] for f in other])
                            for s in range(len(weights))
                        )
                        if not mine:
                            alone[1] += value
                        elif not other:
                            alone[0] += value
                        for f, g in itertools.product(mine, other):
                            pairs[f, g] += value / (len(mine) * len(other))
    return pairs, *alone


def interactions(tables, a, b, whole):
    """The layer of a network: one pair of tables an order, from 2 on."""
    k = tables[0].shape[1]
    orders = enumerate(range(2, 2 + len(tables) // 2))
    return sum(
        np.array(
            [pair_kernel(tables[2 * t][:, s], tables[2 * t + 1][:, s], a, b, m, whole) for s in range(k)]
        )
        for t, m in orders
    )


def network(name, tables, dense, a, b, symmetric):
    """The score of a pair by a network: its interaction layer, then each layer a unit at a time."""
    if name == "concat-dnn":
        sums = np.concatenate([tables[0], tables[1]]).T @ np.concatenate([a, b])
        z = np.array([max(0.0, value) for value in sums])
    else:
        z = interactions(tables, a, b, name == "honfm")
        if symmetric:
            z = (z + interactions(tables, b, a, name == "honfm")) / 2
    for layer, (weights, biases) in enumerate(dense):
        z = np.array(
            [
                c + sum(w * x for w, x in zip(row, z, strict=True))
                for row, c in zip(weights, biases, strict=True)
            ]
        )
        if layer < len(dense) - 1:
            z = np.array([max(0.0, value) for value in z])
    return float(z[0])
