"""The ANOVA kernel A^t(p, x) = Σ_{j₁<…<j_t} Π p_j x_j of sparse rows, and its slopes.

Everything touches the non-zeros of a row only. Tables hold A^1…A^t of each row and component.
Source: Blondel et al. 2016, Algorithms 1 and 2 and (8); Atarashi's thesis, (3.20) and (3.21).
"""

from __future__ import annotations

from recsys._jit import jit

# ---- kernels


@jit
def anova_tables(indptr, indices, data, P, up_to, out):
    """Fill out[i, s, t − 1] with A^t of row i and component s, t = 1…up_to, by the forward recursion."""
    n, k = out.shape[0], P.shape[1]
    for i in range(n):
        for s in range(k):
            for t in range(up_to):
                out[i, s, t] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            row, x = P[indices[p]], data[p]
            for s in range(k):
                z = row[s] * x
                for t in range(up_to - 1, 0, -1):
                    out[i, s, t] += z * out[i, s, t - 1]
                out[i, s, 0] += z


@jit
def anova_slopes(begin, end, indices, data, P, s, degree, full, partial, out):
    """Write ∂A^degree/∂p_js of one row into out, one entry a non-zero, from a backward table.

    Reverse accumulation through the forward table: no division and no cancellation.
    """
    width = end - begin
    for t in range(degree + 1):
        full[0, t] = 1.0 if t == 0 else 0.0
    for q in range(width):
        z = P[indices[begin + q], s] * data[begin + q]
        full[q + 1, 0] = 1.0
        for t in range(1, degree + 1):
            full[q + 1, t] = full[q, t] + z * full[q, t - 1]
    for t in range(degree + 1):
        partial[t] = 0.0
    partial[degree] = 1.0
    for q in range(width - 1, -1, -1):
        x = data[begin + q]
        z = P[indices[begin + q], s] * x
        total = 0.0
        for t in range(1, degree + 1):
            total += partial[t] * full[q, t - 1]
        out[q] = x * total
        for t in range(0, degree):
            partial[t] += z * partial[t + 1]
