"""Sparse EASE in dense arrays, an item at a time."""

import numpy as np

from tests.reference.rankers import ridge


def kept(counts, j, top_k):
    """The items j is regressed on: the largest cosines, of equal ones the rarer, then the earlier."""
    items, own = len(counts), np.diag(counts)
    others = [i for i in range(items) if i != j]
    if top_k >= items - 1:
        return others
    others = [i for i in others if counts[i, j] > 0]
    return sorted(others, key=lambda i: (-(counts[i, j] ** 2) / own[i], own[i], i))[:top_k]


def weights(R, regularization, top_k, votes=0.0, power=0.0, dropout=0.0):
    """Column j: (A[N, N])⁻¹ A[N, j] with A = RᵀDR + Λ and N the items that j is regressed on."""
    counts = R.T @ (np.maximum(R.sum(axis=1), 1)[:, None] ** -votes * R)
    A = counts + ridge(np.diag(counts), regularization, power, dropout)
    out = np.zeros_like(A)
    for j in range(len(A)):
        N = kept(counts, j, top_k)
        if N:
            out[N, j] = np.linalg.solve(A[np.ix_(N, N)], A[N, j])
    return out
