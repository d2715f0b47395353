"""EASE: the ridge regression of every item on the others, by one inverse, or on the most alike."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from recsys._jit import borrowed, in_threads, jit
from recsys.errors import FitError
from recsys.kernels.item_gram import dense_counts
from recsys.rankers.base import DENSE_ITEMS, SMALL, Candidate, Data
from recsys.rankers.protocol import POSITIVE, Floats, Ints, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import ItemWeights, co_occurrences, dense_if_small
from recsys.utils.resources import check_memory, safe_blas
from recsys.utils.sparse import binary, row_votes

SPARSE_ITEMS = 100_000  # up to which `auto` tries it


@register_ranker("ease")
class EASE(ItemWeights):
    """EASE: ridge regression of every item on the other items, in closed form.

    With P = (RᵀR + λI)⁻¹ the weights are B_ij = −P_ij/P_jj off the diagonal and 0 on it. The ridge of
    item i with n_i users is λ(n_i / n̄)^ridge_power + n_i·dropout/(1 − dropout), where n̄ is the mean of
    the positive n_i. With `votes`, the matrix is Rᵀ diag(|u|^−votes) R + λI, and all n are in units of
    these weights. With `top_k` each item is regressed exactly on its most similar items only. Sources:
    Steck, Embarrassingly shallow autoencoders for sparse data, 2019; Markov random fields for
    collaborative filtering, 2019 (`top_k`); Autoencoders that don't overfit towards the identity, 2020
    (`dropout`: EDLAE, all emphasis on what is hidden).

    Parameters
    ----------
    regularization : float > 0
        λ: the ridge of an item of mean popularity, in units of users.
    ridge_power : float ≥ 0
        Exponent of popularity in the ridge; 0 for an equal ridge (Steck's model).
    dropout : float, 0 ≤ dropout < 1
        Probability that an interaction is hidden from the regressions, in expectation.
    top_k : int ≥ 1, optional
        Number of items with the largest cosines that predict an item, in items · top_k³ operations; by
        default all, by the inverse of one matrix of items × items.

    Other parameters: as of `Ranker`.
    """

    regularization: float = 500.0
    ridge_power: float = 0.0
    dropout: float = 0.0
    top_k: int | None = None
    votes: float = 0.0
    recency: float = 0.0

    checks = ItemWeights.checks | {
        "regularization": POSITIVE,
        "ridge_power": real(),
        "dropout": real(0.0, 1.0, open_high=True),
    }
    search_space = {
        "regularization": ("log", 10.0, 5000.0),
        "ridge_power": ("real", 0.0, 1.0),
        "dropout": ("real", 0.0, 0.7),
        "recency": ("real", 0.0, 2.0, "times"),
    }
    candidates = (
        Candidate("regularization=300,ridge_power=0.5,dropout=0.4", SMALL),
        Candidate(
            "regularization=25,ridge_power=0.3,dropout=0.5,votes=0.5,top_k=100",
            (DENSE_ITEMS + 1, SPARSE_ITEMS),
        ),
        Candidate("regularization=1500,recency=0.5", SMALL, timed=True),
        Candidate("regularization=3000,recency=1", SMALL, timed=True),
    )

    def _fit(self, data: Data) -> None:
        liked, votes = data.liked, row_votes(data.liked, self.votes)
        if not self._is_whole(liked.shape[1]):
            order = np.argsort(binary(liked).T @ votes, kind="stable")
            ordered = liked[:, order]
            ordered.sort_indices()
            counts = co_occurrences(ordered, votes if self.votes else None)
            self.weights_ = dense_if_small(self._regressions(counts, order, self.top_k))
        elif self.votes:
            self._invert(co_occurrences(liked, votes).toarray(order="F"))
        else:
            self._invert(dense_counts(liked).astype(np.float64, order="F"))

    def _is_whole(self, items: int) -> bool:
        """Return whether each item is regressed on all others."""
        whole = (self.top_k or items) >= items - 1
        if whole:
            check_memory(24 * items * items, f"EASE on {items:,} items", "pass top_k=200")
        return whole

    def _fit_counts(self, counts: sp.csr_matrix, n_users: int) -> None:
        """Fit on the co-occurrences of items, XᵀX with the users of each item on its diagonal."""
        if self._is_whole(counts.shape[1]):
            self._invert(counts.toarray(order="F").astype(np.float64))
        else:
            order = np.argsort(counts.diagonal(), kind="stable")
            ordered = counts[order][:, order].astype(np.float32)
            self.weights_ = dense_if_small(self._regressions(ordered, order, self.top_k))

    def _ridge(self, own: Floats) -> Floats:
        """Return the ridge of each item, given its weighted number of users."""
        ridge = np.full(len(own), float(self.regularization))
        had = own > 0  # the ridge of a cold item only has to be above 0
        if self.ridge_power and had.any():
            ridge[had] *= (own[had] / own[had].mean()) ** self.ridge_power
        return ridge + own * (self.dropout / (1.0 - self.dropout))

    def _invert(self, gram: Floats) -> None:
        """Set the weights to B_ij = −P_ij / P_jj off the diagonal; the Gram matrix is used up."""
        diagonal = np.diag_indices(len(gram))
        gram[diagonal] += self._ridge(gram[diagonal])
        with safe_blas(len(gram)):
            factor, failed = lapack.dpotrf(gram, lower=False, overwrite_a=True, clean=False)
            if failed == 0:
                inverse, failed = lapack.dpotri(factor, lower=False, overwrite_c=True)
        if failed:
            raise FitError(
                f"EASE cannot invert its matrix: raise regularization ({self.regularization:g})"
            )
        scale = -1.0 / np.diag(inverse)
        out = np.tril(inverse.T.astype(np.float32), -1)  # above the diagonal of Pᵀ it is not filled
        out += out.T
        out *= scale.astype(np.float32)
        self.weights_ = out

    def _regressions(self, counts: sp.csr_matrix, names: Ints, top_k: int | None) -> sp.csr_matrix:
        """Return the ridge regression of each item on the `top_k` others most like it, float32 CSR.

        The counts are of items from rare to popular; `names` are their indices at fit. A = RᵀDR + Λ. N_j
        are the items most like item j, by c_ij/√(c_ii·c_jj); of equal ones the rarer, then the earlier.
        A[N_j, N_j]⁻¹ A[N_j, j] fills column j: EASE on these items alone. The least Λ is by Higham,
        Accuracy and stability of numerical algorithms, 2002, theorem 10.7.
        """
        assert top_k is not None
        items, own = counts.shape[0], counts.diagonal().astype(np.float64)
        ridge = self._ridge(own)
        # Scaled to a unit diagonal, no matrix has an eigenvalue below the least Λ_ii / A_ii.
        if (ridge <= 2.0 * (top_k + 1) * (top_k + 2) * np.finfo(float).eps * (own + ridge)).any():
            raise FitError(f"EASE cannot invert its matrices: raise regularization ({ridge.min():g})")
        counts.sort_indices()
        others = np.empty(items, dtype=np.int64)
        others[names] = np.diff(counts.indptr) - (own > 0)
        lengths = np.minimum(others, top_k)
        begins = np.concatenate(([0], np.cumsum(lengths)))
        near = np.empty(begins[-1], dtype=np.int32)
        weights = np.empty(len(near), dtype=np.float32)
        matrix = (counts.indptr.astype(np.int64), counts.indices, counts.data)
        regressions = (own, ridge, names, begins[:-1][names], lengths[names])
        with threadpool_limits(1, "blas"):  # one LAPACK in each thread
            in_threads(None, _regress, matrix, regressions, near, weights)
        return sp.csc_matrix((weights, near, begins), shape=(items, items)).tocsr()


# ---- kernels


@jit
def _regress(first, stride, matrix, regressions, near, weights):
    """Entries from begins[r] on receive the regression of item r on the items most like it.

    Items go from rare to popular, so that the counts of item i with more popular ones, of which there
    are few, are the end of its row; the others follow by symmetry.
    """
    indptr, indices, data = borrowed(matrix)
    own, ridge, names, begins, lengths = regressions
    m, rows = len(own), len(begins)
    most = 0
    for r in range(rows):
        most = max(most, lengths[r])
    place = np.full(m, -1, dtype=np.int32)
    kept = np.empty(most, dtype=np.int32)
    size = np.empty(m)
    block = np.empty(most * most)
    x = np.empty(most)
    for r in range(first, rows, stride):
        begin, k = begins[r], lengths[r]
        if k == 0:
            continue
        items, counts = indices[indptr[r] : indptr[r + 1]], data[indptr[r] : indptr[r + 1]]
        n, ties, filled = len(items), k, 0
        for p in range(n):
            size[p] = np.float64(counts[p]) ** 2 / own[items[p]] if items[p] != r else 0.0
        least = np.partition(size[:n], n - k)[n - k]
        for p in range(n):
            ties -= size[p] > least
        for p in range(n):  # the most alike in ascending order, and their co-occurrences with item r
            tied = size[p] == least and ties > 0
            if tied or size[p] > least:
                ties -= tied
                kept[filled], x[filled] = items[p], counts[p]
                filled += 1
        A = block[: k * k].reshape((k, k))
        A[:] = 0.0
        for a in range(k):
            place[kept[a]] = a
        for a in range(k):
            i = kept[a]
            A[a, a] = own[i] + ridge[i]
            p = indptr[i + 1] - 1
            while p >= indptr[i] and indices[p] > i:
                b = place[indices[p]]
                if b >= 0:
                    A[a, b] = data[p]
                    A[b, a] = data[p]
                p -= 1
        for a in range(k):
            place[kept[a]] = -1
        L = np.linalg.cholesky(A)  # by columns in memory
        for a in range(k):
            x[a] /= L[a, a]
            for b in range(a + 1, k):
                x[b] -= L[b, a] * x[a]
        for a in range(k - 1, -1, -1):
            for b in range(a + 1, k):
                x[a] -= L[b, a] * x[b]
            x[a] /= L[a, a]
        for a in range(k):
            near[begin + a] = names[kept[a]]
            weights[begin + a] = x[a]
