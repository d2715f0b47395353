"""Nearest neighbors: of items by implicit (cosine, TF-IDF, BM25), and of users."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import check_openmp
from recsys.rankers.base import Data, Ranker, Rows, Shares
from recsys.rankers.protocol import Floats, Ints, Items, Users, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import ItemWeights, best_sums, entries_between, sparse_sums
from recsys.utils.resources import check_memory
from recsys.utils.sparse import unit_rows

ENTRIES = 3.5  # float64 a neighbor: its row, column and value in implicit, then CSR of float32


class ItemNeighbors(ItemWeights):
    """Base of the item-to-item nearest neighbors: Σ value × similarity over a user's items.

    The similarity is the inner product of two weighted columns. Each item keeps its `top_k` nearest,
    itself included, which implicit computes (K there). Values of the matrix are weights.
    """

    top_k: int
    num_threads: int

    weighted = True  # it learns from how much, and not only from whether
    search_space = {"top_k": (20, 50, 100, 200)}

    def _weighted(self, item_users: sp.coo_matrix, knn: Any) -> sp.coo_matrix:
        """Return the weighted matrix whose rows' inner products are the similarities, both float64."""
        raise NotImplementedError

    def _fit(self, data: Data) -> None:
        from implicit import nearest_neighbours as knn  # late: it takes half a second

        items, threads = data.liked.shape[1], self.num_threads
        nearest = min(self.top_k, items)
        what = f"top_k={self.top_k} neighbors of {items:,} items"
        check_memory(8.0 * ENTRIES * nearest * items, what, "lower top_k")
        X = self._weighted(data.liked.T.tocoo().astype(np.float64), knn).T.tocsr()
        X.eliminate_zeros()
        check_openmp(threads)
        options = {"show_progress": data.show_progress, "num_threads": threads}
        near = knn.all_pairs_knn(X, nearest, **options).tocsr()
        near.eliminate_zeros()  # what fills rows of fewer neighbors
        near.sort_indices()
        self.weights_ = near.astype(np.float32)

    def _votes(self, rows: Rows) -> Floats:
        return rows.matrix.data * super()._votes(rows)


@register_ranker("cosine")
class Cosine(ItemNeighbors):
    """Item-to-item nearest neighbors by cosine, as implicit's `CosineRecommender`.

    Other parameters: as of `Ranker`.

    Examples
    --------
    >>> plays = [[5, 1, 0, 0], [2, 3, 1, 0], [0, 1, 4, 0], [0, 0, 0, 1]]
    >>> Cosine(top_k=3).fit(plays, show_progress=False).recommend(0, [plays[0]], N=1).ids
    array([2], dtype=int32)
    """

    top_k: int = 20
    num_threads: int = 0
    recency: float = 0.0

    def _weighted(self, item_users: sp.coo_matrix, knn: Any) -> sp.coo_matrix:
        return knn.normalize(item_users)


@register_ranker("tfidf")
class TFIDF(Cosine):
    """Item-to-item nearest neighbors by the cosine of TF-IDF weights, as implicit's `TFIDFRecommender`.

    The weight of a value v of user u is √v·log(items / (1 + items of u)). Items with zero weights have
    no similarities here, and NaN in implicit. Parameters: as of `Ranker`.
    """

    def _weighted(self, item_users: sp.coo_matrix, knn: Any) -> sp.coo_matrix:
        weighted = knn.tfidf_weight(item_users)
        weighted.eliminate_zeros()  # an item of zeros only would be divided by 0
        return knn.normalize(weighted)


@register_ranker("bm25")
class BM25(ItemNeighbors):
    """Item-to-item nearest neighbors by products of BM25 weights, as implicit's `BM25Recommender`.

    The weight of a value v of user u for item i is v·(K1 + 1) / (K1·l_i + v) · log(items / (1 + items
    of u)), where l_i = 1 − B + B·(sum of i) / (mean sum of an item).

    Parameters
    ----------
    K1 : float ≥ 0
        Saturation of values: larger K1 increases the effect of large values.
    B : float in 0…1
        Strength of the correction for popularity.

    Other parameters: as of `Ranker`.
    """

    top_k: int = 20
    K1: float = 1.2
    B: float = 0.75
    num_threads: int = 0
    recency: float = 0.0

    checks = ItemNeighbors.checks | {"K1": real(), "B": real(0.0, 1.0)}
    search_space = {
        **ItemNeighbors.search_space,
        "K1": ("log", 0.5, 100.0),
        "B": ("real", 0.0, 1.0),
    }

    def _weighted(self, item_users: sp.coo_matrix, knn: Any) -> sp.coo_matrix:
        return knn.bm25_weight(item_users, K1=self.K1, B=self.B)


@register_ranker("user-knn")
class UserKNN(Ranker):
    """User-to-user nearest neighbors: s_i = Σ_v cos(x, x_v)·x_vi over the `top_k` nearest users v.

    A row is compared with every user of the fit, including its own user, so a history has the same list
    for old and new users. Values of the matrix are weights. Parameters: as of `Ranker`. Source:
    Herlocker et al. 1999, with the cosine and without rating means.
    """

    top_k: int = 100

    weighted = True
    search_space = {"top_k": (20, 50, 100, 200, 500)}

    def _fit(self, data: Data) -> None:
        self.user_items_ = data.liked.copy()
        self.item_users_ = _vectors(data.liked).T.tocsr().astype(np.float32)  # of unit length per user

    def _neighbors(self, vectors: sp.csr_matrix) -> sp.csr_matrix:
        """Return the cosines of the `top_k` nearest users, (rows, users); equally near ones by index."""
        rows, users = vectors.shape[0], self.item_users_.shape[1]
        k, everybody = min(self.top_k, users), np.ones(users, np.uint8)
        ids, cosines = best_sums(vectors, vectors.data, self.item_users_, k, False, everybody)
        return sp.csr_matrix((cosines.ravel(), ids.ravel(), k * np.arange(rows + 1)), (rows, users))

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        near = self._neighbors(_vectors(rows.matrix))
        return sparse_sums(near, near.data.astype(np.float64), self.user_items_)

    def _explain(self, rows: Rows, items: Items, users: Users = None) -> list[Shares]:
        vectors, out = _vectors(rows.matrix), []
        near = self._neighbors(vectors).indices.reshape(len(items), -1)
        for span, some, others in zip(rows.spans, items, near, strict=True):
            likes = entries_between(self.item_users_, vectors.indices[span], others)
            shares = vectors.data[span] * (entries_between(self.user_items_, others, some) @ likes)
            out.append((shares.sum(axis=1), shares))
        return out

    def _user_similarity(self, ids: Ints) -> NDArray[np.float32]:
        vectors = _vectors(self.user_items_[ids])
        return sparse_sums(vectors, vectors.data, self.item_users_)


def _vectors(rows: sp.csr_matrix) -> sp.csr_matrix:
    return unit_rows(rows.astype(np.float64))
