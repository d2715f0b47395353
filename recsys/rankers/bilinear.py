"""Bilinear scores of history and item, of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._pair_terms import PairTermRanker
from recsys.rankers.base import Candidate
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("bilinear")
@documented
@dataclass(eq=False)
class BilinearRanker(PairTermRanker):
    """Low-rank bilinear scores of history and item, aᵀUVᵀb, fitted to sampled pairs (logistic loss).

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = BilinearRanker(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 16
    regularization: float = 2e-5
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0

    name: ClassVar[str] = "bilinear"
    link: ClassVar[str] = "FactorizedBilinear"
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (8, 16, 32, 64),
        "regularization": ("log", 1e-6, 1e-3),
        "neg_prop": (1, 3, 5),
        "iterations": (15, 30, 60),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate(most_likes=150_000),  # beyond, its fit is too long
    )
