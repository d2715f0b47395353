"""ALS, or WRMF: weighted matrix factorisation, fitted by implicit, or here with a ridge for each row."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import FitError
from recsys.rankers._implicit_factors import ImplicitFactors
from recsys.rankers._scoring import inner_products
from recsys.rankers._weighted_least_squares import least_squares
from recsys.rankers.registry import RANKERS
from recsys.utils.linalg import least_squares as shortest_solution
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_real

START = 0.1  # deviation of the factors' lengths at the start, where the ridge depends on the row


@RANKERS.add("als")
@dataclass(eq=False)
class ALS(ImplicitFactors):
    """Weighted matrix factorisation by alternating least squares (WRMF), fitted by implicit.

    Minimises Σ_ui c_ui(p_ui − x_u·y_i)² + Σ_u λ_u‖x_u‖² + Σ_i λ_i‖y_i‖², where p = 1 for
    interactions. All λ are equal. With `ridge_power` they grow with the number of interactions, as
    in Rendle et al.'s iALS.

    The confidence of a liked item is alpha × its value (implicit's reading), of any other item 1
    for the target 0. Hu, Koren and Volinsky write C = 1 + aR: with interactions of value 1 that is
    alpha = 1 + a. The thesis' a = 1 is `alpha=2`, with which `benchmarks/table_10_3.py` runs it;
    alpha = 1, the default, is a = 0 and weighs interactions and the rest alike.

    Parameters
    ----------
    factors : int ≥ 1
    regularization : float ≥ 0
        λ; with `ridge_power` its mean over all users and items.
    alpha : float > 0
        Confidence of an interaction of value 1.
    iterations : int ≥ 1
    random_state : int ≥ 0
    num_threads : int ≥ 0
        0 is all; the result does not depend on it.
    ridge_power : float in 0…4
        ν: the λ of a user or item grows as the ν-th power of the sum of its confidences, alpha times
        its interactions and 1 for each of the others. 0 for the same λ; 1 is theirs. implicit has no
        such ridge: above 0 each row is solved exactly, here.

    Attributes
    ----------
    ridge_scale_ : float
        What the powers are multiplied with, so that λ is the mean; with `ridge_power` only.

    Notes
    -----
    Sources: Hu, Koren and Volinsky 2008; Polato's thesis, (5.1), whose print has the target 1 for all
    pairs; Rendle, Krichene, Zhang and Koren, Revisiting the performance of iALS on item recommendation
    benchmarks, 2022, for `ridge_power`. Their weight α₀ of all pairs beside 1 for interactions is
    alpha = 1 + 1/α₀ here; the targets, and with them the scores and λ, differ by a factor.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = ALS(factors=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 64
    regularization: float = 10.0
    alpha: float = 1.0
    iterations: int = 15
    random_state: int = 0
    num_threads: int = 0
    ridge_power: float = 0.0

    name: ClassVar[str] = "als"
    weighted: ClassVar[bool] = True  # values above 0 are confidences
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (16, 32, 64, 128),
        "regularization": ("log", 0.1, 100.0),
        "alpha": ("log", 0.5, 40.0),
        "ridge_power": (0.0, 0.5, 1.0),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("ridge_power", self.ridge_power, 0.0, 4.0)

    def _scaled(self) -> bool:
        """Return whether each row has a ridge of its own; where λ is 0, none has any."""
        return self.ridge_power > 0 and self.regularization > 0

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        vars(self).pop("ridge_scale_", None)
        if not self._scaled():
            super()._fit(liked, show_progress, callback)
            return
        users, items = liked.shape
        check_fits(
            2 * (users + items) * self.factors,  # float64 of one side, beside both in float32
            f"factors={self.factors} of {users:,} users and {items:,} items",
            "lower factors",
        )
        by_user = sp.csr_matrix(liked, dtype=np.float64) * float(self.alpha)
        by_item = by_user.T.tocsr()
        totals = [_totals(by_user), _totals(by_item)]
        powers = [total ** float(self.ridge_power) for total in totals]
        self.ridge_scale_ = (users + items) / float(sum(power.sum() for power in powers))
        ridges = [float(self.regularization) * self.ridge_scale_ * power for power in powers]
        rng = np.random.default_rng(self.random_state)
        deviation = START / np.sqrt(self.factors)
        Y = rng.normal(0.0, deviation, (items, self.factors)).astype(np.float32)
        reporting = self._reporting(callback)
        for iteration in range(self.iterations):
            start = time.perf_counter()
            X = least_squares(by_user, Y, ridges[0], self.num_threads)
            Y = least_squares(by_item, X, ridges[1], self.num_threads)
            reporting(iteration, time.perf_counter() - start, None)
        if not (np.isfinite(X).all() and np.isfinite(Y).all()):
            raise FitError("als diverged: raise regularization")
        self.user_factors_, self.item_factors_ = X, Y

    def _model(self, **params: Any) -> Any:
        from implicit.als import AlternatingLeastSquares

        del params["ridge_power"]  # ours
        return AlternatingLeastSquares(**params)

    def _matrix(self, liked: sp.csr_matrix) -> sp.csr_matrix:
        return liked.copy()

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self._folded(rows), self.item_factors_)

    def _folded(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        """Solve (YᵀY + λI + Yᵀ(C−I)Y) x = YᵀC1 for the rows, each with its λ."""
        if hasattr(self, "ridge_scale_"):
            given = sp.csr_matrix(rows, dtype=np.float64) * float(self.alpha)
            ridge = float(self.regularization) * self.ridge_scale_
            ridges = ridge * _totals(given) ** float(self.ridge_power)
            return least_squares(given, self.item_factors_, ridges, self.num_threads)
        items = self.item_factors_.astype(np.float64)
        base = items.T @ items + self.regularization * np.eye(items.shape[1])
        out = np.zeros((rows.shape[0], items.shape[1]), dtype=np.float32)
        for u in range(rows.shape[0]):
            span = slice(rows.indptr[u], rows.indptr[u + 1])
            Y, confidence = items[rows.indices[span]], self.alpha * rows.data[span].astype(np.float64)
            if len(Y):
                left = base + (Y.T * (confidence - 1.0)) @ Y
                out[u] = shortest_solution(left, Y.T @ confidence)
        return out

    def _check_state(self) -> None:
        super()._check_state()
        scale = getattr(self, "ridge_scale_", None if self._scaled() else 1.0)
        if type(scale) is not float or not 0 < scale < np.inf:
            raise ValueError("ridge_scale_ should be a number above 0")


def _totals(confidences: sp.csr_matrix) -> NDArray[np.float64]:
    """Return the sum of each row's confidences, of which those not stored are 1."""
    stored = np.diff(confidences.indptr)
    return np.asarray(confidences.sum(axis=1)).ravel() + (confidences.shape[1] - stored)
