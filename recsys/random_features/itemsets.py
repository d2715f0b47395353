"""Random features of any kernel that is given by its itemsets, or multisets, and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from recsys.errors import InputError
from recsys.random_features._bases import DISTRIBUTIONS, draw
from recsys.random_features.kernel_maps import _Map
from recsys.utils.validation import check_choice, check_integer


class ItemsetMap(_Map):
    """RK for K(x, y) = Σ_V w_V Π_{j∈V} x_j y_j over given itemsets V.

    An itemset that names a feature several times is a multiset, x_j to that power; every occurrence has
    its own random entry, which is what redundant feature augmentation comes to.

    Parameters
    ----------
    itemsets : sequence of sequences of int
        Features of each, by index; the empty one is a constant.
    weights : (itemsets,) float ≥ 0, optional
        w_V; 1 when not given.
    groups : (itemsets,) int, optional
        Subsampling: each component draws one group and sees its itemsets only, so that sparse rows
        give sparse features.
    n_components : int ≥ 1
        D.
    distribution : "rademacher", "gaussian", "uniform" or "laplace"
    random_state : int, Generator or None

    Attributes
    ----------
    bases_ : (itemsets, n_components) float64, CSR with `groups`
        √w_V Π ω over the itemset.

    Notes
    -----
    Source: Atarashi's thesis, Algorithms 7, 8, 10 and 11, (4.19), (4.31); groups are a partition, drawn
    alike.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import ItemsetMap
    >>> Z = ItemsetMap([(0,), (0, 1), (1, 2)], n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # itemsets of both: [[3, 2], [2, 2]]
    array([[3., 2.],
           [2., 2.]])
    """

    def __init__(
        self, itemsets: Sequence[Sequence[int]] = ((0,),), weights: ArrayLike | None = None,
        groups: ArrayLike | None = None, n_components: int = 100, distribution: str = "rademacher",
        random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.itemsets = itemsets
        self.weights = weights
        self.groups = groups
        self.n_components = n_components
        self.distribution = distribution
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("distribution", self.distribution, DISTRIBUTIONS)
        if len(self.itemsets) == 0:
            raise InputError("itemsets must list at least one")
        for name, given in (("weights", self.weights), ("groups", self.groups)):
            if given is not None and np.shape(given) != (len(self.itemsets),):
                raise InputError(f"{name} must be one for each of {len(self.itemsets)} itemsets")
        if self.weights is not None:
            w = np.asarray(self.weights, dtype=np.float64)
            if not np.isfinite(w).all() or (w < 0).any():
                raise InputError("weights must be finite numbers, none below 0")

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        used = [j for itemset in self.itemsets for j in itemset]
        if used and not 0 <= min(used) <= max(used) < features:
            wrong = min(used) if min(used) < 0 else max(used)
            raise InputError(f"an itemset names feature {wrong} of {features}")
        counts = [Counter(itemset) for itemset in self.itemsets]
        copies = np.zeros(features, dtype=np.int64)
        for count in counts:
            for j, times in count.items():
                copies[j] = max(copies[j], times)
        start = np.concatenate([[0], np.cumsum(copies)])
        self._check_bases(int(start[-1]) + len(counts))
        entries = draw(rng, self.distribution, (int(start[-1]), self.n_components))
        bases = np.ones((len(counts), self.n_components))
        for v, count in enumerate(counts):
            for j, times in count.items():
                bases[v] *= np.prod(entries[start[j] : start[j] + times], axis=0)
        if self.weights is not None:
            bases *= np.sqrt(np.asarray(self.weights, dtype=np.float64))[:, None]
        self.bases_: Any = bases / np.sqrt(self.n_components)
        if self.groups is not None:
            names, owner = np.unique(np.asarray(self.groups), return_inverse=True)
            chosen = rng.integers(len(names), size=self.n_components)
            seen = owner.ravel()[:, None] == chosen[None, :]
            self.bases_ = sp.csr_matrix(np.where(seen, self.bases_, 0.0) * np.sqrt(len(names)))

    def _map(self, rows: sp.csr_matrix) -> Any:
        return self._products(rows) @ self.bases_

    def _products(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """Return Π_{j∈V} x_j of each row and itemset, (rows, itemsets)."""
        columns = rows.tocsc()
        out = []
        for itemset in self.itemsets:
            product = sp.csc_matrix(np.ones((rows.shape[0], 1))) if len(itemset) == 0 else None
            for j in itemset:
                column = columns[:, [j]]
                product = column if product is None else product.multiply(column)
            out.append(sp.csc_matrix(product))
        return sp.csr_matrix(sp.hstack(out, format="csr"))
