"""PairNet: a pairwise network on history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from recsys.rankers._pair_terms import SEARCHED, PairTermRanker
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("pairnet")
@documented
@dataclass(eq=False)
class PairNetRanker(PairTermRanker):
    """A pairwise network: products across history and item only, of order 2 to `degree`.

    Parameters
    ----------
    degree : int from 2 to 6
        Highest order of the products.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = PairNetRanker(iterations=2).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    factors: int = 12
    regularization: float = 2e-5
    neg_prop: int = 3
    iterations: int = 20
    random_state: int = 0
    degree: int = 3

    name: ClassVar[str] = "pairnet"
    link: ClassVar[str] = "PairNet"
    search_space: ClassVar[dict[str, Any]] = SEARCHED | {"degree": (2, 3)}

    def _model(self, **common: Any) -> Any:
        return super()._model(degree=self.degree, **common)
