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
