"""Ridge regressions between items, each on few others: a sparse approximate inverse of RᵀR + Λ."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import in_parts, jit, parallel
from recsys.errors import FitError, InputError
from recsys.kernels.gram.counts import columns, cooccurrence, pair_lengths
from recsys.utils.memory import size_text

PAIR_BYTES = 8  # of a count and its item
WEIGHT_BYTES = 8  # of a weight and its item, held twice when columns become rows


def sparse_inverse_weights(
    liked: sp.csr_matrix,
    ridge: float | NDArray[np.float64],
    top_k: int,
    budget: int,
    fewer: bool = False,
    votes: NDArray[np.float64] | None = None,
) -> sp.csr_matrix:
    """Return the ridge regression of each item on the `top_k` others that are most like it, float32 CSR.

    With A = RᵀDR + Λ, D the users' votes, Λ the diagonal `ridge`, and N_j the items kept for item j,
    A[N_j, N_j]⁻¹ A[N_j, j] fills column j: the weights −P_ij/P_jj of P = A[N_j ∪ j, N_j ∪ j]⁻¹, which is
    EASE on these items alone, and EASE itself where all are kept. No such matrix is singular, and none
    depends on another.

    N_j are those with the largest cosines c_ij/√(c_ii·c_jj) of RᵀDR; of equal ones the rarer, then the
    earlier. Items that share no user with j are only kept where all are.

    `budget` is in bytes, for the counts and the weights; what is beyond is refused, unless `fewer`
    lowers `top_k` to what fits. A FitError says that Λ is so small that rounding could make a matrix
    indefinite.

    Sources: Steck, Markov random fields for collaborative filtering, NeurIPS 2019 (inverses of
    sub-matrices); Kolotilina and Yeremin, Factorized sparse approximate inverse preconditionings, 1993
    (a column of a sparse inverse solves the equations that its pattern names); Higham, Accuracy and
    stability of numerical algorithms, 2002, theorem 10.7 (the least Λ).
    """
    import numba  # late: a dense EASE compiles nothing

    items = liked.shape[1]
    others = np.maximum(pair_lengths(liked, columns(liked)), 1) - 1
    most = items - 1 if top_k >= items - 1 else int(others.max(initial=0))

    def need(k: int) -> int:
        kept = items * (items - 1) if k >= items - 1 else int(np.minimum(others, k).sum())
        pairs = PAIR_BYTES * (int(others.sum()) + items)
        blocks = 24 * min(k, most) ** 2 * numba.get_num_threads()  # matrix, copy and factor
        return max(pairs + WEIGHT_BYTES * kept + blocks, 2 * WEIGHT_BYTES * kept)

    if fewer:
        top_k = max(1, bisect_right(range(1, top_k + 1), budget, key=need))
    if need(top_k) > budget:
        raise InputError(
            f"EASE on {items:,} items with top_k={top_k} needs {size_text(need(top_k))} and has "
            f"{size_text(budget)}: lower top_k, raise memory or keep fewer items"
        )
    popularity = np.diff(columns(liked).indptr)
    own = weighted_counts(liked, votes)
    ridge = np.broadcast_to(np.asarray(ridge, np.float64), items)
    k = min(top_k, most)
    # Scaled to a unit diagonal, no matrix has an eigenvalue below the least Λ_ii / A_ii.
    if (ridge <= 2.0 * (k + 1) * (k + 2) * np.finfo(float).eps * (own + ridge)).any():
        raise FitError(f"EASE cannot invert its matrices: raise regularization ({ridge.min():g})")
    order = np.argsort(popularity, kind="stable")  # from rare to popular: see `_regress`
    ordered = liked[:, order].tocsr()
    ordered.sort_indices()
    counts = cooccurrence(ordered, votes)
    lengths = np.full(items, items - 1) if top_k >= items - 1 else np.minimum(others, top_k)
    begins = np.concatenate(([0], np.cumsum(lengths)))
    near = np.empty(begins[-1], dtype=np.int32)
    weights = np.empty(len(near), dtype=np.float32)
    # One thread of LAPACK in each of ours; and its results do not depend on how many there are.
    with parallel() as threads, threadpool_limits(1, "blas"):
        in_parts(
            threads, _regress, counts.indptr.astype(np.int64), counts.indices, counts.data, own[order],
            ridge[order], order, begins[:-1][order], lengths[order], near, weights,
        )  # fmt: skip
    del counts
    return sp.csc_matrix((weights, near, begins), shape=(items, items)).tocsr()


def weighted_counts(liked: sp.csr_matrix, votes: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the diagonal of RᵀDR, D the users' votes."""
    each = None if votes is None else np.repeat(votes, np.diff(liked.indptr))
    return np.bincount(liked.indices, each, minlength=liked.shape[1]).astype(np.float64)


# ---- kernels


@jit
def _regress(
    first, stride, indptr, indices, data, own, ridge, names, begins, lengths, near, weights,
):  # fmt: skip
    """Entries from begins[r] on receive the regression of item r on the items most like it.

    Items go from rare to popular, so that the counts of item i with more popular ones, of which there
    are few, are the end of its row; the others follow by symmetry.
    """
    m, rows = len(own), len(begins)
    most = 0
    for r in range(rows):
        most = max(most, lengths[r])
    place = np.full(m, -1, dtype=np.int32)
    kept = np.empty(most, dtype=np.int32)
    size = np.empty(m)
    block = np.empty(most * most)
    x = np.empty(most)
    for r in range(first, rows, stride):
        begin, k = begins[r], lengths[r]
        if k == 0:
            continue
        _most_alike(
            indices[indptr[r] : indptr[r + 1]],
            data[indptr[r] : indptr[r + 1]],
            own,
            r,
            size,
            kept[:k],
            x,
        )
        A = block[: k * k].reshape((k, k))
        A[:] = 0.0
        for a in range(k):
            place[kept[a]] = a
        for a in range(k):
            i = kept[a]
            A[a, a] = own[i] + ridge[i]
            p = indptr[i + 1] - 1
            while p >= indptr[i] and indices[p] > i:
                b = place[indices[p]]
                if b >= 0:
                    A[a, b] = data[p]
                    A[b, a] = data[p]
                p -= 1
        for a in range(k):
            place[kept[a]] = -1
        L = np.linalg.cholesky(A)  # by columns in memory
        for a in range(k):
            x[a] /= L[a, a]
            for b in range(a + 1, k):
                x[b] -= L[b, a] * x[a]
        for a in range(k - 1, -1, -1):
            for b in range(a + 1, k):
                x[a] -= L[b, a] * x[b]
            x[a] /= L[a, a]
        for a in range(k):
            near[begin + a] = names[kept[a]]
            weights[begin + a] = x[a]


@jit
def _most_alike(items, counts, own, j, size, kept, shared):
    """Fill in as many items as there is room for, ascending, and what they share with item j."""
    k, n = len(kept), len(items)
    if k == len(own) - 1:
        for i in range(k):
            kept[i] = i if i < j else i + 1
        shared[:k] = 0.0
        for p in range(n):
            if items[p] != j:
                shared[items[p] - (items[p] > j)] = counts[p]
        return
    for p in range(n):
        size[p] = np.float64(counts[p]) ** 2 / own[items[p]] if items[p] != j else 0.0
    least = np.partition(size[:n], n - k)[n - k]
    ties = k
    for p in range(n):
        if size[p] > least:
            ties -= 1
    filled = 0
    for p in range(n):
        if size[p] == least and ties > 0:
            ties -= 1
        elif not size[p] > least:
            continue
        kept[filled], shared[filled] = items[p], counts[p]
        filled += 1
