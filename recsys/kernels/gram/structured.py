"""The item Gram matrix of a large catalogue: a table over popularities and a sparse correction.

Every kernel here is a function of ⟨x,z⟩, |x|, |z| and n. For two items without a common user the
first is 0, so that the value depends on the two popularities alone, of which there are few:
K = table[class, class] + correction, exactly, with a correction on the non-zeros of R.T @ R.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.kernels.gram.dense import columns
from recsys.kernels.plans import centre, centred, scaled, weights
from recsys.utils.memory import check_memory
from recsys.utils.sparse import owners


@dataclass(frozen=True)
class StructuredGram:
    """A symmetric (items, items) matrix: K[i, j] = table[classes[i], classes[j]] + correction[i, j].

    Attributes
    ----------
    correction : (items, items) CSR, float32 or float64
        Indices sorted; the diagonal is always stored.
    classes : (items,) int32
        Popularity class of each item.
    table : (classes, classes) float64
    offsets : (items,) float64, optional
        Where the matrix is a centred kernel K'ᵢⱼ = Kᵢⱼ − tᵢ − tⱼ: t.
    """

    correction: sp.csr_matrix
    classes: NDArray[np.int32]
    table: NDArray[np.float64]
    offsets: NDArray[np.float64] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        c = self.correction
        parts = (c.data, c.indices, c.indptr, self.classes, self.table)
        return int(sum(part.nbytes for part in parts))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Items of each class."""
        return np.bincount(self.classes, minlength=len(self.table))

    def rows(self, ids: ArrayLike) -> NDArray[Any]:
        """Return the rows of these items, (ids, items), in the correction's dtype."""
        at = np.asarray(ids)
        out = self.table[self.classes[at]][:, self.classes]
        return (out + self.correction[at].toarray()).astype(self.correction.dtype)

    def sub(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Return the entries of some rows and columns, (rows, cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        part = self.correction[i][:, j].toarray().astype(np.float64)
        return part + self.table[np.ix_(self.classes[i], self.classes[j])]

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        own = self.table[self.classes, self.classes]
        return own + self.correction.diagonal().astype(np.float64)

    def row_sums(self) -> NDArray[np.float64]:
        """Return Σ_j K[i, j], summed in float64."""
        indptr = self.correction.indptr
        totals = np.zeros(len(self.classes))
        filled = np.diff(indptr) > 0
        if filled.any():
            starts = indptr[:-1][filled]
            totals[filled] = np.add.reduceat(self.correction.data, starts, dtype=np.float64)
        return totals + (self.table @ self.counts)[self.classes]

    def multiply(self, B: ArrayLike) -> NDArray[np.float64]:
        """Return K @ B for a vector (items,) or a block (items, columns), in float64."""
        block = np.asarray(B, dtype=np.float64)
        if len(block) != len(self.classes):
            raise InputError(f"a factor of {len(self.classes)} rows is needed, not of {len(block)}")
        sums = np.zeros((len(self.table), *block.shape[1:]))
        np.add.at(sums, self.classes, block)
        return (self.table @ sums)[self.classes] + self.correction.astype(np.float64) @ block

    def dense(self) -> NDArray[Any]:
        """Return the whole matrix, in the correction's dtype."""
        return self.rows(np.arange(len(self.classes)))

    def sparsify(self) -> StructuredGram:
        """Return the matrix minus the smallest value of the table: its zero-degree term.

        CF-KOMD's weights and ranking do not change by a constant, and where all pairs without a
        common user have one value, as under a dot-product kernel, nothing but the sparse
        correction is left.

        Notes
        -----
        Source: Polato's thesis, 10.3.
        """
        least = float(self.table.min())
        if not np.allclose(self.table, least, rtol=0, atol=1e-12):
            return replace(self, table=self.table - least)
        return replace(self, classes=np.zeros_like(self.classes), table=np.zeros((1, 1)))

    def spectral_ratio(self, standardized: bool = False) -> float:
        """Return trace over Frobenius norm, as `recsys.kernels.spectral_ratio` of the matrix."""
        n = len(self.classes)
        square = float(self.counts @ (self.table**2) @ self.counts)
        data = self.correction.data.astype(np.float64)
        owner = owners(self.correction)
        base = self.table[self.classes[owner], self.classes[self.correction.indices]]
        square += float((data * (data + 2.0 * base)).sum())
        ratio = float(self.diagonal().sum() / np.sqrt(square)) if square > 0 else 1.0
        if not standardized:
            return ratio
        return (ratio - 1.0) / (np.sqrt(n) - 1.0) if n > 1 else 0.0


def structured_gram(
    user_items: sp.csr_matrix,
    kernel: Kernel,
    *,
    normalize: bool = True,
    dtype: type = np.float32,
    budget: int | None = None,
    centring: bool = False,
) -> StructuredGram:
    """Return the Gram matrix of the columns of `user_items` in structured form.

    Parameters
    ----------
    user_items : (users, items) CSR
        Binary, canonical.
    kernel : Kernel
    normalize : bool
        As in `item_gram`, also for items nobody has.
    dtype : float32 or float64
        Of the correction.
    budget : int, optional
        Bytes it may take; what is free when not given.
    centring : bool
        Centre a normalised kernel whose values tend to 1 on these items, and widen the dtype where it
        must be, as in `recsys.kernels.gram.dense.centred_item_gram`.

    Raises
    ------
    InputError
        If it would take more, with the bytes needed; or values leave the range of the dtype.
    """
    users, m = user_items.shape
    plan = kernel.plan(users)
    around = None
    if centring and normalize:
        of_items = np.bincount(user_items.indices, minlength=m).astype(np.int64)
        around = centre(plan, of_items)
        dtype = dtype if around is None else np.promote_types(dtype, around.dtype).type
    layout = columns(user_items)
    lengths = pair_lengths(user_items, layout)
    check_budget(structured_bytes(int(lengths.sum()) + m, m, dtype), m, budget)
    sizes = np.diff(layout.indptr).astype(np.int64)
    popularity, inverse = np.unique(sizes, return_inverse=True)
    classes = inverse.astype(np.int32)
    w = weights(plan, popularity, normalize)
    if not normalize and not plan.logarithmic:
        w = np.full(len(popularity), np.exp(0.5 * plan.log_scale))
    short = missed = np.zeros(0)
    if around is not None:
        short, missed = np.empty(len(popularity)), np.empty(len(popularity))
        short[classes], missed[classes] = around.short, around.missed
    args = (plan.code, plan.logarithmic, w, short, missed, plan.par, plan.table)
    table = np.zeros((len(popularity), len(popularity)))
    if around is not None or not plan.zero_at_zero:
        _class_table(popularity, users, *args, table)
    if normalize and popularity[0] == 0:  # an item nobody has resembles nothing
        table[0, :] = table[:, 0] = 0.0 if around is None else short
    indptr = np.zeros(m + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths, 1), out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1], dtype=dtype)
    with parallel() as threads:
        _fill(
            threads, user_items.indptr, user_items.indices, layout.indptr, layout.indices, sizes,
            classes, *args, table, normalize, indptr, indices, data,
        )  # fmt: skip
    if not (np.isfinite(data).all() and np.isfinite(table).all()):
        raise InputError(f"{kernel} leaves the range of {np.dtype(dtype)} on these items: normalise it")
    correction = sp.csr_matrix((data, indices, indptr), (m, m))
    return StructuredGram(correction, classes, table, None if around is None else 0.5 - around.short)


