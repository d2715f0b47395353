"""Gram matrices of a catalog's items, a kernel of co-occurrence counts: dense, sparse, or counted.

All three have the methods `block`, `scores` and `similar`, and the array `row_sums`. A null item, whose
κ(x,x) is 0, is similar to itself only; so is an item without users, under every kernel.

Where mD's values tend to 1, the matrix is centered, K'(i,j) = K(i,j) − t(i) − t(j), with `offsets` t
(`MonotoneDisjunctiveKernel.centered`); elsewhere `offsets` is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import in_threads, jit, over_rows
from recsys.kernels.base import Kernel, values
from recsys.kernels.boolean import MonotoneDisjunctiveKernel
from recsys.kernels.dot_product import LinearKernel
from recsys.utils.resources import check_memory
from recsys.utils.sparse import masked, submatrix
from recsys.utils.validation import clean_matrix

ENTRIES = 1 << 16  # evaluated at a time
ROW_BYTES = 256_000_000  # of the rows that are kept where others are counted
PAIRS = 2_000_000  # that are counted at a time
MOST_PAIRS = 64_000_000  # that are counted for several users


def item_gram(user_items: sp.csr_matrix, kernel: Kernel) -> NDArray[np.float32]:
    """Return the normalized Gram matrix of the columns of `user_items`, (items, items) float32.

    An entry above 0 counts as 1, all others as 0. Null items get 1 on the diagonal and 0 elsewhere.

    Examples
    --------
    >>> R = sp.csr_matrix([[1, 1, 0], [1, 0, 0], [0, 1, 1]], dtype="float32")
    >>> item_gram(R, LinearKernel()).round(2)
    array([[1.  , 0.5 , 0.  ],
           [0.5 , 1.  , 0.71],
           [0.  , 0.71, 1.  ]], dtype=float32)
    """
    liked = clean_matrix(user_items)
    n, m = liked.shape
    check_memory(4 * m * m, f"the item × item matrix of {m:,} items")
    gram = DenseGram.of_counts(kernel, dense_counts(liked), n)
    if gram.offsets is None:
        return gram.K.astype(np.float32)
    return (gram.K + np.add.outer(gram.offsets, gram.offsets)).astype(np.float32)


def dense_counts(user_items: sp.csr_matrix) -> NDArray[np.int32]:
    """Return how many rows of a binary canonical CSR two items share; diagonal: sizes."""
    X = user_items
    m = X.shape[1]
    if _count.small(int(np.square(np.diff(X.indptr), dtype=np.int64).sum()) + m * m):
        ones = sp.csr_matrix((np.ones(X.nnz, np.int32), X.indices, X.indptr), X.shape)
        return np.ascontiguousarray((ones.T @ ones).toarray())
    entries = sp.csr_matrix((np.arange(X.nnz, dtype=np.int64), X.indices, X.indptr), X.shape).tocsc()
    out = np.empty((m, m), dtype=np.int32)
    columns = entries.indptr, entries.indices, entries.data
    in_threads(None, _count, X.indptr, X.indices, *columns, out)
    in_threads(None, _mirror, out)
    return out


def sparse_counts(user_items: sp.csr_matrix, votes: NDArray[np.float64] | None = None) -> sp.csr_matrix:
    """Return Xᵀ diag(votes) X of a binary CSR, all of its diagonal stored; integers without votes."""
    ones = with_diagonal(user_items)
    if votes is not None:
        votes = np.append(votes, np.ones(ones.shape[0] - len(votes)))
    out = sp.csc_matrix(ones.T @ (ones if votes is None else sp.diags(votes) @ ones)).tocsr()  # sorted
    empty = np.bincount(user_items.indices, minlength=out.shape[0]) == 0
    out.data[out.indptr[:-1][empty]] = 0
    return out


def with_diagonal(user_items: sp.csr_matrix) -> sp.csr_matrix:
    """Return ones X with a user more for each item without users: XᵀX has its whole diagonal."""
    X, m = user_items, user_items.shape[1]
    empty = np.flatnonzero(np.bincount(X.indices, minlength=m) == 0)
    indptr = np.append(X.indptr, X.nnz + 1 + np.arange(len(empty)))
    indices = np.append(X.indices, empty)
    return sp.csr_matrix((np.ones(len(indices), np.int32), indices, indptr), (len(indptr) - 1, m))


def number_of_pairs(user_items: sp.csr_matrix) -> int:
    """Return how many pairs of items share a row: a bound where the pairs are few, else an estimate."""
    n, m = user_items.shape
    lengths = np.diff(user_items.indptr).astype(np.int64)
    most = int(min(np.square(lengths).sum(), m * m))
    if most < 10_000_000:
        return most
    X = sp.csr_matrix(user_items, dtype=np.float32)
    sample = np.random.default_rng(0).choice(m, size=min(200, m), replace=False)
    return int((X.T.tocsr()[sample] @ X).nnz * m / len(sample))


@dataclass(eq=False)
class DenseGram:
    """A matrix of items as an array, (items, items) float32 or float64."""

    K: NDArray[Any]
    row_sums: NDArray[np.float64]
    offsets: Any = None

    @classmethod
    def of_counts(cls, kernel: Kernel, counts: NDArray[Any], n: int) -> DenseGram:
        """Return the normalized matrix of co-occurrence counts over n users, sizes on their diagonal."""
        m, of_items, short = len(counts), counts.diagonal(), None
        if counts.dtype.kind == "f" or isinstance(kernel, LinearKernel):  # the cosine
            scale = _inverse_root(of_items)
            K = np.empty((m, m), dtype=np.float32)
            np.multiply(counts, scale[:, None] * scale, out=K, casting="unsafe")
        else:
            sizes, classes = np.unique(of_items, return_inverse=True)
            short = shortfall(kernel, sizes, n)
            dtype = _precision(kernel, short)
            check_memory(np.dtype(dtype).itemsize * m * m, f"the item × item matrix of {m:,} items")
            K = np.empty((m, m), dtype=dtype)
            step = max(1, ENTRIES // max(m, 1))
            for first in range(0, m, step):
                rows, later = slice(first, first + step), slice(first, m)
                s, i, j = counts[rows, later], classes[rows, None], classes[later]
                K[rows, later] = class_values(kernel, s, i, j, sizes, n, short)
                K[later, rows] = K[rows, later].T
        offsets = None
        if short is None:
            K[of_items == 0] = 0.0
            K[:, of_items == 0] = 0.0
            np.fill_diagonal(K, 1.0)
        else:
            np.fill_diagonal(K, 2.0 * short[classes])
            offsets = 0.5 - short[classes]
        return cls(K, K.sum(axis=1, dtype=np.float64), offsets)

    def block(self, items: NDArray[Any], others: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the entries between items and others, themselves by default, as float64."""
        return self.K[np.ix_(items, items if others is None else others)].astype(np.float64)

    def scores(self, rows: sp.csr_matrix, items: Any = slice(None)) -> NDArray[np.float64]:
        """Return rows @ K[:, items] for rows of weights."""
        out = np.empty(rows.shape)
        for u in range(rows.shape[0]):
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            out[u] = rows.data[span] @ self.K[rows.indices[span]].astype(np.float64)
        return out[:, items]

    def similar(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the matrix."""
        return self.K[ids]


@dataclass(eq=False)
class SparseGram:
    """A matrix of items as K[i, j] = table[class of i, class of j] + values[i, j].

    Two items without a common user have a value that depends on their popularities alone, of which there
    are few: the classes. `values` is a CSR over the pairs that have one, its diagonal stored; the table
    is empty for kernels that are 0 without a common user.
    """

    values: sp.csr_matrix
    table: NDArray[np.float64]
    classes: NDArray[np.int32]
    row_sums: NDArray[np.float64]
    offsets: Any = None

    @classmethod
    def of_counts(cls, kernel: Kernel, counts: sp.csr_matrix, n: int) -> SparseGram:
        """Return the normalized matrix of counts over n users, all of whose diagonal is stored."""
        of = ItemValues(kernel, counts.diagonal(), n, weighed=counts.dtype.kind == "f")
        K = of.rows(counts, np.arange(counts.shape[0]))
        return cls(K, of.table, of.classes, of.row_sums(K, slice(None)), of.offsets)

    def block(self, items: NDArray[Any], others: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the entries between items and others, themselves by default, as float64."""
        others = items if others is None else others
        out = submatrix(self.values, items, others)
        if self.table.size:
            out += self.table[np.ix_(self.classes[items], self.classes[others])]
        return out

    def scores(self, rows: sp.csr_matrix, items: Any = slice(None)) -> NDArray[np.float64]:
        """Return rows @ K[:, items] for rows of weights."""
        users, m = rows.shape
        out = np.zeros((users, m))
        if self.table.size:
            out[:] = class_levels(rows, self.table, self.classes)[:, self.classes]
        _rows_times(rows, self.values, out)
        return out[:, items]

    def similar(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the matrix."""
        out = self.values[ids].toarray()
        return out + self.table[self.classes[ids]][:, self.classes] if self.table.size else out


class CountedGram:
    """A matrix of items that is counted from the interactions on demand.

    For catalogs whose pairs exceed the memory. The rows of the most popular items are kept. Users of the
    linear kernel are weighed by `votes`.
    """

    def __init__(self, user_items: sp.csr_matrix, kernel: Kernel, votes: Any = None) -> None:
        self.user_items = user_items
        n, m = user_items.shape
        of_items = np.bincount(user_items.indices, minlength=m)
        X = with_diagonal(user_items)
        self.linear = isinstance(kernel, LinearKernel)
        if self.linear:
            roots = np.ones(X.shape[0])
            roots[:n] = 1.0 if votes is None else np.sqrt(votes)
            X = sp.csr_matrix(sp.diags(roots) @ X)
            norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
            X = sp.csr_matrix(X @ sp.diags(1.0 / norms))
        self.X, self.XT = X, sp.csr_matrix(X.T)
        self.of = ItemValues(kernel, of_items, n, scaled=self.linear)
        self.offsets = self.of.offsets
        self.pairs = np.minimum(_ones(self.XT) @ np.diff(X.indptr), m)  # of each item, a bound
        self.row_sums = self.XT @ (X @ np.ones(m)) if self.linear else np.empty(m)
        popular = np.argsort(-of_items, kind="stable")
        few = ROW_BYTES // (np.dtype(self.of.dtype).itemsize * m)
        self.place, self.rows = np.full(m, -1), np.empty((len(popular[:few]), m), dtype=self.of.dtype)
        for some in self._few_pairs(popular[:few]):
            self.rows[some] = self._whole(popular[some])
            if not self.linear:
                self.row_sums[popular[some]] = self.rows[some].sum(axis=1, dtype=np.float64)
        self.place[popular[:few]] = np.arange(len(self.rows))
        rest = popular[few:]
        for some in [] if self.linear else self._few_pairs(rest):
            self.row_sums[rest[some]] = self.of.row_sums(self._counted(rest[some]), rest[some])

    def _few_pairs(self, items: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the places of items in pieces of few pairs."""
        ends = np.cumsum(self.pairs[items])
        return np.split(np.arange(len(items)), 1 + np.flatnonzero(np.diff(ends // PAIRS)))

    def _counted(self, ids: NDArray[Any]) -> sp.csr_matrix:
        """Return rows of the matrix, less the table."""
        return self.of.rows(sp.csr_matrix(self.XT[ids] @ self.X), ids)

    def _whole(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the matrix."""
        if self.linear:
            return _rows_times(self.XT[ids], self.X)
        out, of = self._counted(ids).toarray(), self.of
        return out + of.table[of.classes[ids]][:, of.classes] if of.table.size else out

    def block(self, items: NDArray[Any], others: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the entries between items and others, themselves by default, as float64."""
        others = items if others is None else others
        kept, known = self.place[items] >= 0, self.place[others] >= 0
        rest, far = items[~kept], others[~known]
        out = np.empty((len(items), len(others)))
        out[kept] = self.rows[np.ix_(self.place[items[kept]], others)]
        out[np.ix_(~kept, known)] = self.rows[np.ix_(self.place[others[known]], rest)].T
        counts = _rows_times(self.XT[rest], sp.csr_matrix(self.XT[far].T))
        out[np.ix_(~kept, ~known)] = self.of.between(counts, rest[:, None], far)
        return out

    def terms(self, rows: sp.csr_matrix) -> tuple[Any, Any, Any, Any]:
        """Return A, B, C and D for rows @ K = A @ self.rows + B @ C + D[:, classes].

        A takes the kept rows. C has the users for the linear kernel, whose K is XᵀX, for others counted
        rows, less the table, which D adds.
        """
        kept = self.place[rows.indices] >= 0
        near, far = masked(rows, kept), masked(rows, ~kept)
        near = sp.csr_matrix(
            (near.data, self.place[near.indices], near.indptr), (rows.shape[0], len(self.rows))
        )
        levels = class_levels(far, self.of.table, self.of.classes)
        if self.linear:
            return near, sp.csr_matrix(far @ self.XT), self.X, levels
        ids, places = np.unique(far.indices, return_inverse=True)
        renumbered = sp.csr_matrix((far.data, places, far.indptr), (rows.shape[0], len(ids)))
        return near, renumbered, self._counted(ids), levels

    def has_room(self, rows: sp.csr_matrix) -> bool:
        """Return whether the memory has room for the rows of K that `terms` counts."""
        ids = np.unique(rows.indices)
        return self.linear or self.pairs[ids[self.place[ids] < 0]].sum() <= MOST_PAIRS

    def scores(self, rows: sp.csr_matrix, items: Any = slice(None)) -> NDArray[np.float64]:
        """Return rows @ K[:, items] for rows of weights."""
        if self.linear:
            return np.asarray((self.XT @ _rows_times(rows, self.XT).T).T[:, items])
        out = np.zeros(rows.shape)
        for u, row in enumerate(rows):
            for some in self._few_pairs(row.indices):
                part = sp.csr_matrix((row.data[some], row.indices[some], [0, len(some)]), row.shape)
                near, far, counted, levels = self.terms(part)
                out[u] += (near @ self.rows + (far @ counted).toarray() + levels[:, self.of.classes])[0]
        return out[:, items]

    def similar(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the matrix."""
        kept, out = self.place[ids] >= 0, np.empty((len(ids), len(self.place)))
        out[kept], out[~kept] = self.rows[self.place[ids[kept]]], self._whole(ids[~kept])
        return out


class ItemValues:
    """The values of a kernel between items, by the classes of the items' popularities over n users.

    Of the linear kernel the counts are `scaled` already, or `weighed` by votes, or neither.
    """

    def __init__(
        self, kernel: Kernel, of_items: NDArray[Any], n: int, weighed: bool = False, scaled: bool = False
    ) -> None:
        self.kernel, self.n = kernel, n
        self.linear = weighed or isinstance(kernel, LinearKernel)
        self.short, self.table = None, np.zeros((0, 0))
        if self.linear:
            self.scale = np.ones(len(of_items)) if scaled else _inverse_root(of_items)
            of_items = np.zeros(len(of_items), np.int64)
        self.sizes, classes = np.unique(of_items, return_inverse=True)
        self.classes = classes.astype(np.int32)
        if not self.linear:
            self.short = shortfall(kernel, self.sizes, n)
            self.table = _class_table(kernel, self.sizes, n, self.short)
        self.offsets = None if self.short is None else 0.5 - self.short[classes]
        self.dtype = np.float32 if self.linear else _precision(kernel, self.short)

    def between(self, s: NDArray[Any], items: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of pairs of items with counts s; items and others are broadcast."""
        i, j, same = self.classes[items], self.classes[others], items == others
        if self.linear:
            out = s * self.scale[items] * self.scale[others]
        else:
            s = np.where(same, self.sizes[i], s)  # 0 of an item without users
            out = class_values(self.kernel, s, i, j, self.sizes, self.n, self.short)
            if self.short is None and self.sizes[0] == 0:
                out[(i == 0) | (j == 0)] = 0.0  # the class of items without users
        out[same] = 1.0 if self.short is None else 2.0 * self.short[np.broadcast_to(j, s.shape)[same]]
        return out

    def rows(self, counts: sp.csr_matrix, ids: NDArray[Any]) -> sp.csr_matrix:
        """Return the rows of some items, less the table, for a CSR of their counts."""
        data = np.empty(counts.nnz, dtype=self.dtype)
        for span, row in _entry_blocks(counts.indptr):
            items, others = ids[row], counts.indices[span]
            v = self.between(counts.data[span], items, others)
            if self.table.size:
                v -= self.table[self.classes[items], self.classes[others]]
            data[span] = v
        out = sp.csr_matrix(counts.shape, dtype=data.dtype)
        out.data, out.indices, out.indptr = data, counts.indices, counts.indptr
        return out

    def row_sums(self, rows: sp.csr_matrix, ids: Any) -> NDArray[np.float64]:
        """Return the sums of the rows of some items, none of which is empty."""
        sums = np.add.reduceat(rows.data, rows.indptr[:-1], dtype=np.float64)  # SciPy's are of float32
        if self.table.size:
            sums += (self.table @ np.bincount(self.classes, minlength=len(self.sizes)))[
                self.classes[ids]
            ]
        return sums


def shortfall(kernel: Kernel, sizes: NDArray[np.int64], n: int) -> NDArray[np.float64] | None:
    """Return 1 − K(x, r) by size where mD is centered on r, the item of all users; None elsewhere."""
    kernel.check_width(n)
    if not isinstance(kernel, MonotoneDisjunctiveKernel) or kernel.degree == 1:
        return None
    short = kernel.shortfall(sizes, n)
    # Where all of them are large, float32 holds what tells items apart.
    return short if short.min(initial=1.0) <= 0.01 else None


def class_values(
    kernel: Kernel, s: Any, i: Any, j: Any, sizes: NDArray[np.int64], n: int, short: Any
) -> NDArray[np.float64]:
    """Return normalized values as `recsys.kernels.base.values` does, centered where `short` is given."""
    if short is None:
        return values(kernel, s, i, j, sizes, n)
    assert isinstance(kernel, MonotoneDisjunctiveKernel)
    return kernel.centered(s.astype(np.int64), sizes[i], sizes[j], n)


def _class_table(kernel: Kernel, sizes: NDArray[np.int64], n: int, short: Any) -> NDArray[np.float64]:
    """Return the values of items without a common user by their classes; empty if all are 0."""
    every = np.arange(len(sizes))
    least = np.maximum(0, sizes[:, None] + sizes - n)  # beyond n, two items always share a user
    table = class_values(kernel, least, every[:, None], every, sizes, n, short)
    if short is None:
        table[sizes == 0] = 0.0
        table[:, sizes == 0] = 0.0
        table[least > 0] = 0.0
    return table if table.any() else np.zeros((0, 0))


def _precision(kernel: Kernel, short: NDArray[np.float64] | None) -> Any:
    """Return the dtype that tells values apart."""
    if short is None:
        return np.float64 if kernel.saturates else np.float32
    # Entries are products of two shortfalls; float32 ends at 1e-38.
    return np.float64 if short[short > 0].min(initial=1.0) < 1e-15 else np.float32


def _rows_times(rows: sp.csr_matrix, X: sp.csr_matrix, out: Any = None) -> NDArray[np.float64]:
    """Return rows @ X as an array, added to `out` where it is given."""
    out = np.zeros((rows.shape[0], X.shape[1])) if out is None else out
    weights = rows.data.astype(np.float64)
    over_rows(len(out), _add_rows, rows.indptr, rows.indices, weights, X.indptr, X.indices, X.data, out)
    return out


def class_levels(
    rows: sp.csr_matrix, table: NDArray[np.float64], classes: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return rows of weights times the rows of the table, by row and class; zeros if it is empty."""
    if not table.size:
        return np.zeros((rows.shape[0], int(classes.max(initial=0)) + 1))
    m = len(classes)
    of_class = sp.csr_matrix((np.ones(m), (np.arange(m), classes)), (m, len(table)))
    return np.asarray((rows @ of_class) @ table)


def _ones(X: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(X.nnz, np.int64), X.indices, X.indptr), X.shape)


def _inverse_root(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.divide(1.0, np.sqrt(x), out=np.zeros(len(x)), where=x > 0)


def _entry_blocks(indptr: NDArray[Any]) -> Any:
    """Yield slices of the entries of a CSR by whole rows, and the row of each entry."""
    first, m = 0, len(indptr) - 1
    while first < m:
        last = int(np.searchsorted(indptr, indptr[first] + ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), m)
        lengths = np.diff(indptr[first : last + 1])
        yield slice(indptr[first], indptr[last]), np.repeat(np.arange(first, last), lengths)
        first = last


# ---- kernels


@jit
def _count(first, stride, indptr, indices, item_ptr, item_users, position, out):
    """Count one triangle: over the users of item i, the items from i on."""
    m = len(item_ptr) - 1
    count = np.zeros(m, dtype=np.int32)
    for i in range(first, m, stride):  # interleaved: popular items spread over the threads
        for k in range(item_ptr[i], item_ptr[i + 1]):
            for p in range(position[k], indptr[item_users[k] + 1]):
                count[indices[p]] += 1
        for j in range(i, m):
            out[i, j] = count[j]
        count[i:] = 0


@jit
def _mirror(first, stride, out):
    """Copy the upper triangle to the lower one, tile by tile."""
    m, tile = len(out), 64
    for t in range(first, (m + tile - 1) // tile, stride):
        for s in range(t + 1):
            for i in range(t * tile, min((t + 1) * tile, m)):
                for j in range(s * tile, min((s + 1) * tile, i)):
                    out[i, j] = out[j, i]


@jit
def _add_rows(first, stride, indptr, indices, weights, ptr, others, data, out):
    """Add weighted rows of a CSR matrix to each row of out."""
    for u in range(first, len(out), stride):
        acc = out[u]
        for p in range(indptr[u], indptr[u + 1]):
            i, w = indices[p], weights[p]
            for k in range(ptr[i], ptr[i + 1]):
                acc[others[k]] += w * data[k]
