"""Gram matrices of a catalog's items: a kernel of their co-occurrence counts, in three forms.

All have the same methods: `block`, `scores`, `similar`, and the array `row_sums`. A null item is similar
to itself only; so is an item without users, under every kernel.

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
from recsys.utils.memory import check_memory
from recsys.utils.sparse import submatrix
from recsys.utils.validation import clean_matrix

ENTRIES = 1 << 20  # evaluated at a time
ROW_BYTES = 256_000_000  # of the rows that are kept where others are counted
ROWS_AT_ONCE = 128


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
    X = user_items
    ones = sp.csr_matrix((np.ones(X.nnz, np.int32), X.indices, X.indptr), X.shape)
    out = sp.csc_matrix(ones.T @ (ones if votes is None else sp.diags(votes) @ ones))
    empty = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == 0)
    if len(empty):  # their zeros are stored
        diagonal = sp.csc_matrix((np.ones(len(empty), out.dtype), (empty, empty)), out.shape)
        out = sp.csc_matrix(out + diagonal)
        out.data[out.indptr[empty]] = 0
    return sp.csr_matrix(out.tocsr())  # which sorts the indices


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
        of_items, m = counts.diagonal(), counts.shape[0]
        if counts.dtype.kind == "f" or isinstance(kernel, LinearKernel):  # the cosine
            scale = _inverse_root(of_items)
            data = np.empty(counts.nnz, dtype=np.float32)
            for span, row in _entry_blocks(counts.indptr):
                data[span] = counts.data[span] * scale[row] * scale[counts.indices[span]]
            table, classes, short = np.zeros((0, 0)), np.zeros(m, np.int32), None
        else:
            sizes, classes = np.unique(of_items, return_inverse=True)
            classes = classes.astype(np.int32)
            short = shortfall(kernel, sizes, n)
            table = _class_table(kernel, sizes, n, short)
            data = np.empty(counts.nnz, dtype=_precision(kernel, short))
            for span, row in _entry_blocks(counts.indptr):
                i, j = classes[row], classes[counts.indices[span]]
                v = class_values(kernel, counts.data[span], i, j, sizes, n, short)
                data[span] = v - table[i, j] if table.size else v
        K = sp.csr_matrix((m, m), dtype=data.dtype)
        K.data, K.indices, K.indptr = data, counts.indices, counts.indptr
        diagonal = np.ones(m) if short is None else 2.0 * short[classes]
        if table.size:
            diagonal = diagonal - table[classes, classes]
        K.setdiag(diagonal.astype(data.dtype))
        sums = np.asarray(K.sum(axis=1, dtype=np.float64)).ravel()
        if table.size:
            sums += (table @ np.bincount(classes, minlength=len(table)))[classes]
        return cls(K, table, classes, sums, None if short is None else 0.5 - short[classes])

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
            of_class = sp.csr_matrix((np.ones(m), (np.arange(m), self.classes)), (m, len(self.table)))
            out[:] = ((rows @ of_class) @ self.table)[:, self.classes]
        _rows_times(rows, self.values, out)
        return out[:, items]

    def similar(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the matrix."""
        out = self.values[ids].toarray()
        return out + self.table[self.classes[ids]][:, self.classes] if self.table.size else out


