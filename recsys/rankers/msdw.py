"""MSDw, the asymmetric cosine that won the Million Song challenge, and its sharpening."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys._jit import SUMS, in_threads, jit
from recsys.rankers.base import LARGE, MEDIUM, SMALL, Candidate, Data
from recsys.rankers.protocol import POSITIVE, Floats, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import ItemWeights, co_occurrences, dense_if_small
from recsys.utils.sparse import binary, entries_of, row_votes

USERS = 0.8  # weight of users in sharpening: |profile|^−0.8


@register_ranker("msdw")
class MSDw(ItemWeights):
    """Asymmetric cosine: W_ij = (c_ij / (|U_i|^(1−α) |U_j|^α))^locality, j the candidate.

    c_ij sums, over the users who like both, their votes |profile|^−votes; with votes = 0 it is |U_i ∩
    U_j|. Source: Polato's thesis, 5.1 (Aiolli 2013); one step of sharpening a smoothed signal on the
    graph is from Choi et al. 2023 (BSPM), here once for all users, in the weights.

    Parameters
    ----------
    alpha : float in 0…1
        Exponent of the candidate's popularity; ½ is the cosine.
    locality : float > 0
        Power of the weights; values above 1 emphasize near neighbors.
    sharpening : float ≥ 0
        Factor of W·P, which is subtracted from W for co-occurring items and reduces the effect of
        neighbors of neighbors. P is the co-occurrence matrix with largest eigenvalue 1. 0 for MSDw.

    Other parameters: as of `Ranker`.
    """

    alpha: float = 0.3
    locality: float = 1.0
    votes: float = 0.0
    sharpening: float = 0.0
    recency: float = 0.0

    checks = ItemWeights.checks | {
        "alpha": real(0.0, 1.0),
        "locality": POSITIVE,
        "sharpening": real(),
    }
    search_space = {
        "alpha": ("real", 0.0, 0.6),
        "locality": ("real", 0.5, 3.0),
        "votes": ("real", 0.0, 1.0),
        "sharpening": (0.0, 0.5, 1.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates = (
        Candidate("alpha=0.3,votes=0.5,sharpening=0.5", SMALL),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5", MEDIUM),
        Candidate("alpha=0.25,votes=0.6,locality=1.1", LARGE),
        Candidate("alpha=0.25,votes=0.5,locality=1.1,sharpening=1", LARGE),
        Candidate("alpha=0.4,votes=0.6,sharpening=0.5", LARGE),
        Candidate("alpha=0.1,votes=0.6", LARGE),
        Candidate("alpha=0.05,locality=0.55,votes=0.8", LARGE),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5,recency=1", SMALL, timed=True),
        Candidate("alpha=0.5,votes=0.5,sharpening=0.5,recency=0.7", SMALL, timed=True),
        Candidate("alpha=0.25,votes=0.6,locality=1.1,recency=1", LARGE, timed=True),
        Candidate("alpha=0.4,votes=0.6,sharpening=0.5,recency=0.5", LARGE, timed=True),
    )

    def _fit(self, data: Data) -> None:
        liked = data.liked
        counts = co_occurrences(liked, row_votes(liked, self.votes) if self.votes else None)
        weights = self._weighted(counts, np.bincount(liked.indices, minlength=liked.shape[1]))
        if self.sharpening:
            sharpen(weights, liked, self.sharpening)
        self.weights_ = dense_if_small(weights)

    def _fit_counts(self, counts: sp.csr_matrix, n_users: int) -> None:
        """Fit on the co-occurrences of items, XᵀX with the users of each item on its diagonal."""
        self.weights_ = dense_if_small(self._weighted(counts, counts.diagonal()))

    def _weighted(self, counts: sp.csr_matrix, users: NDArray[Any]) -> sp.csr_matrix:
        weights = entries_of(counts, counts.data.astype(np.float32))
        weigh(weights, users, 1.0 - self.alpha, self.alpha, self.locality)
        return weights


def weigh(
    counts: sp.csr_matrix, users: NDArray[Any], source: float, candidate: float, locality: float
) -> None:
    """Make float32 counts c_ij into (c_ij / (|U_i|^source · |U_j|^candidate))^locality, in place.

    Source: Aiolli 2013, Efficient top-N recommendation for very large scale binary rated datasets.
    """
    sizes = np.maximum(users, 1).astype(np.float64)
    counts.data *= np.repeat((sizes**-source).astype(np.float32), np.diff(counts.indptr))
    counts.data *= (sizes**-candidate).astype(np.float32)[counts.indices]
    if locality != 1.0:
        np.power(counts.data, np.float32(locality), out=counts.data)


def sharpen(weights: sp.csr_matrix, liked: sp.csr_matrix, amount: float) -> None:
    """Take `amount`·W·P off W, (items, items) float32 CSR, where W has entries, in place.

    P = D^−½ RᵀU^−0.8 R D^−½ over its largest eigenvalue, D and U the items' and users' numbers of
    interactions: the smoothing of scores over the graph. No product W·P is ever formed.
    """
    sizes = np.maximum(np.bincount(liked.indices, minlength=liked.shape[1]), 1)
    scale, per_user = sizes.astype(np.float64) ** -0.5, row_votes(liked, USERS)
    amount, columns = amount / largest_eigenvalue(liked, per_user, scale), liked.tocsc()
    arrays = (weights.indptr, weights.indices, weights.data, columns.indptr, columns.indices)
    in_threads(None, _sharpen, *arrays, per_user, scale, amount)


def largest_eigenvalue(liked: sp.csr_matrix, per_user: Floats, scale: Floats) -> float:
    """Return the largest eigenvalue of S RᵀWR S, W and S the diagonals `per_user` and `scale`."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # late: few fits need it

    ones, items = binary(liked), liked.shape[1]

    def product(v: Floats) -> Floats:
        v = v.ravel()
        return np.asarray(scale * (ones.T @ (per_user * (ones @ (scale * v)))))

    if items < 3:  # too few for Lanczos' method
        return float(np.linalg.eigvalsh([product(e) for e in np.eye(items)])[-1])
    operator = LinearOperator((items, items), product, dtype=np.float64)
    return float(eigsh(operator, k=1, v0=1.0 / scale, tol=1e-12, return_eigenvectors=False)[0])


# ---- kernels


@jit(fastmath=SUMS)
def _sharpen(first, stride, indptr, indices, data, col_ptr, col_users, per_user, per_item, amount):
    of_users = np.zeros(len(per_user))
    for i in range(first, len(per_item), stride):
        begin, end = indptr[i], indptr[i + 1]
        of_users[:] = 0.0
        for p in range(begin, end):
            j = indices[p]
            w = data[p] * per_item[j]
            for q in range(col_ptr[j], col_ptr[j + 1]):
                of_users[col_users[q]] += w
        of_users *= per_user
        # The neighbors' users only: those users' interactions are many more, and most are no
        # neighbors.
        for p in range(begin, end):
            j = indices[p]
            v = 0.0
            for q in range(col_ptr[j], col_ptr[j + 1]):
                v += of_users[col_users[q]]
            data[p] -= amount * v * per_item[j]
