"""The item Gram matrix of a large catalogue: a view of sparse co-occurrence counts.

Every kernel here is a function of ⟨x,z⟩, |x|, |z| and n. For two items without a common user the
first is 0, so that the value depends on the two popularities alone, of which there are few:
K = table[class, class] + correction, exactly, with a correction where counts are above 0. Corrections
are made of the counts where they are read: small counts from a look-up table over classes, and those
between the most popular items, which nearly every row asks for, from a dense block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.kernels.gram.counts import ItemCounts
from recsys.kernels.plans import LINEAR, centre, centred, scaled, weights

HEAD = 4096  # items whose pairs are kept dense: 64 MB, and most of what profiles hold
LOOKUP = 16_000_000  # entries at most of the look-up table of small counts


class Arrays(NamedTuple):
    """What compiled code reads of a structured matrix; items by place, popular ones first.

    Attributes
    ----------
    indptr, indices, together
        Co-occurrences as CSR over places, the diagonal apart.
    classes : (items,) int32
        Items of one size share a class.
    own : (items,) float64
        Weight of each item; all that the linear kernel needs.
    sizes, w, short, missed : (classes,)
        As in `recsys.kernels.plans`.
    table : (classes, classes) float64
        Values without a common user; (1, 1) of 0 where they are 0.
    lookup : (classes, counts, classes) float32 or float64
        Corrections of small counts.
    diagonal : (classes,)
        Correction of an item with itself.
    head : (popular, popular)
        Corrections between the items of the first places, diagonal included.
    split : (popular,) int64
        Where the entries of places beyond those begin in each such row.
    code, logarithmic, single, par, numbers
        The kernel's plan; whether corrections are float32.
    """

    indptr: Any
    indices: Any
    together: Any
    classes: Any
    own: Any
    sizes: Any
    w: Any
    short: Any
    missed: Any
    table: Any
    lookup: Any
    diagonal: Any
    head: Any
    split: Any
    code: int
    logarithmic: bool
    single: bool
    par: Any
    numbers: Any


class StructuredGram:
    """A symmetric (items, items) matrix: K[i, j] = table[classes[i], classes[j]] + correction[i, j].

    Parameters
    ----------
    counts : ItemCounts
        In sparse form.
    kernel : Kernel
    normalize : bool
        As in `recsys.kernels.item_gram`, also for items nobody has.
    dtype : float32 or float64
        Of corrections.
    centring : bool
        Centre a normalised kernel whose values tend to 1 on these items, and widen the dtype where it
        must be, as in `recsys.kernels.gram.dense.centred_gram`.

    Attributes
    ----------
    arrays : Arrays
    place : (items,) int32
        Where each item stands in them.
    offsets : (items,) float64 or None
        Where the matrix is a centred kernel K'ᵢⱼ = Kᵢⱼ − tᵢ − tⱼ: t.

    Raises
    ------
    InputError
        If values leave the range of the dtype.
    """

    def __init__(
        self,
        counts: ItemCounts,
        kernel: Kernel,
        *,
        normalize: bool = True,
        dtype: type = np.float32,
        centring: bool = False,
    ) -> None:
        assert counts.order is not None
        plan = kernel.plan(counts.vectors)
        self.order, self.place = counts.order, counts.place
        self.offsets: NDArray[np.float64] | None = None
        sizes, classes = np.unique(counts.sizes[counts.order], return_inverse=True)
        around = None
        if centring and normalize and counts.sizes.dtype.kind == "i":
            around = centre(plan, counts.sizes)
            dtype = dtype if around is None else np.promote_types(dtype, around.dtype).type
        if counts.sizes.dtype.kind == "f":  # weighed vectors: the linear kernel, by their norms
            root = np.sqrt(np.where(sizes > 0, sizes, 1.0))
            w = np.where(sizes > 0, 1.0 / root, 0.0) if normalize else np.ones(len(sizes))
        else:
            w = weights(plan, sizes, normalize)
            if not normalize and not plan.logarithmic:
                w = np.full(len(sizes), np.exp(0.5 * plan.log_scale))
        short = missed = np.zeros(0)
        if around is not None:
            short, missed = np.empty(len(sizes)), np.empty(len(sizes))
            short[classes], missed[classes] = around.short[self.order], around.missed[self.order]
            self.offsets = 0.5 - around.short
        m, few = len(classes), len(sizes)
        sizes = sizes.astype(np.int64)  # of weighed vectors nothing below reads them
        numbers = (plan.code, plan.logarithmic, w, short, missed, plan.par, plan.table)
        table = np.zeros((1, 1))
        if around is not None or not plan.zero_at_zero:
            table = np.zeros((few, few))
            _class_table(sizes, counts.vectors, *numbers, table)
            if normalize and sizes[0] == 0:  # an item nobody has resembles nothing
                table[0, :] = table[:, 0] = 0.0 if around is None else short
        diagonal = np.empty(few, dtype=dtype)
        _diagonal(sizes, normalize, *numbers, table, diagonal)
        t = counts.together
        popular = min(HEAD, m)
        self.arrays = Arrays(
            t.indptr.astype(np.int64, copy=False), t.indices.astype(np.int32, copy=False), t.data, classes.astype(np.int32), w[classes], sizes, w, short, missed,
            table, np.zeros((1, 1, 1), dtype), diagonal, np.zeros((popular, popular), dtype),
            np.zeros(popular, np.int64), plan.code, plan.logarithmic, dtype is np.float32, plan.par,
            plan.table,
        )  # fmt: skip
        with parallel() as threads:
            if plan.code != LINEAR and len(t.data):
                # More counts than there are entries to read need no table.
                depth = min(LOOKUP // few**2, 2 + len(t.data) // (2 * few**2), int(t.data.max()) + 1)
                lookup = np.zeros((few, max(depth, 1), few), dtype)
                _lookup(threads, self.arrays, counts.vectors, lookup)
                self.arrays = self.arrays._replace(lookup=lookup)
            good = np.ones(threads, dtype=np.bool_)
            _head(threads, self.arrays)
            self._sums = np.zeros(m)
            _row_sums(threads, self.arrays, self._sums, good)
        if not (good.all() and np.isfinite(table).all() and np.isfinite(diagonal).all()):
            raise InputError(f"{kernel} leaves the range of {np.dtype(dtype)} on these items: normalise it")
        per_class = np.bincount(classes, minlength=few)
        if len(table) == few:
            self._sums += (table @ per_class)[classes]

    @property
    def dtype(self) -> Any:
        """Of the corrections."""
        return self.arrays.head.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(items, items)."""
        return len(self.place), len(self.place)

    @property
    def nbytes(self) -> int:
        """Bytes of the view, without the counts."""
        a = self.arrays
        return int(sum(x.nbytes for x in (a.classes, a.own, a.table, a.lookup, a.head, self._sums)))

    def rows(self, ids: ArrayLike) -> NDArray[Any]:
        """Return the rows of these items, (ids, items), in the dtype of the corrections."""
        at = self.place[np.asarray(ids)]
        out = np.empty((len(at), len(self.place)), dtype=self.dtype)
        with parallel() as threads:
            _rows(threads, self.arrays, at, self.order, out)
        return out

    def sub(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Return the entries of some rows and columns, (rows, cols)."""
        i, j = self.place[np.asarray(rows)], self.place[np.asarray(cols)]
        out = np.empty((len(i), len(j)))
        _sub(self.arrays, i, j, out)
        return out

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        a = self.arrays
        own = a.diagonal.astype(np.float64)
        if len(a.table) == len(own):
            own += np.diag(a.table)
        return own[a.classes][self.place]

    def row_sums(self) -> NDArray[np.float64]:
        """Return Σ_j K[i, j], summed in float64."""
        return self._sums[self.place]

    def multiply(self, B: ArrayLike) -> NDArray[np.float64]:
        """Return K @ B for a vector (items,) or a block (items, columns), in float64."""
        given = np.asarray(B, dtype=np.float64)
        m = len(self.place)
        if len(given) != m:
            raise InputError(f"a factor of {m} rows is needed, not of {len(given)}")
        block = np.ascontiguousarray(given.reshape(m, -1)[self.order])
        out = np.empty_like(block)
        with parallel() as threads:
            _multiply(threads, self.arrays, block, out)
        a = self.arrays
        if len(a.table) == len(a.sizes):
            sums = np.zeros((len(a.sizes), block.shape[1]))
            np.add.at(sums, a.classes, block)
            out += (a.table @ sums)[a.classes]
        return out[self.place].reshape(given.shape)

    def dense(self) -> NDArray[Any]:
        """Return the whole matrix, in the dtype of the corrections."""
        return self.rows(np.arange(len(self.place)))

    def spectral_ratio(self, standardized: bool = False) -> float:
        """Return trace over Frobenius norm, as `recsys.kernels.spectral_ratio` of the matrix."""
        n, a = len(self.place), self.arrays
        square = np.zeros(n)
        with parallel() as threads:
            _squares(threads, a, square)
        total = float(square.sum())
        if len(a.table) == len(a.sizes):
            per_class = np.bincount(a.classes, minlength=len(a.sizes))
            total += float(per_class @ (a.table**2) @ per_class)
        ratio = float(self.diagonal().sum() / np.sqrt(total)) if total > 0 else 1.0
        if not standardized:
            return ratio
        return (ratio - 1.0) / (np.sqrt(n) - 1.0) if n > 1 else 0.0


# ---- kernels


@jit
def _class_table(sizes, n, code, logarithmic, w, short, missed, par, numbers, out):
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            if sizes[i] + sizes[j] <= n:  # beyond, two items always share a user
                out[i, j] = _pair(
                    code, logarithmic, 0, sizes[i], sizes[j], i, j, w, short, missed, par, numbers
                )


@jit
def _diagonal(sizes, normalize, code, logarithmic, w, short, missed, par, numbers, table, out):
    for c in range(len(sizes)):
        if normalize:
            if sizes[c] == 0:
                own = 2.0 if len(short) else 1.0
            else:
                own = 2.0 * short[c] if len(short) else 1.0
        else:
            own = scaled(code, logarithmic, sizes[c], sizes[c], sizes[c], w[c], w[c], par, numbers)
        out[c] = own - (table[c, c] if len(table) > c and len(table) == len(sizes) else 0.0)


@jit
def _pair(code, logarithmic, s, a, b, i, j, w, short, missed, par, numbers):
    """Return the value for two vectors of classes i and j, centred if `short` is given."""
    if len(short) == 0:
        return scaled(code, logarithmic, s, a, b, w[i], w[j], par, numbers)
    return centred(
        code, logarithmic, s, a, b, w[i], w[j], short[i], short[j], missed[i], missed[j], par, numbers
    )


@jit
def _computed(G, ci, cj, s):
    """Return the correction of two vectors of these classes, which share s ≥ 1."""
    v = _pair(
        G.code, G.logarithmic, np.int64(s), G.sizes[ci], G.sizes[cj], ci, cj, G.w,
        G.short, G.missed, G.par, G.numbers,
    )  # fmt: skip
    if len(G.table) == len(G.sizes):
        v -= G.table[ci, cj]
    return np.float64(np.float32(v)) if G.single else v


@jit
def correction(G, i, j, s):
    """Return K[i, j] less the table's value, for the items of two places that share s ≥ 1."""
    if G.code == LINEAR:
        v = s * (G.own[i] * G.own[j])
        return np.float64(np.float32(v)) if G.single else v
    ci, cj = G.classes[i], G.classes[j]
    if s < G.lookup.shape[1]:
        return np.float64(G.lookup[ci, np.int64(s), cj])
    return _computed(G, ci, cj, s)


@jit
def add_row(G, i, weight, begin, end, acc):
    """Add weight·correction[i, j] to acc[j] over the stored entries begin…end of row i."""
    if G.code == LINEAR:
        wi = G.own[i]
        if G.single:
            for p in range(begin, end):
                j = G.indices[p]
                acc[j] += weight * np.float64(np.float32(G.together[p] * (wi * G.own[j])))
        else:
            for p in range(begin, end):
                j = G.indices[p]
                acc[j] += weight * (G.together[p] * (wi * G.own[j]))
        return
    ci = G.classes[i]
    row, depth = G.lookup[ci], G.lookup.shape[1]
    for p in range(begin, end):
        j, s = G.indices[p], G.together[p]
        if s < depth:
            acc[j] += weight * row[np.int64(s), G.classes[j]]
        else:
            acc[j] += weight * _computed(G, ci, G.classes[j], s)


@jit
def search(G, begin, end, j):
    """Return the first of the entries begin…end of a row whose place is j or beyond."""
    while begin < end:
        middle = (begin + end) >> 1
        if G.indices[middle] < j:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def entry(G, i, j):
    """Return correction[i, j] of any two places; searched for in the row of the rarer item."""
    popular = len(G.head)
    if i < popular and j < popular:
        return np.float64(G.head[i, j])
    if i == j:
        return np.float64(G.diagonal[G.classes[i]])
    late, early = max(i, j), min(i, j)
    end = G.indptr[late + 1]
    p = search(G, G.indptr[late], end, early)
    if p < end and G.indices[p] == early:
        return correction(G, i, j, G.together[p])
    return 0.0


@jit
def _base(G, i, j):
    return G.table[G.classes[i], G.classes[j]] if len(G.table) == len(G.sizes) else 0.0


@jit
def _lookup_part(first, stride, G, n, out):
    classes, depth = out.shape[0], out.shape[1]
    for i in range(first, classes, stride):
        a = G.sizes[i]
        for s in range(1, depth):
            for j in range(classes):
                b = G.sizes[j]
                if s <= min(a, b) and a + b - s <= n:
                    out[i, s, j] = _computed(G, i, j, s)


@jit(parallel=True)
def _lookup(threads, G, n, out):
    for t in numba.prange(threads):
        _lookup_part(t, threads, G, n, out)


@jit
def _head_part(first, stride, G):
    popular = len(G.head)
    for i in range(first, popular, stride):
        begin, end = G.indptr[i], G.indptr[i + 1]
        G.split[i] = search(G, begin, end, popular)
        for p in range(begin, G.split[i]):
            j = G.indices[p]
            G.head[i, j] = correction(G, i, j, G.together[p])
        G.head[i, i] = G.diagonal[G.classes[i]]


@jit(parallel=True)
def _head(threads, G):
    for t in numba.prange(threads):
        _head_part(t, threads, G)


@jit
def _row_sums_part(first, stride, G, out, good):
    m, popular = len(out), len(G.head)
    for i in range(first, m, stride):
        total = np.float64(G.diagonal[G.classes[i]])
        begin = G.indptr[i]
        if i < popular:
            begin = G.split[i]
            total = 0.0
            for j in range(popular):
                total += G.head[i, j]
        for p in range(begin, G.indptr[i + 1]):
            total += correction(G, i, G.indices[p], G.together[p])
        out[i] = total
        if not np.isfinite(total):
            good[first] = False


@jit(parallel=True)
def _row_sums(threads, G, out, good):
    for t in numba.prange(threads):
        _row_sums_part(t, threads, G, out, good)


@jit
def _rows_part(first, stride, G, at, order, out):
    m = out.shape[1]
    acc = np.zeros(m)
    for k in range(first, len(at), stride):
        i = at[k]
        for j in range(m):
            acc[j] = _base(G, i, j)
        add_row(G, i, 1.0, G.indptr[i], G.indptr[i + 1], acc)
        acc[i] += G.diagonal[G.classes[i]]
        for j in range(m):
            out[k, order[j]] = acc[j]


@jit(parallel=True)
def _rows(threads, G, at, order, out):
    for t in numba.prange(threads):
        _rows_part(t, threads, G, at, order, out)


@jit
def _sub(G, rows, cols, out):
    for k in range(len(rows)):
        for q in range(len(cols)):
            out[k, q] = _base(G, rows[k], cols[q]) + entry(G, rows[k], cols[q])


@jit
def _multiply_part(first, stride, G, B, out):
    m, width = B.shape
    for i in range(first, m, stride):
        own = np.float64(G.diagonal[G.classes[i]])
        for c in range(width):
            out[i, c] = own * B[i, c]
        for p in range(G.indptr[i], G.indptr[i + 1]):
            j = G.indices[p]
            v = correction(G, i, j, G.together[p])
            for c in range(width):
                out[i, c] += v * B[j, c]


@jit(parallel=True)
def _multiply(threads, G, B, out):
    for t in numba.prange(threads):
        _multiply_part(t, threads, G, B, out)


@jit
def _squares_part(first, stride, G, out):
    """Per row, Σ_j K² less the table's share."""
    for i in range(first, len(out), stride):
        v = np.float64(G.diagonal[G.classes[i]])
        total = v * (v + 2.0 * _base(G, i, i))
        for p in range(G.indptr[i], G.indptr[i + 1]):
            j = G.indices[p]
            v = correction(G, i, j, G.together[p])
            total += v * (v + 2.0 * _base(G, i, j))
        out[i] = total



@jit(parallel=True)
def _squares(threads, G, out):
    for t in numba.prange(threads):
        _squares_part(t, threads, G, out)