"""Random base vectors of mean 0 and variance 1, dense and sparse, and the kernels against them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit

DISTRIBUTIONS = ("rademacher", "gaussian", "uniform", "laplace")


def draw(rng: np.random.Generator, distribution: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return independent entries of mean 0 and variance 1, float64."""
    if distribution == "rademacher":
        return rng.integers(0, 2, shape) * 2.0 - 1.0
    if distribution == "gaussian":
        return rng.standard_normal(shape)
    if distribution == "uniform":
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)
    return rng.laplace(0.0, 1.0 / np.sqrt(2.0), shape)


def draw_sparse(
    rng: np.random.Generator, features: int, components: int, sparsity: float
) -> sp.csr_matrix:
    """Return (features, components) sparse Rademacher entries ±1/√(1 − p), zero with probability p.

    Linear in the number of non-zeros: first how many each component has, then which.
    Source: Atarashi's thesis, Algorithm 9 and (4.26).
    """
    counts = rng.binomial(features, 1.0 - sparsity, components)
    where = [rng.choice(features, c, replace=False) for c in counts]
    rows = np.concatenate(where) if len(where) else np.zeros(0, dtype=np.int64)
    columns = np.repeat(np.arange(components), counts)
    values = draw(rng, "rademacher", (len(rows),)) / np.sqrt(1.0 - sparsity)
    return sp.csr_matrix((values, (rows, columns)), (features, components))


def dense_map(X: sp.csr_matrix, bases: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return A^degree (degree ≥ 1) or Π(1 + ωx) (degree 0) of each row with each base, (rows, bases)."""
    out = np.empty((X.shape[0], bases.shape[1]))
    if degree == 0:
        _all_subsets(X.indptr, X.indices, X.data, bases, out)
    else:
        _anova(X.indptr, X.indices, X.data, bases, degree, out)
    return out


def sparse_map(X: sp.csr_matrix, bases: sp.csr_matrix, degree: int) -> sp.csr_matrix:
    """Return A^degree of sparse rows with sparse bases: power sums by sparse products, then Newton.

    Only bases that share `degree` features with a row give a non-zero.
    """
    sums = [X.power(t) @ bases.power(t) for t in range(1, degree + 1)]
    pattern = ((X != 0).astype(np.float64) @ (bases != 0).astype(np.float64)).tocsr()
    pattern.sort_indices()
    columns = [_aligned(matrix.tocsr(), pattern) for matrix in sums]
    values = newton(np.array(columns))
    values[pattern.data < degree - 0.5] = 0.0
    out = sp.csr_matrix((values, pattern.indices, pattern.indptr), pattern.shape)
    out.eliminate_zeros()
    return out


def newton(power_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the elementary symmetric polynomial of the highest order from power sums 1…m, (m, …)."""
    e = [np.ones_like(power_sums[0])]
    for m in range(1, len(power_sums) + 1):
        total = np.zeros_like(power_sums[0])
        for t in range(1, m + 1):
            total += (-1.0) ** (t - 1) * e[m - t] * power_sums[t - 1]
        e.append(total / m)
    return e[-1]


def _aligned(matrix: sp.csr_matrix, pattern: sp.csr_matrix) -> NDArray[np.float64]:
    """Return a matrix's values on a pattern that contains it."""
    matrix.sort_indices()
    width = np.int64(pattern.shape[1])
    keys = []
    for some in (matrix, pattern):
        owner = np.repeat(np.arange(some.shape[0], dtype=np.int64), np.diff(some.indptr))
        keys.append(owner * width + some.indices)
    out = np.zeros(pattern.nnz)
    out[np.searchsorted(keys[1], keys[0])] = matrix.data
    return out


# ---- kernels


@jit
def _anova(indptr, indices, data, bases, degree, out):
    components = bases.shape[1]
    table = np.empty((degree, components))
    for i in range(len(out)):
        table[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            base, x = bases[indices[p]], data[p]
            for t in range(degree - 1, 0, -1):
                for s in range(components):
                    table[t, s] += base[s] * x * table[t - 1, s]
            for s in range(components):
                table[0, s] += base[s] * x
        out[i] = table[degree - 1]


@jit
def _all_subsets(indptr, indices, data, bases, out):
    for i in range(len(out)):
        out[i] = 1.0
        for p in range(indptr[i], indptr[i + 1]):
            base, x = bases[indices[p]], data[p]
            for s in range(out.shape[1]):
                out[i, s] *= 1.0 + base[s] * x