def cooccurrence(
    user_items: sp.csr_matrix, votes: NDArray[np.float64] | None = None, budget: int | None = None
) -> sp.csr_matrix:
    """Return R.T @ diag(votes) @ R as float32 CSR, summed in float64, the diagonal stored.

    Parameters
    ----------
    user_items : (users, items) CSR
        Binary, canonical.
    votes : (users,) float64, optional
        Weight of each user; 1 when not given.
    budget : int, optional
        As in `structured_gram`.
    """
    m = user_items.shape[1]
    layout = columns(user_items)
    lengths = pair_lengths(user_items, layout)
    check_budget(structured_bytes(int(lengths.sum()) + m, m), m, budget)
    indptr = np.zeros(m + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths, 1), out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1], dtype=np.float32)
    votes = np.ones(user_items.shape[0]) if votes is None else votes
    with parallel() as threads:
        _fill_votes(
            threads, user_items.indptr, user_items.indices, layout.indptr, layout.indices, votes,
            indptr, indices, data,
        )  # fmt: skip
    return sp.csr_matrix((data, indices, indptr), (m, m))


def pair_lengths(user_items: sp.csr_matrix, layout: sp.csc_matrix | None = None) -> NDArray[np.int64]:
    """Return how many items each item shares a user with, itself among them: a row of R.T @ R."""
    layout = columns(user_items) if layout is None else layout
    out = np.zeros(user_items.shape[1], dtype=np.int64)
    with parallel() as threads:
        _lengths(threads, user_items.indptr, user_items.indices, layout.indptr, layout.indices, out)
    return out


def structured_bytes(entries: int, items: int, dtype: type = np.float32) -> int:
    """Return the bytes of a correction of so many entries."""
    return entries * (4 + np.dtype(dtype).itemsize) + 24 * items


