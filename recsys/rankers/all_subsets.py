"""The all-subsets model as a ranker of history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._history import Factors, HistoryRanker
from recsys.rankers._pair_terms import HISTORY_LOSSES, SEARCHED
from recsys.rankers.base import expect
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.validation import check_choice, check_real


@RANKERS.add("all-subsets")
@documented
@dataclass(eq=False)
class AllSubsetsRanker(HistoryRanker):
    """The all-subsets model on history and item: Σ_s Π_j(1 + p_js a_j)·Π_i(1 + q_is b_i).

    Parameters
    ----------
    loss : "logistic", "bpr" or "auc"
        Of pairs of history and item alone, or of a liked one against one that is not.
    learning_rate : float > 0
        Of AdaGrad.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = AllSubsetsRanker(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 12
    regularization: float = 1e-5
    loss: str = "bpr"
    neg_prop: int = 3
    iterations: int = 6
    learning_rate: float = 0.1
    random_state: int = 0

    name: ClassVar[str] = "all-subsets"
    search_space: ClassVar[dict[str, Any]] = SEARCHED | {"loss": HISTORY_LOSSES}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, HISTORY_LOSSES)
        check_real("learning_rate", self.learning_rate, 0.0, open_low=True)

    def _learn(self, liked: sp.csr_matrix) -> None:
        found = self._training_pairs(liked)
        if found is None:
            self.left_ = np.zeros((self._width(liked.shape[1]), 1))
            self.item_vectors_ = self._popularities(liked)
            return
        from recsys.fm import AllSubsetsClassifier  # late: it imports scikit-learn

        A, B, pairs, y = found
        X = sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr")
        model = AllSubsetsClassifier(
            n_components=self.factors, beta=self.regularization, loss=self.loss, solver="adagrad",
            max_iter=self.iterations, tol=0.0, learning_rate=self.learning_rate,
            random_state=self.random_state, batch_size=8,
        ).fit(X, y)  # fmt: skip
        P = model.P_[0][0]
        self.left_ = np.ascontiguousarray(P[: A.shape[1]])
        self.item_vectors_ = self._item_vectors(P[A.shape[1] :], B)

    def _item_vectors(self, right: Factors, B: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the item side, evaluated on every item's features, (items, factors)."""
        sides = [products(B, right[:, s]) for s in range(right.shape[1])]
        return np.ascontiguousarray(np.array(sides).T, dtype=np.float32)

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        A = self._rows(rows, users)
        return np.array([products(A, self.left_[:, s]) for s in range(self.left_.shape[1])]).T

    def _check_state(self) -> None:
        self._check_user_features()
        features, width = self._width(self.n_items_), self.left_.shape[-1]
        expect("left_", self.left_, (features, width), np.float64)
        expect("item_vectors_", self.item_vectors_, (self.n_items_, width), np.float32)


def products(X: sp.csr_matrix, p: Factors) -> Factors:
    """Return Π_j (1 + p_j x_j) of each row."""
    terms = 1.0 + X.data * p[X.indices]
    out = np.ones(X.shape[0])
    full = np.flatnonzero(np.diff(X.indptr))
    out[full] = np.multiply.reduceat(terms, X.indptr[full])
    return out
