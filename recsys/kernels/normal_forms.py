"""Kernels whose features are normal forms: disjunctions of conjunctions and the reverse.

The inner formulas are counted by a binomial, of which a binomial is taken again. Such numbers exceed
float64 at once, so counts are kept as shares of their largest value, or as logarithms.
Source: Polato's thesis, 6.6 and 7.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.base import Kernel, register_kernel
from recsys.kernels.boolean import (
    ConjunctiveKernel,
    DisjunctiveKernel,
    MonotoneConjunctiveKernel,
    MonotoneDisjunctiveKernel,
    OneDegree,
    log_choices,
)
from recsys.kernels.sums import MonotoneConjunctiveSumKernel
from recsys.utils.validation import check_integer


@dataclass(frozen=True)
class _NormalForm(Kernel):
    d: int = 2
    c: int = 2

    inner: ClassVar[type[OneDegree]]  # the kernel of the inner formulas
    whole = True
    saturates = True

    def __post_init__(self) -> None:
        self._keep_integer("d")
        self._keep_integer("c")


class _Disjunctions(_NormalForm):
    """Disjunctions of d conjunctions."""

    log_literals = 0.0  # logarithm of the literals of a variable

    def check_width(self, n: int) -> None:
        check_integer("c", self.c, 1, n)
        size = self._log_size(n)
        if np.log(self.d) > size + 1e-9:
            raise InputError(
                f"d must be at most the number of clauses, {np.exp(size):.0f}, not {self.d}"
            )

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        size, inner = self._log_size(n), self.inner(self.c)
        counts = ((s, a, b), (a, a, a), (b, b, b))
        both, first, second = (np.exp(inner.of_counts(*three, n) - size) for three in counts)
        total, unit = np.zeros(len(s)), self.log_unit(n)
        for d in self._numbers():
            hit = share_of_hits(both, first - both, second - both, size, d)
            total += np.exp(_log_choose(size, d) - unit) * hit
        return total

    def log_unit(self, n: int) -> float:
        size = self._log_size(n)
        return float(np.logaddexp.reduce([_log_choose(size, d) for d in self._numbers()]))

    def _numbers(self) -> Sequence[int]:
        """Return the numbers of conjunctions in a formula."""
        return [self.d]

    def _log_size(self, n: int) -> float:
        """Return the logarithm of the number of conjunctions."""
        every = np.array([n])
        logs = self.inner(self.c).of_counts(every, every, every, n)
        return float(logs[0]) + self.c * self.log_literals

    def _dimension(self, n: int) -> int:
        return sum(comb(int(self.inner(self.c)._dimension(n)), d) for d in self._numbers())


class _Conjunctions(_NormalForm):
    """Conjunctions of c disjunctions."""

    logarithmic = True

    def check_width(self, n: int) -> None:
        check_integer("d", self.d, 1, n)

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        inner = self.inner(self.d)
        share = np.asarray(inner.of_counts(s, a, b, n), dtype=np.float64)
        return log_choose(share, inner.log_unit(n), self.c)

    def _dimension(self, n: int) -> int:
        return comb(int(self.inner(self.d)._dimension(n)), self.c)


@register_kernel("mdnf")
class MonotoneDNFKernel(_Disjunctions):
    """mDNF(d, c): how many disjunctions of d conjunctions of c variables hold in both vectors.

    A vector with fewer than c ones is null.
    Source: Polato's thesis, (6.14).

    Parameters
    ----------
    d : int ≥ 1
        Conjunctions in a formula.
    c : int ≥ 1
        Variables in a conjunction, at most n.

    Examples
    --------
    >>> MonotoneDNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    inner = MonotoneConjunctiveKernel


@register_kernel("dnf")
class DNFKernel(_Disjunctions):
    """DNF(d, c): how many disjunctions of d conjunctions of c literals hold in both vectors.

    No vector is null.
    Source: Polato's thesis, (6.16).

    Other parameters: as of `MonotoneDNFKernel`, with literals.
    """

    inner = ConjunctiveKernel
    log_literals = float(np.log(2.0))


@register_kernel("mcnf")
class MonotoneCNFKernel(_Conjunctions):
    """mCNF(c, d): how many conjunctions of c disjunctions of d variables hold in both vectors.

    A vector that satisfies fewer than c disjunctions is null.
    Source: Polato's thesis, (6.18).

    Parameters
    ----------
    d : int ≥ 1
        Variables in a disjunction, at most n.
    c : int ≥ 1
        Disjunctions in a formula.
    """

    inner = MonotoneDisjunctiveKernel


