"""HONFM: a network on a factorization machine's products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.rankers._network import NetworkRanker
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("honfm")
@documented
@dataclass(eq=False)
class HONFMRanker(NetworkRanker):
    """A network on a factorization machine's products of history and item, of order 2 to `degree`.

    Notes
    -----
    Source: Atarashi's thesis, 3.4.3. PyTorch fits it.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = HONFMRanker(iterations=2, hidden=8).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    name: ClassVar[str] = "honfm"
    link: ClassVar[str] = "HONFM"

    def _coefficients(self, order: int) -> NDArray[np.float64]:
        return np.ones(order + 1)
