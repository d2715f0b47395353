"""Base of rankers whose scores are sums over features of a history: shares of items, and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._history import FeatureRanker
from recsys.rankers.base import Shares
from recsys.utils.validation import check_ids


class Products(NamedTuple):
    """A score as a sum: base + Σ singles + Σ pairs + higher."""

    features: NDArray[np.int32]  # (n,): those of the user, then the items' known ones, then the items
    base: float  # the item's own
    singles: NDArray[np.float64]  # what each feature adds, with the item
    pairs: NDArray[np.float64]  # what each two add together, (n, n), above the diagonal
    higher: float  # what more than two add together


class ExplainedRanker(FeatureRanker):
    """A ranker whose scores are sums of contributions of single features and of several together."""

    def _feature_shares(self, A: sp.csr_matrix, item: int) -> NDArray[np.float64]:
        """Return what each feature of a history adds to a score, (nnz,); products are shared."""
        raise NotImplementedError

    def _products(self, A: sp.csr_matrix, item: int) -> Products:
        """Return the contributions of single features of a history, and of several together."""
        raise NotImplementedError

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> Shares:
        return self._explain_row(np.array([userid]), row, item)

    def _explain_folded_in(self) -> Callable[..., list[Shares]]:
        """Return what explains scores of rows of unknown users, without features of users."""
        return lambda userid, row, items, **timed: [
            self._explain_row(None, row, item) for item in items.tolist()
        ]

    def _explain_row(self, users: NDArray[np.int64] | None, row: sp.csr_matrix, item: int) -> Shares:
        """Return a score and what each item of the row adds to it."""
        scores = self._fold_in_scores(row) if users is None else self._scores(users, row)
        A = self._rows(row, users)
        return float(scores[0, item]), self._item_rows(row, A) @ self._feature_shares(A, item)

    def products(
        self, userid: int, row: sp.csr_matrix, item: int, *, recalculate_user: bool = False
    ) -> Products:
        """Return the contributions to a score of single features of a history and of pairs of features.

        Parameters
        ----------
        userid : int
        row : (1, items) CSR
            The history.
        item : int
        recalculate_user : bool
            As in `explain`.

        Raises
        ------
        InputError, NotFittedError
            As `explain`.
        """
        self._check_fitted()
        check_ids("item", item, self.n_items_)
        return self._products(self._rows(row, None if recalculate_user else np.array([userid])), item)

    def _item_rows(self, row: sp.csr_matrix, A: sp.csr_matrix) -> sp.csr_matrix:
        """Return how much of each feature of the history comes from each liked item, (liked, nnz)."""
        users = sp.csr_matrix((row.nnz, self._n_user_features))
        items = self._items(row.shape[1])[row.indices]
        B = sp.hstack([users, items], format="csc")[:, A.indices].tocsc()
        totals = np.asarray(B.sum(axis=0)).ravel()
        scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals != 0)
        return sp.csr_matrix(B @ sp.diags(scale))
