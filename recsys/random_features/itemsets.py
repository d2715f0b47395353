"""Random features of any kernel that is given by its itemsets, or multisets, and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.random_features._bases import DISTRIBUTIONS, draw
from recsys.random_features.kernel_maps import _Map
from recsys.utils.features import real_array
from recsys.utils.memory import check_fits
from recsys.utils.validation import check_choice, check_integer, check_real

Family = Callable[[int], tuple[Sequence[Sequence[int]], ArrayLike | None]]


@dataclass(eq=False, repr=False)
class ItemsetMap(_Map):
    """Random features of K(x, y) = Σ_V w_V Π_{j∈V} x_j y_j over chosen itemsets V (RK).

    A repeated feature of an itemset gives a power of x_j; every occurrence has its own random entry,
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
    distribution : "rademacher", "gaussian", "uniform" or "laplace"
    random_state : int, Generator or None
    probabilities : (groups,) float > 0, optional
        Probability of each group, in ascending order of groups; equal by default.
    sparsity : float in 0…1, below 1
        Probability p of a zero random entry; other entries are divided by √(1 − p). A component uses
        only itemsets without zero entries, so sparse rows give sparse features.

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
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    >>> from recsys.random_features import ItemsetMap
    >>> Z = ItemsetMap([(0,), (0, 1), (1, 2)], n_components=20000).fit_transform(X)
    >>> (Z @ Z.T).round()  # itemsets of both: [[3, 2], [2, 2]]
    array([[3., 2.],
           [2., 2.]])
    """

    itemsets: Sequence[Sequence[int]] = ((0,),)
    weights: ArrayLike | None = None
    groups: ArrayLike | None = None
    n_components: int = 100
    distribution: str = "rademacher"
    random_state: Any = 0
    probabilities: ArrayLike | None = None
    sparsity: float = 0.0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("distribution", self.distribution, DISTRIBUTIONS)
        size = len(_itemsets(self.itemsets, "itemsets"))
        if size == 0:
            raise InputError("itemsets must contain at least one itemset")
        if self.weights is not None:
            _numbers(self.weights, size, "weights")
        if self.groups is not None and np.shape(self.groups) != (size,):
            raise InputError(f"groups must have one entry for each of {size} itemsets")
        check_real("sparsity", self.sparsity, 0.0, 1.0, open_high=True)
        if self.probabilities is not None:
            number = 0 if self.groups is None else len(np.unique(np.asarray(self.groups)))
            _probabilities(self.probabilities, number)

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        counts, start = _augmented(_itemsets(self.itemsets, "itemsets"), features)
        groups = np.zeros(len(counts)) if self.groups is None else np.asarray(self.groups)
        for group in np.unique(groups):
            _all_differ([counts[v] for v in np.flatnonzero(groups == group)])
        self._check_bases(int(start[-1]) + len(counts))
        bases = _bases(counts, start, self.n_components, self.distribution, rng, self.sparsity)
        if self.weights is not None:
            bases *= np.sqrt(np.asarray(self.weights, dtype=np.float64))[:, None]
        self.bases_: Any = bases / np.sqrt(self.n_components)
        if self.groups is not None:
            names, owner = np.unique(np.asarray(self.groups), return_inverse=True)
            if self.probabilities is None:
                chosen = rng.integers(len(names), size=self.n_components)
                scale: Any = np.sqrt(len(names))
            else:
                p = _probabilities(self.probabilities, len(names))
                chosen = rng.choice(len(names), size=self.n_components, p=p)
                scale = 1.0 / np.sqrt(p[chosen])
            seen = owner.ravel()[:, None] == chosen[None, :]
            self.bases_ = np.where(seen, self.bases_, 0.0) * scale
        if self.groups is not None or self.sparsity:
            self.bases_ = sp.csr_matrix(self.bases_)

    def _map(self, rows: sp.csr_matrix) -> Any:
        return _products(rows, self.itemsets) @ self.bases_


@dataclass(eq=False, repr=False)
class CountableItemsetMap(_Map):
    """Subsampled random features of a kernel of infinitely many multisets, in finite parts.

    The kernel is Σₙ Kₙ, where part n = 0, 1, … has finitely many weighted multisets. Component s draws a
    part n with probability pₙ = (1 − 1/r)·r⁻ⁿ and is the map of this part times √(1/pₙ), so no part is
    truncated.

    Parameters
    ----------
    family : callable, optional
        Function n → (itemsets, weights) of part n; weights may be None for ones. By default the n-th
        power of each feature, and a constant as part 0: the kernel 1 + Σⱼ Σ_{n≥1} (xⱼyⱼ)ⁿ for features
        below 1.
    n_components : int ≥ 1
        D.
    distribution : "rademacher", "gaussian", "uniform" or "laplace"
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
    >>> import numpy as np
    >>> from recsys.random_features import CountableItemsetMap
    >>> X = np.array([[0.6, 0.5], [0.3, 0.4]])
    >>> Z = CountableItemsetMap(n_components=200000).fit_transform(X)
    >>> (Z @ Z.T).round(1)[0, 1], (1 / (1 - X[0] * X[1])).sum().round(1) - 1
    (np.float64(1.5), np.float64(1.5))
    """

    family: Family | None = None
    n_components: int = 100
    distribution: str = "rademacher"
    random_state: Any = 0
    ratio: float = 2.0

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("distribution", self.distribution, DISTRIBUTIONS)
        check_real("ratio", self.ratio, 1.0, 100.0, open_low=True)
        if self.family is not None and not callable(self.family):
            raise InputError("family must be a function of the number of a part")

    def _draw(self, features: int, rng: np.random.Generator) -> None:
        family = powers_of_each(features) if self.family is None else self.family
        D, r = self.n_components, float(self.ratio)
        check_fits(2.0 * D, f"the parts of n_components={D}", "lower n_components")
        self.parts_ = rng.geometric(1.0 - 1.0 / r, D) - 1
        self.itemsets_: dict[int, Sequence[Sequence[int]]] = {}
        self.bases_ = {}
        for n, components in sorted(Counter(self.parts_.tolist()).items()):
            part = family(n)
            if not isinstance(part, tuple | list) or len(part) != 2:
                raise InputError(f"part {n} of the family must be (itemsets, weights), not {part!r:.60}")
            itemsets = _itemsets(part[0], f"the itemsets of part {n}")
            counts, start = _augmented(itemsets, features)
            _all_differ(counts)
            self._check_bases(int(start[-1]) + len(counts), components / D)
            bases = _bases(counts, start, components, self.distribution, rng)
            if part[1] is not None:
                bases *= np.sqrt(_numbers(part[1], len(counts), f"the weights of part {n}"))[:, None]
            self.itemsets_[n] = itemsets
            self.bases_[n] = bases * np.sqrt(r**n / (1.0 - 1.0 / r) / self.n_components)

    def _map(self, rows: sp.csr_matrix) -> Any:
        self._check_output(rows.shape[0])
        out = np.zeros((rows.shape[0], self.n_components))
        for n, itemsets in self.itemsets_.items():
            if len(itemsets):
                out[:, self.parts_ == n] = _products(rows, itemsets) @ self.bases_[n]
        return out


def powers_of_each(features: int) -> Family:
    """Return the family of all powers of single features, the constant once."""
    return lambda n: ([(j,) * n for j in range(features if n else 1)], None)


def _itemsets(given: Any, name: str) -> list[tuple[int, ...]]:
    """Return itemsets as tuples of int, or raise InputError."""
    try:
        if isinstance(given, Iterator):
            raise TypeError  # one pass would leave nothing for the next
        itemsets = [tuple(itemset) for itemset in given]
        if any(isinstance(j, bool) for itemset in itemsets for j in itemset):
            raise TypeError  # True is no feature, though Python takes it for 1
        return [tuple(map(index, itemset)) for itemset in itemsets]
    except TypeError:
        raise InputError(
            f"{name} must be sequences of integers, as in [(0,), (0, 1)], not {given!r:.60}"
        ) from None


def _numbers(given: Any, size: int, name: str) -> NDArray[np.float64]:
    out = real_array(name, given, finite=True)
    if out.shape != (size,) or (out < 0).any():
        raise InputError(f"{name} must be {size} non-negative numbers")
    return out


def _probabilities(given: Any, groups: int) -> NDArray[np.float64]:
    p = _numbers(given, groups, "probabilities")
    if not (p > 0).all() or not np.isclose(p.sum(), 1.0):
        raise InputError("probabilities must be positive and sum to 1")
    return p / p.sum()


def _augmented(
    itemsets: Sequence[Sequence[int]], features: int
) -> tuple[list[Counter[int]], NDArray[np.int64]]:
    """Return how often each itemset has each feature, and where each feature's copies start."""
    used = [j for itemset in itemsets for j in itemset]
    if used and not 0 <= min(used) <= max(used) < features:
        wrong = min(used) if min(used) < 0 else max(used)
        raise InputError(f"an itemset names feature {wrong} of {features}")
    counts = [Counter(itemset) for itemset in itemsets]
    copies = np.zeros(features, dtype=np.int64)
    for count in counts:
        for j, times in count.items():
            copies[j] = max(copies[j], times)
    return counts, np.concatenate([[0], np.cumsum(copies)])


