"""Planted interactions, and how well a model finds them again (Atarashi et al. 2021, 8.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.utils.validation import check_integer, check_real

__all__ = ["PlantedInteractions", "Recovery", "planted_interactions", "recovery"]


class PlantedInteractions(NamedTuple):
    """Rows, targets, and the true weights of the pairs, (features, features), upper triangle.

    Attributes
    ----------
    X : (n, features) float64
    y : (n,) float64
    W : (features, features) float64

    Examples
    --------
    >>> data = planted_interactions(10, groups=1, per_group=2, noise_features=1)
    >>> data.X.shape, data.W.tolist()
    ((10, 3), [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    W: NDArray[np.float64]


class Recovery(NamedTuple):
    """‖W − W*‖₁ over i < j; F1 of the pairs with a weight; whether they are just the true ones.

    Attributes
    ----------
    error : float
        ‖W − W*‖₁ over the pairs i < j.
    f1 : float in [0, 1]
    success : bool

    Examples
    --------
    >>> recovery([[0.0, 1.0], [0.0, 0.0]], [[1.0], [1.0]])
    Recovery(error=0.0, f1=1.0, success=True)
    """

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

    Parameters
    ----------
    n, groups, per_group : int ≥ 1
    noise_features : int ≥ 0
        Independent features that the target does not depend on, after the others.
    correlation : float in [0, 1)
        Of two features of one group; all have variance 1.
    noise : float ≥ 0
        Standard deviation of what is added to the target.
    seed : int
    """
    for name, value in (("n", n), ("groups", groups), ("per_group", per_group)):
        check_integer(name, value, 1)
    check_integer("noise_features", noise_features, 0)
    check_real("correlation", correlation, 0.0, 0.999)
    check_real("noise", noise, 0.0)
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


def recovery(W: ArrayLike, P: ArrayLike, weights: bool | None = None) -> Recovery:
    """Compare the pairs of a model with the true ones.

    Parameters
    ----------
    W : (features, features)
        True weights; the upper triangle counts.
    P : (features, components), or (features, features) of a quadratic model's weights
    weights : bool, optional
        Whether P is a matrix of weights, or stands for the weights PPᵀ. By default only a symmetric
        matrix is taken for weights: a P of as many components as features is not symmetric.

    Raises
    ------
    InputError
        If the numbers of features differ.
    """
    truth, given = np.asarray(W, dtype=np.float64), np.asarray(P, dtype=np.float64)
    square = given.ndim == 2 and given.shape == truth.shape
    if given.ndim != 2 or truth.shape != (len(given), len(given)) or (weights and not square):
        raise InputError(f"W has shape {truth.shape}, and the model {given.shape}")
    if weights is None:
        weights = square and np.array_equal(given, given.T)
    model = given if weights else given @ given.T
    above = np.triu_indices(len(truth), 1)
    t, m = truth[above], model[above]
    hits = int(((t != 0) & (m != 0)).sum())
    total = int((t != 0).sum() + (m != 0).sum())
    return Recovery(
        float(np.abs(t - m).sum()),
        2.0 * hits / total if total else 1.0,
        bool(np.array_equal(t != 0, m != 0)),
    )
