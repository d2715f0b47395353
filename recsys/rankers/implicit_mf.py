"""Matrix factorisation by implicit: ALS, BPR and LMF behind checks that implicit lacks.

implicit crashes or answers silently on bad calls, so nothing reaches it unchecked; its
factors are copied out, and scoring is ours. BLAS runs on one thread around it, as it asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys.errors import FitError
from recsys.rankers._scoring import inner_products
from recsys.rankers.serialization import RANKERS, SavedRanker, expect
from recsys.utils.sparse import binary
from recsys.utils.validation import check_ids, check_integer, check_real, clean_matrix

AT_LEAST = {"factors": 1, "iterations": 1, "negatives": 1, "random_state": 0, "threads": 0}


class _Factors(SavedRanker):
    """A ranker by inner products of user and item factors."""

    user_factors_: NDArray[np.float32]
    item_factors_: NDArray[np.float32]
    factors: int
    threads: int

    def _model(self) -> Any:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        given = self.params()
        for key in given.keys() & AT_LEAST.keys():
            check_integer(key, given[key], AT_LEAST[key])
        for key in given.keys() & {"alpha", "learning_rate"}:
            check_real(key, given[key], 0.0, open_low=True)
        check_real("regularization", given["regularization"], 0.0)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        with threadpool_limits(limits=1, user_api="blas"):
            model = self._model()
            model.fit(self._matrix(liked), show_progress=show_progress, callback=callback)
        self.user_factors_ = np.ascontiguousarray(model.user_factors, dtype=np.float32)
        self.item_factors_ = np.ascontiguousarray(model.item_factors, dtype=np.float32)
        if not (np.isfinite(self.user_factors_).all() and np.isfinite(self.item_factors_).all()):
            raise FitError(f"{self.name} diverged: raise regularization or lower the learning rate")

    def _matrix(self, liked: sp.csr_matrix) -> sp.csr_matrix:
        """Return what implicit fits: a copy of ones, for it keeps references."""
        return binary(liked, liked.dtype)

    def _user_rows(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        return self.user_factors_[userids]

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        return inner_products(self._user_rows(userids, rows, recalculate), self.item_factors_)

    def item_embeddings(self) -> NDArray[np.float32]:
        """Return the item factors, (items, factors) float32."""
        self._check_fitted()
        return self.item_factors_

    def user_embeddings(self, user_items: Any) -> NDArray[np.float32]:
        """Return the factors of the users of fit, (users, factors) float32, one a row given.

        Raises
        ------
        InputError, NotFittedError
            Also if the rows are more than the users of fit.
        """
        self._check_fitted()
        rows = clean_matrix(user_items, n_items=self.n_items_)
        return self._user_rows(check_ids("userid", np.arange(rows.shape[0]), self.n_users_), rows, False)

    # implicit's models have these names, and code written for them reads them.

    @property
    def item_factors(self) -> NDArray[np.float32] | None:
        """(items, factors) float32, or None before fit."""
        return getattr(self, "item_factors_", None)

    @property
    def user_factors(self) -> NDArray[np.float32] | None:
        """(users, factors) float32, or None before fit."""
        return getattr(self, "user_factors_", None)

    @property
    def num_threads(self) -> int:
        """The parameter `threads`."""
        return self.threads

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """Of the factors."""
        return np.dtype(np.float32)

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._cosines(self.item_factors_, ids)

    def _user_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._cosines(self.user_factors_, ids)

    def _cosines(self, factors: Any, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        norms = np.linalg.norm(factors, axis=1, keepdims=True)
        unit = factors / np.where(norms > 0, norms, 1.0)
        return inner_products(unit[ids], unit)

    def _check_state(self) -> None:
        width = self.user_factors_.shape[-1]
        expect("user_factors_", self.user_factors_, (self.n_users_, width), np.float32)
        expect("item_factors_", self.item_factors_, (self.n_items_, width), np.float32)


@RANKERS.add("als")
@dataclass(eq=False)
class ALS(_Factors):
    """Weighted matrix factorisation by alternating least squares (WRMF), fitted by implicit.

    The confidence of a liked item is alpha × its value (implicit's reading), of any other item 1
    for the target 0. Hu, Koren and Volinsky write C = 1 + aR: with likes of value 1 that is
    alpha = 1 + a, so the thesis' a = 1 is `alpha=2`, and alpha = 1, the default, weighs likes
    and the rest alike.

    Parameters
    ----------
    factors : int ≥ 1
    regularization : float ≥ 0
    alpha : float > 0
        Confidence of a like of value 1.
    iterations : int ≥ 1
    random_state : int ≥ 0
    threads : int ≥ 0
        0 is all; the result does not depend on it.

    Notes
    -----
    Source: Hu, Koren and Volinsky 2008; Polato's thesis, (5.1).
    """

    factors: int = 64
    regularization: float = 10.0
    alpha: float = 1.0
    iterations: int = 15
    random_state: int = 0
    threads: int = 0

    name = "als"
    capabilities = frozenset({"fold-in", "similar-items", "similar-users"})

    def _model(self) -> Any:
        from implicit.als import AlternatingLeastSquares

        return AlternatingLeastSquares(
            factors=self.factors,
            regularization=self.regularization,
            alpha=self.alpha,
            iterations=self.iterations,
            random_state=self.random_state,
            num_threads=self.threads,
        )

    def _matrix(self, liked: sp.csr_matrix) -> sp.csr_matrix:
        return liked.copy()

    def _user_rows(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        """Return stored factors, or solve (YᵀY + λI + Yᵀ(C−I)Y) x = YᵀC1 for the rows."""
        if not recalculate:
            return self.user_factors_[userids]
        items = self.item_factors_.astype(np.float64)
        base = items.T @ items + self.regularization * np.eye(items.shape[1])
        out = np.zeros((rows.shape[0], items.shape[1]), dtype=np.float32)
        for u in range(rows.shape[0]):
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            Y, confidence = items[rows.indices[span]], self.alpha * rows.data[span].astype(np.float64)
            if len(Y):
                left = base + (Y.T * (confidence - 1.0)) @ Y
                out[u] = np.linalg.lstsq(left, Y.T @ confidence, rcond=None)[0]
        return out


@RANKERS.add("bpr")
@dataclass(eq=False)
class BPR(_Factors):
    """Bayesian personalised ranking by stochastic steps over pairs, fitted by implicit.

    Parameters
    ----------
    factors : int ≥ 1
    learning_rate : float > 0
    regularization : float ≥ 0
    iterations : int ≥ 1
    random_state : int ≥ 0
    threads : int ≥ 0
        1 is reproducible; with more, implicit's updates race. 0 is all.
    """

    factors: int = 64
    learning_rate: float = 0.05
    regularization: float = 0.01
    iterations: int = 100
    random_state: int = 0
    threads: int = 1

    name = "bpr"
    capabilities = frozenset({"similar-items", "similar-users"})

    def _model(self) -> Any:
        from implicit.bpr import BayesianPersonalizedRanking

        return BayesianPersonalizedRanking(
            factors=self.factors,
            learning_rate=self.learning_rate,
            regularization=self.regularization,
            iterations=self.iterations,
            random_state=self.random_state,
            num_threads=self.threads,
        )


@RANKERS.add("lmf")
@dataclass(eq=False)
class LMF(_Factors):
    """Logistic matrix factorisation with sampled negatives, fitted by implicit.

    Parameters
    ----------
    factors : int ≥ 1
    learning_rate : float > 0
    regularization : float ≥ 0
    iterations : int ≥ 1
    negatives : int ≥ 1
        Sampled per liked item.
    random_state : int ≥ 0
    threads : int ≥ 0
        1 is reproducible. 0 is all.
    """

    factors: int = 30
    learning_rate: float = 1.0
    regularization: float = 0.6
    iterations: int = 30
    negatives: int = 30
    random_state: int = 0
    threads: int = 1

    name = "lmf"
    capabilities = frozenset({"similar-items", "similar-users"})

    def _model(self) -> Any:
        from implicit.lmf import LogisticMatrixFactorization

        return LogisticMatrixFactorization(
            factors=self.factors,
            learning_rate=self.learning_rate,
            regularization=self.regularization,
            iterations=self.iterations,
            neg_prop=self.negatives,
            random_state=self.random_state,
            num_threads=self.threads,
        )
