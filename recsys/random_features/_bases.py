"""Random base vectors of mean 0 and variance 1, dense and sparse, and the kernels against them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit
from recsys.utils.resources import threads_for

DISTRIBUTIONS = ("rademacher", "gaussian", "uniform", "laplace")
DENSE = 8  # a row is dense with one feature in so many: its walk costs more than products of matrices
BATCH = 1 << 19  # entries of dense rows that are held at once


def draw(rng: np.random.Generator, distribution: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return independent entries of mean 0 and variance 1, float64."""
    if distribution == "rademacher":
        return 2.0 * rng.integers(0, 2, shape) - 1.0
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
    rows = np.concatenate(where)
    columns = np.repeat(np.arange(components), counts)
    values = draw(rng, "rademacher", (len(rows),)) / np.sqrt(1.0 - sparsity)
    return sp.csr_matrix((values, (rows, columns)), (features, components))


def sign_map(
    X: sp.csr_matrix, signs: NDArray[np.float64], degree: int, scale: float = 1.0
) -> NDArray[np.float64]:
    """Return scale·A^degree with bases of −1 and 1, by products of matrices for dense rows.

    Newton's identities cancel where one entry outweighs the rest of its row: such rows are walked.
    """
    out = np.empty((X.shape[0], signs.shape[1]))
    sizes = abs(X)
    largest, total = sizes.max(axis=1).toarray().ravel(), np.asarray(sizes.sum(axis=1)).ravel()
    even = (np.diff(X.indptr) * DENSE > X.shape[1]) & (4 * degree * largest <= total)
    even &= degree <= 3
    dense, rest = np.flatnonzero(even), np.flatnonzero(~even)
    step = max(1, BATCH // max(signs.shape))
    for start in range(0, len(dense), step):
        some = dense[start : start + step]
        x = X[some].toarray()
        first = x @ signs
        squares = (x**2).sum(axis=1)[:, None]  # the power sum of order 2 has no signs
        if degree == 1:
            out[some] = scale * first
        elif degree == 2:
            out[some] = 0.5 * scale * (first**2 - squares)
        else:
            out[some] = scale / 6.0 * (first**3 - 3.0 * first * squares + 2.0 * (x**3 @ signs))
    if len(rest):
        out[rest] = dense_map(X[rest], signs, degree, scale)
    return out


def dense_map(
    X: sp.csr_matrix, bases: NDArray[np.float64], degree: int, scale: float = 1.0
) -> NDArray[np.float64]:
    """Return scale·A^degree (degree ≥ 1) or scale·Π(1 + ωx) (degree 0), (rows, bases)."""
    out = np.empty((X.shape[0], bases.shape[1]))
    threads = threads_for(2.0 * X.nnz * bases.shape[1] * max(degree, 1), None)
    in_threads(threads, _dense_rows, X.indptr, X.indices, X.data, bases, degree, scale, out)
    return out


def sparse_map(X: sp.csr_matrix, bases: sp.csr_matrix, degree: int, scale: float = 1.0) -> sp.csr_matrix:
    """Return scale·A^degree of sparse rows with sparse bases, (rows, bases).

    Only bases that share `degree` features with a row give a non-zero; those sharing any are walked.
    """
    indptr = np.zeros(X.shape[0] + 1, dtype=np.int64)
    walked = float(np.diff(bases.indptr)[X.indices].sum())  # entries of bases that the rows meet
    threads = threads_for(4.0 * walked * degree, None)
    rows, columns = (X.indptr, X.indices, X.data), (bases.indptr, bases.indices, bases.data)
    arguments = (rows, columns, bases.shape[1], degree, scale)
    none = (indptr, np.empty(0, dtype=np.int32), np.empty(0))
    in_threads(threads, _sparse_rows, *arguments, none)
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    in_threads(threads, _sparse_rows, *arguments, (indptr, indices, data))
    out = sp.csr_matrix((data, indices, indptr), (X.shape[0], bases.shape[1]))
    out.eliminate_zeros()
    return out


# ---- kernels


@jit
def _dense_rows(w, threads, indptr, indices, data, bases, degree, scale, out):
    """Fill every so manieth row of the output, from the w-th."""
    components = bases.shape[1]
    table = np.empty((degree, components))
    for i in range(w, len(out), threads):
        to = out[i]
        if degree == 0:
            to[:] = scale
            for p in range(indptr[i], indptr[i + 1]):
                base, x = bases[indices[p]], data[p]
                for s in range(components):
                    to[s] *= 1.0 + base[s] * x
            continue
        table[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            base, x = bases[indices[p]], data[p]
            for t in range(degree - 1, 0, -1):
                high, low = table[t], table[t - 1]
                for s in range(components):
                    high[s] += base[s] * x * low[s]
            low = table[0]
            for s in range(components):
                low[s] += base[s] * x
        last = table[degree - 1]
        for s in range(components):
            to[s] = scale * last[s]


@jit
def _sparse_rows(w, threads, rows, bases, components, degree, scale, out):
    """Count the bases that share `degree` features with each row, or, given the space, fill them in."""
    indptr, indices, data = rows
    base_ptr, base_ids, base_values = bases
    out_ptr, out_indices, out_data = out
    counting = len(out_indices) == 0
    shared = np.zeros(components, dtype=np.int32)
    table = np.zeros((components, degree + 1))
    touched = np.empty(components, dtype=np.int32)
    for i in range(w, len(indptr) - 1, threads):
        size = 0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for q in range(base_ptr[j], base_ptr[j + 1]):
                s = base_ids[q]
                if shared[s] == 0:
                    touched[size] = s
                    size += 1
                    if not counting:
                        table[s] = 0.0
                        table[s, 0] = 1.0
                shared[s] += 1
                if not counting:
                    z = x * base_values[q]
                    for t in range(degree, 0, -1):
                        table[s, t] += z * table[s, t - 1]
        kept = 0
        for k in range(size):
            s = touched[k]
            if shared[s] >= degree:
                touched[kept] = s
                kept += 1
            shared[s] = 0
        if counting:
            out_ptr[i + 1] = kept
        else:
            at = out_ptr[i]
            some = np.sort(touched[:kept])
            for k in range(kept):
                out_indices[at + k] = some[k]
                out_data[at + k] = scale * table[some[k], degree]
