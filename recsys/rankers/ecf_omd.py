"""ECF-OMD: the margin distribution of every user, on the linear kernel.

Source: Polato's thesis, 10.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import scipy.sparse as sp

from recsys.rankers._margin import MarginRanker
from recsys.rankers._updates import CountUpdates
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import parse_memory


@RANKERS.add("ecf-omd")
@dataclass(eq=False)
class ECFOMD(CountUpdates, MarginRanker):
    """Efficient CF-OMD: the normalised linear kernel and the exact q (10.1), CF-OMD with λ_n = ∞.

    Parameters
    ----------
    regularization : float ≥ 0
        λ_p of (10.1).
    recency : float ≥ 0
        As in `cf-komd`.
    memory : str or int, optional
        As in `cf-komd`.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = ECFOMD(regularization=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    regularization: float = 0.1
    recency: float = 0.0
    memory: str | int | None = None

    name: ClassVar[str] = "ecf-omd"
    search_space: ClassVar[dict[str, Any]] = {
        "regularization": ("log", 1e-3, 10.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        super()._fit(liked, show_progress, callback)
        self._remember(liked)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parse_memory(self.memory)
