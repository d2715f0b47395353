"""The unpersonalised baseline: items by their number of users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recsys.rankers.base import Candidate, Data, Ranker, Rows
from recsys.rankers.protocol import Users
from recsys.rankers.registry import register_ranker
from recsys.utils.validation import check_flag


@register_ranker("popularity")
class Popularity(Ranker):
    """Score every item by the number of users who like it.

    Parameters
    ----------
    unseen : bool
        Whether to score items without users 1 and others 0, instead of by number of users.

    Examples
    --------
    >>> model = Popularity().fit([[1, 1, 0], [0, 1, 0]], show_progress=False)
    >>> model.scores(0, [[0, 0, 1]])
    array([[1., 2., 0.]], dtype=float32)
    """

    unseen: bool = False

    checks = {"unseen": check_flag}
    candidates = (Candidate("unseen=true", unseen=True),)

    def _fit(self, data: Data) -> None:
        """Learn nothing beyond the base class's counts."""

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        scores = (self.popularity_ == 0).astype(np.float32) if self.unseen else self.popularity_
        return np.tile(scores, (rows.matrix.shape[0], 1))
