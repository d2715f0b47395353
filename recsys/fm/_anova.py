"""The ANOVA kernel A^t(p, x) = Σ_{j₁<…<j_t} Π p_j x_j of sparse rows.

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
