"""The first k items of a list as a set, where equal scores leave open which they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.utils.features import as_array
from recsys.utils.sparse import owners


@dataclass(frozen=True)
class FirstItems:
    """Membership in the first k of each list: certain for some items, a probability for tied ones.

    Attributes
    ----------
    sure : (users, items) float64 CSR
        1 for an item that scores above the k-th of the list.
    tied : (users, items) float64 CSR
        1 for an item whose score is that of the k-th: each of them is as likely.
    drawn : (users,) int64
        How many of the tied ones are among the first k.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> first = FirstItems.of_scores(np.array([[3.0, 1.0, 1.0, 9.0]]), sp.csr_matrix([[0, 0, 0, 1]]), 2)
    >>> first.sure.indices.tolist(), first.tied.indices.tolist(), first.drawn.tolist()
    ([0], [1, 2], [1])
    """

    sure: sp.csr_matrix
    tied: sp.csr_matrix
    drawn: NDArray[np.int64]

    @classmethod
    def of_scores(cls, scores: NDArray[np.floating], train: sp.csr_matrix, k: int) -> FirstItems:
        """Return the first k by score outside each train row.

        Parameters
        ----------
        scores : (users, items) float, finite
        train : (users, items) CSR
        k : int ≥ 1
        """
        users, items = scores.shape
        left = np.asarray(scores).copy()
        left[owners(train), train.indices] = -np.inf
        last = np.full(users, -np.inf)
        if k < items:
            last = np.partition(left, items - k, axis=1)[:, items - k]
        candidate = left > -np.inf
        above = left > last[:, None]
        tied = sp.csr_matrix(candidate & (left == last[:, None]), dtype=np.float64)
        drawn = np.minimum(k, candidate.sum(axis=1)) - above.sum(axis=1)
        return cls(sp.csr_matrix(above, dtype=np.float64), tied, drawn.astype(np.int64))

    @classmethod
    def of_ids(cls, ids: ArrayLike, n_items: int) -> FirstItems:
        """Return all items of ranked lists, (users, k) with −1 for padding.

        Raises
        ------
        InputError
            If they are no items, or an item is in a list twice.
        """
        ranked = ranked_ids(ids, n_items)
        listed = ranked >= 0
        rows = np.nonzero(listed)[0]
        shape = (len(ranked), n_items)
        sure = sp.csr_matrix((np.ones(len(rows)), (rows, ranked[listed])), shape)
        if sure.nnz < len(rows):
            raise InputError("ranked ids repeat an item within a list")
        return cls(sure, sp.csr_matrix(shape), np.zeros(len(ranked), dtype=np.int64))

    @property
    def size(self) -> NDArray[np.int64]:
        """Lengths of the lists, (users,): k, or fewer where fewer items are left."""
        return np.diff(self.sure.indptr) + self.drawn

    @property
    def share(self) -> NDArray[np.float64]:
        """Probability that a tied item is among the first k, (users,)."""
        return self.drawn / np.maximum(np.diff(self.tied.indptr), 1)

    @property
    def expected(self) -> sp.csr_matrix:
        """Probability that an item is among the first k, (users, items)."""
        return sp.csr_matrix(self.sure + sp.diags(self.share) @ self.tied)

    def mean(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected mean of the items' weights, (users,); NaN for an empty list."""
        size = self.size
        out = np.full(len(size), np.nan)
        return np.divide(self.expected @ weights, size, out=out, where=size > 0)


def ranked_ids(ids: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return ranked ids, (users, k), once each is an item or −1."""
    array = as_array("ranked ids", ids)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"ranked ids must be integers, (users, k), not {array.shape} {array.dtype}")
    array = array.astype(np.int64)
    if array.size and (array.min() < -1 or array.max() >= n_items):
        raise InputError(f"ranked ids must be within −1…{n_items - 1}")
    return array
