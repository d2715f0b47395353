"""The unpersonalised baseline: items by their number of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.rankers.serialization import RANKERS, SavedRanker


@RANKERS.add("popularity")
@dataclass(eq=False)
class Popularity(SavedRanker):
    """Score every item by the number of users who like it."""

    name = "popularity"
    capabilities = frozenset({"fold-in"})

    def _fit(self, liked: Any, show_progress: bool, callback: Any) -> None:
        """Nothing beyond what the base class counts."""

    def _scores(self, userids: Any, rows: Any, recalculate: bool) -> np.ndarray:
        return np.tile(self.popularity_, (rows.shape[0], 1))
