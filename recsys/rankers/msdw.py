"""MSDw, the asymmetric cosine that won the Million Song challenge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.errors import CapabilityError, InputError
from recsys.kernels.gram.counts import check_budget, cooccurrence, sparse_bytes
from recsys.rankers._asymmetric_cosine import strongest, weigh_rows
from recsys.rankers._gram_view import SMALL
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers._sharpening import sharpen
from recsys.rankers._updates import MOST, Updatable
from recsys.rankers.base import DENSE_ITEMS, Candidate
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.memory import parse_memory
from recsys.utils.sparse import binary, enlarged, entries_of, owners, row_votes
from recsys.utils.validation import check_integer, check_real


@RANKERS.add("msdw")
@documented
@dataclass(eq=False)
class MSDw(Updatable, ItemWeights):
    """Asymmetric cosine: W_ij = (c_ij / (|U_i|^(1−α) |U_j|^α))^locality, j the candidate.

    c_ij sums, over the users who like both, their votes |profile|^−votes; with votes = 0 it is
    |U_i ∩ U_j|.

    Parameters
    ----------
    alpha : float in 0…1
        How much the candidate's popularity counts against it; ½ is the cosine.
    locality : float > 0
        Power of the weights; above 1 near neighbours count more.
    votes : float ≥ 0
        User-weight exponent: a user counts |profile|^−votes.
    sharpening : float ≥ 0
        Take this times W·P off W where items co-occur, P the normalised co-occurrence whose largest
        eigenvalue is 1: what follows from neighbours of neighbours counts less. 0 for MSDw itself;
        one costs a pass over all interactions for each item.
    top_k : int ≥ 1, optional
        Keep the largest weights of each candidate only.
    diagonal : bool
        Whether an item's weight for itself is kept; it changes nothing for items not liked.
    memory : str or int, optional
        Budget of the weights, as in `cf-komd`.

    Attributes
    ----------
    counts_ : (items, items) CSR of the smallest unsigned type
        |U_i ∩ U_j| above the diagonal, where neither `votes` nor `sharpening` is asked for: what updates
        start from (`partial_fit`, `update_rows`, …). 5 or 6 bytes a pair beside the weights' 16.

    Notes
    -----
    Source: Polato's thesis, 5.1 (Aiolli 2013); one step of sharpening a smoothed signal on the graph is
    from Choi et al. 2023 (BSPM), here once for all users, in the weights.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = MSDw(alpha=0.5).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    alpha: float = 0.3
    locality: float = 1.0
    votes: float = 0.0
    sharpening: float = 0.0
    top_k: int | None = None
    diagonal: bool = True
    memory: str | int | None = None
    recency: float = 0.0
    ties: str | None = None

    name: ClassVar[str] = "msdw"
    search_space: ClassVar[dict[str, Any]] = {
        "alpha": ("real", 0.0, 0.6),
        "locality": ("real", 0.5, 3.0),
        "votes": ("real", 0.0, 1.0),
        "sharpening": (0.0, 0.5, 1.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates: ClassVar[tuple[Candidate, ...]] = (
        Candidate("alpha=0.3,votes=0.5", most_items=DENSE_ITEMS),
        Candidate("alpha=0.3,votes=0.5,sharpening=0.5", most_items=DENSE_ITEMS),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5", most_items=DENSE_ITEMS),
        Candidate("alpha=0.3,votes=0.5,sharpening=1", most_items=DENSE_ITEMS),
        Candidate("alpha=0.25,votes=0.6,locality=1.1", least_items=DENSE_ITEMS + 1),
        Candidate("alpha=0.25,votes=0.5,locality=1.1,sharpening=1", least_items=DENSE_ITEMS + 1),
        Candidate("alpha=0.4,votes=0.6,sharpening=0.5", least_items=DENSE_ITEMS + 1),
        Candidate("alpha=0.1,votes=0.6", least_items=DENSE_ITEMS + 1),
        Candidate("alpha=0.05,locality=0.55,votes=0.8", least_items=DENSE_ITEMS + 1),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5,recency=1", most_items=DENSE_ITEMS, timed=True),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5,recency=0.7", most_items=DENSE_ITEMS, timed=True),
        Candidate(
            "alpha=0.25,votes=0.6,locality=1.1,recency=1", least_items=DENSE_ITEMS + 1, timed=True
        ),
        Candidate(
            "alpha=0.4,votes=0.6,sharpening=0.5,recency=0.5", least_items=DENSE_ITEMS + 1, timed=True
        ),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("alpha", self.alpha, 0.0, 1.0)
        check_real("locality", self.locality, 0.0, open_low=True)
        check_real("votes", self.votes, 0.0)
        check_real("sharpening", self.sharpening, 0.0)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        parse_memory(self.memory)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        budget = parse_memory(self.memory)
        counts = cooccurrence(liked, row_votes(liked, self.votes) if self.votes else None, budget)
        users = np.bincount(liked.indices, minlength=counts.shape[1])
        for name in ("counts_", "row_digests_"):
            vars(self).pop(name, None)
        if self._counted() and users.max() <= MOST:  # beyond, float32 lost some
            self.counts_ = _smallest(_above(counts))
            self._remember(liked)
        self.weights_ = self._weighed(counts, users, liked)

    def _counted(self) -> bool:
        """Return whether integers make the weights up."""
        return not self.votes and not self.sharpening

    def _weighed(
        self, counts: sp.csr_matrix, users: NDArray[Any], liked: sp.csr_matrix | None = None
    ) -> NDArray[np.float32] | sp.csr_matrix:
        """Return the weights of counts, which are used up."""
        m, budget = counts.shape[0], parse_memory(self.memory)
        weigh_rows(
            counts.data, counts.indices, np.diff(counts.indptr), users, users,
            1.0 - self.alpha, self.alpha, self.locality,
        )  # fmt: skip
        if self.sharpening and liked is not None:
            sharpen(counts, liked, self.sharpening)
        if not self.diagonal:
            counts.setdiag(0.0)
        if self.top_k is not None:
            counts = strongest(counts, self.top_k)
        dense = 4 * m * m <= SMALL or counts.nnz > 0.5 * m * m
        return counts.toarray() if dense and (budget is None or 4 * m * m <= budget) else counts

    def _check_updates(self) -> None:
        if not self._counted():
            raise CapabilityError(
                "msdw with votes or sharpening has no exact updates: fit again instead"
            )
        if not hasattr(self, "counts_"):
            raise CapabilityError("this msdw was written without its counts: fit again instead")

    def _change_rows(self, taken: sp.csr_matrix, added: sp.csr_matrix, users: int) -> None:
        if not added.nnz and not taken.nnz:
            return
        plus, minus = binary(added, np.int64), binary(taken, np.int64)
        change = sp.triu(plus.T @ plus - minus.T @ minus, 1, format="csr")
        above = sp.csr_matrix(self.counts_.astype(np.int64) + change)
        above.sort_indices()
        above.eliminate_zeros()
        if above.nnz and above.data.min() < 0:
            raise InputError("a row to be removed has pairs without users: fit again instead")
        own = self.popularity_.astype(np.int64)
        own += np.bincount(added.indices, minlength=self.n_items_)
        own -= np.bincount(taken.indices, minlength=self.n_items_)
        entries = 2 * above.nnz + self.n_items_
        check_budget(sparse_bytes(entries, self.n_items_), self.n_items_, parse_memory(self.memory))
        weights = self._weighed(_symmetric(above, own), own)
        self.counts_, self.weights_ = _smallest(above), weights

    def _extend(self, items: int) -> None:
        above = enlarged(self.counts_, (items, items))
        own = np.pad(self.popularity_, (0, items - self.n_items_)).astype(np.int64)
        weights = self._weighed(_symmetric(above, own), own)
        self.counts_, self.weights_ = above, weights

    def _check_state(self) -> None:
        super()._check_state()
        if hasattr(self, "counts_") != hasattr(self, "row_digests_"):
            raise ValueError("counts are kept with the digests of rows, or not at all")
        if not hasattr(self, "counts_"):
            return
        above, own = self.counts_, self.popularity_
        if above.shape != (self.n_items_, self.n_items_) or above.dtype.kind != "u":
            raise ValueError("counts_ does not fit the items")
        rarer = np.minimum(own[owners(above)], own[above.indices])
        if (
            (above.indices <= owners(above)).any()
            or (above.data > rarer).any()
            or (above.data < 1).any()
        ):
            raise ValueError("counts_ holds more than the users of an item, or not one triangle")


def _smallest(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return counts in the smallest unsigned type that holds them."""
    kind = np.min_scalar_type(int(counts.data.max(initial=0)))
    # Made anew, so that index types are those that a file gives back.
    return entries_of(counts, counts.data.astype(kind))


def _above(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return the part above the diagonal of counts with sorted indices; scipy's would copy all first."""
    indptr = np.zeros(counts.shape[0] + 1, dtype=np.int64)
    _count_above(counts.indptr, counts.indices, indptr)
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], counts.data.dtype)
    _fill_above(counts.indptr, counts.indices, counts.data, indptr, indices, data)
    return sp.csr_matrix((data, indices, indptr), counts.shape)


def _symmetric(above: sp.csr_matrix, own: NDArray[np.int64]) -> sp.csr_matrix:
    """Return all counts as float32 CSR of one triangle and the diagonal, which is stored throughout."""
    below = above.T.tocsr()
    indptr = above.indptr.astype(np.int64) + below.indptr + np.arange(len(own) + 1)
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    _fill_symmetric(
        below.indptr, below.indices, below.data, above.indptr, above.indices, above.data, own,
        indptr, indices, data,
    )  # fmt: skip
    return sp.csr_matrix((data, indices, indptr), above.shape)


# ---- kernels


@jit
def _count_above(indptr, indices, out):
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            out[i + 1] += indices[p] > i


@jit
def _fill_above(indptr, indices, data, out_ptr, out_indices, out_data):
    for i in range(len(indptr) - 1):
        begin, end = indptr[i + 1] - (out_ptr[i + 1] - out_ptr[i]), indptr[i + 1]
        for p in range(begin, end):
            out_indices[out_ptr[i] + p - begin] = indices[p]
            out_data[out_ptr[i] + p - begin] = data[p]


@jit
def _fill_symmetric(b_ptr, b_indices, b_data, a_ptr, a_indices, a_data, own, indptr, indices, data):
    for i in range(len(own)):
        at = indptr[i]
        for p in range(b_ptr[i], b_ptr[i + 1]):
            indices[at], data[at] = b_indices[p], b_data[p]
            at += 1
        indices[at], data[at] = i, own[i]
        at += 1
        for p in range(a_ptr[i], a_ptr[i + 1]):
            indices[at], data[at] = a_indices[p], a_data[p]
            at += 1