def _all_differ(counts: list[Counter[int]]) -> None:
    """Refuse a multiset that comes twice: its two random entries would be one."""
    seen = set()
    for count in counts:
        key = tuple(sorted(count.elements()))
        if key in seen:
            raise InputError(f"itemset {key} is repeated: pass it once, with the sum of its weights")
        seen.add(key)


def _bases(
    counts: list[Counter[int]],
    start: NDArray[np.int64],
    components: int,
    distribution: str,
    rng: np.random.Generator,
    sparsity: float = 0.0,
) -> NDArray[np.float64]:
    """Return the product of the random entries of each itemset, (itemsets, components)."""
    entries = draw(rng, distribution, (int(start[-1]), components))
    if sparsity:
        entries *= (rng.random(entries.shape) >= sparsity) / np.sqrt(1.0 - sparsity)
    bases = np.ones((len(counts), components))
    for v, count in enumerate(counts):
        for j, times in count.items():
            bases[v] *= np.prod(entries[start[j] : start[j] + times], axis=0)
    return bases


def _products(rows: sp.csr_matrix, itemsets: Sequence[Sequence[int]]) -> sp.csr_matrix:
    """Return Π_{j∈V} x_j of each row and itemset, (rows, itemsets)."""
    columns = rows.tocsc()
    out = []
    for itemset in itemsets:
        product = sp.csc_matrix(np.ones((rows.shape[0], 1))) if len(itemset) == 0 else None
        for j in itemset:
            column = columns[:, [j]]
            product = column if product is None else product.multiply(column)
        out.append(sp.csc_matrix(product))
    return sp.csr_matrix(sp.hstack(out, format="csr"))
