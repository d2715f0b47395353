"""Rows of interactions, kept where a table of co-occurrences would be larger; counted on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.gram.counts import ItemCounts
from recsys.utils.digests import row_digests
from recsys.utils.memory import check_memory
from recsys.utils.sparse import row_votes


@dataclass(frozen=True)
class ItemRows:
    """The rows of interactions, from which co-occurrences are counted when they are needed.

    Rows are in the order of their digests, and empty rows are left out. So the same interactions give
    the same bits in whatever order users came.

    `rows` is a CSR of ones, uint8, with sorted indices; a row counts |row|^−votes. `sizes` says in how
    many rows each item is, as float64 sums of votes where rows weigh differently, and `vectors` how many
    rows were counted, empty ones included. The methods are those of
    `recsys.kernels.gram.counts.ItemCounts`.
    """

    rows: sp.csr_matrix
    sizes: NDArray[Any]
    vectors: int
    votes: float = 0.0

    @property
    def dense(self) -> bool:
        """Whether the co-occurrences are a dense array: always False."""
        return False

    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each row, (rows,)."""
        return row_votes(self.rows, self.votes)

    def toarray(self) -> NDArray[Any]:
        """Return the co-occurrences of all pairs of items, sizes on the diagonal."""
        items = self.rows.shape[1]
        check_memory(16 * items * items, f"the item × item matrix of {items:,} items")
        X = sp.csr_matrix(self.rows, dtype=np.float64)
        out = (X.T @ sp.diags(self.weights()) @ X).toarray().astype(self.sizes.dtype)
        np.fill_diagonal(out, self.sizes)
        return np.asarray(out)

    def changed(self, taken: sp.csr_matrix, added: sp.csr_matrix, vectors: int) -> ItemRows:
        """Return the rows, `vectors` in all, some of them removed and others added."""
        digests = row_digests(self.rows)  # ascending
        out = np.sort(row_digests(taken[np.diff(taken.indptr) > 0]))
        at = np.searchsorted(digests, out)
        same = np.arange(len(out)) - np.searchsorted(out, out)  # a row may be there, and leave, twice
        at = at + same
        if len(at) and (at.max() >= len(digests) or (digests[at] != out).any()):
            raise InputError("a row to be taken out holds items that were never counted together")
        left = np.delete(np.arange(self.rows.shape[0]), at)
        return item_rows(sp.vstack([self.rows[left], added], format="csr"), self.votes, vectors)

    def extended(self, items: int) -> ItemRows:
        """Return the rows with cold items appended, up to `items` items."""
        X = self.rows
        rows = sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], items))
        more = np.zeros(items - len(self.sizes), self.sizes.dtype)
        return replace(self, rows=rows, sizes=np.concatenate([self.sizes, more]))


def item_rows(rows: sp.csr_matrix, votes: float = 0.0, vectors: int | None = None) -> ItemRows:
    """Return an `ItemRows` of these binary canonical rows; n is `vectors`, or the number of rows."""
    vectors = rows.shape[0] if vectors is None else vectors
    order = np.argsort(row_digests(rows), kind="stable")
    order = order[np.diff(rows.indptr)[order] > 0]
    ones = sp.csr_matrix((np.ones(rows.nnz, np.uint8), rows.indices, rows.indptr), rows.shape)
    kept = ones[order]
    kept.sort_indices()
    sizes: NDArray[Any] = np.bincount(kept.indices, minlength=rows.shape[1]).astype(np.int64)
    if votes:
        each = np.repeat(row_votes(kept, votes), np.diff(kept.indptr))
        sizes = np.bincount(kept.indices, weights=each, minlength=rows.shape[1])
    return ItemRows(kept, sizes, vectors, votes)


def check_item_rows(counts: ItemRows, items: int) -> None:
    """Refuse rows from a file that cannot come from a fit."""
    X, sizes = counts.rows, counts.sizes
    if not sp.issparse(X) or X.shape[1] != items or not X.has_canonical_format:
        raise ValueError("rows_ does not fit the items")
    if X.dtype != np.uint8 or (X.data != 1).any() or (np.diff(X.indptr) == 0).any():
        raise ValueError("rows_ should hold ones, of uint8, in every row")
    if X.shape[0] > counts.vectors:
        raise ValueError("rows_ has more rows than vectors_")
    found = item_rows(X, counts.votes, counts.vectors)
    if sizes.shape != (items,) or sizes.dtype != found.sizes.dtype or (sizes != found.sizes).any():
        raise ValueError("sizes_ does not fit rows_")
    if (found.rows.indices != X.indices).any():
        raise ValueError("rows_ should be in the order of their digests")


def without_pairs(counts: ItemRows) -> ItemCounts:
    """Return counts of the same items without any pair, popular items first."""
    m = len(counts.sizes)
    popularity = np.bincount(counts.rows.indices, minlength=m)
    order = np.argsort(-popularity, kind="stable").astype(np.int32)
    kind = np.float32 if counts.sizes.dtype.kind == "f" else np.uint32
    return ItemCounts(sp.csr_matrix((m, m), dtype=kind), counts.sizes, counts.vectors, order)
