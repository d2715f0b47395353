"""Item neighbourhoods: MSDw, the asymmetric cosine that won the Million Song challenge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.kernels.item_gram.structured import StructuredGram, cooccurrence
from recsys.rankers._gram_view import SMALL, weighted_structured
from recsys.rankers._graph_filter import sharpen
from recsys.rankers._scoring import weighted_rows
from recsys.rankers.serialization import RANKERS, SavedRanker, expect
from recsys.utils.memory import parse_memory
from recsys.utils.sparse import owners
from recsys.utils.validation import check_integer, check_real


class ItemWeights(SavedRanker):
    """A ranker whose scores sum rows of an item × item matrix over the liked items.

    `weights_[i, j]` is what liking item i adds to the score of item j; dense, or CSR.
    """

    weights_: Any

    def _scores(
        self, userids: NDArray[np.int64], rows: sp.csr_matrix, recalculate: bool
    ) -> NDArray[np.float32]:
        if not sp.issparse(self.weights_):
            return weighted_rows(rows, np.ones(rows.nnz), self.weights_)
        one_class = np.zeros(self.weights_.shape[0], dtype=np.int32)
        gram = StructuredGram(self.weights_, one_class, np.zeros((1, 1)))
        return weighted_structured(rows, np.ones(rows.nnz), gram)

    def _explain(self, userid: int, row: sp.csr_matrix, item: int) -> tuple[float, NDArray[np.float64]]:
        column = self.weights_[row.indices, item]
        shares = np.asarray(column.todense() if sp.issparse(column) else column, np.float64).ravel()
        return float(shares.sum()), shares

    def _item_similarity(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        some = self.weights_[ids]
        return some.toarray() if sp.issparse(some) else some

    def _check_state(self) -> None:
        if sp.issparse(self.weights_):
            if (
                self.weights_.shape != (self.n_items_, self.n_items_)
                or self.weights_.dtype != np.float32
            ):
                raise ValueError("weights_ does not fit the items")
        else:
            expect("weights_", self.weights_, (self.n_items_, self.n_items_), np.float32)


@RANKERS.add("msdw")
@dataclass(eq=False)
class MSDw(ItemWeights):
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
        How much less a user of a long profile says.
    sharpening : float ≥ 0
        Take this times W·P off W where items co-occur, P the normalised co-occurrence whose largest
        eigenvalue is 1: what follows from neighbours of neighbours counts less. 0 for MSDw itself;
        one costs a pass over all likes for each item.
    top_k : int ≥ 1, optional
        Keep the largest weights of each candidate only.
    diagonal : bool
        Whether an item speaks for itself; it changes nothing for items not liked.
    memory : str or int, optional
        Budget of the weights, as in `cf-komd`.

    Notes
    -----
    Source: Polato's thesis, 5.1 (Aiolli 2013); one step of sharpening a smoothed signal on the graph is
    from Choi et al. 2023 (BSPM), here once for all users, in the weights.
    """

    alpha: float = 0.3
    locality: float = 1.0
    votes: float = 0.0
    sharpening: float = 0.0
    top_k: int | None = None
    diagonal: bool = True
    memory: str | int | None = None

    name = "msdw"
    capabilities = frozenset({"fold-in", "explain", "similar-items"})

    def _check_parameters(self) -> None:
        check_real("alpha", self.alpha, 0.0, 1.0)
        check_real("locality", self.locality, 0.0, open_low=True)
        check_real("votes", self.votes, 0.0)
        check_real("sharpening", self.sharpening, 0.0)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        parse_memory(self.memory)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        budget = parse_memory(self.memory)
        lengths = np.maximum(np.diff(liked.indptr), 1).astype(np.float64)
        counts = cooccurrence(liked, lengths**-self.votes if self.votes else None, budget)
        m = counts.shape[0]
        size = np.maximum(np.bincount(liked.indices, minlength=m), 1).astype(np.float64)
        row = np.repeat((size ** (self.alpha - 1.0)).astype(np.float32), np.diff(counts.indptr))
        counts.data *= row
        counts.data *= (size**-self.alpha).astype(np.float32)[counts.indices]
        if self.locality != 1.0:
            np.power(counts.data, np.float32(self.locality), out=counts.data)
        if self.sharpening:
            sharpen(counts, liked, self.sharpening)
        if not self.diagonal:
            counts.setdiag(0.0)
        if self.top_k is not None:
            counts = _largest(counts.T.tocsr(), self.top_k).T.tocsr()
            counts.sort_indices()
        dense = 4 * m * m <= SMALL or counts.nnz > 0.5 * m * m
        self.weights_ = counts.toarray() if dense and (budget is None or 4 * m * m <= budget) else counts


def _largest(matrix: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """Return the k largest entries of each row, the earlier of equal ones."""
    keep = np.zeros(matrix.nnz, dtype=bool)
    for i in range(matrix.shape[0]):
        begin, end = matrix.indptr[i], matrix.indptr[i + 1]
        keep[begin + np.argsort(-matrix.data[begin:end], kind="stable")[:k]] = True
    owner = owners(matrix)[keep]
    return sp.csr_matrix((matrix.data[keep], (owner, matrix.indices[keep])), matrix.shape)
