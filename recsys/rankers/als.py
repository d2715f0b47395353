"""ALS, or WRMF: weighted matrix factorisation, fitted by implicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers._implicit_factors import ImplicitFactors
from recsys.rankers._scoring import inner_products
from recsys.rankers.registry import RANKERS


@RANKERS.add("als")
@dataclass(eq=False)
class ALS(ImplicitFactors):
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
    num_threads : int ≥ 0
        0 is all; the result does not depend on it.

    Notes
    -----
    Source: Hu, Koren and Volinsky 2008; Polato's thesis, (5.1).

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

    name: ClassVar[str] = "als"
    compared: ClassVar[tuple[str, ...]] = ("",)
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (16, 32, 64, 128),
        "regularization": ("log", 0.1, 100.0),
        "alpha": ("log", 0.5, 40.0),
    }

    def _model(self, **params: Any) -> Any:
        from implicit.als import AlternatingLeastSquares

        return AlternatingLeastSquares(**params)

    def _matrix(self, liked: sp.csr_matrix) -> sp.csr_matrix:
        return liked.copy()

    def _fold_in_scores(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        return inner_products(self._folded(rows), self.item_factors_)

    def _folded(self, rows: sp.csr_matrix) -> NDArray[np.float32]:
        """Solve (YᵀY + λI + Yᵀ(C−I)Y) x = YᵀC1 for the rows."""
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