@register_kernel("cnf")
class CNFKernel(_Conjunctions):
    """CNF(c, d): how many conjunctions of c disjunctions of d literals hold in both vectors.

    Source: Polato's thesis, (6.20).

    Other parameters: as of `MonotoneCNFKernel`, with literals.
    """

    inner = DisjunctiveKernel


@register_kernel("mdnf-sum")
class MonotoneDNFSumKernel(_Disjunctions):
    """κ*: how many disjunctions of up to d conjunctions of up to c variables hold in both vectors.

    A vector without ones is null.
    Source: Polato's thesis, 7.2.1.

    Parameters
    ----------
    d : int ≥ 1
        Largest number of conjunctions in a formula.
    c : int ≥ 1
        Largest number of variables in a conjunction, at most n.

    Examples
    --------
    >>> MonotoneDNFSumKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[9., 7.],
           [7., 7.]])
    """

    d: int = 5
    c: int = 5

    inner = MonotoneConjunctiveSumKernel

    def _numbers(self) -> Sequence[int]:
        return range(1, self.d + 1)


def _log_choose(log_size: float, d: int) -> float:
    """Return log C(N, d) from log N."""
    if log_size > 700:  # N leaves float64, and N − i is N to the last digit
        i = np.arange(d, dtype=np.longdouble)
        return float(np.sum(np.longdouble(log_size) - np.log(i + 1.0)))
    return log_choices(float(np.rint(np.exp(log_size))), d)


def share_of_hits(both: Any, first: Any, second: Any, log_size: float, d: int) -> NDArray[np.float64]:
    """Return the share of the d-subsets of N features that meet two sets of features.

    The sets have `both` in common and `first`, `second` to themselves, as shares of N. Everything is
    written with expm1 and log1p in differences of equal sign, so that sets rarer than the rounding of 1
    keep their digits.
    """
    if d == 1:
        return np.asarray(both)
    unit = float(np.exp(-log_size)) if log_size < 700 else 0.0
    steps = d if unit * d > 1e-13 else 1  # of a large N, N − i is N
    times = 1.0 if steps > 1 else float(d)
    miss, lost_x, lost_y, lost, gain = np.zeros((5, len(both)))
    certain = np.zeros(len(both), dtype=np.bool_)
    for i in range(steps):
        size = 1.0 - i * unit
        left = size - both
        certain |= left <= 0.5 * unit
        miss += np.log1p(-both / size)
        lost_x += np.where(left - first > 0.5 * unit, np.log1p(-first / left), -np.inf)
        lost_y += np.where(left - second > 0.5 * unit, np.log1p(-second / left), -np.inf)
        free = left - first - second
        open_ = free > 0.5 * unit
        lost += np.where(open_, np.log1p(-(first + second) / left), -np.inf)
        gain += np.where(open_, np.log1p(first * second / (left * free)), 0.0)
    miss, lost_x, lost_y = times * miss, times * lost_x, times * lost_y
    neither, gain = times * lost, times * gain
    one_each = np.expm1(lost_x) * np.expm1(lost_y)
    # Of sets that are far apart, exp(neither)·expm1(gain) might be 0·∞.
    near = np.exp(neither) * np.expm1(np.minimum(gain, 1.0))
    far = np.exp(neither + gain) - np.exp(neither)
    taken = np.where(gain < 1.0, near, far)
    one_each -= np.where(neither > -np.inf, taken, np.exp(lost_x + lost_y))
    out = -np.expm1(miss) + np.exp(miss) * np.maximum(one_each, 0.0)
    return np.where(certain | (both >= 1.0), 1.0, out)


def log_choose(share: NDArray[np.float64], log_size: float, c: int) -> NDArray[np.float64]:
    """Return log C(v, c) for integers v = share·exp(log_size); −∞ where v < c."""
    log_v = np.log(share) + log_size
    v = np.where(log_v < 34.0, np.rint(np.exp(np.minimum(log_v, 34.0))), np.inf)
    total = np.zeros(len(share))
    for i in range(c):  # beyond 2⁴⁹ the subtrahend is below the rounding
        total += np.where(np.isinf(v), log_v, np.log(np.maximum(v - i, 0.0))) - np.log(i + 1.0)
    return total
