"""The item Gram matrix of a large catalogue: a view of sparse co-occurrence counts.

Every kernel here is a function of ⟨x,z⟩, |x|, |z| and n. For two items without a common user the
first is 0, so that the value depends on the two popularities alone, of which there are few:
K = table[class, class] + correction, exactly, with a correction where counts are above 0. Corrections
are made of the counts where they are read: small counts from a look-up table over classes, and those
between the most popular items, which nearly every row asks for, from a dense block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import borrowed, in_parts, jit, parallel
from recsys.errors import InputError
from recsys.kernels.base import Kernel
from recsys.kernels.gram.counts import ItemCounts
from recsys.kernels.plans import LINEAR, centre, centred, scaled, weights
from recsys.utils.memory import free_memory

HEAD = 2048  # items whose pairs are kept dense: 16 MB, and most of what profiles hold
LOOKUP = 16_000_000  # entries at most of the look-up table of small counts
KEPT = 1_000_000_000  # bytes up to which the corrections of all entries are kept beside the counts


class Arrays(NamedTuple):
    """The arrays of a structured matrix for compiled code; items by position, popular ones first.

    Attributes
    ----------
    indptr, indices, together
        Co-occurrences as CSR over positions, the diagonal apart.
    values : (entries,) float32 or float64
        Corrections of all entries, where memory is plentiful; else empty, and they are looked up.
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
        Corrections between the items of the first positions, diagonal included.
    split : (items,) int64
        Where the entries of positions beyond those begin in each row.
    code, logarithmic, single, par, numbers
        The kernel's plan; whether corrections are float32.
    """

    indptr: Any
    indices: Any
    together: Any
    values: Any
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

    Values that leave the range of the dtype are refused.

    Parameters
    ----------
    counts : ItemCounts
        In sparse form.
    normalize : bool
        As in `recsys.kernels.item_gram`, also for cold items.
    dtype : float32 or float64
        Of corrections.
    centring : bool
        Centre a normalised kernel whose values tend to 1 on these items, and widen the dtype where it
        must be, as in `recsys.kernels.gram.dense.centred_gram`.
    budget : int, optional
        Bytes that counts and this view may take; what is free when not given.

    Attributes
    ----------
    place : (items,) int32
        Position of each item in `arrays`.
    offsets : (items,) float64 or None
        Where the matrix is a centred kernel K'ᵢⱼ = Kᵢⱼ − tᵢ − tⱼ: t.
    """

    def __init__(
        self,
        counts: ItemCounts,
        kernel: Kernel,
        *,
        normalize: bool = True,
        dtype: type = np.float32,
        centring: bool = False,
        budget: int | None = None,
    ) -> None:
        assert counts.order is not None
        plan = kernel.checked_plan(counts.vectors)
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
            if normalize and sizes[0] == 0:  # a cold item resembles nothing
                table[0, :] = table[:, 0] = 0.0 if around is None else short
        diagonal: NDArray[Any] = np.empty(few, dtype=dtype)
        _diagonal(sizes, normalize, *numbers, table, diagonal)
        t = counts.together
        popular = min(HEAD, m)
        self.arrays = Arrays(
            t.indptr.astype(np.int64, copy=False), t.indices.astype(np.int32, copy=False), t.data,
            np.zeros(0, dtype), classes.astype(np.int32), w[classes], sizes, w, short, missed,
            table, np.zeros((1, 1, 1), dtype), diagonal, np.zeros((popular, popular), dtype),
            np.zeros(m, np.int64), plan.code, plan.logarithmic, dtype is np.float32, plan.par,
            plan.table,
        )  # fmt: skip
        with parallel() as threads:
            if plan.code != LINEAR and len(t.data):
                # More counts than there are entries to read need no table.
                depth = min(LOOKUP // few**2, 2 + len(t.data) // (2 * few**2), int(t.data.max()) + 1)
                lookup: NDArray[Any] = np.zeros((few, max(depth, 1), few), dtype)
                in_parts(threads, fill_lookup, self.arrays, counts.vectors, lookup)
                self.arrays = self.arrays._replace(lookup=lookup)
            if self._keeps(budget):
                values: NDArray[Any] = np.empty(len(t.data), dtype)
                in_parts(threads, _all_values, self.arrays, values)
                self.arrays = self.arrays._replace(values=values)
            good = np.ones(threads, dtype=np.bool_)
            in_parts(threads, _head, self.arrays, self.arrays.head, self.arrays.split)
            self._sums = np.zeros(m)
            in_parts(threads, _row_sums, self.arrays, self._sums, good)
        if not (good.all() and np.isfinite(table).all() and np.isfinite(diagonal).all()):
            raise InputError(
                f"{kernel} leaves the range of {np.dtype(dtype)} on these items: normalise it"
            )
        per_class = np.bincount(classes, minlength=few)
        if len(table) == few:
            self._sums += (table @ per_class)[classes]

    def _keeps(self, budget: int | None) -> bool:
        """Return whether the corrections of all entries are kept: a quarter of the memory, at most."""
        entries, size = len(self.arrays.together), self.dtype.itemsize
        left = (
            free_memory() if budget is None else budget - entries * (4 + self.arrays.together.itemsize)
        )
        return entries * size <= min(KEPT, left // 4 if budget is None else left)

    @property
    def dtype(self) -> Any:
        """Of the corrections."""
        return self.arrays.head.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(items, items)."""
        return len(self.place), len(self.place)

    def rows(self, ids: ArrayLike) -> NDArray[Any]:
        """Return the rows of these items, (ids, items), in the dtype of the corrections."""
        at = self.place[np.asarray(ids)]
        out = np.empty((len(at), len(self.place)), dtype=self.dtype)
        with parallel() as threads:
            in_parts(threads, _rows, self.arrays, at, self.order, out)
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
            in_parts(threads, _multiply, self.arrays, block, out)
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
            in_parts(threads, _squares, a, square)
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
def computed(G, ci, cj, s):
    """Return the correction of two vectors of these classes, which share s ≥ 1."""
    v = _pair(
        G.code, G.logarithmic, np.int64(s), G.sizes[ci], G.sizes[cj], ci, cj, G.w, G.short, G.missed,
        G.par, G.numbers,
    )  # fmt: skip
    if len(G.table) == len(G.sizes):
        v -= G.table[ci, cj]
    return np.float64(np.float32(v)) if G.single else v


# Each function below borrows G first: otherwise each access of a field counts references, atomically.


@jit(inline="always")
def value_of(G, s, i, j):
    """Return correction[i, j] of two positions that share s ≥ 1."""
    if G.code == LINEAR:
        v = s * (G.own[i] * G.own[j])
        return np.float64(np.float32(v)) if G.single else v
    if s < G.lookup.shape[1]:
        return np.float64(G.lookup[G.classes[i], np.int64(s), G.classes[j]])
    return computed(G, G.classes[i], G.classes[j], s)


@jit
def row_values(G, i, begin, end, out):
    """Write the corrections of the stored entries begin…end of row i to the front of out."""
    G = borrowed(G)
    indices, together, values = G.indices, G.together, G.values
    if len(values):
        for p in range(begin, end):
            out[p - begin] = values[p]
        return
    for p in range(begin, end):
        out[p - begin] = value_of(G, together[p], i, indices[p])


@jit
def add_row(G, i, weight, begin, end, acc):
    """Add weight·correction[i, j] to acc[j] over the stored entries begin…end of row i."""
    G = borrowed(G)
    indices, together, values = G.indices, G.together, G.values
    if len(values):
        for p in range(begin, end):
            acc[indices[p]] += weight * values[p]
        return
    for p in range(begin, end):
        acc[indices[p]] += weight * value_of(G, together[p], i, indices[p])


@jit
def levels(begin, end, places, weights, classes, table, level):
    """Sum what each class of items has from the table: Σ weights·table."""
    level[:] = 0.0
    if len(table) == len(level):
        for p in range(begin, end):
            row, w = table[classes[places[p]]], weights[p]
            for c in range(len(level)):
                level[c] += w * row[c]


@jit
def add_head(G, begin, end, places, weights, acc):
    """Add the corrections of the items of the head."""
    head, indptr, split = G.head, G.indptr, G.split
    popular = len(head)
    for p in range(begin, end):
        i, w = places[p], weights[p]
        if i < popular:
            row = head[i]
            for j in range(popular):
                acc[j] += w * row[j]
        else:
            add_row(G, i, w, indptr[i], split[i], acc)


@jit
def search(indices, begin, end, j):
    """Return the first of the entries begin…end of a row whose position is j or beyond."""
    while begin < end:
        middle = (begin + end) >> 1
        if indices[middle] < j:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def fill_lookup(first, stride, G, n, out):
    """Fill the look-up table of the corrections of small counts."""
    G = borrowed(G)
    classes, depth = out.shape[0], out.shape[1]
    sizes = G.sizes
    for i in range(first, classes, stride):
        a = sizes[i]
        for s in range(1, depth):
            for j in range(classes):
                b = sizes[j]
                if s <= min(a, b) and a + b - s <= n:
                    out[i, s, j] = computed(G, i, j, s)


@jit
def _all_values(first, stride, G, out):
    G = borrowed(G)
    indptr = G.indptr
    for i in range(first, len(indptr) - 1, stride):
        row_values(G, i, indptr[i], indptr[i + 1], out[indptr[i] :])


@jit
def _head(first, stride, G, head, split):
    G = borrowed(G)
    popular = len(head)
    indptr, indices, classes, diagonal = G.indptr, G.indices, G.classes, G.diagonal
    values = np.empty(popular)
    for i in range(first, len(split), stride):
        begin = indptr[i]
        split[i] = search(indices, begin, indptr[i + 1], popular)
        if i >= popular:
            continue
        row_values(G, i, begin, split[i], values)
        row = head[i]
        for p in range(begin, split[i]):
            row[indices[p]] = values[p - begin]
        row[i] = diagonal[classes[i]]


@jit
def _row_sums(first, stride, G, out, good):
    G = borrowed(G)
    m = len(out)
    indptr, classes, diagonal, values = G.indptr, G.classes, G.diagonal, np.empty(m)
    for i in range(first, m, stride):
        begin, end = indptr[i], indptr[i + 1]
        row_values(G, i, begin, end, values)
        total = np.float64(diagonal[classes[i]])
        for k in range(end - begin):
            total += values[k]
        out[i] = total
        if not np.isfinite(total):
            good[first] = False


@jit
def _rows(first, stride, G, at, order, out):
    G = borrowed(G)
    m = out.shape[1]
    classes, table, diagonal = G.classes, G.table, G.diagonal
    filled = len(table) == len(diagonal)
    acc = np.zeros(m)
    for k in range(first, len(at), stride):
        i = at[k]
        for j in range(m):
            acc[j] = table[classes[i], classes[j]] if filled else 0.0
        add_row(G, i, 1.0, G.indptr[i], G.indptr[i + 1], acc)
        acc[i] += diagonal[classes[i]]
        for j in range(m):
            out[k, order[j]] = acc[j]


@jit
def _sub(G, rows, cols, out):
    """Entries one by one; those of weighed vectors, which are no counts, by whole rows."""
    G = borrowed(G)
    indptr, indices, classes, table, diagonal = G.indptr, G.indices, G.classes, G.table, G.diagonal
    filled = len(table) == len(diagonal)
    one = np.empty(1)
    for k in range(len(rows)):
        for q in range(len(cols)):
            i, j = rows[k], cols[q]
            out[k, q] = table[classes[i], classes[j]] if filled else 0.0
            if i == j:
                out[k, q] += diagonal[classes[i]]
                continue
            late, early = max(i, j), min(i, j)
            end = indptr[late + 1]
            p = search(indices, indptr[late], end, early)
            if p < end and indices[p] == early:
                row_values(G, late, p, p + 1, one)
                out[k, q] += one[0]


@jit
def _multiply(first, stride, G, B, out):
    G = borrowed(G)
    m, width = B.shape
    indptr, indices, classes, diagonal, values = (
        G.indptr, G.indices, G.classes, G.diagonal, np.empty(m)
    )  # fmt: skip
    for i in range(first, m, stride):
        begin, end = indptr[i], indptr[i + 1]
        row_values(G, i, begin, end, values)
        own = np.float64(diagonal[classes[i]])
        for c in range(width):
            out[i, c] = own * B[i, c]
        for p in range(begin, end):
            for c in range(width):
                out[i, c] += values[p - begin] * B[indices[p], c]


@jit
def _squares(first, stride, G, out):
    """Per row, Σ_j K² less the table's share."""
    G = borrowed(G)
    indptr, indices, classes, table, diagonal = G.indptr, G.indices, G.classes, G.table, G.diagonal
    filled = len(table) == len(diagonal)
    values = np.empty(len(out))
    for i in range(first, len(out), stride):
        begin, end = indptr[i], indptr[i + 1]
        row_values(G, i, begin, end, values)
        ci = classes[i]
        v = np.float64(diagonal[ci])
        total = v * (v + 2.0 * (table[ci, ci] if filled else 0.0))
        for p in range(begin, end):
            v = values[p - begin]
            total += v * (v + 2.0 * (table[ci, classes[indices[p]]] if filled else 0.0))
        out[i] = total
