"""MSDw, the asymmetric cosine that won the Million Song challenge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from recsys.kernels.gram.counts import cooccurrence
from recsys.rankers._asymmetric_cosine import asymmetric_cosine, strongest
from recsys.rankers._gram_view import SMALL
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers.base import DENSE_ITEMS, Candidate
from recsys.rankers.registry import RANKERS
from recsys.utils.memory import parse_memory
from recsys.utils.validation import check_integer, check_real


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
    recency : float ≥ 0
        A like that k newer ones follow in its profile counts (k + 1)^−recency, where times are given;
        0 for all alike.

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

    name: ClassVar[str] = "msdw"
    compared: ClassVar[tuple[str, ...]] = ("",)
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
        lengths = np.maximum(np.diff(liked.indptr), 1).astype(np.float64)
        counts = cooccurrence(liked, lengths**-self.votes if self.votes else None, budget)
        m = counts.shape[0]
        asymmetric_cosine(counts, liked, 1.0 - self.alpha, self.alpha, self.locality, self.sharpening)
        if not self.diagonal:
            counts.setdiag(0.0)
        if self.top_k is not None:
            counts = strongest(counts, self.top_k)
        dense = 4 * m * m <= SMALL or counts.nnz > 0.5 * m * m
        self.weights_ = counts.toarray() if dense and (budget is None or 4 * m * m <= budget) else counts
