"""The sparse inverse of EASE in dense arrays, step by step."""

import numpy as np


def scaled(R, regularization):
    """S = D^−½(RᵀR + λI)D^−½ with its items from rare to popular, D^−½, and their order."""
    G = R.T @ R + regularization * np.eye(R.shape[1])
    order = np.argsort(R.sum(axis=0), kind="stable")
    scale = 1 / np.sqrt(np.diag(G))[order]
    return G[np.ix_(order, order)] * scale[:, None] * scale, scale, order


def factor(S, floors, tolerance):
    """Cholesky's L of S that drops |L_ij| ≤ tolerance; None where a pivot is below half its floor."""
    items = len(S)
    L = np.zeros((items, items))
    for j in range(items):
        pivot = S[j, j] - L[j, :j] @ L[j, :j]
        if pivot < 0.5 * floors[j]:
            return None
        L[j, j] = np.sqrt(max(pivot, floors[j]))
        for i in range(j + 1, items):
            entry = (S[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
            L[i, j] = entry if abs(entry) > tolerance else 0.0
    return L


def inverse(L, tolerance):
    """L⁻¹ by substitution that drops entries of at most `tolerance` off the diagonal as it goes."""
    items = len(L)
    M = np.zeros((items, items))
    for j in range(items):
        for i in range(j, items):
            entry = ((i == j) - L[i, j:i] @ M[j:i, j]) / L[i, i]
            M[i, j] = entry if i == j or abs(entry) > tolerance else 0.0
    return M


def weights(M, scale, order, top_k):
    """−P/diag(P) without its diagonal, P = D^−½MᵀMD^−½, of each column the `top_k` largest by size."""
    P = (M.T @ M) * scale[:, None] * scale
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    for column in B.T:
        column[np.argsort(-np.abs(column), kind="stable")[top_k:]] = 0.0
    out = np.zeros_like(B)
    out[np.ix_(order, order)] = B
    return out
