"""Interactions of a factorization machine: the strongest ones, a regularization path, sparsity."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

from recsys.utils.validation import check_integer

BLOCK = 512
HELD_OUT = 0.2  # share of rows for the loss of a path
LARGEST = 50  # features among which products of three are looked for


class PathPoint(NamedTuple):
    """A model of a regularization path."""

    gamma: float
    model: Any
    loss: float  # log loss or mean squared error on the held-out rows
    n_features: int  # with an interaction
    n_interactions: int  # of nonzero weight


def interactions(
    model: Any,
    n: int = 10,
    names: Sequence[str] | None = None,
    *,
    order: int = 2,
    X: ArrayLike | None = None,
    min_rows: int = 1,
) -> list[tuple[tuple[Any, ...], float]]:
    """Return the `n` products of features with the largest weights Σ_s Π_j p_js, by magnitude.

    Parameters
    ----------
    model : fitted factorization machine
    names : sequence of str, optional
        Of the features, instead of numbers.
    order : 2 or 3
        Products of three are among the 50 features with the largest factors.
    X : (rows, features) matrix, optional
        Rows for `min_rows`. Without X, impossible products, such as two values of one column, may be
        listed.
    """
    check_integer("n", n, 1)
    check_integer("order", order, 2, 3)
    P, weights = model._table_of(order)
    used = np.flatnonzero((P != 0).any(axis=1))
    if order == 3:
        largest = np.argsort(-np.linalg.norm(P[used], axis=1), kind="stable")[:LARGEST]
        used = np.sort(used[largest])
        sets = np.array(list(combinations(used, 3)), dtype=np.int64).reshape(-1, 3)
        if X is not None:
            columns = (sp.csc_matrix(X) != 0).toarray()
            sets = sets[[columns[:, members].all(axis=1).sum() >= min_rows for members in sets]]
    elif X is not None:
        rows = (sp.csr_matrix(X) != 0).astype(np.int64)
        together = sp.triu(rows.T @ rows, k=1, format="coo")
        sets = np.column_stack([together.row, together.col])[together.data >= min_rows]
    else:
        sets = _strongest_pairs(P, weights, used, n)
    values = (weights * np.prod(P[sets], axis=1)).sum(axis=1)
    best = np.lexsort((*sets.T[::-1], -np.abs(values)))[:n]
    label = (lambda j: int(j)) if names is None else (lambda j: names[j])
    return [(tuple(label(j) for j in sets[k]), float(values[k])) for k in best if values[k] != 0]


def _strongest_pairs(P: Any, weights: Any, used: Any, n: int) -> NDArray[np.int64]:
    """Return the n pairs of largest weight of each block of rows."""
    out = [np.empty((0, 2), dtype=np.int64)]
    for start in range(0, len(used), BLOCK):
        block = used[start : start + BLOCK]
        W = np.abs((P[block] * weights) @ P[used].T)
        W[used[None, :] <= block[:, None]] = 0.0
        order = np.argsort(-W, axis=None, kind="stable")[:n]
        a, b = np.unravel_index(order[W.ravel()[order] > 0], W.shape)
        out.append(np.column_stack([block[a], used[b]]))
    return np.concatenate(out)


def regularization_path(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    gammas: Sequence[float] = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    *,
    random_state: int = 0,
) -> list[PathPoint]:
    """Fit a sparse factorization machine at increasing strengths, each from the previous solution.

    At P = 0 the gradient of a product is 0, so a path of decreasing strengths would stay there.

    Parameters
    ----------
    model : factorization machine with a sparse penalty
        Model with its other parameters; `penalty="l2"` is not sparse.
    gammas : sequence of float > 0
    """
    model._selects()
    labels: Any = np.asarray(y)
    classes = is_classifier(model)
    strata = labels if classes else None
    train, test = train_test_split(
        np.arange(len(labels)), test_size=HELD_OUT, random_state=random_state, stratify=strata
    )
    rows: Any = sp.csr_matrix(X)
    path: list[PathPoint] = []
    fitted = clone(model).set_params(warm_start=True)
    for gamma in sorted(gammas):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.set_params(gamma=gamma).fit(rows[train], labels[train])
        if classes:
            loss = log_loss(labels[test], fitted.predict_proba(rows[test]), labels=fitted.classes_)
        else:
            loss = mean_squared_error(labels[test], fitted.predict(rows[test]))
        counts = fitted.n_used_features_, fitted.n_used_interactions_
        path.append(PathPoint(gamma, deepcopy(fitted), float(loss), *counts))
    return path
