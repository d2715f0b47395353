"""HOFM: a factorization machine of any order on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._machine_terms import MachineRanker
from recsys.rankers._pair_terms import SEARCHED
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("hofm")
@documented
@dataclass(eq=False)
class HOFM(MachineRanker):
    """A factorization machine of any order on history and item, fitted to sampled pairs.

    Parameters
    ----------
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
    penalty: str = "l2"
    gamma: float = 1e-7
    solver: str = "auto"

    name: ClassVar[str] = "hofm"
    search_space: ClassVar[dict[str, Any]] = SEARCHED | {"degree": (2, 3)}
