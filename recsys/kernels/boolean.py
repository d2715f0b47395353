"""Boolean kernels of one connective: literals, conjunctions and disjunctions (thesis, 6.3, 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from recsys.kernels.base import KERNELS, Kernel
from recsys.kernels.exact import meeting
from recsys.kernels.plans import (
    AT_EMPTY,
    AT_FULL,
    CONJUNCTION,
    CONJUNCTION_L,
    DISJUNCTION,
    DISJUNCTION_L,
    LINEAR,
    LITERAL,
    NEGATION,
    Plan,
)
from recsys.utils.validation import check_integer


@dataclass(frozen=True)
class OneDegree(Kernel):
    """Base of the kernels with one degree."""

    degree: int = 2

    def __post_init__(self) -> None:
        """Refuse a degree that is not an integer of at least 1."""
        self._keep_integer("degree")

    def _check_fits(self, n: int) -> None:
        check_integer("degree", self.degree, 1, n)


@KERNELS.add("mc", "anova")
@dataclass(frozen=True)
class MonotoneConjunctiveKernel(OneDegree):
    """mC: how many conjunctions of `degree` variables hold in both vectors, C(⟨x,z⟩, degree).

    On binary vectors this is the ANOVA kernel. A vector with fewer than `degree` ones is
    null. Binomials are kept as logarithms.

    Parameters
    ----------
    degree : int ≥ 1
        Variables in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.4).

    Examples
    --------
    >>> from recsys.kernels import MonotoneConjunctiveKernel
    >>> MonotoneConjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[3., 1.],
           [1., 1.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate log C(k, degree) for k = 0…n."""
        check_integer("degree", self.degree, 1, n)
        return Plan(
            CONJUNCTION, np.zeros(4), log_binomials(n, self.degree), logarithmic=True, integer=True
        )

    def _dimension(self, n: int) -> int:
        return comb(n, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return C(s, degree)."""
        return comb(s, self.degree)


@KERNELS.add("md")
@dataclass(frozen=True)
class MonotoneDisjunctiveKernel(OneDegree):
    """mD: how many disjunctions of `degree` variables hold in both vectors.

    Computed as probabilities: with h(k) = 1 − C(n−k,d)/C(n,d), the share of disjunctions
    that k ones satisfy, κ/C(n,d) = h(a) − (h(a+b−s) − h(b)), which no degree overflows. A
    vector without ones is null.

    Parameters
    ----------
    degree : int ≥ 1
        Variables in a disjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.7).

    Examples
    --------
    >>> from recsys.kernels import MonotoneDisjunctiveKernel
    >>> MonotoneDisjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate h for k = 0…n, and 1 − h, which keeps its digits where h is close to 1."""
        d = check_integer("degree", self.degree, 1, n)
        if d == 1:  # ⟨x,z⟩: exact, where shares would leave 1e-16 for vectors without a common one
            return Plan(LINEAR, np.zeros(4), np.zeros(1), integer=True)
        table = np.concatenate([shares_hit(n, d), shares_missed(n, d)])
        par, scale = np.array([n, 0.0, 0.0, 0.0]), log_choices(float(n), d)
        return Plan(DISJUNCTION, par, table, scale, zero_at_zero=False, integer=True, saturates=AT_FULL)

    def _dimension(self, n: int) -> int:
        return comb(n, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.7) as it is printed."""
        return meeting(n, a, b, s, self.degree)


@KERNELS.add("negation")
@dataclass(frozen=True)
class NegationKernel(Kernel):
    """Number of variables that are false in both vectors (6.9). A vector of ones is null.

    Examples
    --------
    >>> from recsys.kernels import NegationKernel
    >>> NegationKernel()([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def plan(self, n: int) -> Plan:
        """No table is needed."""
        par = np.array([n, 0.0, 0.0, 0.0])
        return Plan(NEGATION, par, np.zeros(1), zero_at_zero=False, integer=True, saturates=AT_EMPTY)

    def _dimension(self, n: int) -> int:
        return n

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return n − |x ∪ z|."""
        return n - a - b + s


@KERNELS.add("literal")
@dataclass(frozen=True)
class LiteralKernel(Kernel):
    """Number of variables that have the same value in both vectors (6.10). No vector is null.

    Examples
    --------
    >>> from recsys.kernels import LiteralKernel
    >>> LiteralKernel()([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[4., 3.],
           [3., 4.]])
    """

    def plan(self, n: int) -> Plan:
        """No table is needed."""
        par = np.array([n, 0.0, 0.0, 0.0])
        return Plan(LITERAL, par, np.zeros(1), zero_at_zero=False, integer=True, saturates=AT_EMPTY)

    def _dimension(self, n: int) -> int:
        return 2 * n

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return how many agree."""
        return n - a - b + 2 * s


@KERNELS.add("c")
@dataclass(frozen=True)
class ConjunctiveKernel(OneDegree):
    """C: how many conjunctions of `degree` literals hold in both vectors. No vector is null.

    Parameters
    ----------
    degree : int ≥ 1
        Literals in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.11).

    Examples
    --------
    >>> from recsys.kernels import ConjunctiveKernel
    >>> ConjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 3.],
           [3., 6.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate log C(k, degree) for k = 0…n."""
        check_integer("degree", self.degree, 1, n)
        par, table = np.array([n, 0.0, 0.0, 0.0]), log_binomials(n, self.degree)
        return Plan(
            CONJUNCTION_L, par, table,
            logarithmic=True, zero_at_zero=False, integer=True, saturates=AT_EMPTY,
        )  # fmt: skip

    def _dimension(self, n: int) -> int:
        return 2**self.degree * comb(n, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return C(agreeing variables, degree)."""
        return comb(n - a - b + 2 * s, self.degree)


@KERNELS.add("d")
@dataclass(frozen=True)
class DisjunctiveKernel(OneDegree):
    """D: how many disjunctions of `degree` literals hold in both vectors. No vector is null.

    Parameters
    ----------
    degree : int ≥ 1
        Literals in a disjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.12); the line in 6.5.4 has its sign and index wrong.

    Examples
    --------
    >>> from recsys.kernels import DisjunctiveKernel
    >>> DisjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[18., 15.],
           [15., 18.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate C(k, degree)/C(n, degree) for k = 0…n."""
        d = check_integer("degree", self.degree, 1, n)
        logs = log_binomials(n, d)
        par = np.array([n, 0.5**d, d, 0.0])
        scale = float(logs[n] + d * np.log(2.0))
        table = np.exp(logs - logs[n])
        return Plan(
            DISJUNCTION_L, par, table, scale, zero_at_zero=False, integer=True, saturates=AT_EMPTY
        )

    def _dimension(self, n: int) -> int:
        return 2**self.degree * comb(n, self.degree)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.12)."""
        return signed_disjunctions(n, n - a - b + 2 * s, self.degree)


def log_binomials(n: int, c: int) -> np.ndarray:
    """Return log C(k, c) for k = 0…n, −inf where k < c; (n + 1,) float64.

    Summed as log ratios in extended precision: the difference of two log-gammas would lose
    the last digits that an exponential then magnifies.
    """
    k = np.arange(c + 1, n + 1, dtype=np.longdouble)
    out = np.full(n + 1, -np.inf)
    out[c:] = np.concatenate(([0.0], np.cumsum(np.log(k) - np.log(k - c)))).astype(np.float64)
    return out


def shares_missed(n: int, d: int) -> np.ndarray:
    """Return C(n−k, d)/C(n, d) for k = 0…n, accurate to the last digits; (n + 1,) float64."""
    k = np.arange(n, dtype=np.longdouble)
    ratio = np.maximum(n - k - d, 0) / (n - k)
    return np.concatenate(([np.longdouble(1)], np.cumprod(ratio))).astype(np.float64)


def shares_hit(n: int, d: int) -> np.ndarray:
    """Return h(k) = 1 − C(n−k, d)/C(n, d) for k = 0…n; (n + 1,) float64.

    h is summed from its increments g(k)·d/(n−k), all positive, in extended precision, so
    that rare items (h near 0) keep their leading digits.
    """
    k = np.arange(n, dtype=np.longdouble)
    ratio = np.maximum(n - k - d, 0) / (n - k)
    g = np.concatenate(([np.longdouble(1)], np.cumprod(ratio)[:-1]))
    increments = np.where(n - k >= d, g * d / (n - k), 0)
    return np.concatenate(([np.longdouble(0)], np.cumsum(increments))).astype(np.float64)


def signed_disjunctions(n: int, agree: int, d: int) -> int:
    """Return how many disjunctions of d literals hold in both of two vectors, exactly (6.12)."""
    return (2**d - 2) * comb(n, d) + comb(agree, d)


def log_choices(size: float, d: int) -> float:
    """Return log C(size, d) for an integer size ≥ d, summed in extended precision.

    The difference of log-gammas would carry the rounding of size·log(size) into every digit.
    """
    least = min(d, size - d)
    i = np.arange(int(least), dtype=np.longdouble)
    return float(np.sum(np.log((np.longdouble(size) - i) / (i + 1.0))))
