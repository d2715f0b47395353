"""Kernels whose features are normal forms: disjunctions of conjunctions and the reverse.

The inner features are counted by a binomial, of which a binomial is taken again. Such
numbers leave float64 at once, so counts are kept as shares of their largest value.
Source: Polato's thesis, 6.6 and 7.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from recsys.errors import InputError
from recsys.kernels.base import KERNELS, Kernel
from recsys.kernels.boolean import log_binomials, log_choices, signed_disjunctions
from recsys.kernels.exact import Counting, meeting
from recsys.kernels.plans import (
    AT_EMPTY,
    AT_FULL,
    CONJUNCTION_OF_D,
    CONJUNCTION_OF_DL,
    HIT,
    HIT_L,
    HIT_SUM,
    NOWHERE,
    Plan,
)
from recsys.utils.validation import check_integer

LOG2 = float(np.log(2.0))


@dataclass(frozen=True)
class _NormalForm(Kernel):
    d: int = 2
    c: int = 2

    def __post_init__(self) -> None:
        """Refuse sizes that are no integers of at least 1."""
        self._keep_integer("d")
        self._keep_integer("c")

    def _check_width(self, name: str, n: int) -> None:
        check_integer(name, getattr(self, name), 1, n)

    def _check_clauses(self, log_clauses: float) -> None:
        if np.log(self.d) > log_clauses + 1e-9:
            most = np.exp(log_clauses)
            raise InputError(f"d must be at most the number of clauses, {most:.0f}, not {self.d}")


def _unit(log_size: float) -> float:
    """Return 1/N, 0 where N leaves float64."""
    return float(np.exp(-log_size)) if log_size < 700 else 0.0


def _log_choose(log_size: float, d: int) -> float:
    """Return log C(N, d) from log N."""
    if log_size > 700:  # N leaves float64, and N − i is N to the last digit
        i = np.arange(d, dtype=np.longdouble)
        return float(np.sum(np.longdouble(log_size) - np.log(i + 1.0)))
    return log_choices(float(np.rint(np.exp(log_size))), d)


@KERNELS.add("mdnf")
@dataclass(frozen=True)
class MonotoneDNFKernel(_NormalForm):
    """mDNF(d, c): how many disjunctions of d conjunctions of c variables hold in both vectors.

    A vector with fewer than c ones is null.

    Parameters
    ----------
    d : int ≥ 1
        Conjunctions in a formula.
    c : int ≥ 1
        Variables in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.14).

    Examples
    --------
    >>> from recsys.kernels import MonotoneDNFKernel
    >>> MonotoneDNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate C(k, c)/C(n, c) for k = 0…n."""
        self._check_width("c", n)
        logs = log_binomials(n, self.c)
        self._check_clauses(logs[n])
        par = np.array([n, _unit(logs[n]), self.d, 0.0])
        scale = _log_choose(logs[n], self.d)
        table = np.exp(logs - logs[n])
        saturates = AT_FULL if self.d > 1 else NOWHERE
        return Plan(HIT, par, table, scale, zero_at_zero=self.d == 1, integer=True, saturates=saturates)

    def _dimension(self, n: int) -> int:
        return comb(comb(n, self.c), self.d)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.14) as it is printed."""
        x, z, both = (comb(k, self.c) for k in (a, b, s))
        return meeting(comb(n, self.c), x, z, both, self.d)

    def counting(self) -> Counting:
        """Return disjunctions of d conjunctions of c variables."""
        return Counting(self.c, False, self.d, 1)


@KERNELS.add("dnf")
@dataclass(frozen=True)
class DNFKernel(_NormalForm):
    """DNF(d, c): how many disjunctions of d conjunctions of c literals hold in both vectors.

    No vector is null.

    Parameters
    ----------
    d : int ≥ 1
        Conjunctions in a formula.
    c : int ≥ 1
        Literals in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, (6.16).

    Examples
    --------
    >>> from recsys.kernels import DNFKernel
    >>> DNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[22., 19.],
           [19., 22.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate C(k, c)/(2^c C(n, c)) for k = 0…n."""
        self._check_width("c", n)
        logs = log_binomials(n, self.c)
        size = float(logs[n] + self.c * LOG2)
        self._check_clauses(size)
        par = np.array([n, _unit(size), self.d, 0.0])
        table, scale = np.exp(logs - size), _log_choose(size, self.d)
        return Plan(HIT_L, par, table, scale, zero_at_zero=False, integer=True, saturates=AT_EMPTY)

    def _dimension(self, n: int) -> int:
        return comb(2**self.c * comb(n, self.c), self.d)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.16) as it is printed."""
        own, both = comb(n, self.c), comb(n - a - b + 2 * s, self.c)
        return meeting(2**self.c * own, own, own, both, self.d)


@KERNELS.add("mcnf")
@dataclass(frozen=True)
class MonotoneCNFKernel(_NormalForm):
    """mCNF(c, d): how many conjunctions of c disjunctions of d variables hold in both vectors.

    A vector that satisfies fewer than c disjunctions is null.

    Parameters
    ----------
    d : int ≥ 1
        Variables in a disjunction, at most n.
    c : int ≥ 1
        Disjunctions in a formula.

    Notes
    -----
    Source: Polato's thesis, (6.18).

    Examples
    --------
    >>> from recsys.kernels import MonotoneCNFKernel
    >>> MonotoneCNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate k/n for k = 0…n, and log C(n, d)."""
        self._check_width("d", n)
        table = np.append(np.arange(n + 1) / n, log_binomials(n, self.d)[n])
        par = np.array([n, 1.0 / n, self.d, self.c])
        return Plan(
            CONJUNCTION_OF_D, par, table,
            logarithmic=True, zero_at_zero=False, integer=True, saturates=AT_FULL,
        )  # fmt: skip

    def _dimension(self, n: int) -> int:
        return comb(comb(n, self.d), self.c)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.18) as it is printed."""
        return comb(meeting(n, a, b, s, self.d), self.c)

    def counting(self) -> Counting:
        """Return conjunctions of c disjunctions of d variables."""
        return Counting(1, False, self.d, self.c)