class CountedGram:
    """A matrix of items whose counts are taken from the interactions on demand.

    For catalogs whose pairs exceed the memory. The linear kernel needs no counts for scores, which are
    products with the interactions, weighted by `votes` of users. The rows of the most popular items are
    kept.
    """

    def __init__(self, user_items: sp.csr_matrix, kernel: Kernel, votes: Any = None) -> None:
        self.kernel, self.linear = kernel, isinstance(kernel, LinearKernel)
        self.user_items = user_items
        n, m = user_items.shape
        ones = np.ones(user_items.nnz, dtype=np.float32)
        X = sp.csr_matrix((ones, user_items.indices, user_items.indptr), (n, m))
        of_items = np.bincount(X.indices, minlength=m)
        self.sizes, self.classes = np.unique(of_items, return_inverse=True)
        self.short = shortfall(kernel, self.sizes, n)
        self.offsets = None if self.short is None else 0.5 - self.short[self.classes]
        self.place, self.rows = np.full(m, -1), np.zeros((0, m), dtype=np.float32)
        if self.linear:
            X = X if votes is None else sp.csr_matrix(sp.diags(np.sqrt(votes)) @ X)
            scale = _inverse_root(np.asarray(X.multiply(X).sum(axis=0)).ravel())
            X = sp.csr_matrix(X @ sp.diags(scale))  # float64: programs are certified by its products
        self.X, self.XT = X, sp.csr_matrix(X.T)
        popular = np.argsort(-of_items, kind="stable")[: ROW_BYTES // (4 * m)]
        place, rows = np.full(m, -1), np.empty((len(popular), m), dtype=np.float32)
        place[popular] = np.arange(len(popular))
        self.row_sums = self.XT @ (X @ np.ones(m)) + (of_items == 0) if self.linear else np.empty(m)
        counted = popular if self.linear else np.arange(m)
        step = max(1, ENTRIES // m)
        for first in range(0, len(counted), step):
            ids = counted[first : first + step]
            K, kept = self.similar(ids), place[ids] >= 0
            rows[place[ids[kept]]] = K[kept]
            if not self.linear:
                self.row_sums[ids] = K.sum(axis=1)
        self.place, self.rows = place, rows

    def block(self, items: NDArray[Any], others: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the entries between items and others, themselves by default, as float64."""
        others = items if others is None else others
        kept, known = self.place[items] >= 0, self.place[others] >= 0
        rest, far = items[~kept], others[~known]
        out = np.empty((len(items), len(others)))
        out[kept] = self.rows[np.ix_(self.place[items[kept]], others)]
        out[np.ix_(~kept, known)] = self.rows[np.ix_(self.place[others[known]], rest)].T
        counts = _rows_times(self.XT[rest], sp.csr_matrix(self.XT[far].T))
        out[np.ix_(~kept, ~known)] = self._values(counts, rest, far)
        return out

    def scores(self, rows: sp.csr_matrix, items: Any = slice(None)) -> NDArray[np.float64]:
        """Return rows @ K[:, items] for rows of weights; many rows of the linear kernel in float32."""
        ids = np.arange(rows.shape[1])[items]
        out = np.empty((rows.shape[0], len(ids)))
        if not self.linear:
            for u in range(len(out)):
                out[u] = rows[u].data @ self.similar(rows[u].indices)[:, items]
            return out
        XT, cold = self.XT, self.sizes[self.classes[ids]] == 0
        dtype = np.float64 if len(out) == 1 else np.float32
        weights = XT.data.astype(dtype, copy=False)
        for first in range(0, len(out), ROWS_AT_ONCE):
            part = rows[first : first + ROWS_AT_ONCE]
            by_user = np.ascontiguousarray(_rows_times(part, XT).T, dtype=dtype)
            by_item = np.empty((len(ids), part.shape[0]), dtype=dtype)
            over_rows(len(ids), _products, XT.indptr, XT.indices, weights, ids, by_user, by_item)
            by_item[cold] = part[:, ids[cold]].T.toarray()
            out[first : first + ROWS_AT_ONCE] = by_item.T
        return out

    def similar(self, ids: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows of the matrix."""
        ids, m = np.asarray(ids), self.X.shape[1]
        kept, out = self.place[ids] >= 0, np.empty((len(ids), m))
        out[kept] = self.rows[self.place[ids[kept]]]
        counts = _rows_times(self.XT[ids[~kept]], self.X)
        out[~kept] = self._values(counts, ids[~kept], np.arange(m))
        return out

    def _values(self, s: NDArray[Any], items: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
        i, j = self.classes[items], self.classes[others]
        if self.linear:
            out = s.astype(np.float64)
        else:
            out = class_values(self.kernel, s, i[:, None], j, self.sizes, self.X.shape[0], self.short)
            if self.short is None:
                out[self.sizes[i] == 0] = 0.0
                out[:, self.sizes[j] == 0] = 0.0
        same = items[:, None] == others
        out[same] = 1.0 if self.short is None else np.broadcast_to(2.0 * self.short[j], same.shape)[same]
        return out


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


@jit
def _products(first, stride, ptr, users, data, items, by_user, out):
    """Set out to rows `items` of a CSR matrix times a dense matrix."""
    for k in range(first, len(items), stride):
        acc = out[k]
        acc[:] = 0.0
        for p in range(ptr[items[k]], ptr[items[k] + 1]):
            weight, row = data[p], by_user[users[p]]
            for u in range(len(acc)):
                acc[u] += weight * row[u]
