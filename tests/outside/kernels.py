"""Kernels as a user writes them, in a file outside the package."""

from dataclasses import dataclass

import numpy as np

from recsys.kernels import CountKernel, Kernel
from recsys.kernels.plans import Plan


def cosine(X, Z):
    """Return the inner products, as scikit-learn's SVC takes them."""
    return np.asarray(X @ Z.T)


def jaccard(X, Z):
    """Return |x ∩ z| / |x ∪ z|."""
    s = np.asarray(X @ Z.T)
    union = X.sum(axis=1)[:, None] + Z.sum(axis=1) - s
    return np.divide(s, union, out=np.ones_like(s), where=union > 0)


@dataclass(frozen=True)
class Tversky(CountKernel):
    """s / (s + weight·(a + b − 2s)); Tanimoto at a weight of 1."""

    weight: float = 1.0

    @staticmethod
    def value_of_counts(s, a, b, n, parameters):
        """Return the value."""
        below = s + parameters[0] * (a + b - 2 * s)
        return s / below if below > 0 else 1.0


@dataclass(frozen=True)
class Unknown(Kernel):
    """A plan without a branch."""

    def plan(self, n):
        """Return a code that there is not."""
        return Plan(99, np.zeros(4), np.zeros(1))
