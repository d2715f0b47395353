"""The unpersonalised baseline: items by their number of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.rankers.base import Candidate, Data, Ranker, Rows
from recsys.rankers.registry import RANKERS


@RANKERS.add("popularity")
@dataclass(eq=False)
class Popularity(Ranker):
    """Score every item by the number of users who like it.

    Examples
    --------
    >>> model = Popularity().fit([[1, 1, 0], [0, 1, 0]], show_progress=False)
    >>> model.scores(0, [[0, 0, 1]])
    array([[1., 2., 0.]], dtype=float32)
    """

    name: ClassVar[str] = "popularity"
    candidates: ClassVar[tuple[Candidate, ...]] = (Candidate(),)

    def _fit(self, data: Data) -> None:
        """Learn nothing beyond the base class's counts."""

    def _scores(self, rows: Rows, users: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        return np.tile(self.popularity_, (rows.matrix.shape[0], 1))
