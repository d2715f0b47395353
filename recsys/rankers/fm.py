"""FM: a factorization machine of order 2 on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._machine_terms import MachineRanker
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("fm")
@documented
@dataclass(eq=False)
class FM(MachineRanker):
    """A factorization machine of order 2 on history and item, fitted to sampled pairs.

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
    penalty: str = "l2"
    gamma: float = 1e-7
    solver: str = "auto"

    name: ClassVar[str] = "fm"
    degree: ClassVar[int] = 2  # type: ignore[misc]
    search_space: ClassVar[dict[str, Any]] = {
        "factors": (8, 16, 32),
        "regularization": ("log", 1e-6, 1e-3),
        "neg_prop": (1, 3, 5),
        "iterations": (15, 30, 60),
    }
