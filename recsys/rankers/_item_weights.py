"""Base of MSDw, EASE, SLIM and neighbours: scores are sums of rows of an item × item matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._scoring import weighted_rows
from recsys.rankers._sparse_scoring import fill_best, sparse_sums
from recsys.rankers._ties import UNORDERED, tie_order_of
from recsys.rankers.base import Ranker, Shares, Times, expect
from recsys.rankers.state import expect_csr
from recsys.utils.recency import recency_weights
from recsys.utils.validation import check_real


def weighted_sums(
    rows: sp.csr_matrix, votes: NDArray[np.float64], weights: NDArray[np.float32] | sp.csr_matrix
) -> NDArray[np.float32]:
    """Return Σ_i votes[u, i]·weights[i, :] for each row u, (users, items) float32.

    `votes`, (nnz,), are aligned with rows.indices; `weights` are float32, an array or CSR.
    """
    if not sp.issparse(weights):
        return weighted_rows(rows, votes, weights)
    return sparse_sums(rows, votes, weights)


class ItemWeights(Ranker):
    """A ranker whose scores sum rows of an item × item matrix over the liked items.

    `weights_[i, j]` is what liking item i adds to the score of item j; dense, or CSR. Under `recency` it
    adds less the more interactions are newer. Sparse weights leave most scores at 0: `ties` orders
    these.
    """

    weights_: Any
    recency: float = 0.0
    ties: str | None = None

    def _check_parameters(self) -> None:
        check_real("recency", self.recency, 0.0)

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        return weighted_sums(rows, self._votes(rows, times), self.weights_)

    def _votes(self, rows: sp.csr_matrix, times: Times) -> NDArray[np.float64]:
        """Return the weight of each entry of the rows, aligned with rows.indices."""
        return recency_weights(rows, times, self.recency)

    def _prunes(self) -> bool:
        return sp.issparse(self.weights_)

    def _fill_best(
        self,
        rows: sp.csr_matrix,
        times: Times,
        skip_liked: bool,
        mask: NDArray[np.uint8],
        ids: NDArray[np.int32],
        best: NDArray[np.float32],
    ) -> None:
        votes = self._votes(rows, times)
        ties = UNORDERED if self.ties is None else tie_order_of(self)
        fill_best(rows, votes, self.weights_, skip_liked, mask, ids, best, ties)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int, times: Times = None) -> Shares:
        column = self.weights_[row.indices, item]
        shares = np.asarray(column.todense() if sp.issparse(column) else column, np.float64).ravel()
        shares *= self._votes(row, times)
        return float(shares.sum()), shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        some = self.weights_[ids]
        return some.toarray() if sp.issparse(some) else some

    def _check_state(self) -> None:
        check = expect_csr if sp.issparse(self.weights_) else expect
        check("weights_", self.weights_, (self.n_items_, self.n_items_), np.float32)