def check_budget(need: int, items: int, budget: int | None) -> None:
    """Refuse what exceeds the budget, or what is free."""
    if budget is None:
        check_memory(need, f"the sparse item × item matrix of {items:,} items")
    elif need > budget:
        raise InputError(
            f"the sparse item × item matrix of {items:,} items needs {need / 1e9:.2f} GB, the budget is "
            f"{budget / 1e9:.2f} GB: pass memory={need / 1e9 + 0.01:.2f}GB, or keep fewer items"
        )


# ---- kernels


@jit
def _class_table(sizes, n, code, logarithmic, w, short, missed, par, table, out):
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            if sizes[i] + sizes[j] <= n:  # beyond, two items always share a user
                out[i, j] = _pair(
                    code, logarithmic, 0, sizes[i], sizes[j], i, j, w, short, missed, par, table
                )


@jit
def _pair(code, logarithmic, s, a, b, i, j, w, short, missed, par, table):
    """Return the value for two vectors of classes i and j, centred if `short` is given."""
    if len(short) == 0:
        return scaled(code, logarithmic, s, a, b, w[i], w[j], par, table)
    return centred(
        code, logarithmic, s, a, b, w[i], w[j], short[i], short[j], missed[i], missed[j], par, table
    )


@jit(parallel=True)
def _lengths(threads, indptr, indices, item_ptr, item_users, out):
    m = len(out)
    for t in numba.prange(threads):
        seen = np.full(m, -1, dtype=np.int32)
        for i in range(t, m, threads):
            count = 0
            for k in range(item_ptr[i], item_ptr[i + 1]):
                u = item_users[k]
                for p in range(indptr[u], indptr[u + 1]):
                    j = indices[p]
                    if seen[j] != i:
                        seen[j] = i
                        count += 1
            out[i] = count


@jit
def _order(touched, count, flags):
    """Sort the first `count` of touched: by scanning all items where that is cheaper."""
    if count * 16 > len(flags):
        for k in range(count):
            flags[touched[k]] = 1
        k = 0
        for j in range(len(flags)):
            if flags[j] == 1:
                touched[k] = j
                flags[j] = 0
                k += 1
    else:
        touched[:count] = np.sort(touched[:count])


@jit(parallel=True)
def _fill(
    threads, indptr, indices, item_ptr, item_users, sizes, classes, code, logarithmic, w, short, missed,
    par, table, base, normalize, out_ptr, out_indices, out_data,
):  # fmt: skip
    m = len(sizes)
    for t in numba.prange(threads):
        count = np.zeros(m, dtype=np.int32)
        flags = np.zeros(m, dtype=np.uint8)
        touched = np.empty(m, dtype=np.int32)
        for i in range(t, m, threads):
            size = 0
            for k in range(item_ptr[i], item_ptr[i + 1]):
                u = item_users[k]
                for p in range(indptr[u], indptr[u + 1]):
                    j = indices[p]
                    if count[j] == 0:
                        touched[size] = j
                        size += 1
                    count[j] += 1
            ci = classes[i]
            if size == 0:  # nobody has it
                out_indices[out_ptr[i]] = i
                own = 1.0 if normalize else scaled(code, logarithmic, 0, 0, 0, w[ci], w[ci], par, table)
                own += 1.0 if len(short) else 0.0
                out_data[out_ptr[i]] = own - base[ci, ci]
                continue
            _order(touched, size, flags)
            for k in range(size):
                j = touched[k]
                cj = classes[j]
                if normalize and i == j:
                    v = 2.0 * short[ci] if len(short) else 1.0
                else:
                    v = _pair(
                        code, logarithmic, count[j], sizes[i], sizes[j], ci, cj, w, short, missed, par,
                        table,
                    )  # fmt: skip
                out_indices[out_ptr[i] + k] = j
                out_data[out_ptr[i] + k] = v - base[ci, cj]
                count[j] = 0


@jit(parallel=True)
def _fill_votes(threads, indptr, indices, item_ptr, item_users, votes, out_ptr, out_indices, out_data):
    m = len(out_ptr) - 1
    for t in numba.prange(threads):
        total = np.zeros(m)
        seen = np.full(m, -1, dtype=np.int32)
        flags = np.zeros(m, dtype=np.uint8)
        touched = np.empty(m, dtype=np.int32)
        for i in range(t, m, threads):
            size = 0
            for k in range(item_ptr[i], item_ptr[i + 1]):
                u = item_users[k]
                for p in range(indptr[u], indptr[u + 1]):
                    j = indices[p]
                    if seen[j] != i:
                        seen[j] = i
                        touched[size] = j
                        size += 1
                    total[j] += votes[u]
            if size == 0:
                out_indices[out_ptr[i]], out_data[out_ptr[i]] = i, 0.0
                continue
            _order(touched, size, flags)
            for k in range(size):
                j = touched[k]
                out_indices[out_ptr[i] + k] = j
                out_data[out_ptr[i] + k] = total[j]
                total[j] = 0.0
