"""The programs of CF-KOMD and CF-OMD for many users, in parallel: gather, solve, scatter."""

from __future__ import annotations

import numpy as np

from recsys._jit import borrowed, jit
from recsys.optim.simplex_qp import gather, multiply, solve_face

# ---- kernels


@jit(inline="always")
def solve_one(
    K, n, items, row_sums, q_all, m, exact, sign, ridge_p, omega, ridge, a, q, g, face, small, work,
    narrow, tol,
):  # fmt: skip
    """Solve one user's program from the lower triangle of the block K and its column sums g.

    Returns the residual.

    The ridge of interaction i is ridge_p/omega[i]. The larger it is, the nearer the solution to omega/Σ
    omega, where it starts. `q_all` is q for a user with all items: 0, less what centring took from
    the kernel.
    """
    total = 0.0
    alike = True
    for i in range(n):
        ridge[i] = ridge_p / omega[i]
        total += omega[i]
        alike = alike and omega[i] == omega[0]
    for i in range(n):
        if exact:
            q[i] = (row_sums[items[i]] - g[i]) / (m - n) if m > n else q_all[items[i]]
        else:
            q[i] = row_sums[items[i]] / m
        a[i] = omega[i] / total
        if alike:
            g[i] /= n
    if not alike:
        multiply(K, n, a, g)
    residual, _ = solve_face(K, n, q, sign, ridge, a, g, face, small, work, narrow, tol)
    return residual


@jit
def programs(
    first,
    stride,
    order,
    indptr,
    indices,
    gram,
    row_sums,
    q_all,
    exact,
    ridge_p,
    omega,
    tol,
    longest,
    alpha,
    residuals,
):
    indices, gram, row_sums, q_all, omega, alpha = borrowed(
        (indices, gram, row_sums, q_all, omega, alpha)
    )
    m = len(gram)
    block = np.empty(longest * longest, dtype=np.float32)
    small = np.empty(longest * longest, dtype=np.float32)
    work = np.empty((7, longest))
    sign, ridge = np.ones(longest), np.empty(longest)
    q, g, face = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.uint32)
    narrow = np.empty((2, longest), dtype=np.float32)
    for k in range(first, len(order), stride):  # sorted by length: each thread gets long and short
        u = order[k]
        items = indices[indptr[u] : indptr[u + 1]]
        n = len(items)
        if n == 0:
            continue
        K = block[: n * n].reshape(n, n)
        gather(gram, items, n, K)
        work[0, :n] = 1.0
        multiply(K, n, work[0], g)
        residuals[u] = solve_one(
            K, n, items, row_sums, q_all, m, exact, sign, ridge_p, omega[indptr[u] : indptr[u + 1]],
            ridge, alpha[indptr[u] : indptr[u + 1]], q, g, face, small, work, narrow, tol,
        )  # fmt: skip


@jit
def full_programs(first, stride, indptr, indices, gram, ridge_p, ridge_n, omega, tol, signed, residuals):
    gram, signed = borrowed((gram, signed))
    m = len(gram)
    small, work = np.empty(m * m, dtype=np.float32), np.empty((7, m))
    sign, ridge, q = np.empty(m), np.empty(m), np.zeros(m)
    g, face = np.empty(m), np.empty(m, dtype=np.uint32)
    narrow = np.empty((2, m), dtype=np.float32)
    for u in range(first, len(signed), stride):
        if indptr[u] == indptr[u + 1]:
            continue
        sign[:] = -1.0
        ridge[:] = ridge_n
        total = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            sign[indices[p]] = 1.0
            ridge[indices[p]] = ridge_p / omega[p]
            total += omega[p]
        a = signed[u]
        liked = indptr[u + 1] - indptr[u]
        a[:] = 1.0 / max(1, m - liked)
        for p in range(indptr[u], indptr[u + 1]):
            a[indices[p]] = omega[p] / total
        for i in range(m):
            work[0, i] = sign[i] * a[i]
        multiply(gram, m, work[0], g)
        for i in range(m):
            g[i] *= sign[i]
        residuals[u], _ = solve_face(gram, m, q, sign, ridge, a, g, face, small, work, narrow, tol)
        for i in range(m):
            a[i] *= sign[i]
