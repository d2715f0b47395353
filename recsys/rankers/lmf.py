"""LMF: logistic matrix factorisation, fitted by implicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._implicit_factors import ImplicitFactors
from recsys.rankers.registry import RANKERS


@RANKERS.add("lmf")
@dataclass(eq=False)
class LMF(ImplicitFactors):
    """Logistic matrix factorisation with sampled negatives, fitted by implicit.

    Parameters
    ----------
    factors : int ≥ 1
    learning_rate : float > 0
    regularization : float ≥ 0
    iterations : int ≥ 1
    neg_prop : int ≥ 1
        Sampled per liked item.
    random_state : int ≥ 0
    num_threads : int ≥ 0
        1 is reproducible. 0 is all.

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

    def _model(self, **params: Any) -> Any:
        from implicit.lmf import LogisticMatrixFactorization

        return LogisticMatrixFactorization(**params)
