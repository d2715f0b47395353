"""A kernel SVM on all of MovieLens 100K, whose Gram matrix of 80,000² would take 51 GB.

LIBSVM's algorithm (second-order choice of pairs) with the ANOVA kernel of order 2 of user and movie rows
computed when it is asked for: A²(a⊕b, a'⊕b') = A²(a, a') + ⟨a, a'⟩⟨b, b'⟩ + A²(b, b') over the two small
Gram matrices, divided by the squared lengths of the rows. The last rows asked for are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recsys._jit import jit

KEPT = 12_000  # kernel rows of float32


class Tables(NamedTuple):
    """Gram matrices of users and movies (⟨·,·⟩ and A²), and each pair's rows and scale."""

    u1: np.ndarray
    u2: np.ndarray
    m1: np.ndarray
    m2: np.ndarray
    users: np.ndarray
    movies: np.ndarray
    scale: np.ndarray


def tables(A: np.ndarray, B: np.ndarray, users: np.ndarray, movies: np.ndarray) -> Tables:
    grams = []
    for X in (A, B):
        first = X @ X.T
        grams += [first, 0.5 * (first**2 - (X**2) @ (X**2).T)]
    lengths = (A**2).sum(axis=1)[users] + (B**2).sum(axis=1)[movies]
    return Tables(*grams, users, movies, 1.0 / lengths)


def fit(t: Tables, y: np.ndarray, C: float, tol: float = 1e-3) -> tuple[np.ndarray, float, int]:
    """Return α·y, the intercept and the number of steps."""
    kept = min(KEPT, len(y))
    return _smo(*t, y.astype(np.float64), C, tol, kept, 10_000_000)


def decide(t: Tables, signed: np.ndarray, b: float, users: np.ndarray, movies: np.ndarray, scale: np.ndarray) -> np.ndarray:  # fmt: skip
    return _decide(*t, signed, b, users, movies, scale)


# ---- kernels


@jit
def _row(i, u1, u2, m1, m2, users, movies, scale, out):
    a1, a2, b1, b2 = u1[users[i]], u2[users[i]], m1[movies[i]], m2[movies[i]]
    for j in range(len(out)):
        u, v = users[j], movies[j]
        out[j] = (a2[u] + a1[u] * b1[v] + b2[v]) * scale[i] * scale[j]


@jit
def _smo(u1, u2, m1, m2, users, movies, scale, y, C, tol, kept, most):
    n = len(y)
    alpha, G = np.zeros(n), -np.ones(n)
    cache = np.empty((kept, n), dtype=np.float32)
    place, owner, clock = np.full(n, -1), np.full(kept, -1), 0
    diagonal = np.empty(n)
    for i in range(n):
        u, v = users[i], movies[i]
        diagonal[i] = (u2[u, u] + u1[u, u] * m1[v, v] + m2[v, v]) * scale[i] * scale[i]
    rows = np.empty(2, dtype=np.int64)
    b, K = 0.0, cache[0]
    for steps in range(most):
        i, j, top, least = -1, -1, -np.inf, np.inf
        for t in range(n):
            if (alpha[t] < C if y[t] > 0 else alpha[t] > 0) and -y[t] * G[t] > top:
                i, top = t, -y[t] * G[t]
        for which in range(2):
            k = i if which == 0 else j
            if place[k] < 0:
                slot = clock % kept
                if which == 1 and owner[slot] == i:
                    clock += 1
                    slot = clock % kept
                clock += 1
                if owner[slot] >= 0:
                    place[owner[slot]] = -1
                owner[slot], place[k] = k, slot
                _row(k, u1, u2, m1, m2, users, movies, scale, cache[slot])
            rows[which] = place[k]
            if which == 0:
                K = cache[rows[0]]
                gain = 0.0
                for t in range(n):
                    if alpha[t] > 0 if y[t] > 0 else alpha[t] < C:
                        f = -y[t] * G[t]
                        least = min(least, f)
                        gap = top - f
                        if gap > 0:
                            bend = max(diagonal[i] + diagonal[t] - 2.0 * K[t], 1e-12)
                            if gap * gap / bend > gain:
                                j, gain = t, gap * gap / bend
                if j < 0 or top - least < tol:
                    j = -1
                    break
        b = 0.5 * (top + least)
        if j < 0:
            return alpha * y, b, steps
        Ki, Kj = cache[rows[0]], cache[rows[1]]
        bend = max(diagonal[i] + diagonal[j] - 2.0 * Ki[j], 1e-12)
        move = (-y[i] * G[i] + y[j] * G[j]) / bend  # of y_i α_i up, of y_j α_j down
        move = min(move, C - alpha[i] if y[i] > 0 else alpha[i])
        move = min(move, alpha[j] if y[j] > 0 else C - alpha[j])
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        for t in range(n):
            G[t] += y[t] * move * (Ki[t] - Kj[t])
    return alpha * y, b, most


@jit
def _decide(u1, u2, m1, m2, users, movies, scale, signed, b, to_users, to_movies, to_scale):
    out = np.full(len(to_users), b)
    for i in range(len(out)):
        a1, a2, b1, b2 = u1[to_users[i]], u2[to_users[i]], m1[to_movies[i]], m2[to_movies[i]]
        total = 0.0
        for j in range(len(users)):
            if signed[j] != 0.0:
                u, v = users[j], movies[j]
                total += signed[j] * scale[j] * (a2[u] + a1[u] * b1[v] + b2[v])
        out[i] += total * to_scale[i]
    return out
