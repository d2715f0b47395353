"""Planted interactions, and how well a model finds them again (Atarashi et al. 2021, 8.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class PlantedInteractions(NamedTuple):
    """Rows, targets, and the true weights of the pairs, (features, features), upper triangle."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    W: NDArray[np.float64]


class Recovery(NamedTuple):
    """‖W − W*‖₁ over i < j; F1 of the pairs with a weight; whether they are just the true ones."""

    error: float
    f1: float
    success: bool


def planted_interactions(
    n: int,
    groups: int,
    per_group: int,
    noise_features: int,
    correlation: float = 0.2,
    noise: float = 0.1,
    seed: int = 0,
) -> PlantedInteractions:
    """Draw rows whose target is the sum of all products of two features of one group.

    Features have variance 1 and those of a group are correlated; `noise_features` more are independent.
    """
    rng = np.random.default_rng(seed)
    used = groups * per_group
    shared = np.repeat(rng.normal(size=(n, groups)), per_group, axis=1)
    own = rng.normal(size=(n, used))
    X = np.hstack(
        [
            np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own,
            rng.normal(size=(n, noise_features)),
        ]
    )
    W = np.zeros((X.shape[1], X.shape[1]))
    for g in range(groups):
        part = slice(g * per_group, (g + 1) * per_group)
        W[part, part] = np.triu(np.ones((per_group, per_group)), 1)
    y = np.einsum("ni,ij,nj->n", X, W, X) + noise * rng.normal(size=n)
    return PlantedInteractions(X, y, W)


def recovery(W: ArrayLike, model: ArrayLike) -> Recovery:
    """Compare the pairs of a model with the true ones: of its factors P, or of a symmetric W itself."""
    truth, given = np.asarray(W, dtype=np.float64), np.asarray(model, dtype=np.float64)
    square = given.shape == truth.shape and np.array_equal(given, given.T)
    weights = given if square else given @ given.T
    above = np.triu_indices(len(truth), 1)
    t, m = truth[above], weights[above]
    hits = int(((t != 0) & (m != 0)).sum())
    total = int((t != 0).sum() + (m != 0).sum())
    return Recovery(
        float(np.abs(t - m).sum()),
        2.0 * hits / total if total else 1.0,
        bool(np.array_equal(t != 0, m != 0)),
    )
