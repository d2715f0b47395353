"""BPR: Bayesian personalised ranking, fitted by implicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._implicit_factors import ImplicitFactors
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("bpr")
@documented
@dataclass(eq=False)
class BPR(ImplicitFactors):
    """Bayesian personalised ranking by stochastic steps over pairs, fitted by implicit.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = BPR(factors=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 64
    learning_rate: float = 0.05
    regularization: float = 0.01
    iterations: int = 100
    random_state: int = 0
    num_threads: int = 1

    name: ClassVar[str] = "bpr"
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (16, 32, 64, 128),
        "regularization": ("log", 1e-4, 0.1),
        "learning_rate": ("log", 0.005, 0.2),
        "iterations": (30, 100, 300),
    }

    def _model(self, **params: Any) -> Any:
        from implicit.bpr import BayesianPersonalizedRanking

        return BayesianPersonalizedRanking(**params)
