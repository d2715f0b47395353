"""Ridge regression on random features of the history, as a ranker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._history import Factors, HistoryRanker
from recsys.rankers.base import expect
from recsys.rankers.registry import RANKERS
from recsys.utils.linalg import solve_symmetric
from recsys.utils.validation import check_integer, check_real


@RANKERS.add("random-features")
@dataclass(eq=False)
class RandomFeaturesRanker(HistoryRanker):
    """Ridge regression of every item on random features of the history.

    Half profiles predict the other halves; the random features are those of the ANOVA kernel of order 2,
    with the history itself as more features.

    Parameters
    ----------
    n_components : int ≥ 1
        Random features.
    regularization : float > 0
    random_state : int ≥ 0

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = RandomFeaturesRanker(n_components=16).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    n_components: int = 512
    regularization: float = 1.0
    random_state: int = 0

    name: ClassVar[str] = "random-features"
    search_space: ClassVar[dict[str, Any]] = {
        "n_components": (256, 512, 1024),
        "regularization": ("log", 0.01, 100.0),
    }

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_integer("random_state", self.random_state, 0)
        check_real("regularization", self.regularization, 0.0, open_low=True)

    def _learn(self, liked: sp.csr_matrix) -> None:
        from recsys.random_features import RandomKernelMap  # late: it imports scikit-learn

        rng = np.random.default_rng(self.random_state)
        half, other, whose = self._training(liked, rng)
        if half.nnz == 0:  # no user has two items
            half, other, whose = liked, liked, np.arange(liked.shape[0])
        source = self._rows(half, whose)
        fresh = RandomKernelMap(
            kernel="anova", degree=2, n_components=self.n_components, random_state=self.random_state
        ).fit(source)
        self.projections_ = np.ascontiguousarray(fresh.bases_, dtype=np.float64)
        Z = self._row_vectors(half, whose)
        gram = Z.T @ Z
        gram[np.diag_indices(len(gram))] += self.regularization
        self.item_vectors_ = np.ascontiguousarray(
            solve_symmetric(gram, np.asarray(other.T @ Z).T).T, dtype=np.float32
        )

    def _row_vectors(self, rows: sp.csr_matrix, users: NDArray[np.int64] | None = None) -> Factors:
        A = self._rows(rows, users)
        first = np.asarray(A @ self.projections_)
        second = np.asarray(A.multiply(A) @ (self.projections_**2))
        z = 0.5 * (first**2 - second) / np.sqrt(first.shape[1])
        return np.hstack([z, first / np.sqrt(first.shape[1]), np.ones((len(z), 1))])

    def _check_state(self) -> None:
        self._check_user_features()
        features, width = self._width(self.n_items_), self.projections_.shape[-1]
        expect("projections_", self.projections_, (features, width), np.float64)
        expect("item_vectors_", self.item_vectors_, (self.n_items_, 2 * width + 1), np.float32)
