"""Kernels whose features are normal forms: disjunctions of conjunctions and the reverse.

The inner features are counted by a binomial, of which a binomial is taken again. Such
numbers leave float64 at once, so counts are kept as shares of their largest value.
Source: Polato's thesis, 6.6 and 7.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.kernels.base import KERNELS, Kernel
from recsys.kernels.boolean import log_binomials, log_choices, shares_hit
from recsys.kernels.sums import log_sums
from recsys.utils.validation import check_integer

LOG2 = float(np.log(2.0))


@dataclass(frozen=True)
class _NormalForm(Kernel):
    d: int = 2
    c: int = 2

    whole: ClassVar[bool] = True
    saturates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse sizes that are no integers of at least 1."""
        self._keep_integer("d")
        self._keep_integer("c")

    def _check_clauses(self, log_clauses: float) -> None:
        if np.log(self.d) > log_clauses + 1e-9:
            most = np.exp(log_clauses)
            raise InputError(f"d must be at most the number of clauses, {most:.0f}, not {self.d}")


@KERNELS.add("mdnf")
@dataclass(frozen=True)
class MonotoneDNFKernel(_NormalForm):
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
    >>> from recsys.kernels import MonotoneDNFKernel
    >>> MonotoneDNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    def check_width(self, n: int) -> None:
        """Refuse conjunctions of more than n variables, and more of them than there are."""
        check_integer("c", self.c, 1, n)
        self._check_clauses(log_binomials(n, self.c)[n])

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return (6.14) over its largest value."""
        logs = log_binomials(n, self.c)
        share = np.exp(logs - logs[n])  # of the conjunctions, satisfied by k ones
        return hit_both(share[s], share[a] - share[s], share[b] - share[s], logs[n], self.d)

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the number of formulas."""
        return _log_choose(log_binomials(n, self.c)[n], self.d)

    def _dimension(self, n: int) -> int:
        return comb(comb(n, self.c), self.d)


@KERNELS.add("dnf")
@dataclass(frozen=True)
class DNFKernel(_NormalForm):
    """DNF(d, c): how many disjunctions of d conjunctions of c literals hold in both vectors.

    No vector is null.
    Source: Polato's thesis, (6.16).

    Parameters
    ----------
    d : int ≥ 1
        Conjunctions in a formula.
    c : int ≥ 1
        Literals in a conjunction, at most n.

    Examples
    --------
    >>> from recsys.kernels import DNFKernel
    >>> DNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[22., 19.],
           [19., 22.]])
    """

    def check_width(self, n: int) -> None:
        """Refuse conjunctions of more than n variables, and more of them than there are."""
        check_integer("c", self.c, 1, n)
        self._check_clauses(log_binomials(n, self.c)[n] + self.c * LOG2)

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return (6.16) over its largest value."""
        logs = log_binomials(n, self.c)
        size = logs[n] + self.c * LOG2
        both = np.exp(logs[n - a - b + 2 * s] - size)
        one = np.exp(logs[n] - size) - both
        return hit_both(both, one, one, size, self.d)

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the number of formulas."""
        return _log_choose(log_binomials(n, self.c)[n] + self.c * LOG2, self.d)

    def _dimension(self, n: int) -> int:
        return comb(2**self.c * comb(n, self.c), self.d)


@KERNELS.add("mcnf")
@dataclass(frozen=True)
class MonotoneCNFKernel(_NormalForm):
    """mCNF(c, d): how many conjunctions of c disjunctions of d variables hold in both vectors.

    A vector that satisfies fewer than c disjunctions is null.
    Source: Polato's thesis, (6.18).

    Parameters
    ----------
    d : int ≥ 1
        Variables in a disjunction, at most n.
    c : int ≥ 1
        Disjunctions in a formula.

    Examples
    --------
    >>> from recsys.kernels import MonotoneCNFKernel
    >>> MonotoneCNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    logarithmic: ClassVar[bool] = True

    def check_width(self, n: int) -> None:
        """Refuse disjunctions of more than n variables."""
        check_integer("d", self.d, 1, n)

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return log C(κ_mD, c), (6.18)."""
        hit = shares_hit(n, self.d)
        share = (hit[a] - (hit[a + b - s] - hit[b])).astype(np.float64)
        share[s == 0] *= self.d > 1  # exactly 0 for vectors without a common one
        return log_choose(share, log_binomials(n, self.d)[n], self.c)

    def _dimension(self, n: int) -> int:
        return comb(comb(n, self.d), self.c)


