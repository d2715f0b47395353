"""Nearest neighbours among users, by the cosine of their interactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._sparse_scoring import fill_best, sparse_sums
from recsys.rankers.base import Ranker, Shares
from recsys.rankers.registry import RANKERS
from recsys.rankers.state import expect_csr
from recsys.utils.docstrings import documented
from recsys.utils.sparse import unit_rows
from recsys.utils.topn import LOWEST
from recsys.utils.validation import check_integer


class UserNeighbours(Ranker):
    """Scores sum, over the nearest users, the cosine to the row times what the user has of the item.

    Every user of the fit is compared with the row, the user itself among them: a history has the same
    list whether its user was in the fit or not.

    Parameters
    ----------
    top_k : int ≥ 1
        Neighbours of a row; a user of the fit is its own first one, and adds to its own items only.
    """

    top_k: int
    user_items_: sp.csr_matrix
    item_users_: sp.csr_matrix

    weighted: ClassVar[bool] = True  # it learns from how much, and not only from whether

    def _check_parameters(self) -> None:
        check_integer("top_k", self.top_k, 1)

    def _learn(self, values: sp.csr_matrix, vectors: sp.csr_matrix) -> None:
        """Keep what each user adds to scores, and the unit vectors that rows are compared with."""
        self.user_items_ = values.astype(np.float32)
        self.item_users_ = vectors.T.tocsr().astype(np.float32)

    def _neighbours(self, vectors: sp.csr_matrix) -> sp.csr_matrix:
        """Return the cosines of the `top_k` nearest users, (rows, users); equally near ones by index."""
        users = self.item_users_.shape[1]
        shape = (vectors.shape[0], min(self.top_k, users))
        ids, cosines = np.full(shape, -1, np.int32), np.full(shape, LOWEST, np.float32)
        everybody = np.ones(users, np.uint8)
        fill_best(vectors, vectors.data, self.item_users_, False, everybody, ids, cosines)
        indptr = shape[1] * np.arange(shape[0] + 1)
        return sp.csr_matrix((cosines.ravel(), ids.ravel(), indptr), (shape[0], users))

    def _sums(self, vectors: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the scores of rows, given as unit vectors."""
        near = self._neighbours(vectors)
        return sparse_sums(near, near.data.astype(np.float64), self.user_items_)

    def _shares(self, vector: sp.csr_matrix, items: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each entry of a unit vector adds to scores, (entries, items).

        A cosine is a sum over the items that the row and a neighbour share, so a score is a sum over
        the items of the row.
        """
        near = self._neighbours(vector).indices
        shared = self.item_users_[vector.indices][:, near].astype(np.float64)
        products = (shared @ self.user_items_[near][:, items].astype(np.float64)).toarray()
        return np.asarray(vector.data[:, None] * products, dtype=np.float64)

    def _user_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        vectors = unit_rows(self.user_items_[ids])
        return sparse_sums(vectors, vectors.data, self.item_users_)

    def _check_state(self) -> None:
        users, items = self.n_users_, self.n_items_
        expect_csr("user_items_", self.user_items_, (users, items), np.float32)
        expect_csr("item_users_", self.item_users_, (items, users), np.float32)


@RANKERS.add("user-knn")
@documented
@dataclass(eq=False)
class UserKNN(UserNeighbours):
    """User-to-user nearest neighbours: s_i = Σ_v cos(x, x_v)·x_vi over the `top_k` nearest users v.

    Attributes
    ----------
    user_items_ : (users, items) float32 CSR
        The values of the fit.
    item_users_ : (items, users) float32 CSR
        The same, each user's scaled to unit length.

    Notes
    -----
    Values of the matrix are weights: in the cosines, in what neighbours add, and in the row that is
    ranked. A cosine is a sum over shared items, so contributions of the items of the history sum to the
    score. Fitting keeps the matrix twice; a list compares its row with all users who share an item.
    Source: Herlocker et al. 1999, with the cosine and without means of ratings, as for interactions.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = UserKNN(top_k=3).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    top_k: int = 100
    ties: str | None = None

    name: ClassVar[str] = "user-knn"
    search_space: ClassVar[dict[str, Any]] = {"top_k": (20, 50, 100, 200, 500)}

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        self._learn(liked, _vectors(liked))

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return self._sums(_vectors(rows))

    def _explain_items(
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], **timed: Any
    ) -> list[Shares]:
        shares = self._shares(_vectors(row), items)
        return [(float(column.sum()), column) for column in shares.T]


def _vectors(rows: sp.csr_matrix) -> sp.csr_matrix:
    return unit_rows(rows.astype(np.float64))
