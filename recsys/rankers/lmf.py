"""LMF: logistic matrix factorisation, fitted by implicit; any row of interactions is folded in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._implicit_factors import ImplicitFactors
from recsys.rankers._logistic_fold_in import LEAST_RIDGE, logistic_fold_in
from recsys.rankers._scoring import inner_products
from recsys.rankers.base import Candidate, Shares
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented

MOST_LIKES = 300_000  # beyond, folding in users takes `auto` too long


@RANKERS.add("lmf")
@documented
@dataclass(eq=False)
class LMF(ImplicitFactors):
    """Logistic matrix factorisation with sampled negatives, fitted by implicit.

    Scores are x·y_i + b_i + c: log-odds of an interaction, with factors x of the user and y of the item
    and a bias of each. Users of the fit are scored by the factors it found; new ones, and all in a
    blend, are folded in: x and c are the most likely ones given their interactions and the items'
    factors.

    Parameters
    ----------
    neg_prop : int ≥ 1
        Sampled per liked item, by popularity; at most factors + 2 for each user and item, as implicit
        0.7 bounds them, so that who has more interactions has a larger bias.

    Notes
    -----
    Source: Johnson, Logistic matrix factorization for implicit feedback data, 2014. At the most likely x
    the derivative is 0, hence λx = Σ_{i liked} (1 − σ(s_i)) y_i less what the sampled items say: the
    share of interaction i in the score of t is (1 − σ(s_i)) y_i·y_t / λ, without the biases.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = LMF(factors=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 30
    learning_rate: float = 1.0
    regularization: float = 0.6
    iterations: int = 30
    neg_prop: int = 30
    random_state: int = 0
    num_threads: int = 1

    name: ClassVar[str] = "lmf"
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (8, 16, 32),
        "regularization": ("log", 0.01, 10.0),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("factors=8,regularization=2", most_likes=MOST_LIKES),
    )

    def _model(self, **params: Any) -> Any:
        from implicit.lmf import LogisticMatrixFactorization

        return LogisticMatrixFactorization(**params)

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self._folded(rows), self.item_factors_)

    def _folded(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        """Return the factors of rows of interactions, (rows, factors + 2)."""
        negatives = np.minimum(np.diff(rows.indptr) * float(self.neg_prop), self.item_factors_.shape[1])
        return logistic_fold_in(
            rows, self.item_factors_, self.popularity_, self.regularization, negatives
        )

    def _explain_folded_in(self) -> Any:
        return self._explain_rows

    def _explain_rows(
        self, userid: int, row: sp.csr_matrix, items: NDArray[np.int64], **timed: Any
    ) -> list[Shares]:
        x = self._folded(row)
        scores = inner_products(x, self.item_factors_)[0]
        missing = 1.0 / (1.0 + np.exp(scores[row.indices].astype(np.float64)))
        free = np.delete(self.item_factors_, -2, axis=1).astype(np.float64)
        ridge = max(float(self.regularization), LEAST_RIDGE)
        shares = missing * (free[items] @ free[row.indices].T) / ridge
        return list(zip(scores[items].astype(float).tolist(), shares, strict=True))
