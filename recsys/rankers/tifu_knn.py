"""TIFU-KNN: how often a user has had an item, decayed, and how often similar users have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers.base import Shares, Times
from recsys.rankers.registry import RANKERS
from recsys.rankers.user_knn import UserNeighbours
from recsys.utils.docstrings import documented
from recsys.utils.sparse import entries_of, owners, unit_rows
from recsys.utils.validation import check_integer, check_real


@RANKERS.add("tifu-knn")
@documented
@dataclass(eq=False)
class TIFUKNN(UserNeighbours):
    """Personal item frequency with user-to-user neighbours, for data in which users repeat items.

    A user's vector x has, for each item, its weight times
    within_decay^(b mod group_size)·group_decay^⌊b / group_size⌋, where b is the number of the user's
    newer baskets (different times); it is scaled to unit length. The score is
    alpha·x_i + (1 − alpha)·mean over the `top_k` nearest users v of cos(x, x_v)·x_vi.

    Parameters
    ----------
    alpha : float in 0…1
        Share of the user's own frequency. It changes lists only where items of the history are ranked,
        too (`filter_already_liked_items=False`).
    within_decay, group_decay : float in (0, 1]
        What a basket counts of the next newer one, in a group of baskets and from one group to the
        next; 1 for no decay.
    group_size : int ≥ 1
        Baskets of a group, from the newest on.

    Attributes
    ----------
    user_items_ : (users, items) float32 CSR
        The vectors.
    item_users_ : (items, users) float32 CSR
        The same by item.

    Notes
    -----
    Values of the matrix are weights, such as numbers of purchases. Without times all baskets are one.
    Differences from the paper: repeats of a pair are one interaction, with the sum of its weights and
    its latest time, so that all of them are in the latest basket; vectors have unit length, so that the
    nearest by Euclidean distance are the nearest by cosine; neighbours count by their cosine, so that
    contributions of the items of the history, and of the item's own frequency, sum to the score.
    Source: Hu et al. 2020, whose values for the TaFeng data are the defaults.

    Examples
    --------
    >>> bought = [[9, 2, 0], [8, 3, 1], [0, 1, 4]]
    >>> model = TIFUKNN(top_k=2).fit(bought, show_progress=False)
    >>> model.recommend(0, [bought[0]], N=2, filter_already_liked_items=False).ids
    array([0, 1], dtype=int32)
    """

    top_k: int = 300
    alpha: float = 0.7
    within_decay: float = 0.9
    group_decay: float = 0.7
    group_size: int = 7
    ties: str | None = None

    name: ClassVar[str] = "tifu-knn"
    search_space: ClassVar[dict[str, Any]] = {
        "top_k": (50, 100, 300, 900),
        "alpha": ("real", 0.0, 0.9),
        "within_decay": ("real", 0.5, 1.0, "times"),
        "group_decay": ("real", 0.3, 1.0, "times"),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("alpha", self.alpha, 0.0, 1.0)
        check_real("within_decay", self.within_decay, 0.0, 1.0, open_low=True)
        check_real("group_decay", self.group_decay, 0.0, 1.0, open_low=True)
        check_integer("group_size", self.group_size, 1)

    def _reads_times(self) -> bool:
        return self.within_decay < 1 or self.group_decay < 1

    def _vectors(self, rows: sp.csr_matrix, times: Times) -> sp.csr_matrix:
        decay = np.ones(rows.nnz)
        if times is not None:
            group, within = np.divmod(newer_baskets(rows, times), self.group_size)
            decay = self.group_decay ** group.astype(np.float64) * self.within_decay**within
        return unit_rows(entries_of(rows, rows.data * decay))

    def _fit(
        self,
        liked: sp.csr_matrix,
        show_progress: bool,
        callback: Any,
        *,
        times: sp.csr_matrix | None = None,
    ) -> None:
        vectors = self._vectors(liked, None if times is None else times.data)
        self._learn(vectors, vectors)

    @property
    def _per_neighbour(self) -> float:
        return (1.0 - self.alpha) / min(self.top_k, self.item_users_.shape[1])

    def _fold_in_scores(self, rows: sp.csr_matrix, times: Times = None) -> NDArray[np.float32]:
        vectors = self._vectors(rows, times)
        scores = self._per_neighbour * self._sums(vectors).astype(np.float64)
        scores[owners(vectors), vectors.indices] += self.alpha * vectors.data
        return scores.astype(np.float32)

    def _explain_items(
        self,
        userid: int,
        row: sp.csr_matrix,
        items: NDArray[np.int64],
        times: Times = None,
        **timed: Any,
    ) -> list[Shares]:
        vector = self._vectors(row, times)
        shares = self._per_neighbour * self._shares(vector, items)
        shares += self.alpha * vector.data[:, None] * (vector.indices[:, None] == items)
        return [(float(column.sum()), column) for column in shares.T]


def newer_baskets(rows: sp.csr_matrix, times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many different newer times there are in the row of each interaction, (nnz,).

    Examples
    --------
    >>> rows = sp.csr_matrix([[1, 1, 1], [0, 0, 1]])
    >>> newer_baskets(rows, np.array([5.0, 5.0, 9.0, 1.0]))
    array([1, 1, 0, 0])
    """
    owner = owners(rows)
    order = np.lexsort((-times, owner))
    first = np.ones(len(order), dtype=np.bool_)  # of a user's basket, the newest basket first
    first[1:] = (np.diff(owner) != 0) | (np.diff(times[order]) != 0)
    basket = np.cumsum(first)
    out = np.empty(len(order), dtype=np.int64)
    out[order] = basket - basket[rows.indptr[owner]]
    return out
