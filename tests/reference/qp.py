"""The simplex programs, slowly: projected gradient in float64 until nothing moves."""

import numpy as np


def project(v):
    """Nearest point of the simplex."""
    u = np.sort(v)[::-1]
    cumulated = np.cumsum(u) - 1
    last = np.nonzero(u * np.arange(1, len(v) + 1) > cumulated)[0][-1]
    return np.maximum(v - cumulated[last] / (last + 1), 0)


def solve(K, q, sign, ridge, steps=200_000):
    Q = np.outer(sign, sign) * K.astype(float) + np.diag(ridge)
    step = 1 / max(np.linalg.eigvalsh(Q)[-1], 1e-12)
    groups = [np.flatnonzero(sign == s) for s in (1, -1) if (sign == s).any()]
    a = np.zeros(len(K))
    for group in groups:
        a[group] = 1 / len(group)
    b, momentum = a.copy(), 1.0
    for _ in range(steps):
        previous = a
        a = b - step * (Q @ b - q)
        for group in groups:
            a[group] = project(a[group])
        if np.abs(a - previous).max() < 1e-15:
            break
        if (b - a) @ (a - previous) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        b = a + (momentum - 1) / following * (a - previous)
        momentum = following
    return a


def objective(K, q, sign, ridge, a):
    Q = np.outer(sign, sign) * K.astype(float) + np.diag(ridge)
    return 0.5 * a @ Q @ a - q @ a


def violation(K, q, sign, ridge, a):
    """max gradient among positive weights − min gradient, within each group."""
    g = (np.outer(sign, sign) * K.astype(float) + np.diag(ridge)) @ a - q
    worst = 0.0
    for s in (1, -1):
        group = sign == s
        if (group & (a > 0)).any():
            worst = max(worst, g[group & (a > 0)].max() - g[group].min())
    return worst
