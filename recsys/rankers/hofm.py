"""HOFM: a factorization machine of any order on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._machine_terms import MachineRanker
from recsys.rankers._pair_terms import SEARCHED
from recsys.rankers.registry import RANKERS


@RANKERS.add("hofm")
@dataclass(eq=False)
class HOFM(MachineRanker):
    """A factorization machine of any order on history and item, fitted to sampled pairs.

    Parameters
    ----------
    factors : int ≥ 1
        Rank.
    regularization : float ≥ 0
    neg_prop : int ≥ 1
        Items not liked that are drawn for each liked one.
    iterations : int ≥ 1
        Passes over the pairs.
    random_state : int ≥ 0
    loss : "logistic", "bpr" or "auc"
        Of pairs of history and item alone, by coordinate descent; or of a liked one against one that is
        not (logistic, squared hinge), by AdaGrad, which takes longer.
    degree : int from 2 to 6
        Highest order of the products.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = HOFM(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 12
    regularization: float = 2e-5
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0
    loss: str = "logistic"
    degree: int = 3

    name: ClassVar[str] = "hofm"
    search_space: ClassVar[dict[str, Any]] = SEARCHED | {"degree": (2, 3)}

    def _order(self) -> int:
        return self.degree
