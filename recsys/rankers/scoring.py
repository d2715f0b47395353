"""Scores and lists from matrices of items: sums of weighted rows, dense and sparse, and a base class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import borrowed, in_threads, jit, over_rows
from recsys.kernels.item_gram import dense_counts
from recsys.rankers.base import DENSE_ITEMS, Lists, Ranker, Rows, Shares
from recsys.rankers.protocol import Floats, Ints, Items, Users, recency_weights
from recsys.utils.sparse import binary, entries_of, submatrix
from recsys.utils.topn import LOWEST, offer, put_in_order
from recsys.utils.validation import clean_matrix

TILE = 128  # columns of a pass: 128 float32 × thousands of rows stay in the second-level cache
WIDE = 1_024  # columns of a pass for few users, who share no rows
FEW = 8
SMALL = 128_000_000  # bytes of sparse weights that are kept dense
TOGETHER = 32  # products added in the matrix' precision before they join a float64 sum


def weighted_rows(
    rows: sp.csr_matrix,
    weights: Floats,
    matrix: NDArray[np.floating],
    offset: Floats | None = None,
    scale: Floats | None = None,
) -> NDArray[Any]:
    """Return Σ_j weights[u,j]·matrix[j,:] − scale[u]·offset[:] for each row u, in the matrix' dtype.

    `weights`, (nnz,), are aligned with rows.indices; the matrix is float32 or float64, in C order.
    """
    users, m = rows.shape[0], matrix.shape[1]
    out = np.empty((users, m), dtype=matrix.dtype)
    if _add_tiles.small(rows.nnz * m):
        for u in range(users):
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            sums = weights[span] @ matrix[rows.indices[span]].astype(np.float64)
            out[u] = sums if offset is None or scale is None else sums - scale[u] * offset
        return out
    offset = np.zeros(m) if offset is None else offset
    scale = np.zeros(users) if scale is None else scale
    tile = TILE if users > FEW else WIDE
    arrays = (rows.indptr, rows.indices.view(np.uint32), weights, matrix, offset, scale, tile, out)
    if users:
        in_threads(1 if users == 1 else None, _add_tiles, *arrays)
    return out


class Background(NamedTuple):
    """Dense terms of sums of sparse rows: levels[u, class of j] − scale[u]·offset[j]."""

    levels: Floats
    classes: NDArray[np.int32]
    offset: Floats
    scale: Floats


def _nothing(users: int, items: int) -> Background:
    levels, classes = np.zeros((users, 1)), np.zeros(items, np.int32)
    return Background(levels, classes, np.zeros(items), np.zeros(users))


def sparse_sums(
    rows: sp.csr_matrix,
    weights: Floats,
    matrix: sp.csr_matrix,
    more: Background | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return Σ_i weights[u, i]·matrix[i, :] for each row u of a CSR matrix, in its dtype.

    They are added to `out`, if it is given.
    """
    shape = rows.shape[0], matrix.shape[1]
    terms = more or _nothing(*shape)
    adds = out is not None
    out = np.empty(shape, dtype=matrix.dtype) if out is None else out
    left = (rows.indptr, rows.indices, weights)
    right = (matrix.indptr, matrix.indices, matrix.data)
    over_rows(shape[0], _sparse_sums, left, right, tuple(terms), adds, out)
    return out


