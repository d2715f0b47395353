"""Filters of the item graph: a profile is smoothed over it and projected on its main directions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.rankers.base import LARGE, SMALL, Candidate, Data, Ranker, Rows
from recsys.rankers.msdw import largest_eigenvalue
from recsys.rankers.protocol import Floats, Ints, Users, one_of, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import LinearRanker, weighted_rows
from recsys.utils.resources import check_memory
from recsys.utils.sparse import entries_of, leading_singular, owners, row_votes

IDEAL, GF_CF = "ideal", "gf-cf"
MOST_POWER = 4.0  # beyond, float32 ends
CACHED = 64  # rows at a time, whose products with users stay in the cache
OVERSAMPLES, PASSES = 40, 8  # of the randomized decomposition
LEAST = 1e-6  # of the largest singular value: what is below it is rounding
SINGLE_FROM, LEAST_SINGLE = 20_000, 1e-5  # users and items from which on it is in float32


@register_ranker("graph-filter")
class GraphFilter(LinearRanker):
    """Filters on the graph of items: GF-CF and the ideal low-pass filter.

    Let A = U^(−votes/2) R D^(−item_power), where U and D are the numbers of interactions of users and
    items. P is AᵀA divided by its largest eigenvalue; it smooths a row over co-occurring items. F =
    D^(−item_power) VVᵀ D^item_power projects a row on the `factors` leading right singular vectors V of
    A. The scores of row x are xP + `ideal_weight`·xF (`gf-cf`) or xF (`ideal`). Products with R apply P
    without a dense matrix of items. Source: Shen et al., How powerful is graph convolution for
    recommendation?, 2021. Decomposition: Halko, Martinsson and Tropp, Finding structure with randomness,
    2011.

    Parameters
    ----------
    filter : "gf-cf" or "ideal"
    factors : int ≥ 1
        Number of columns of V; it has an effect only if it is much smaller than the rank of A.
    ideal_weight : float ≥ 0
    votes : float in 0…4
        Exponent of user weights; larger values reduce the weight of users with long profiles.
    item_power : float in 0…4
        Exponent of item popularity; larger values reduce the weight of popular items in a profile.

    Other parameters: as of `Ranker`.
    """

    filter: str = GF_CF
    factors: int = 256
    ideal_weight: float = 0.3
    votes: float = 1.0
    item_power: float = 0.5
    recency: float = 0.0
    random_state: int = 0

    checks = Ranker.checks | {
        "filter": one_of(GF_CF, IDEAL),
        "ideal_weight": real(),
        "votes": real(0.0, MOST_POWER),
        "item_power": real(0.0, MOST_POWER),
    }
    search_space = {
        "filter": (GF_CF, IDEAL),
        "factors": (16, 32, 64, 128, 256, 512),
        "ideal_weight": ("log", 0.03, 3.0),
        "votes": ("real", 0.0, 2.0),
        "item_power": ("real", 0.2, 0.8),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    searched_where = {
        "ideal_weight": ("filter", (GF_CF,)),
    }
    candidates = (
        Candidate("filter=gf-cf", LARGE),
        Candidate("filter=ideal,factors=64", SMALL),
    )

    def _fit(self, data: Data) -> None:
        liked = data.liked
        per_user = row_votes(liked, self.votes)
        sizes = np.bincount(liked.indices, minlength=liked.shape[1])
        self.per_item_ = np.maximum(sizes, 1.0) ** -self.item_power
        values = np.sqrt(per_user)[owners(liked)] * self.per_item_[liked.indices]
        A = entries_of(liked, values)
        V = _leading_directions(A, self.factors, self.random_state)
        V[:, sizes == 0] = 0.0
        self.directions_ = np.ascontiguousarray(V.T, dtype=np.float32)  # (items, factors)
        if self.filter == GF_CF:
            if self.votes != 1.0 or self.item_power != 0.5:  # else the eigenvalue is 1
                A.data /= np.sqrt(largest_eigenvalue(liked, per_user, self.per_item_))
            self.normalized_ = A.T.tocsr().astype(np.float32)

    def _scores(self, rows: Rows, users: Users = None) -> NDArray[np.float32]:
        x, scale = self._weighed(rows), self.per_item_
        along = weighted_rows(x, x.data * scale[x.indices], self.directions_)
        out = np.asarray((along @ self.directions_.T) / scale, dtype=np.float32)
        if self.filter == GF_CF:
            out *= np.float32(self.ideal_weight)
            A, x = self.normalized_, x.astype(np.float32)
            for first in range(0, len(out), CACHED):
                some = slice(first, first + CACHED)
                out[some] += (A @ (A.T @ x[some].T.toarray())).T
        return out

    def _contributions(self, liked: Ints, items: Ints) -> Floats:
        V, scale = self.directions_, self.per_item_[:, None]
        out = (V[items] / scale[items]) @ (V[liked] * scale[liked]).T
        if self.filter == GF_CF:
            own, others = (self.normalized_[some].astype(np.float64) for some in (liked, items))
            out = self.ideal_weight * out + (others @ own.T).toarray()
        return out

    def _item_similarity(self, ids: Ints) -> NDArray[np.float32]:
        alone = sp.csr_matrix(
            (np.ones(len(ids), np.float32), ids, np.arange(len(ids) + 1)), (len(ids), self.n_items_)
        )
        return self._scores(Rows(alone))


def _leading_directions(A: sp.csr_matrix, factors: int, seed: int) -> Floats:
    """Return the leading right singular vectors of A as rows, without those that are rounding."""
    users, items = np.flatnonzero(np.diff(A.indptr)), np.flatnonzero(A.getnnz(axis=0))
    if not A.nnz:
        return np.empty((0, A.shape[1]))
    # The decomposition is of dense blocks, in which what is empty costs as much as what is not.
    B = A if (len(users), len(items)) == A.shape else A[users][:, items]
    most = min(B.shape)
    k = min(factors, most)
    more = min(OVERSAMPLES, most - k)
    # Both sides of the range finder and B times either.
    check_memory(
        24.0 * sum(B.shape) * (k + more),
        f"factors={factors} of {A.shape[0]:,} users and {A.shape[1]:,} items",
        "lower factors",
    )
    least = LEAST
    if sum(B.shape) >= SINGLE_FROM:
        B, least = B.astype(np.float32), LEAST_SINGLE
    _, values, V = leading_singular(B, k, oversamples=more, passes=PASSES, seed=seed, flip_sign=False)
    found = values > least * values[0]
    directions = np.zeros((int(found.sum()), A.shape[1]))
    directions[:, items] = V[found]
    return directions