@KERNELS.add("cnf")
@dataclass(frozen=True)
class CNFKernel(_NormalForm):
    """CNF(c, d): how many conjunctions of c disjunctions of d literals hold in both vectors.

    Source: Polato's thesis, (6.20).

    Parameters
    ----------
    d : int ≥ 1
        Literals in a disjunction, at most n.
    c : int ≥ 1
        Disjunctions in a formula.

    Examples
    --------
    >>> from recsys.kernels import CNFKernel
    >>> CNFKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[18., 15.],
           [15., 18.]])
    """

    logarithmic: ClassVar[bool] = True

    def check_width(self, n: int) -> None:
        """Refuse disjunctions of more than n variables."""
        check_integer("d", self.d, 1, n)

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return log C(κ_D, c), (6.20)."""
        logs, part = log_binomials(n, self.d), 0.5**self.d
        share = (1.0 - 2.0 * part) + part * np.exp(logs[n - a - b + 2 * s] - logs[n])
        return log_choose(share, logs[n] + self.d * LOG2, self.c)

    def _dimension(self, n: int) -> int:
        return comb(2**self.d * comb(n, self.d), self.c)


@KERNELS.add("mdnf-sum")
@dataclass(frozen=True)
class MonotoneDNFSumKernel(_NormalForm):
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
    >>> from recsys.kernels import MonotoneDNFSumKernel
    >>> MonotoneDNFSumKernel(d=2, c=1)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[9., 7.],
           [7., 7.]])
    """

    d: int = 5
    c: int = 5

    def check_width(self, n: int) -> None:
        """Refuse conjunctions of more than n variables, and more of them than there are."""
        check_integer("c", self.c, 1, n)
        self._check_clauses(log_sums(n, self.c, 1.0)[n])

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the sum of (6.14) over its largest value."""
        logs, unit = log_sums(n, self.c, 1.0), self.log_unit(n)
        share, total = np.exp(logs - logs[n]), np.zeros(len(s))
        for d in range(1, self.d + 1):
            hit = hit_both(share[s], share[a] - share[s], share[b] - share[s], logs[n], d)
            total += np.exp(_log_choose(logs[n], d) - unit) * hit
        return total

    def log_unit(self, n: int) -> float:
        """Return the logarithm of the number of formulas."""
        log_clauses = log_sums(n, self.c, 1.0)[n]
        return float(np.logaddexp.reduce([_log_choose(log_clauses, d) for d in range(1, self.d + 1)]))

    def _dimension(self, n: int) -> int:
        return sum(comb(sum(comb(n, i) for i in range(1, self.c + 1)), k) for k in range(1, self.d + 1))


def _log_choose(log_size: float, d: int) -> float:
    """Return log C(N, d) from log N."""
    if log_size > 700:  # N leaves float64, and N − i is N to the last digit
        i = np.arange(d, dtype=np.longdouble)
        return float(np.sum(np.longdouble(log_size) - np.log(i + 1.0)))
    return log_choices(float(np.rint(np.exp(log_size))), d)


def hit_both(both: Any, first: Any, second: Any, log_size: float, d: int) -> NDArray[np.float64]:
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
        total += np.where(
            np.isinf(v), log_v - np.log(i + 1.0), np.log(np.maximum(v - i, 0.0) / (i + 1.0))
        )
    return total
