"""Kernels by enumerating their feature space: every conjunction or disjunction of variables."""

from itertools import combinations

import numpy as np


def conjunctions(x, degree):
    return np.array([all(x[i] for i in c) for c in combinations(range(len(x)), degree)], float)


def disjunctions(x, degree):
    return np.array([any(x[i] for i in c) for c in combinations(range(len(x)), degree)], float)


def gram(features, X, degree):
    F = np.array([features(x, degree) for x in X])
    return F @ F.T


def normalised(K):
    own = np.diag(K)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(np.outer(own, own) > 0, K / np.sqrt(np.outer(own, own)), 0.0)
    np.fill_diagonal(out, 1.0)
    return out
