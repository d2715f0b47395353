"""Random features of any kernel that is given by its itemsets, or multisets, and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.random_features._bases import draw
from recsys.random_features.kernel_maps import _Map
from recsys.utils.validation import check_ids, check_integer, check_real, real_array

Itemsets = Sequence[Sequence[int]]
Family = Callable[[int], tuple[Itemsets, ArrayLike | None]]


@dataclass(eq=False, repr=False)
class ItemsetMap(_Map):
    """Random features of K(x, y) = Σ_V w_V Π_{j∈V} x_j y_j over chosen itemsets V (RK).

    A repeated feature of an itemset gives a power of x_j; every occurrence has its own random sign,
    which is equivalent to redundant feature augmentation.

    Parameters
    ----------
    itemsets : sequence of sequences of int
        Feature indices of each itemset; the empty itemset is a constant.
    weights : (itemsets,) float ≥ 0, optional
        w_V; 1 by default.
    groups : (itemsets,) int, optional
        Subsampling: each component draws one group and uses only its itemsets, so sparse rows give
        sparse features. For overlapping families, repeat an itemset in each family with a part of its
        weight (α in the thesis).
    n_components : int ≥ 1
        D.
    random_state : int, Generator or None
    probabilities : (groups,) float > 0, optional
        Probability of each group, in ascending order of groups; equal by default.
    sparsity : float in 0…1, below 1
        Probability p of a zero random entry; other entries are divided by √(1 − p).

    Attributes
    ----------
    bases_ : (itemsets, n_components) float64, CSR with `groups` or `sparsity`
        √w_V Π ω over the itemset.

    Notes
    -----
    Source: Atarashi's thesis, Algorithms 7, 8, 10 and 11, (4.19), (4.31); Algorithm 9 and (4.26) for
    sparse entries.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> Z = ItemsetMap([(0,), (0, 1), (1, 2)], n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # itemsets of both: [[3, 2], [2, 2]]
    array([[3., 2.],
           [2., 2.]])
    """

    itemsets: Itemsets = ((0,),)
    weights: ArrayLike | None = None
    groups: ArrayLike | None = None
    n_components: int = 100
    random_state: Any = 0
    probabilities: ArrayLike | None = None
    sparsity: float = 0.0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_real("sparsity", self.sparsity, 0.0, 1.0, open_high=True)
        if not len(self.itemsets):
            raise InputError("itemsets must contain at least one itemset")

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        D, size = self.n_components, len(self.itemsets)
        owner = np.zeros(size) if self.groups is None else real_array("groups", self.groups)
        if owner.shape != (size,):
            raise InputError(f"groups must have one entry for each of {size} itemsets")
        names, owner = np.unique(owner, return_inverse=True)
        for group in range(len(names)):
            _check_distinct([self.itemsets[int(v)] for v in np.flatnonzero(owner == group)])
        bases = _bases(self.itemsets, self.weights, features, D, rng, self.sparsity)
        if self.groups is not None:
            p = np.full(len(names), 1.0 / len(names))
            if self.probabilities is None:
                chosen = rng.integers(len(names), size=D)
            else:
                p = _positive("probabilities", self.probabilities, len(names))
                if not p.all() or not np.isclose(p.sum(), 1.0):
                    raise InputError("probabilities must be above 0 and sum to 1")
                p = p / p.sum()
                chosen = rng.choice(len(names), size=D, p=p)
            bases = np.where(owner[:, None] == chosen, bases / np.sqrt(p[chosen]), 0.0)
        self.bases_: Any = bases / np.sqrt(D)
        if self.groups is not None or self.sparsity:
            self.bases_ = sp.csr_matrix(self.bases_)

    def _map(self, rows: sp.csr_matrix) -> Any:
        return _products(rows, self.itemsets) @ self.bases_


def redundant_feature_augmentation(X: Any, itemsets: Itemsets) -> tuple[Any, list[tuple[int, ...]]]:
    """Return repeated features, and itemsets without repetition, that have the same kernel.

    Feature j is repeated as often as any itemset has it; features of no itemset are left out.
    Source: Atarashi's thesis, Algorithm 7.

    Parameters
    ----------
    X : (rows, features) array or sparse matrix
    itemsets : sequence of sequences of int
        Feature indices; a repeated feature is a power of x_j.

    Examples
    --------
    >>> redundant_feature_augmentation(np.array([[2.0, 3.0]]), [(0, 1, 1), (1,)])
    (array([[2., 3., 3.]]), [(0, 1, 2), (1,)])
    """
    X = X.tocsc() if sp.issparse(X) else np.asarray(real_array("X", X, 2))
    copies, distinct = _augmented(itemsets, X.shape[1])
    return X[:, np.repeat(np.arange(X.shape[1]), copies)], distinct


def _augmented(itemsets: Itemsets, features: int) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return how often each feature is repeated, and the itemsets over the repeated features."""
    counts = [Counter(check_ids("feature of an itemset", V, features).tolist()) for V in itemsets]
    copies = [0] * features
    for own in counts:
        for j, times in own.items():
            copies[j] = max(copies[j], times)
    first = np.cumsum([0, *copies]).tolist()
    distinct = [tuple(first[j] + k for j in sorted(own) for k in range(own[j])) for own in counts]
    return copies, distinct


@dataclass(eq=False, repr=False)
class CountableItemsetMap(_Map):
    """Subsampled random features of Σₙ Kₙ, where part n has finitely many weighted multisets.

    Component s draws a part n with probability pₙ = (1 − 1/r)·r⁻ⁿ and is the map of this part times
    √(1/pₙ), so no part is truncated.

    Parameters
    ----------
    family : callable, optional
        Function n → (itemsets, weights) of part n; weights may be None for ones. By default the n-th
        power of each feature, and a constant as part 0: the kernel 1 + Σⱼ Σ_{n≥1} (xⱼyⱼ)ⁿ for features
        below 1.
    n_components : int ≥ 1
        D.
    random_state : int, Generator or None
    ratio : float above 1, at most 100
        r: a large value makes late parts rare with large factors. The variance is finite only if Σₙ
        Kₙ²·rⁿ is.

    Attributes
    ----------
    parts_ : (n_components,) int64
    bases_ : dict of int to (itemsets of the part, its components) float64

    Notes
    -----
    Source: Atarashi's thesis, 4.6.2 and Algorithm 11. Its αₙ are included in the weights of the parts.

    Examples
    --------
    >>> X = np.array([[0.6, 0.5], [0.3, 0.4]])
    >>> Z = CountableItemsetMap(n_components=200000).fit_transform(X)
    >>> (Z @ Z.T).round(1)[0, 1], (1 / (1 - X[0] * X[1])).sum().round(1) - 1
    (np.float64(1.5), np.float64(1.5))
    """

    family: Family | None = None
    n_components: int = 100
    random_state: Any = 0
    ratio: float = 2.0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_real("ratio", self.ratio, 1.0, 100.0, open_low=True)

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        family = self.family
        if family is None:  # powers of single features, the constant once
            family = lambda n: ([(j,) * n for j in range(features if n else 1)], None)  # noqa: E731
        D, r = self.n_components, float(self.ratio)
        self.parts_ = rng.geometric(1.0 - 1.0 / r, D) - 1
        self.itemsets_: dict[int, Itemsets] = {}
        self.bases_ = {}
        for n, components in sorted(Counter(self.parts_.tolist()).items()):
            itemsets, weights = family(n)
            _check_distinct(itemsets)
            bases = _bases(itemsets, weights, features, components, rng)
            self.itemsets_[n] = itemsets
            self.bases_[n] = bases * np.sqrt(r**n / (1.0 - 1.0 / r) / D)

    def _map(self, rows: sp.csr_matrix) -> Any:
        out = np.zeros((rows.shape[0], self.n_components))
        for n, itemsets in self.itemsets_.items():
            if len(itemsets):
                out[:, self.parts_ == n] = _products(rows, itemsets) @ self.bases_[n]
        return out


def _check_distinct(itemsets: Itemsets) -> None:
    """Refuse a multiset that comes twice: its two random entries would be one."""
    if len({tuple(sorted(V)) for V in itemsets}) < len(itemsets):
        raise InputError("an itemset is repeated: pass it once, with the sum of its weights")


def _positive(name: str, values: Any, size: int) -> NDArray[np.float64]:
    out = real_array(name, values, finite=True)
    if out.shape != (size,) or (out < 0).any():
        raise InputError(f"{name} must be {size} non-negative numbers")
    return out


def _bases(
    itemsets: Itemsets,
    weights: ArrayLike | None,
    features: int,
    components: int,
    rng: np.random.Generator,
    sparsity: float = 0.0,
) -> NDArray[np.float64]:
    """Return √w times the product of the random entries of each itemset, (itemsets, components)."""
    copies, distinct = _augmented(itemsets, features)
    entries = draw(rng, "rademacher", (sum(copies), components))
    if sparsity:
        entries *= (rng.random(entries.shape) >= sparsity) / np.sqrt(1.0 - sparsity)
    bases = np.ones((len(distinct), components))
    for base, V in zip(bases, distinct, strict=True):
        base *= np.prod(entries[list(V)], axis=0)
    if weights is not None:
        bases *= np.sqrt(_positive("weights", weights, len(distinct)))[:, None]
    return bases


def _products(rows: sp.csr_matrix, itemsets: Itemsets) -> sp.csr_matrix:
    """Return Π_{j∈V} x_j of each row and itemset, (rows, itemsets)."""
    columns, one = rows.tocsc(), sp.csc_matrix(np.ones((rows.shape[0], 1)))
    products = [
        reduce(lambda product, j: product.multiply(columns[:, [j]]), itemset, one)
        for itemset in itemsets
    ]
    return sp.csr_matrix(sp.hstack(products, format="csr"))
