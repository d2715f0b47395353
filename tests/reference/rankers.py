"""Rankers as dense numpy, straight from their formulas: scores of all items for given rows."""

import numpy as np

from tests.reference import qp


def normalised(K):
    own = np.diag(K)
    root = np.sqrt(np.outer(own, own))
    out = np.divide(K, root, out=np.zeros_like(K, dtype=float), where=root > 0)
    np.fill_diagonal(out, 1.0)
    return out


def popularity(R, rows):
    return np.tile(R.sum(axis=0), (len(rows), 1))


def msdw(R, rows, alpha=0.3, locality=1.0):
    out = np.zeros(rows.shape)
    sets = [set(np.flatnonzero(R[:, j])) for j in range(R.shape[1])]
    for u, row in enumerate(rows):
        for i in range(R.shape[1]):  # the candidate
            for j in np.flatnonzero(row):
                common = len(sets[i] & sets[j])
                if common:
                    size = len(sets[i]) ** alpha * len(sets[j]) ** (1 - alpha)
                    out[u, i] += (common / size) ** locality
    return out


def sharpened(R, rows, amount, alpha=0.3, votes=0.0, locality=1.0):
    """MSDw's weights less `amount` times their product with the normalised co-occurrence, where not 0."""
    lengths, sizes = np.maximum(R.sum(axis=1), 1), np.maximum(R.sum(axis=0), 1)
    C = R.T @ (R / lengths[:, None] ** votes)
    W = np.where(C > 0, (C / np.outer(sizes ** (1 - alpha), sizes**alpha)) ** locality, 0)
    P = (R.T @ (R / lengths[:, None] ** 0.8)) / np.sqrt(np.outer(sizes, sizes))
    P /= np.linalg.eigvalsh(P)[-1]
    return rows @ np.where(C > 0, W - amount * W @ P, 0)


def ease(R, rows, regularization=500.0):
    P = np.linalg.inv(R.T @ R + regularization * np.eye(R.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return rows @ B


def slim(R, rows, l1=1.0, l2=10.0):
    """Projected gradient on each item's regression."""
    items = R.shape[1]
    W = np.zeros((items, items))
    for j in range(items):
        others = np.arange(items) != j
        X, y = R[:, others], R[:, j]
        H = X.T @ X + l2 * np.eye(items - 1)
        w = np.zeros(items - 1)
        step = 1 / np.linalg.eigvalsh(H)[-1] if items > 1 else 1.0
        for _ in range(20000):
            w = np.maximum(w - step * (H @ w - X.T @ y + l1), 0)
        W[others, j] = w
    return rows @ W


def cf_komd(K, rows, regularization, q="exact"):
    """Scores from a normalised item kernel K by (10.2)-(10.5) of the thesis."""
    out = np.zeros(rows.shape)
    for u, row in enumerate(rows):
        liked, others = np.flatnonzero(row), np.flatnonzero(row == 0)
        if len(liked) == 0:
            continue
        averaged = others if q == "exact" else np.arange(len(row))
        mean = K[:, averaged].mean(axis=1) if len(averaged) else np.zeros(len(row))
        a = qp.solve(
            K[np.ix_(liked, liked)],
            mean[liked],
            np.ones(len(liked)),
            np.full(len(liked), regularization),
        )
        out[u] = K[:, liked] @ a - mean
    return out


def ecf_omd(R, rows, regularization=0.1):
    return cf_komd(normalised(R.T @ R), rows, regularization)


def cf_omd(R, rows, regularization=0.1, negative_regularization=1000.0):
    K = normalised(R.T @ R)
    out = np.zeros(rows.shape)
    for u, row in enumerate(rows):
        if not row.any():
            continue
        sign = np.where(row > 0, 1.0, -1.0)
        ridge = np.where(row > 0, regularization, negative_regularization)
        a = qp.solve(K, np.zeros(len(row)), sign, ridge)
        out[u] = K @ (sign * a)
    return out
