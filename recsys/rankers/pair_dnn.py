"""PairDNN: a network on products across history and item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.rankers._network import NetworkRanker
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented


@RANKERS.add("pair-dnn")
@documented
@dataclass(eq=False)
class PairDNNRanker(NetworkRanker):
    """A network on products across history and item, of order 2 to `degree`: HOPairDNN above 2.

    Notes
    -----
    Source: Atarashi's thesis, 3.3.7. PyTorch fits it.

    Examples
    --------
    >>> from recsys.datasets import planted_catalogue
    >>> likes = planted_catalogue(40, 30, seed=1).interactions.matrix
    >>> model = PairDNNRanker(iterations=2, hidden=8).fit(likes, show_progress=False)
    >>> model.recommend(0, likes[0], N=3).ids.shape
    (3,)
    """

    name: ClassVar[str] = "pair-dnn"
    link: ClassVar[str] = "PairDNN"

    def _coefficients(self, order: int) -> NDArray[np.float64]:
        return np.array([0.0, *[1.0] * (order - 1), 0.0])
