"""The SVM of a kernel matrix at each of several costs, each fit begun where the one before it ended.

Sequential minimal optimisation with the choice of pairs of LIBSVM (Fan, Chen & Lin 2005, second order) and
its test of an end, on the whole matrix: the optimum is that of `sklearn.svm.SVC` to the tolerance. The
multipliers of a smaller cost are feasible at a larger one, as they are and times the ratio of the costs; the
better of the two is the start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit

STEPS = 100_000_000


def decisions(
    K: NDArray[np.float64], train: NDArray[np.int64], test: NDArray[np.int64], y: NDArray[np.int64],
    costs: list[float], tol: float = 1e-4,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the decision values of `test` at each of the ascending costs; (costs, test).

    K is (n, n), symmetric and positive semidefinite; the larger label is the positive class. `tol` is
    the largest violation of the optimality conditions.

    >>> K = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.1], [0.9, 0.1, 1.0]])
    >>> decisions(K, np.array([0, 1]), np.array([2]), np.array([1, 0, 1]), [1.0]).round(6).tolist()
    [[0.8]]
    """
    if any(b < a for a, b in zip(costs, costs[1:], strict=False)):
        raise ValueError("costs ascend: each fit begins where the one of a smaller cost ended")
    signs = np.where(y[train] == y.max(), 1.0, -1.0)
    part = np.ascontiguousarray(K[np.ix_(train, train)], dtype=np.float64)
    signed, offsets = _path(part, signs, np.asarray(costs, dtype=np.float64), tol, STEPS)
    return signed @ K[np.ix_(train, test)] + offsets[:, None]


@jit
def _path(K, y, costs, tol, most):
    n = len(y)
    alpha, G = np.zeros(n), -np.ones(n)  # of ½ αᵀQα − Σα, Q = y yᵀ ∘ K
    signed, offsets = np.empty((len(costs), n)), np.empty(len(costs))
    for c in range(len(costs)):
        C = costs[c]
        if c > 0 and costs[c - 1] > 0.0:
            _rescale(alpha, G, C / costs[c - 1])
        offsets[c] = _solve(K, y, alpha, G, C, tol, most)
        signed[c] = y * alpha
    return signed, offsets


@jit
def _rescale(alpha, G, ratio):
    """Multiply `alpha` by `ratio` where that lowers the objective ½ α·(G − 1)."""
    bent, total = 0.0, 0.0
    for t in range(len(alpha)):
        bent += alpha[t] * (G[t] + 1.0)
        total += alpha[t]
    if 0.5 * ratio * ratio * bent - ratio * total < 0.5 * bent - total:
        for t in range(len(alpha)):
            alpha[t] *= ratio
            G[t] = ratio * (G[t] + 1.0) - 1.0


@jit
def _solve(K, y, alpha, G, C, tol, most):
    """Solve in place, and return the intercept."""
    n = len(y)
    for _ in range(most):
        i, top = -1, -np.inf
        for t in range(n):
            if alpha[t] < C if y[t] > 0 else alpha[t] > 0:
                f = -y[t] * G[t]
                if f > top:
                    i, top = t, f
        j, least, gain = -1, np.inf, 0.0
        if i >= 0:
            for t in range(n):
                if alpha[t] > 0 if y[t] > 0 else alpha[t] < C:
                    f = -y[t] * G[t]
                    least = min(least, f)
                    gap = top - f
                    if gap > 0:
                        bend = max(K[i, i] + K[t, t] - 2.0 * K[i, t], 1e-12)
                        if gap * gap / bend > gain:
                            j, gain = t, gap * gap / bend
        if j < 0 or top - least < tol:
            break
        bend = max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
        move = (-y[i] * G[i] + y[j] * G[j]) / bend  # of yᵢαᵢ up, of yⱼαⱼ down
        move = min(move, C - alpha[i] if y[i] > 0 else alpha[i])
        move = min(move, alpha[j] if y[j] > 0 else C - alpha[j])
        alpha[i] += y[i] * move
        alpha[j] -= y[j] * move
        # Rounding leaves what should be at a bound beside it, where it would be chosen for ever.
        alpha[i] = 0.0 if alpha[i] < 1e-14 * C else C if alpha[i] > C * (1.0 - 1e-14) else alpha[i]
        alpha[j] = 0.0 if alpha[j] < 1e-14 * C else C if alpha[j] > C * (1.0 - 1e-14) else alpha[j]
        for t in range(n):
            G[t] += y[t] * move * (K[i, t] - K[j, t])
    # The intercept as LIBSVM has it: the mean over those between the bounds, or the middle of what is open.
    free, total, low, high = 0, 0.0, -np.inf, np.inf
    for t in range(n):
        f = -y[t] * G[t]
        if 0 < alpha[t] < C:
            free += 1
            total += f
        elif (alpha[t] <= 0) == (y[t] > 0):
            low = max(low, f)
        else:
            high = min(high, f)
    return total / free if free else 0.5 * (low + high)
