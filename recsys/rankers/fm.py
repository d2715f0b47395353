"""FM: a factorization machine of order 2 on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._machine_terms import MachineRanker
from recsys.rankers.registry import RANKERS


@RANKERS.add("fm")
@dataclass(eq=False)
class FM(MachineRanker):
    """A factorization machine of order 2 on history and item, fitted to sampled pairs.

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

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = FM(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 16
    regularization: float = 2e-5
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0
    loss: str = "logistic"

    name: ClassVar[str] = "fm"
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (8, 16, 32),
        "regularization": ("log", 1e-6, 1e-3),
        "neg_prop": (1, 3, 5),
        "iterations": (15, 30, 60),
    }

    def _order(self) -> int:
        return 2
