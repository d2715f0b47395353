"""Base of MSDw, EASE, SLIM and neighbors: scores are sums of rows of an item × item matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers.base import Lists, Ranker, Rows, Shares
from recsys.rankers.recency import recency_weights
from recsys.rankers.scoring import best_sums, entries_between, sparse_sums, weighted_rows
from recsys.utils.sparse import binary, entries_of
from recsys.utils.validation import check_real

SMALL = 128_000_000  # bytes of sparse weights that are kept dense


def co_occurrences(liked: sp.csr_matrix, votes: NDArray[np.float64] | None = None) -> sp.csr_matrix:
    """Return XᵀDX of the interactions' pattern X, D the users' votes, 1 if not given: float64 CSR."""
    X = binary(liked)
    left = X if votes is None else sp.diags(votes) @ X
    out = sp.csr_matrix(left.T @ X)
    out.sort_indices()
    return out


def kept_form(weights: sp.csr_matrix) -> NDArray[np.float32] | sp.csr_matrix:
    """Return float32 weights as an array where that is small, else as they are."""
    dense = 4 * weights.shape[0] ** 2 <= SMALL
    return weights.toarray() if dense else weights


class ItemWeights(Ranker):
    """Base of the rankers that sum rows of an item × item matrix over the liked items.

    `weights_[i, j]`, dense or CSR, is the contribution of item i to the score of item j. `recency`
    reduces contributions of older interactions.
    """

    weights_: Any
    recency: float = 0.0

    uses: ClassVar[frozenset[str]] = frozenset({"times"})

    def _check_parameters(self) -> None:
        check_real("recency", self.recency, 0.0)

    def _votes(self, rows: Rows) -> NDArray[np.float64]:
        """Return the weight of each entry of the rows."""
        return recency_weights(rows.matrix, rows.times, self.recency)

    def _weighed(self, rows: Rows) -> sp.csr_matrix:
        """Return the rows as they are multiplied with `weights_`."""
        return entries_of(rows.matrix, self._votes(rows))

    def _scores(self, rows: Rows, users: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        x = self._weighed(rows)
        sums = sparse_sums if sp.issparse(self.weights_) else weighted_rows
        return sums(x, x.data, self.weights_)

    def _best(self, rows: Rows, N: int, skip_liked: bool, mask: NDArray[np.uint8]) -> Lists | None:
        if not sp.issparse(self.weights_):
            return None
        x = self._weighed(rows)
        return best_sums(x, x.data, self.weights_, N, skip_liked, mask)

    def _explain(
        self, rows: Rows, items: Sequence[NDArray[np.int64]], users: NDArray[np.int64] | None = None
    ) -> list[Shares]:
        x, out = self._weighed(rows), []
        spans, features = Rows(x).spans, x.shape[1] // rows.matrix.shape[1]
        blocks = entries_between(self.weights_, [x.indices[span] for span in spans], items)
        for span, block, own in zip(spans, blocks, rows.spans, strict=True):
            shape = (len(block), features, own.stop - own.start)  # a liked item may be several features
            shares = (x.data[span] * block).reshape(shape).sum(axis=1)
            out.append((shares.sum(axis=1), shares))
        return out

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        some = self.weights_[ids]
        return some.toarray() if sp.issparse(some) else some