def best_sums(
    rows: sp.csr_matrix,
    weights: Floats,
    matrix: sp.csr_matrix,
    N: int,
    skip_liked: bool,
    mask: NDArray[np.uint8],
    more: Background | None = None,
    order: Ints | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the N best of `sparse_sums`, ties by index, padded with −1 and `LOWEST`.

    Where few items have a weight with a liked one, only these and the first in `order`, that of the
    offsets, are scored.
    """
    users, m = rows.shape[0], len(mask)
    terms = more or _nothing(users, m)
    order = np.arange(m) if order is None else order
    ids = np.full((users, N), -1, np.int32)
    best = np.full((users, N), LOWEST, np.float32)
    left = (rows.indptr, rows.indices, weights)
    right = (matrix.indptr, matrix.indices, matrix.data)
    over_rows(users, _best_sums, left, right, tuple(terms), order, skip_liked, mask, ids, best)
    return ids, best


def cosines(
    vectors: NDArray[np.float32], ids: Ints, others: Ints | slice = slice(None)
) -> NDArray[np.float32]:
    """Return the cosines of some of the vectors with others; 0 with an empty one."""
    return np.asarray(_units(vectors[ids]) @ _units(vectors[others]).T, dtype=np.float32)


def _units(vectors: NDArray[Any]) -> NDArray[Any]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


def entries_between(matrix: Any, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
    """Return the entries of an array or CSR in some rows and columns, transposed."""
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix[np.ix_(rows, columns)].T, dtype=np.float64)
    return submatrix(matrix, rows, columns).T


def co_occurrences(liked: sp.csr_matrix, votes: Floats | None = None) -> sp.csr_matrix:
    """Return XᵀDX of the interactions' pattern X, D the users' votes: float64 CSR.

    Without votes D is 1 and the counts are float32.
    """
    pairs, cells = np.square(np.diff(liked.indptr), dtype=np.int64).sum(), liked.shape[1] ** 2
    if votes is None and liked.shape[1] <= DENSE_ITEMS and pairs > cells:
        counts = dense_counts(liked)
        columns = [np.flatnonzero(row).astype(np.int32) for row in counts]  # SciPy's way is slow
        indptr = np.concatenate(([0], np.cumsum([len(row) for row in columns])))
        data = np.empty(indptr[-1], dtype=np.float32)
        for i, row in enumerate(columns):
            data[indptr[i] : indptr[i + 1]] = counts[i, row]
        return sp.csr_matrix((data, np.concatenate(columns), indptr), counts.shape)
    X = binary(liked, np.float32 if votes is None else np.float64)
    out = sp.csr_matrix(X.T @ (X if votes is None else sp.diags(votes) @ X))
    out.sort_indices()
    return out


def dense_if_small(weights: sp.csr_matrix) -> NDArray[np.float32] | sp.csr_matrix:
    """Return float32 weights as an array where that is small, else as they are."""
    dense = 4 * weights.shape[0] ** 2 <= SMALL
    return weights.toarray() if dense else weights


class VectorRanker(Ranker):
    """Base of the rankers whose scores are products of vectors of rows and items."""

    item_factors_: NDArray[np.float32]

    def _row_factors(self, rows: sp.csr_matrix, users: Users = None) -> NDArray[np.floating]:
        """Return the vectors of rows, (rows, factors)."""
        raise NotImplementedError

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        vectors = self._row_factors(rows.matrix, users)
        return np.asarray(vectors @ self.item_factors_.T, dtype=np.float32)

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        return cosines(self.item_factors_, ids)

    def _similarities(self, items: Ints, others: Ints) -> NDArray[np.float32]:
        return cosines(self.item_factors_, items, others)


class EmbeddingRanker(VectorRanker):
    """Base of the rankers whose vectors are embeddings: a score is the product of two."""

    def item_embeddings(self) -> NDArray[np.float32]:
        """Return the vectors of items, (items, factors) float32."""
        self._check_fitted()
        return self.item_factors_

    def user_embeddings(self, user_items: Any) -> NDArray[np.float32]:
        """Return the vectors of rows, (rows, factors) float32; as many as the fit had are its users."""
        self._check_fitted()
        given = clean_matrix(user_items, n_items=self.n_items_)
        others = given.shape[0] != self.n_users_
        users, rows = self._request(np.arange(given.shape[0]), given, others, None)
        return self._row_factors(rows.matrix, users).astype(np.float32, copy=False)


class LinearRanker(Ranker):
    """Base of the rankers that sum over the liked items; `recency` weighs older ones less."""

    recency: float = 0.0

    uses = frozenset({"times"})

    def _votes(self, rows: Rows) -> Floats:
        """Return the weight of each entry of the rows."""
        return recency_weights(rows, self.recency)

    def _weighed(self, rows: Rows) -> sp.csr_matrix:
        """Return the rows with these weights."""
        return entries_of(rows.matrix, self._votes(rows))

    def _contributions(self, liked: Ints, items: Ints) -> Floats:
        """Return what liked items of weight 1 add to the scores of some items, (items, liked)."""
        raise NotImplementedError

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        votes, out = self._votes(rows), []
        for span, some in zip(rows.spans, items, strict=True):
            shares = votes[span] * self._contributions(rows.matrix.indices[span], some)
            out.append((shares.sum(axis=1), shares))
        return out


class ItemWeights(LinearRanker):
    """Base of the rankers that sum rows of an item × item matrix over the liked items.

    `weights_[i, j]`, dense or CSR, is the contribution of item i to the score of item j.
    """

    weights_: Any

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        x = self._weighed(rows)
        sums = sparse_sums if sp.issparse(self.weights_) else weighted_rows
        return sums(x, x.data, self.weights_)

    def _best(self, rows: Rows, N: int, skip_liked: bool, mask: NDArray[np.uint8]) -> Lists | None:
        if not sp.issparse(self.weights_):
            return None
        x = self._weighed(rows)
        return best_sums(x, x.data, self.weights_, N, skip_liked, mask)

    def _contributions(self, liked: Ints, items: Ints) -> Floats:
        return entries_between(self.weights_, liked, items)

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        some = self.weights_[ids]
        return some.toarray() if sp.issparse(some) else some


# ---- kernels


@jit
def _accumulate(acc, part, matrix, first, width, indices, weights, begin, end):
    """acc[c] += Σ_p weights[p]·matrix[indices[p], first + c].

    Eight products are added as a tree, and four such sums, in the matrix' precision before they join the
    float64 sum. The rows are slices: written matrix[i, k] the loop is not vectorized.
    """
    p = begin
    while p < end:
        stop = min(p + TOGETHER, end)
        part[:width] = 0.0
        while p + 8 <= stop:
            a = matrix[indices[p], first : first + width]
            b = matrix[indices[p + 1], first : first + width]
            d = matrix[indices[p + 2], first : first + width]
            e = matrix[indices[p + 3], first : first + width]
            f = matrix[indices[p + 4], first : first + width]
            g = matrix[indices[p + 5], first : first + width]
            h = matrix[indices[p + 6], first : first + width]
            k = matrix[indices[p + 7], first : first + width]
            w0, w1 = np.float32(weights[p]), np.float32(weights[p + 1])
            w2, w3 = np.float32(weights[p + 2]), np.float32(weights[p + 3])
            w4, w5 = np.float32(weights[p + 4]), np.float32(weights[p + 5])
            w6, w7 = np.float32(weights[p + 6]), np.float32(weights[p + 7])
            for c in range(width):
                part[c] += ((w0 * a[c] + w1 * b[c]) + (w2 * d[c] + w3 * e[c])) + (
                    (w4 * f[c] + w5 * g[c]) + (w6 * h[c] + w7 * k[c])
                )
            p += 8
        while p < stop:
            a, w0 = matrix[indices[p], first : first + width], np.float32(weights[p])
            for c in range(width):
                part[c] += w0 * a[c]
            p += 1
        for c in range(width):
            acc[c] += part[c]


@jit
def _add_tiles(first_tile, stride, indptr, indices, weights, matrix, offset, scale, tile, out):
    indices, weights, matrix = borrowed((indices, weights, matrix))
    m = matrix.shape[1]
    acc, part = np.empty(tile), np.empty(tile, dtype=matrix.dtype)
    for first in range(first_tile * tile, m, stride * tile):
        width = min(tile, m - first)
        for u in range(len(out)):
            acc[:] = 0.0
            _accumulate(acc, part, matrix, first, width, indices, weights, indptr[u], indptr[u + 1])
            for c in range(width):
                out[u, first + c] = acc[c] - scale[u] * offset[first + c]


@jit
def _sparse_sums(first, stride, rows, matrix, terms, adds, out):
    indptr, indices, weights = borrowed(rows)
    levels, classes, offset, scale = borrowed(terms)
    m_ptr, m_indices, m_data = borrowed(matrix)
    users, m = out.shape
    acc = np.empty(m)
    for u in range(first, users, stride):
        level, share = levels[u], scale[u]
        for j in range(m):
            acc[j] = level[classes[j]] - share * offset[j]
        if adds:
            acc += out[u]
        for p in range(indptr[u], indptr[u + 1]):
            w = weights[p]
            for k in range(m_ptr[indices[p]], m_ptr[indices[p] + 1]):
                acc[m_indices[k]] += w * m_data[k]
        for j in range(m):
            out[u, j] = acc[j]


@jit
def _best_sums(first, stride, rows, matrix, terms, order, skip_liked, mask, ids, best):
    ids, best = borrowed((ids, best))
    indptr, indices, weights = borrowed(rows)
    levels, classes, offset, scale = borrowed(terms)
    m_ptr, m_indices, m_data = borrowed(matrix)
    m = len(mask)
    acc, touched = np.empty(m), np.empty(m, dtype=np.int32)
    seen, banned = np.zeros(m, dtype=np.uint8), np.zeros(m, dtype=np.uint8)
    for u in range(first, len(ids), stride):
        s, i, level, share = best[u], ids[u], levels[u], scale[u]
        begin, end = indptr[u], indptr[u + 1]
        count = size = adds = np.int64(0)
        for p in range(begin, end):
            adds += m_ptr[indices[p] + 1] - m_ptr[indices[p]]
            if skip_liked:
                banned[indices[p]] = 1
        if level.any() or adds > m // 8:  # every item is scored
            for j in range(m):
                acc[j] = level[classes[j]] - share * offset[j]
            for p in range(begin, end):
                w = weights[p]
                for k in range(m_ptr[indices[p]], m_ptr[indices[p] + 1]):
                    acc[m_indices[k]] += w * m_data[k]
            for j in range(m):
                if (size < len(s) or acc[j] > s[0]) and banned[j] == 0 and mask[j] == 1:
                    size = offer(s, i, size, acc[j], j)
        else:
            for p in range(begin, end):
                w = weights[p]
                for k in range(m_ptr[indices[p]], m_ptr[indices[p] + 1]):
                    j = m_indices[k]
                    if seen[j] == 0:
                        seen[j], acc[j] = 1, -share * offset[j]
                        touched[count] = j
                        count += 1
                    acc[j] += w * m_data[k]
            for k in range(count):
                j = touched[k]
                if banned[j] == 0 and mask[j] == 1:
                    size = offer(s, i, size, acc[j], j)
            for k in range(m):  # the others, from the best on
                j = order[k]
                score = -share * offset[j]
                if size == len(s):
                    rounded = np.float32(score)
                    last = offset[j] == offset[order[m - 1]]  # all that follow are equal
                    if rounded < s[0] or (rounded == s[0] and last and i[0] < j):
                        break
                if seen[j] == 0 and banned[j] == 0 and mask[j] == 1:
                    size = offer(s, i, size, score, j)
            for k in range(count):
                seen[touched[k]] = 0
        put_in_order(s, i, size)
        if skip_liked:  # else rows may be of other things than lists are, and more of them
            for p in range(begin, end):
                banned[indices[p]] = 0
