"""Item-to-item nearest neighbours of implicit: cosine, TF-IDF and BM25."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import threads_of
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers.base import Times
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.memory import check_fits
from recsys.utils.validation import MOST, check_integer, check_real

ENTRIES = 3.5  # float64 a neighbour: its row, column and value in implicit, then CSR of float32


class ItemNeighbours(ItemWeights):
    """Scores sum, over a user's items, the value of the item times its similarity to the candidate.

    The similarity is the inner product of two items' weighted columns, of which each item keeps the
    `top_k` largest. implicit computes it.

    Parameters
    ----------
    top_k : int ≥ 1
        Neighbours kept of each item, itself among them; implicit's K.
    num_threads : int ≥ 0
        Threads of the fit; 0 for all. The result is the same on any number.
    """

    top_k: int
    num_threads: int

    weighted: ClassVar[bool] = True  # it learns from how much, and not only from whether
    search_space: ClassVar[dict[str, Any]] = {"top_k": (20, 50, 100, 200)}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("top_k", self.top_k, 1)
        check_integer("num_threads", self.num_threads, 0, MOST)

    def _weighted(self, item_users: sp.coo_matrix) -> sp.coo_matrix:
        """Return the weighted matrix whose rows' inner products are the similarities, both float64."""
        raise NotImplementedError

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        from implicit.nearest_neighbours import all_pairs_knn  # late: it takes half a second

        items = liked.shape[1]
        nearest = min(self.top_k, items)
        check_fits(
            ENTRIES * nearest * items,
            f"top_k={self.top_k} neighbours of {items:,} items",
            "lower top_k",
        )
        weighted = self._weighted(liked.T.tocoo().astype(np.float64)).T.tocsr()
        weighted.eliminate_zeros()
        with threads_of("OpenMP", self.num_threads):
            found = all_pairs_knn(
                weighted, nearest, show_progress=show_progress, num_threads=self.num_threads
            ).tocsr()
        found.eliminate_zeros()  # what fills rows of fewer neighbours
        found.sort_indices()
        self.weights_ = found.astype(np.float32)

    def _votes(self, rows: sp.csr_matrix, times: Times) -> NDArray[np.float64]:
        return rows.data * super()._votes(rows, times)


@RANKERS.add("cosine")
@documented
@dataclass(eq=False)
class Cosine(ItemNeighbours):
    """Item-to-item nearest neighbours by cosine, as implicit's `CosineRecommender`.

    Notes
    -----
    Values of the matrix are weights: in the similarities, and in the row that is ranked.
    Source: implicit 0.7, `implicit.nearest_neighbours`.

    Examples
    --------
    >>> plays = [[5, 1, 0, 0], [2, 3, 1, 0], [0, 1, 4, 0], [0, 0, 0, 1]]
    >>> model = Cosine(top_k=3).fit(plays, show_progress=False)
    >>> model.recommend(0, [plays[0]], N=1).ids
    array([2], dtype=int32)
    """

    top_k: int = 20
    num_threads: int = 0
    recency: float = 0.0
    ties: str | None = None

    name: ClassVar[str] = "cosine"

    def _weighted(self, item_users: sp.coo_matrix) -> sp.coo_matrix:
        from implicit.nearest_neighbours import normalize

        return normalize(item_users)


@RANKERS.add("tfidf")
@documented
@dataclass(eq=False)
class TFIDF(ItemNeighbours):
    """Item-to-item nearest neighbours by the cosine of TF-IDF weights, as implicit's `TFIDFRecommender`.

    The weight of a value v of user u is √v·log(items / (1 + items of u)).

    Notes
    -----
    Values of the matrix are weights: in the similarities, and in the row that is ranked.
    Source: implicit 0.7, `implicit.nearest_neighbours`; there an item all of whose users have all items
    but one, for which all weights are 0, has similarities of NaN, here it has none.

    Examples
    --------
    >>> plays = [[5, 1, 0, 0], [2, 3, 0, 0], [0, 1, 4, 0], [0, 0, 0, 1]]
    >>> model = TFIDF(top_k=3).fit(plays, show_progress=False)
    >>> model.recommend(0, [plays[0]], N=1).ids
    array([2], dtype=int32)
    """

    top_k: int = 20
    num_threads: int = 0
    recency: float = 0.0
    ties: str | None = None

    name: ClassVar[str] = "tfidf"

    def _weighted(self, item_users: sp.coo_matrix) -> sp.coo_matrix:
        from implicit.nearest_neighbours import normalize, tfidf_weight

        weighted = tfidf_weight(item_users)
        weighted.eliminate_zeros()  # an item of zeros only would be divided by 0
        return normalize(weighted)


@RANKERS.add("bm25")
@documented
@dataclass(eq=False)
class BM25(ItemNeighbours):
    """Item-to-item nearest neighbours by products of BM25 weights, as implicit's `BM25Recommender`.

    The weight of a value v of user u for item i is v·(K1 + 1) / (K1·l_i + v) · log(items / (1 + items
    of u)), where l_i = 1 − B + B·(sum of i) / (mean sum of an item).

    Parameters
    ----------
    top_k : int ≥ 1
        Neighbours kept of each item; implicit's K.
    K1 : float ≥ 0
        How much larger values count more.
    B : float in 0…1
        How much the popularity of an item counts against it.

    Notes
    -----
    Values of the matrix are weights: in the similarities, and in the row that is ranked.
    Source: implicit 0.7, `implicit.nearest_neighbours`.

    Examples
    --------
    >>> plays = [[5, 1, 0, 0], [2, 3, 0, 0], [0, 1, 4, 0], [0, 0, 0, 1]]
    >>> model = BM25(top_k=3).fit(plays, show_progress=False)
    >>> model.recommend(0, [plays[0]], N=1).ids
    array([2], dtype=int32)
    """

    top_k: int = 20
    K1: float = 1.2
    B: float = 0.75
    num_threads: int = 0
    recency: float = 0.0
    ties: str | None = None

    name: ClassVar[str] = "bm25"
    search_space: ClassVar[dict[str, Any]] = {
        **ItemNeighbours.search_space,
        "K1": ("log", 0.5, 100.0),
        "B": ("real", 0.0, 1.0),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("K1", self.K1, 0.0)
        check_real("B", self.B, 0.0, 1.0)

    def _weighted(self, item_users: sp.coo_matrix) -> sp.coo_matrix:
        from implicit.nearest_neighbours import bm25_weight

        return bm25_weight(item_users, K1=self.K1, B=self.B)
