"""Half a step of alternating least squares: the factors of rows, each with a ridge of its own."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import in_parts, jit, parallel


def least_squares(
    confidences: sp.csr_matrix,
    others: NDArray[np.float32],
    ridges: NDArray[np.float64],
    num_threads: int = 0,
) -> NDArray[np.float32]:
    """Return argmin over x of Σ_i c_ui(p_ui − x·y_i)² + ridges[u]·‖x‖², for each row u, as float32.

    Stored entries have p = 1 and the confidence stored, all others p = 0 and c = 1; `others` are y of
    each column. Each row is solved exactly, in float64, by a Cholesky factor of its own: the bits do not
    depend on the threads. A row without an entry has 0. `num_threads` 0 is all.
    """
    Y = others.astype(np.float64)
    with threadpool_limits(limits=1, user_api="blas"):
        gram = Y.T @ Y
    out = np.zeros((confidences.shape[0], Y.shape[1]), dtype=np.float32)
    data = confidences.data.astype(np.float64)
    arrays = (confidences.indptr, confidences.indices, data, Y, gram, ridges, out)
    if len(out) == 1:  # a request, which waits for no lock
        _solve_rows(0, 1, *arrays)
        return out
    with parallel(num_threads or None) as threads:
        in_parts(threads, _solve_rows, *arrays)
    return out


# ---- kernels


@jit
def _solve_rows(first, stride, indptr, indices, data, Y, gram, ridges, out):
    d = len(gram)
    A, b = np.empty((d, d)), np.empty(d)
    for u in range(first, len(out), stride):
        if indptr[u] == indptr[u + 1]:
            continue
        b[:] = 0.0
        for i in range(d):
            A[i, i:] = gram[i, i:]
            A[i, i] += ridges[u]
        for p in range(indptr[u], indptr[u + 1]):
            y, c = Y[indices[p]], data[p]
            for i in range(d):
                b[i] += c * y[i]
                w = (c - 1.0) * y[i]
                row, tail = A[i, i:], y[i:]
                for k in range(d - i):
                    row[k] += w * tail[k]
        solve_in_place(A, b)
        for i in range(d):
            out[u, i] = b[i]


@jit
def solve_in_place(A, b):
    """Solve A x = b in place, of the upper triangle of a positive definite A: it becomes its factor."""
    d = len(b)
    for j in range(d):
        root = np.sqrt(A[j, j])
        row = A[j, j:]
        for k in range(d - j):
            row[k] /= root
        for i in range(j + 1, d):
            w, target, tail = A[j, i], A[i, i:], A[j, i:]
            for k in range(d - i):
                target[k] -= w * tail[k]
    for j in range(d):  # Uᵀz = b
        b[j] /= A[j, j]
        for k in range(j + 1, d):
            b[k] -= A[j, k] * b[j]
    for j in range(d - 1, -1, -1):  # Ux = z
        total = b[j]
        for k in range(j + 1, d):
            total -= A[j, k] * b[k]
        b[j] = total / A[j, j]
