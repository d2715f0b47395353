"""Kernels that count conjunctions of several sizes at once (thesis, 4.4 and 7.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from recsys.kernels.base import KERNELS, Kernel
from recsys.kernels.boolean import OneDegree, log_binomials
from recsys.kernels.plans import AT_EMPTY, CONJUNCTION, CONJUNCTION_L, Plan
from recsys.utils.validation import check_integer, check_real

NO_PAR = np.zeros(4)


@KERNELS.add("mc-sum")
@dataclass(frozen=True)
class MonotoneConjunctiveSumKernel(OneDegree):
    """Σ mC of degrees 1…degree. A vector without ones is null.

    Parameters
    ----------
    degree : int ≥ 1
        Most variables in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, 7.2.1; with degree = n it is Sadohara's mDNF kernel (4.23).

    Examples
    --------
    >>> from recsys.kernels import MonotoneConjunctiveSumKernel
    >>> MonotoneConjunctiveSumKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 3.],
           [3., 3.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate log Σ C(k, c) for k = 0…n."""
        check_integer("degree", self.degree, 1, n)
        return Plan(CONJUNCTION, NO_PAR, _log_sums(n, self.degree, 1.0), logarithmic=True, integer=True)

    def _dimension(self, n: int) -> int:
        return sum(comb(n, i) for i in range(1, self.degree + 1))

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return the sum of binomials."""
        return sum(comb(s, i) for i in range(1, self.degree + 1))


@KERNELS.add("all-subsets")
@dataclass(frozen=True)
class AllSubsetsKernel(Kernel):
    """2^⟨x,z⟩: how many sets of variables, the empty one included, are true in both vectors.

    No vector is null.

    Notes
    -----
    Source: Polato's thesis, (4.28).

    Examples
    --------
    >>> from recsys.kernels import AllSubsetsKernel
    >>> AllSubsetsKernel()([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[8., 4.],
           [4., 4.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate k log 2 for k = 0…n."""
        table = np.arange(n + 1) * np.log(2.0)
        return Plan(CONJUNCTION, NO_PAR, table, logarithmic=True, zero_at_zero=False, integer=True)

    def _dimension(self, n: int) -> int:
        return 2**n

    def _check_fits(self, n: int) -> None:
        pass  # any n fits

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return the power of 2."""
        return 2**s


@dataclass(frozen=True)
class _Sadohara(Kernel):
    arity: int | None = None
    sigma: float = 1.0

    def __post_init__(self) -> None:
        """Refuse parameters out of range."""
        if self.arity is not None:
            self._keep_integer("arity")
        check_real("sigma", self.sigma, 0.0, open_low=True)

    def _check_fits(self, n: int) -> None:
        if self.arity is not None:
            check_integer("arity", self.arity, 1, n)

    def _table(self, n: int) -> np.ndarray:
        if self.arity is None:  # (1 + σ)^k − 1
            with np.errstate(divide="ignore"):
                power = np.arange(n + 1) * np.log1p(self.sigma)
                return power + np.log(-np.expm1(-power))
        check_integer("arity", self.arity, 1, n)
        return _log_sums(n, self.arity, self.sigma)

    def _sum(self, k: int) -> Fraction:
        sigma = Fraction(float(self.sigma))
        if self.arity is None:
            return (1 + sigma) ** k - 1
        return sum((sigma**i * comb(k, i) for i in range(1, self.arity + 1)), Fraction(0))


@KERNELS.add("sadohara-mdnf")
@dataclass(frozen=True)
class SadoharaMonotoneDNFKernel(_Sadohara):
    """Conjunctions of up to `arity` variables true in both vectors, each worth sigma^size.

    A vector without ones is null.

    Parameters
    ----------
    arity : int ≥ 1, optional
        Most variables in a conjunction, at most n; all when not given.
    sigma : float > 0
        Below 1 short conjunctions count more, above 1 long ones.

    Notes
    -----
    Source: Polato's thesis, (4.23), (4.25) and (4.27), which combine.

    Examples
    --------
    >>> from recsys.kernels import SadoharaMonotoneDNFKernel
    >>> SadoharaMonotoneDNFKernel(arity=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 3.],
           [3., 3.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate the logarithm for k = 0…n common ones."""
        return Plan(CONJUNCTION, NO_PAR, self._table(n), logarithmic=True, integer=self.sigma == 1)

    def _dimension(self, n: int) -> int:
        return sum(comb(n, i) for i in range(1, (self.arity or n) + 1))

    def exact(self, n: int, s: int, a: int, b: int) -> Fraction:
        """Return the sum over common ones."""
        return self._sum(s)


@KERNELS.add("sadohara-dnf")
@dataclass(frozen=True)
class SadoharaDNFKernel(_Sadohara):
    """Conjunctions of up to `arity` literals true in both vectors, each worth sigma^size.

    No vector is null.

    Parameters
    ----------
    arity : int ≥ 1, optional
        Most literals in a conjunction, at most n; all when not given.
    sigma : float > 0
        Below 1 short conjunctions count more, above 1 long ones.

    Notes
    -----
    Source: Polato's thesis, (4.22), (4.24) and (4.26), whose factor is
    σxz + σ(1−x)(1−z) + 1; they combine.

    Examples
    --------
    >>> from recsys.kernels import SadoharaDNFKernel
    >>> SadoharaDNFKernel(arity=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[10.,  6.],
           [ 6., 10.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate the logarithm for k = 0…n variables of equal value."""
        par = np.array([n, 0.0, 0.0, 0.0])
        return Plan(
            CONJUNCTION_L,
            par,
            self._table(n),
            logarithmic=True,
            zero_at_zero=False,
            integer=self.sigma == 1,
            saturates=AT_EMPTY,
        )

    def _dimension(self, n: int) -> int:
        return sum(2**i * comb(n, i) for i in range(1, (self.arity or n) + 1))

    def exact(self, n: int, s: int, a: int, b: int) -> Fraction:
        """Return the sum over agreeing variables."""
        return self._sum(n - a - b + 2 * s)


def _log_sums(n: int, most: int, sigma: float) -> np.ndarray:
    """Return log Σ_{i=1…most} σ^i C(k, i) for k = 0…n."""
    terms = [log_binomials(n, i) + i * np.log(sigma) for i in range(1, most + 1)]
    return np.logaddexp.reduce(terms, axis=0)