@KERNELS.add("cnf")
@dataclass(frozen=True)
class CNFKernel(_NormalForm):
    """CNF(c, d): how many conjunctions of c disjunctions of d literals hold in both vectors.

    Parameters
    ----------
    d : int ≥ 1
        Literals in a disjunction, at most n.
    c : int ≥ 1
        Disjunctions in a formula.

    Notes
    -----
    Source: Polato's thesis, (6.20).

    Examples
    --------
    >>> from recsys.kernels import CNFKernel
    >>> CNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[18., 15.],
           [15., 18.]])
    """

    def plan(self, n: int) -> Plan:
        """Tabulate C(k, d)/C(n, d) for k = 0…n, and log 2^d C(n, d)."""
        self._check_width("d", n)
        logs = log_binomials(n, self.d)
        table = np.append(np.exp(logs - logs[n]), logs[n] + self.d * LOG2)
        par = np.array([n, 0.5**self.d, self.d, self.c])
        return Plan(
            CONJUNCTION_OF_DL, par, table,
            logarithmic=True, zero_at_zero=False, integer=True, saturates=AT_EMPTY,
        )  # fmt: skip

    def _dimension(self, n: int) -> int:
        return comb(2**self.d * comb(n, self.d), self.c)

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return (6.20) as it is printed."""
        return comb(signed_disjunctions(n, n - a - b + 2 * s, self.d), self.c)


@KERNELS.add("mdnf-sum")
@dataclass(frozen=True)
class MonotoneDNFSumKernel(_NormalForm):
    """κ*: how many disjunctions of up to d conjunctions of up to c variables hold in both vectors.

    A vector without ones is null.

    Parameters
    ----------
    d : int ≥ 1
        Most conjunctions in a formula.
    c : int ≥ 1
        Most variables in a conjunction, at most n.

    Notes
    -----
    Source: Polato's thesis, 7.2.1.

    Examples
    --------
    >>> from recsys.kernels import MonotoneDNFSumKernel
    >>> MonotoneDNFSumKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[9., 7.],
           [7., 7.]])
    """

    d: int = 5
    c: int = 5

    def plan(self, n: int) -> Plan:
        """Tabulate the share of conjunctions that k ones satisfy, and the weight of each d."""
        self._check_width("c", n)
        logs = np.logaddexp.reduce([log_binomials(n, c) for c in range(1, self.c + 1)], axis=0)
        self._check_clauses(logs[n])
        terms = np.array([_log_choose(logs[n], d) for d in range(1, self.d + 1)])
        scale = float(np.logaddexp.reduce(terms))
        table = np.concatenate([np.exp(logs - logs[n]), np.exp(terms - scale)])
        par = np.array([n, _unit(logs[n]), self.d, 0.0])
        saturates = AT_FULL if self.d > 1 else NOWHERE
        return Plan(
            HIT_SUM, par, table, scale, zero_at_zero=self.d == 1, integer=True, saturates=saturates
        )

    def _dimension(self, n: int) -> int:
        return sum(comb(sum(comb(n, i) for i in range(1, self.c + 1)), k) for k in range(1, self.d + 1))

    def exact(self, n: int, s: int, a: int, b: int) -> int:
        """Return the sum of (6.14) over sets of up to d of the conjunctions of up to c."""
        size, x, z, both = (sum(comb(k, i) for i in range(1, self.c + 1)) for k in (n, a, b, s))
        return sum(meeting(size, x, z, both, k) for k in range(1, self.d + 1))

    def counting(self) -> Counting:
        """Return disjunctions of up to d conjunctions of up to c variables."""
        return Counting(self.c, True, self.d, 1)
