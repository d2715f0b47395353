"""Bayesian FM: the mean of a factorization machine's posterior, on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.multilinear import PairTerm
from recsys.rankers._machine_terms import term_of
from recsys.rankers._pair_terms import PairTermRanker
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.validation import check_integer, check_real


@RANKERS.add("bayesian-fm")
@documented
@dataclass(eq=False)
class BayesianFM(PairTermRanker):
    """A factorization machine of order 2 by Gibbs sampling: scores are means over draws.

    There is no regularization to choose: the priors of weights and factors are drawn, too. Scores are
    arguments of a probit, and `score_interval` says how far they vary.

    Parameters
    ----------
    factors : int ≥ 1
        Rank of each draw.
    iterations : int ≥ 1
        Sweeps over all parameters.
    draws : int ≥ 1, at most `iterations`
        The last so many sweeps are kept. Memory, files and the time of a list grow with them.

    Notes
    -----
    Source: Freudenthaler, Schmidt-Thieme, Rendle, Bayesian Factorization Machines (2011), by
    `recsys.fm.BayesianFactorizationMachineClassifier`.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = BayesianFM(iterations=4, draws=2).fit(likes, show_progress=False)
    >>> ids, scores = model.recommend(0, likes[0], N=3)
    >>> low, high = model.score_interval(0, likes[0], ids).T
    >>> bool((low <= scores).all() and (scores <= high).all())
    True
    """

    factors: int = 8
    neg_prop: int = 3
    iterations: int = 40
    draws: int = 16
    random_state: int = 0

    name: ClassVar[str] = "bayesian-fm"
    search_space: ClassVar[dict[str, Any]] = {"factors": (4, 8, 16), "neg_prop": (1, 3, 5)}
    regularization: ClassVar[float] = 0.0  # type: ignore[misc]  # the priors have it

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("draws", self.draws, 1, self.iterations)

    def _terms(
        self, A: sp.csr_matrix, B: sp.csr_matrix, pairs: NDArray[np.int64], y: NDArray[np.int8]
    ) -> list[PairTerm]:
        from recsys.fm import BayesianFactorizationMachineClassifier  # late: it imports scikit-learn

        rows = sp.hstack([A[pairs[:, 0]], B[pairs[:, 1]]], format="csr")
        model = BayesianFactorizationMachineClassifier(
            n_components=self.factors, n_draws=self.iterations, burn_in=self.iterations - self.draws,
            fit_intercept=False, random_state=self.random_state,
        ).fit(rows, y)  # fmt: skip
        width, d = rows.shape[1], A.shape[1]
        w = model.draws_[:, 1 : 1 + width].T
        P = model.draws_[:, 1 + width :].reshape(self.draws, width, self.factors)
        return [
            term_of(w, d, 1, 1.0 / self.draws),
            term_of(P.transpose(1, 0, 2).reshape(width, -1), d, 2, 1.0 / self.draws),
        ]

    def score_interval(
        self,
        userid: int,
        user_items: sp.csr_matrix,
        items: ArrayLike,
        level: float = 0.9,
        *,
        recalculate_user: bool = False,
    ) -> NDArray[np.float64]:
        """Return between which values a share `level` of the draws scores items for a user.

        Parameters
        ----------
        userid : int
        user_items : (1, items) CSR
            What the user has.
        items : (n,) int
        level : float in (0, 1)
            The ends cut off equal shares of the draws.
        recalculate_user : bool
            Whether the row is not that of the user's fit.

        Returns
        -------
        (n, 2) float64
        """
        level = check_real("level", level, 0.0, 1.0, open_low=True, open_high=True)
        self._check_fitted()
        users = None if recalculate_user else np.array([userid])
        left = self._row_vectors(sp.csr_matrix(user_items), users)[0]
        found = left * self.item_vectors_[np.asarray(items, dtype=np.int64)]
        if not self.degrees_:  # nothing was learned: items are ordered by popularity
            return np.repeat(found, 2, axis=1)
        linear = found[:, : 2 * self.draws].reshape(len(found), self.draws, -1)
        products = found[:, 2 * self.draws :].reshape(len(found), self.draws, -1)
        each = self.draws * (linear.sum(axis=2) + products.sum(axis=2))
        tail = 0.5 * (1.0 - level)
        return np.quantile(each, [tail, 1.0 - tail], axis=1).T
