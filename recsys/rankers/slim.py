"""SLIM: sparse non-negative regressions between items, by coordinate descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from recsys._jit import in_parts, jit, parallel
from recsys.kernels import item_gram, make_kernel
from recsys.kernels.gram.counts import cooccurrence
from recsys.rankers._gram_view import worth_dense
from recsys.rankers._item_weights import ItemWeights
from recsys.rankers.registry import RANKERS
from recsys.utils.docstrings import documented
from recsys.utils.memory import check_memory, parse_memory
from recsys.utils.validation import check_integer, check_real

SHARE = 4  # of the items: with more near ones than a fourth all are gone over


@RANKERS.add("slim")
@documented
@dataclass(eq=False)
class SLIM(ItemWeights):
    """SLIM: sparse non-negative regression of every item on the others, in parallel.

    Minimises ½‖r_j − R w‖² + l1·‖w‖₁ + ½·l2·‖w‖² over w ≥ 0 with w_j = 0 for each item j,
    by coordinate descent on the co-occurrence matrix.

    Parameters
    ----------
    l1, l2 : float ≥ 0
        The thesis' β is l2/2 and its λ is l1.
    iterations : int ≥ 1
        Most sweeps per item.
    tol : float > 0
        Stop when no weight moves by more in a sweep.
    top_k : int ≥ 1, optional
        Predict each item from the `top_k` items of the largest cosine only. Memory then grows
        with the pairs of items that share a user, not with the square of the catalogue.
    memory : str or int, optional
        Budget, such as "4GB": of all pairs of items without `top_k`, of those that share a user with it.
        What does not fit is refused before the fit. What is free where not given.

    Notes
    -----
    Source: Ning and Karypis 2011; Polato's thesis, 5.1.

    Examples
    --------
    >>> likes = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = SLIM(l1=0.1, l2=1.0).fit(likes, show_progress=False)
    >>> model.recommend(0, [likes[0]], N=1).ids
    array([2], dtype=int32)
    """

    l1: float = 1.0
    l2: float = 10.0
    iterations: int = 50
    tol: float = 1e-4
    top_k: int | None = None
    memory: str | int | None = None
    recency: float = 0.0
    ties: str | None = None

    name: ClassVar[str] = "slim"
    search_space: ClassVar[dict[str, Any]] = {
        "l1": ("log", 0.1, 30.0),
        "l2": ("log", 1.0, 1000.0),
        "recency": ("real", 0.0, 2.0, "times"),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("l1", self.l1, 0.0)
        check_real("l2", self.l2, 0.0)
        check_integer("iterations", self.iterations, 1)
        check_real("tol", self.tol, 0.0, open_low=True)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        parse_memory(self.memory)

    def _fit(self, liked: sp.csr_matrix, show_progress: bool, callback: Any) -> None:
        if self.top_k is not None:
            self._fit_near(liked)
            return
        items = liked.shape[1]
        check_memory(
            13 * items * items, f"SLIM on {items:,} items", parse_memory(self.memory),
            "pass top_k=200 or keep fewer items",
        )  # fmt: skip
        gram = item_gram(liked, make_kernel("linear"), normalize=False)
        out = np.zeros((items, items), dtype=np.float32)
        with parallel() as threads:
            in_parts(
                threads,
                _slim,
                gram,
                float(self.l1),
                float(self.l2),
                int(self.iterations),
                float(self.tol),
                out,
                rounds=_rounds(items),
            )
        self.weights_ = np.ascontiguousarray(out.T)

    def _fit_near(self, liked: sp.csr_matrix) -> None:
        items = liked.shape[1]
        budget = parse_memory(self.memory)
        counts = cooccurrence(liked, budget=budget)
        k = min(int(self.top_k or 1), items)
        near = np.full((items, k), -1, dtype=np.int32)
        weights = np.zeros((items, k), dtype=np.float32)
        with parallel() as threads:
            in_parts(
                threads, _slim_near, counts.indptr, counts.indices, counts.data, counts.diagonal(),
                float(self.l1), float(self.l2), int(self.iterations), float(self.tol), near, weights,
                rounds=_rounds(items),
            )  # fmt: skip
        used = weights > 0
        target = np.repeat(np.arange(items), used.sum(axis=1))
        entries = (weights[used], (near[used], target))
        found = sp.csr_matrix(entries, shape=(items, items), dtype=np.float32)
        self.weights_ = found.toarray() if worth_dense(items, budget) else found


def _rounds(items: int) -> int:
    """Return in how many rounds items are fitted: few of small fits, which end soon."""
    return min(64, 1 + items // 128)


# ---- kernels


@jit
def _slim(first, stride, gram, l1, l2, iterations, tol, out):
    """Row j of out receives the weights that predict item j.

    The gradient of item i starts at gram[j, i] and other weights only lower it, so that items
    with gram[j, i] ≤ l1 never enter: the rest, few on sparse data, are all that is walked.
    """
    m = len(gram)
    near = np.empty(m, dtype=np.uint32)
    slope = np.empty(m)  # Rᵀ(r_j − R w): of the near items, or of all where these are many
    w = np.empty(m, dtype=np.float32)
    room = m // SHARE
    held, have = np.empty((room, room), dtype=np.float32), np.empty(room, dtype=np.bool_)
    for j in range(first, m, stride):
        count = 0
        for i in range(m):
            if i != j and gram[j, i] > l1:
                near[count] = i
                count += 1
        many = count > room  # all items in a row's order are faster than so many looked up
        length = m if many else count
        for k in range(length):
            slope[k], w[k] = gram[j, k if many else near[k]], 0.0
        have[:] = False
        for _ in range(iterations):
            moved = 0.0
            for a in range(count):
                i = near[a]
                at = i if many else a
                if w[at] == 0.0 and slope[at] <= l1:
                    continue
                new = max(0.0, (slope[at] + gram[i, i] * w[at] - l1) / (gram[i, i] + l2))
                change = np.float32(new) - w[at]
                if change != 0.0:
                    w[at] += change
                    moved = max(moved, abs(change))
                    row = gram[i]
                    if not many:
                        if not have[a]:  # looked up once, for all changes of this weight
                            have[a] = True
                            for k in range(count):
                                held[a, k] = gram[i, near[k]]
                        row = held[a]
                    for k in range(length):
                        slope[k] -= change * row[k]
            if moved <= tol:
                break
        for a in range(count):
            out[j, near[a]] = w[near[a] if many else a]


@jit
def _slim_near(first, stride, indptr, indices, data, own, l1, l2, iterations, tol, near, weights):
    """Row j of near and weights receives the items that predict item j, by index, and their weights."""
    m, most = near.shape
    local = np.full(m, -1, dtype=np.int32)
    gram = np.empty((most, most))
    slope = np.empty(most)
    for j in range(first, m, stride):
        begin, end = indptr[j], indptr[j + 1]
        cosine = np.empty(end - begin)
        for p in range(begin, end):
            i = indices[p]
            useful = i != j and data[p] > l1
            cosine[p - begin] = -data[p] / np.sqrt(own[i]) if useful else 1.0
        order = np.argsort(cosine, kind="mergesort")
        count = 0
        while count < min(most, len(order)) and cosine[order[count]] < 0.0:
            count += 1
        chosen = np.sort(order[:count])
        for a in range(count):
            near[j, a] = indices[begin + chosen[a]]
            slope[a] = data[begin + chosen[a]]
            local[near[j, a]] = a
        for a in range(count):
            gram[a, :count] = 0.0
            i = near[j, a]
            for p in range(indptr[i], indptr[i + 1]):
                b = local[indices[p]]
                if b >= 0:
                    gram[a, b] = data[p]
        for a in range(count):
            local[near[j, a]] = -1
        w = weights[j]
        for _ in range(iterations):
            moved = 0.0
            for a in range(count):
                new = max(0.0, (slope[a] + gram[a, a] * w[a] - l1) / (gram[a, a] + l2))
                change = np.float32(new) - w[a]
                if change != 0.0:
                    w[a] += change
                    moved = max(moved, abs(change))
                    for b in range(count):
                        slope[b] -= change * gram[a, b]
            if moved <= tol:
                break
