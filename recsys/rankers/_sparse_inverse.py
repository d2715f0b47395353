"""Ridge regressions between items by a sparse approximate inverse of RᵀR + λI (SANSA).

With S the matrix scaled to a unit diagonal, L an incomplete Cholesky factor of S and M an incomplete
inverse of L, S⁻¹ ≈ MᵀM. Both drop what is at most a tolerance, chosen so that each fits its share of
memory; where nothing needs to be dropped they are exact.

Written here, since the complete factor that sparse Cholesky libraries give is close to dense: items
that share a user are neighbours, and eliminating one makes its neighbours neighbours of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit, parallel

ENTRY_BYTES = 40  # per item and entry: at the peak, M by columns and by rows, and the weights
STEPS = 4  # tolerances tried for each halving,
BINS = 80  # and how many of them: from 1 to 2⁻²⁰
ENOUGH = 0.6  # of the room is filled: the next smaller tolerance would hardly fit
FIRST_SHIFT = 2.0**-6  # of the diagonal, doubled until the factor exists

# How a factorisation ended.
DONE = 0
OVERFULL = 1
INDEFINITE = 2


def sparse_inverse_weights(
    liked: sp.csr_matrix, regularization: float, top_k: int, entries: int
) -> sp.csr_matrix:
    """Return the weights B_ij = −P_ij/P_jj of P ≈ (RᵀR + λI)⁻¹, at most `top_k` in each column.

    Parameters
    ----------
    liked : (users, items) CSR of ones
    regularization : float > 0
        λ.
    top_k : int from 1 to items
        The largest weights by size are kept.
    entries : int from `top_k` to items
        Factor and inverse hold so many an item at most, on average: items liked by many have more. With
        as many as there are items nothing is dropped.

    Returns
    -------
    (items, items) float32 CSR, without a diagonal

    Notes
    -----
    Source: Spišák et al., Scalable approximate nonsymmetric autoencoder for collaborative filtering,
    2023. Here S is not thresholded beforehand (its columns are formed where they are needed), which
    keeps it positive definite, and L is inverted by substitution, not by minimal residuals.
    """
    items = liked.shape[1]
    popularity = np.diff(liked.tocsc().indptr)
    order = np.argsort(popularity, kind="stable")  # rare ones first: nearly the order of minimum degree
    rows = liked[:, order].tocsr()
    rows.sort_indices()
    columns = rows.tocsc()
    scale = 1.0 / np.sqrt(popularity[order] + float(regularization))
    most = entries * items
    # No entry of the exact L⁻¹ is larger: S has no eigenvalue below λ over its largest diagonal entry.
    bound, shift = 1.0 / (np.sqrt(regularization) * scale.min(initial=1.0)), 0.0
    while True:
        factor, tolerance, shift = _incomplete_factor(rows, columns, scale, regularization, shift, most)
        inverse = _incomplete_inverse(factor, tolerance, most)
        if np.abs(inverse.data).max(initial=0.0) <= 2.0 * bound:
            break
        shift = max(FIRST_SHIFT, 2.0 * shift)
    del factor, rows, columns
    by_rows = inverse.tocsr()
    near = np.zeros((items, top_k), dtype=np.int32)
    weights = np.zeros((items, top_k), dtype=np.float32)
    with parallel() as threads:
        _largest_weights(
            threads, inverse.indptr, inverse.indices, inverse.data, by_rows.indptr, by_rows.indices,
            by_rows.data, scale, order, near, weights,
        )  # fmt: skip
    del inverse, by_rows
    used = weights != 0
    begins = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
    found = sp.csc_matrix((weights[used], near[used], begins), shape=(items, items))
    del near, weights, used
    return found.tocsr()


def _incomplete_factor(
    rows: sp.csr_matrix,
    columns: sp.csc_matrix,
    scale: NDArray[np.float64],
    regularization: float,
    shift: float,
    most: int,
) -> tuple[sp.csc_matrix, float, float]:
    """Return L by columns, of at most `most` entries, the tolerance that made it fit, and the shift.

    Where dropping has left S + shift·I indefinite, the shift grows until it is not.
    """
    items = len(scale)
    with parallel() as threads:
        sizes = _sizes(threads, rows.indptr, rows.indices, columns.indptr, columns.indices, scale)
    up_to = np.cumsum(sizes.sum(axis=0))  # entries of S below the diagonal in bins 0…k
    begins = np.zeros(items + 1, dtype=np.int64)
    indices, values = np.empty(most, dtype=np.int32), np.empty(most)

    def attempt(tolerance: float) -> tuple[sp.csc_matrix, float, float] | None:
        nonlocal shift
        while True:
            outcome = _factor(
                rows.indptr, rows.indices, columns.indptr, columns.indices, scale, float(regularization),
                tolerance, shift, begins, indices, values,
            )  # fmt: skip
            if outcome == INDEFINITE:
                shift = max(FIRST_SHIFT, 2.0 * shift)
                continue
            if outcome == OVERFULL:
                return None
            count = int(begins[-1])
            kept = values[:count].copy(), indices[:count].copy(), begins.copy()
            return sp.csc_matrix(kept, shape=(items, items)), tolerance, shift

    up_to = np.cumsum(sizes.sum(axis=0))  # entries of S below the diagonal in bins 0…k
    room = most - items
    if up_to[-1] <= room:
        whole = attempt(0.0)
        if whole is not None:
            return whole
        room = int(up_to[-1]) // 2
    first = int(np.searchsorted(up_to, room, side="right"))
    return _smallest(first, lambda found: found[0].nnz, attempt, most)


def _incomplete_inverse(factor: sp.csc_matrix, tolerance: float, most: int) -> sp.csc_matrix:
    """Return the inverse of L by columns, of at most `most` entries, without those that are small."""
    items = factor.shape[0]
    begins = np.zeros(items + 1, dtype=np.int64)
    none = np.empty(0, dtype=np.int32), np.empty(0)

    def attempt(tolerance: float) -> tuple[NDArray[np.int64], float] | None:
        lengths = np.empty(items, dtype=np.int64)
        with parallel() as threads:
            _invert(
                threads, factor.indptr, factor.indices, factor.data, tolerance, begins, lengths, *none,
                False,
            )  # fmt: skip
        return (lengths, tolerance) if lengths.sum() <= most else None

    found = attempt(0.0) if tolerance == 0.0 else None
    if found is None:
        first = round(-STEPS * np.log2(tolerance)) if tolerance else BINS // 2
        found = _smallest(first, lambda kept: int(kept[0].sum()), attempt, most)
    lengths, tolerance = found
    begins[1:] = np.cumsum(lengths)
    indices, values = np.empty(begins[-1], dtype=np.int32), np.empty(begins[-1])
    with parallel() as threads:
        _invert(
            threads, factor.indptr, factor.indices, factor.data, tolerance, begins, lengths, indices,
            values, True,
        )  # fmt: skip
    return sp.csc_matrix((values, indices, begins), shape=(items, items))


def _smallest(first: int, size: Callable[[Any], int], attempt: Callable[[float], Any], most: int) -> Any:
    """Return what is made with the smallest tolerance that fits, or nearly so.

    Tolerances are 2^(−k/STEPS); the search begins at k = `first`, goes up until something fits and then
    down until nothing does, or what there is fills most of the room. At 1 only a diagonal is left.
    """
    k, best = first, None
    while best is None:
        best = attempt(2.0 ** (-k / STEPS))
        k -= 1
    k += 2
    while k > first and k <= BINS and size(best) < ENOUGH * most:
        better = attempt(2.0 ** (-k / STEPS))
        if better is None:
            break
        best, k = better, k + 1
    return best


# ---- kernels


@jit(parallel=True)
def _sizes(threads, row_begins, row_items, begins, users, scale):
    """Return how many entries of S below its diagonal fall into each bin of sizes, thread by thread."""
    items = len(scale)
    out = np.zeros((threads, BINS), dtype=np.int64)
    for t in numba.prange(threads):
        common = np.zeros(items, dtype=np.int32)
        met = np.empty(items, dtype=np.int32)
        for j in range(t, items, threads):
            count = 0
            for p in range(begins[j], begins[j + 1]):
                u = users[p]
                for q in range(row_begins[u + 1] - 1, row_begins[u] - 1, -1):
                    i = row_items[q]
                    if i <= j:
                        break
                    if common[i] == 0:
                        met[count] = i
                        count += 1
                    common[i] += 1
            for a in range(count):
                i = met[a]
                size = common[i] * scale[i] * scale[j]  # below 1
                out[t, min(BINS - 1, int(-STEPS * np.log2(size)))] += 1
                common[i] = 0
    return out


@jit
def _factor(
    row_begins, row_items, begins, users, scale, regularization, tolerance, shift, out_begins, indices,
    values,
):  # fmt: skip
    """Fill L column by column, from S + shift·I and the columns before; return the outcome.

    The columns whose next entry is in row j are a linked list from head[j]. Each column of L begins with
    its diagonal; the others ascend.
    """
    items = len(scale)
    head = np.full(items, -1, dtype=np.int64)
    following = np.full(items, -1, dtype=np.int64)
    place = np.zeros(items, dtype=np.int64)
    column = np.zeros(items)
    marked = np.zeros(items, dtype=np.bool_)
    met = np.empty(items, dtype=np.int64)
    filled = 0
    for j in range(items):
        count = 0
        for p in range(begins[j], begins[j + 1]):
            u = users[p]
            for q in range(row_begins[u + 1] - 1, row_begins[u] - 1, -1):
                i = row_items[q]
                if i <= j:
                    break
                if not marked[i]:
                    marked[i] = True
                    met[count] = i
                    count += 1
                column[i] += scale[i] * scale[j]
        pivot = 1.0 + shift
        k = head[j]
        while k >= 0:
            after, p = following[k], place[k]
            end = out_begins[k + 1]
            entry = values[p]
            pivot -= entry * entry
            for q in range(p + 1, end):
                i = indices[q]
                if not marked[i]:
                    marked[i] = True
                    met[count] = i
                    count += 1
                column[i] -= entry * values[q]
            if p + 1 < end:
                i = indices[p + 1]
                place[k] = p + 1
                following[k] = head[i]
                head[i] = k
            k = after
        # No pivot of RᵀR + λI itself is below λ: one that is comes from what was dropped.
        floor = regularization * scale[j] * scale[j]
        if pivot < 0.5 * floor:
            return INDEFINITE
        root = np.sqrt(max(pivot, floor))
        kept = 0
        for a in range(count):
            i = met[a]
            marked[i] = False
            if abs(column[i]) > tolerance * root:
                met[kept] = i
                kept += 1
            else:
                column[i] = 0.0
        if filled + kept + 1 > len(indices):
            return OVERFULL
        indices[filled], values[filled] = j, root
        filled += 1
        others = np.sort(met[:kept])
        for i in others:
            indices[filled], values[filled] = i, column[i] / root
            column[i] = 0.0
            filled += 1
        out_begins[j + 1] = filled
        if kept:
            i = others[0]
            place[j] = filled - kept
            following[j] = head[i]
            head[i] = j
    return DONE


@jit(parallel=True)
def _invert(
    threads, factor_begins, factor_items, factor, tolerance, begins, lengths, indices, values, fill
):
    """Count the entries of every column of the inverse of L by substitution, or fill them in."""
    items = len(lengths)
    for t in numba.prange(threads):
        column = np.zeros(items)
        for j in range(t, items, threads):
            column[j] = 1.0
            last, count, i = j, 0, j
            while i <= last:
                if column[i] != 0.0:
                    entry = column[i] / factor[factor_begins[i]]
                    column[i] = 0.0
                    if i == j or abs(entry) > tolerance:
                        for p in range(factor_begins[i] + 1, factor_begins[i + 1]):
                            column[factor_items[p]] -= entry * factor[p]
                        last = max(last, factor_items[factor_begins[i + 1] - 1])
                        if fill:
                            indices[begins[j] + count] = i
                            values[begins[j] + count] = entry
                        count += 1
                i += 1
            lengths[j] = count


@jit(parallel=True)
def _largest_weights(
    threads, begins, rows, values, row_begins, row_items, row_values, scale, order, near, weights
):
    """Row order[j] of near and weights receives which items weigh most in column j of −P/diag(P)."""
    items, k = near.shape
    for t in numba.prange(threads):
        column = np.zeros(items)
        marked = np.zeros(items, dtype=np.bool_)
        met = np.empty(items, dtype=np.int64)
        size = np.empty(items)
        for j in range(t, items, threads):
            count = 0
            for p in range(begins[j], begins[j + 1]):
                entry = values[p]
                for q in range(row_begins[rows[p]], row_begins[rows[p] + 1]):
                    i = row_items[q]
                    if not marked[i]:
                        marked[i] = True
                        met[count] = i
                        count += 1
                    column[i] += entry * row_values[q]
            own = column[j]
            column[j] = 0.0
            for a in range(count):
                size[a] = abs(column[met[a]]) * scale[met[a]]
            least = np.partition(size[:count], count - k)[count - k] if count > k else 0.0
            target, kept = order[j], 0
            for above in (True, False):  # those of the last place fill what is left
                for a in range(count):
                    i = met[a]
                    if kept < k and size[a] > 0.0 and (size[a] > least if above else size[a] == least):
                        near[target, kept] = order[i]
                        weights[target, kept] = -column[i] * scale[i] / (own * scale[j])
                        kept += 1
            for a in range(count):
                column[met[a]] = 0.0
                marked[met[a]] = False
