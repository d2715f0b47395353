"""Kernels that count conjunctions of several sizes at once (thesis, 4.4 and 7.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.kernels.base import Kernel, register_kernel
from recsys.kernels.boolean import OneDegree, log_binomials
from recsys.utils.validation import check_integer, check_real


@register_kernel("mc-sum", "itemset")
class MonotoneConjunctiveSumKernel(OneDegree):
    """Σ mC of degrees 1…degree. A vector without ones is null.

    It counts the itemsets of at most `degree` items (Atarashi's thesis, 4.2, with equal weights).
    Source: Polato's thesis, 7.2.1; with degree = n it is Sadohara's mDNF kernel (4.23).

    Parameters
    ----------
    degree : int ≥ 1
        Largest number of variables in a conjunction, at most n.
    """

    logarithmic = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return log Σ C(s, c)."""
        return log_sums(n, self.degree, 1.0)[s]

    def _dimension(self, n: int) -> int:
        return sum(comb(n, i) for i in range(1, self.degree + 1))


@register_kernel("all-subsets")
class AllSubsetsKernel(Kernel):
    """2^⟨x,z⟩: how many sets of variables, the empty one included, are true in both vectors.

    No vector is null.
    Source: Polato's thesis, (4.28).
    """

    logarithmic = True
    whole = True
    tabulated = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return s log 2."""
        return s * np.log(2.0)

    def _dimension(self, n: int) -> int:
        return 2**n


@dataclass(frozen=True)
class _Sadohara(Kernel):
    arity: int | None = None
    sigma: float = 1.0

    logarithmic = True
    tabulated = True

    def __post_init__(self) -> None:
        if self.arity is not None:
            self._keep_integer("arity")
        check_real("sigma", self.sigma, 0.0, open_low=True)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.sigma == 1

    def check_width(self, n: int) -> None:
        if self.arity is not None:
            check_integer("arity", self.arity, 1, n)

    def _log_sum(self, k: Any, n: int) -> NDArray[np.float64]:
        if self.arity is not None:
            return log_sums(n, self.arity, float(self.sigma))[k]
        power = k * np.log1p(self.sigma)  # of (1 + σ)^k − 1
        return power + np.log(-np.expm1(-power))


@register_kernel("sadohara-mdnf")
class SadoharaMonotoneDNFKernel(_Sadohara):
    """Conjunctions of up to `arity` variables true in both vectors, each worth sigma^size.

    A vector without ones is null.
    Source: Polato's thesis, (4.23), (4.25) and (4.27), which combine.

    Parameters
    ----------
    arity : int ≥ 1, optional
        Largest number of variables in a conjunction, at most n; all by default.
    sigma : float > 0
        Below 1 short conjunctions count more, above 1 long ones.
    """

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the logarithm of the sum over common ones."""
        return self._log_sum(s, n)

    def _dimension(self, n: int) -> int:
        return sum(comb(n, i) for i in range(1, (self.arity or n) + 1))


@register_kernel("sadohara-dnf")
class SadoharaDNFKernel(_Sadohara):
    """Conjunctions of up to `arity` literals true in both vectors, each worth sigma^size.

    No vector is null.
    Source: Polato's thesis, (4.22), (4.24) and (4.26), whose factor is σxz + σ(1−x)(1−z) + 1;
    they combine.

    Other parameters: as of `SadoharaMonotoneDNFKernel`, with literals.
    """

    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the logarithm of the sum over agreeing variables."""
        return self._log_sum(n - a - b + 2 * s, n)

    def _dimension(self, n: int) -> int:
        return sum(2**i * comb(n, i) for i in range(1, (self.arity or n) + 1))


@lru_cache(maxsize=8)
def log_sums(n: int, most: int, sigma: float) -> NDArray[np.float64]:
    """Return log Σ_{i=1…most} σ^i C(k, i) for k = 0…n."""
    terms = [log_binomials(n, i) + i * np.log(sigma) for i in range(1, most + 1)]
    return np.asarray(np.logaddexp.reduce(terms, axis=0))
