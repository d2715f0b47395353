"""Link predictors by enumeration."""

import numpy as np

from tests.reference.fm import anova


def pair_kernel(u, v, a, b, m, whole=False):
    """P^m of (3.6); `whole` adds the two one-sided orders, which makes it A^m of the concatenation."""
    low, high = (0, m + 1) if whole else (1, m)
    return sum(anova(u, a, t) * anova(v, b, m - t) for t in range(low, high))


def predict(terms, intercept, A, B, pairs, symmetric, whole=False):
    out = []
    for i, j in pairs:
        total = intercept
        for left, right, weights, m in terms:
            for s in range(left.shape[1]):
                one = pair_kernel(left[:, s], right[:, s], A[i], B[j], m, whole)
                if symmetric:
                    one = 0.5 * (one + pair_kernel(left[:, s], right[:, s], A[j], B[i], m, whole))
                total += weights[s] * one
        out.append(total)
    return np.array(out)
