"""Matrix factorisation by implicit: what ALS, BPR and LMF share, behind checks that implicit lacks.

implicit crashes or answers silently on bad calls, so nothing reaches it unchecked; its
factors are copied out, and scoring is ours. BLAS runs on one thread around it, as it asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recsys._jit import threads_of
from recsys.errors import FitError
from recsys.rankers._scoring import cosines, inner_products
from recsys.rankers.base import Ranker, expect
from recsys.utils.memory import check_fits
from recsys.utils.progress import report
from recsys.utils.sparse import binary
from recsys.utils.validation import MOST, check_ids, check_integer, check_real, clean_matrix

RANGES = {
    "factors": (1, MOST), "iterations": (1, MOST), "neg_prop": (1, MOST), "num_threads": (0, MOST),
    "random_state": (0, 2**32 - 1),
}  # fmt: skip


class ImplicitFactors(Ranker):
    """A ranker by inner products of user and item factors, which a model of implicit learns.

    Parameters
    ----------
    factors : int ≥ 1
    learning_rate : float > 0
    regularization : float ≥ 0
    iterations : int ≥ 1
    num_threads : int ≥ 0
        1 is reproducible; with more, implicit's updates race. 0 is all.
    """

    user_factors_: NDArray[np.float32]
    item_factors_: NDArray[np.float32]
    factors: int
    num_threads: int

    def _model(self, **params: Any) -> Any:
        """Return implicit's unfitted model; its parameters have the same names as ours."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        given = self.get_params()
        for key in given.keys() & RANGES.keys():
            check_integer(key, given[key], *RANGES[key])
        for key in given.keys() & {"alpha", "learning_rate"}:
            check_real(key, given[key], 0.0, open_low=True)
        check_real("regularization", given["regularization"], 0.0)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        users, items = liked.shape
        # float32, once in implicit's model and once copied out of it
        check_fits(
            (users + items) * self.factors,
            f"factors={self.factors} of {users:,} users and {items:,} items",
            "lower factors",
        )
        diverged = f"{self.name} diverged: raise regularization or lower the learning rate"
        with threads_of("OpenMP", self.num_threads), threadpool_limits(limits=1, user_api="blas"):
            model = self._model(**self.get_params())
            from implicit.recommender_base import ModelFitError, RecommenderBase

            RecommenderBase.register(Ranker)
            try:
                reporting = self._reporting(callback)  # from which the bar is drawn, as every ranker's
                model.fit(self._matrix(liked), show_progress=False, callback=reporting)
            except ModelFitError as error:
                raise FitError(f"{diverged} ({error})") from None
        self.user_factors_ = np.ascontiguousarray(model.user_factors, dtype=np.float32)
        self.item_factors_ = np.ascontiguousarray(model.item_factors, dtype=np.float32)
        if not (np.isfinite(self.user_factors_).all() and np.isfinite(self.item_factors_).all()):
            raise FitError(diverged)

    def _reporting(self, callback: Any) -> Any:
        """Return a callback that also reports each iteration."""
        total = int(self.get_params()["iterations"])

        def reporting(iteration: int, *more: Any) -> None:
            report(f"iteration {iteration + 1} of {total}", iteration + 1, total)
            if callback is not None:
                callback(iteration, *more)

        return reporting

    def _matrix(self, liked: sp.csr_matrix) -> sp.csr_matrix:
        """Return a copy of ones: implicit keeps references, and may refuse read-only arrays."""
        return binary(liked, liked.dtype).copy()

    def _scores(self, userids: NDArray[np.int64], rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self.user_factors_[userids], self.item_factors_)

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
        return self.user_factors_[check_ids("userid", np.arange(rows.shape[0]), self.n_users_)]

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
    def dtype(self) -> np.dtype[np.float32]:
        """Of the factors."""
        return np.dtype(np.float32)

    @property
    def item_norms(self) -> NDArray[np.float32] | None:
        """Euclidean lengths of the item factors, (items,) float32, 1 for a zero row; None before fit."""
        return _norms(self.item_factors)

    @property
    def user_norms(self) -> NDArray[np.float32] | None:
        """Euclidean lengths of the user factors, (users,) float32, 1 for a zero row; None before fit."""
        return _norms(self.user_factors)

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return cosines(self.item_factors_, ids)

    def _user_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return cosines(self.user_factors_, ids)

    def _check_state(self) -> None:
        width = self.user_factors_.shape[-1]
        expect("user_factors_", self.user_factors_, (self.n_users_, width), np.float32)
        expect("item_factors_", self.item_factors_, (self.n_items_, width), np.float32)


def _norms(factors: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Return lengths as implicit has them, which divides by them."""
    if factors is None:
        return None
    norms = np.linalg.norm(factors, axis=-1)
    return np.where(norms == 0, np.float32(1.0), norms)
