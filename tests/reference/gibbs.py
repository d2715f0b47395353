"""A sweep of the Gibbs sampler by dense rows: every slope is a difference of two predictions."""

from itertools import combinations

import numpy as np


def predictions(X, bias, w, tables):
    """b + ⟨w, x⟩ + Σ over sets of distinct features, one set at a time."""
    out = bias + X @ w
    for m, P in tables:
        for features in combinations(range(X.shape[1]), m):
            out = out + X[:, features].prod(axis=1) * P[list(features)].prod(axis=0).sum()
    return out


def draw(X, y, blocks, bias, w, tables, rng, first):
    """Numbers only; draws from rng in the order of the fast sampler. Returns bias, w, tables, precision."""
    w, tables = w.copy(), [(m, P.copy()) for m, P in tables]
    error = y - predictions(X, bias, w, tables)
    precision = rng.gamma(0.5 * (1 + len(y)), 2.0 / (1 + error @ error))
    bias = bias + error.mean() + rng.standard_normal() / np.sqrt(precision * len(y))
    for m, P in [(1, w[:, None]), *tables]:
        for features in blocks:
            for s in range(P.shape[1]):
                p = P[features, s]
                mean, prior = 0.0, 1.0
                if m > 1 or not first:
                    weight = len(p) + 1
                    spread = p @ p - p.sum() ** 2 / weight
                    prior = rng.gamma(0.5 * (1 + len(p)), 2.0 / (1 + spread))
                    mean = p.sum() / weight + rng.standard_normal() / np.sqrt(weight * prior)
                noise = rng.standard_normal(len(p))
                for j, z in zip(features, noise, strict=True):
                    here = predictions(X, bias, w, tables)
                    P[j, s] += 1.0
                    slope = predictions(X, bias, w, tables) - here
                    P[j, s] -= 1.0
                    total = precision * (slope @ slope) + prior
                    new = (precision * slope @ (y - here + slope * P[j, s]) + prior * mean) / total
                    P[j, s] = new + z / np.sqrt(total)
    return bias, w, tables, precision
