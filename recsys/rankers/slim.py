"""SLIM: sparse non-negative regressions between items, by coordinate descent."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from recsys._jit import in_threads, jit
from recsys.rankers.base import Data
from recsys.rankers.protocol import POSITIVE, real
from recsys.rankers.registry import register_ranker
from recsys.rankers.scoring import ItemWeights, co_occurrences, dense_if_small
from recsys.utils.resources import check_memory

BLOCK = 512  # items whose weights are found at once


@register_ranker("slim")
class SLIM(ItemWeights):
    """SLIM: sparse non-negative regression of every item on the other items.

    Minimizes ½‖r_j − R w‖² + l1·‖w‖₁ + ½·l2·‖w‖² over w ≥ 0 with w_j = 0 for each item j, by coordinate
    descent on the co-occurrence matrix. Source: Ning and Karypis 2011; Polato's thesis, 5.1.

    Parameters
    ----------
    l1, l2 : float ≥ 0
        The thesis' β is l2/2 and its λ is l1.
    tol : float > 0
        Stop when no weight changes by more in a sweep.

    Other parameters: as of `Ranker`.
    """

    l1: float = 1.0
    l2: float = 10.0
    iterations: int = 50
    tol: float = 1e-4
    top_k: int | None = None
    recency: float = 0.0

    checks = ItemWeights.checks | {
        "l1": real(),
        "l2": real(),
        "tol": POSITIVE,
    }
    search_space = {
        "l1": ("log", 0.1, 30.0),
        "l2": ("log", 1.0, 1000.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }

    def _fit(self, data: Data) -> None:
        items = data.liked.shape[1]
        counts = co_occurrences(data.liked)
        useful = int((counts > self.l1).sum(axis=1).max())
        most = min(self.top_k or items, max(useful, 1))
        check_memory(8.0 * most * most, f"SLIM with {most:,} predictors of an item", "pass top_k=200")
        arrays = (counts.indptr, counts.indices, counts.data, counts.diagonal())
        options = (float(self.l1), float(self.l2), int(self.iterations), float(self.tol))
        parts = []
        for begin in range(0, items, BLOCK):
            rows = min(BLOCK, items - begin)
            near = np.full((rows, most), -1, dtype=np.int32)
            weights = np.zeros((rows, most), dtype=np.float32)
            in_threads(None, _descend, begin, *arrays, *options, near, weights)
            used = weights > 0
            entries = weights[used], near[used], np.append(0, np.cumsum(used.sum(axis=1)))
            parts.append(sp.csr_matrix(entries, shape=(rows, items)))
        self.weights_ = dense_if_small(sp.csr_matrix(sp.vstack(parts).T))


# ---- kernels


@jit
def _descend(first, stride, offset, indptr, indices, data, own, l1, l2, iterations, tol, near, weights):
    """Row j of near and weights receives the items that predict item offset + j, and their weights.

    The gradient of item i starts at its count with j and other weights only lower it, so that items
    with counts up to l1 never enter. A row of counts is looked up when its weight first changes.
    """
    most = near.shape[1]
    local = np.full(len(own), most, dtype=np.int32)  # column `most` takes what is not near
    gram, have = np.empty((most, most + 1), dtype=np.float32), np.empty(most, dtype=np.bool_)
    slope, cosine = np.empty(most), np.empty(len(own))
    for j in range(first, len(near), stride):
        begin, end = indptr[offset + j], indptr[offset + j + 1]
        useful = 0
        for p in range(begin, end):
            i = indices[p]
            fine = i != offset + j and data[p] > l1
            cosine[p - begin] = -data[p] / np.sqrt(own[i]) if fine else 1.0
            useful += fine
        if useful > most:
            order = np.argsort(cosine[: end - begin], kind="mergesort")
            chosen = np.sort(order[:most])
        else:
            chosen = np.flatnonzero(cosine[: end - begin] < 0.5)
        count = len(chosen)
        for a in range(count):
            near[j, a] = indices[begin + chosen[a]]
            slope[a] = data[begin + chosen[a]]
            local[near[j, a]] = a
            have[a] = False
        w = weights[j]
        for _ in range(iterations):
            moved = 0.0
            for a in range(count):
                if w[a] == 0.0 and slope[a] <= l1:
                    continue
                i = near[j, a]
                new = max(0.0, (slope[a] + own[i] * w[a] - l1) / (own[i] + l2))
                change = np.float32(new) - w[a]
                if change != 0.0:
                    w[a] += change
                    moved = max(moved, abs(change))
                    if not have[a]:
                        have[a] = True
                        gram[a, :count] = 0.0
                        for p in range(indptr[i], indptr[i + 1]):
                            gram[a, local[indices[p]]] = data[p]
                    for b in range(count):
                        slope[b] -= change * gram[a, b]
            if moved <= tol:
                break
        for a in range(count):
            local[near[j, a]] = most
