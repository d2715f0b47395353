"""Boolean kernels of one connective: literals, conjunctions and disjunctions (thesis, 6.3 to 6.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.kernels.base import Kernel, overlaps, register_kernel
from recsys.utils.validation import check_choice, check_integer


@dataclass(frozen=True)
class OneDegree(Kernel):
    """Base of the kernels with one degree."""

    degree: int = 2

    whole = True
    tabulated = True
    literals = 1  # of a variable

    def __post_init__(self) -> None:
        self._keep_integer("degree")

    def _dimension(self, n: int) -> int:
        return self.literals**self.degree * comb(n, self.degree)

    def check_width(self, n: int) -> None:
        """Refuse a degree above n."""
        check_integer("degree", self.degree, 1, n)


@register_kernel("mc", "anova")
class MonotoneConjunctiveKernel(OneDegree):
    """mC: how many conjunctions of `degree` variables hold in both vectors, C(⟨x,z⟩, degree).

    On binary vectors this is the ANOVA kernel. A vector with fewer than `degree` ones is
    null. Binomials are kept as logarithms.
    Source: Polato's thesis, (6.4).

    Parameters
    ----------
    degree : int ≥ 1
        Variables in a conjunction, at most n.

    Examples
    --------
    >>> MonotoneConjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[3., 1.],
           [1., 1.]])
    """

    logarithmic = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return log C(s, degree)."""
        return log_binomials(n, self.degree)[s]


@register_kernel("md")
class MonotoneDisjunctiveKernel(OneDegree):
    """mD: how many disjunctions of `degree` variables hold in both vectors.

    Computed as probabilities: k ones satisfy a share h(k) = 1 − C(n−k,d)/C(n,d) of the disjunctions, and
    κ/C(n,d) = h(a) − (h(a+b−s) − h(b)) does not overflow. A vector without ones is null.
    Source: Polato's thesis, (6.7).

    Parameters
    ----------
    degree : int ≥ 1
        Variables in a disjunction, at most n.

    Examples
    --------
    >>> MonotoneDisjunctiveKernel(degree=2)([[1, 1, 1, 0], [1, 1, 0, 0]])
    array([[6., 5.],
           [5., 5.]])
    """

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[Any]:
        """Return the share of disjunctions that both satisfy; of degree 1, s."""
        if self.degree == 1:  # exact, where shares would leave 1e-20 for vectors without a common one
            return np.asarray(s)
        hit = shares_hit(n, self.degree)
        return hit[a] - (hit[a + b - s] - hit[b])

    def log_unit(self, n: int) -> float:
        """Return log C(n, degree)."""
        return log_choices(float(n), self.degree) if self.degree > 1 else 0.0

    def shortfall(self, sizes: Any, n: int) -> NDArray[np.float64]:
        """Return 1 − K(x, r) of vectors x of these sizes and r of all ones, to its last digits."""
        hit, missed = shares_hit(n, self.degree)[sizes], shares_missed(n, self.degree)[sizes]
        return np.where(sizes > 0, missed / (1.0 + np.sqrt(hit)), 1.0).astype(np.float64)

    def centered(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return K(x,z) − K(x,r) − K(r,z) + 1 of the normalized kernel and the vector r of all ones.

        It keeps the precision that K loses close to 1. Objectives over a simplex and scores change by a
        constant only.
        """
        hit, missed = shares_hit(n, self.degree), shares_missed(n, self.degree)
        with np.errstate(divide="ignore"):
            scale = np.where(hit > 0, 1.0 / np.sqrt(hit), 0.0)
        product = self.shortfall(a, n) * self.shortfall(b, n)
        return ((missed[a + b - s] - missed[a] * missed[b]) * scale[a] * scale[b] + product).astype(
            np.float64
        )


@register_kernel("negation")
class NegationKernel(Kernel):
    """Number of variables that are false in both vectors (6.9). A vector of ones is null."""

    whole = True
    tabulated = True
    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[Any]:
        """Return n − |x ∪ z|."""
        return n - a - b + s

    def _dimension(self, n: int) -> int:
        return n


@register_kernel("literal")
class LiteralKernel(Kernel):
    """Number of variables that have the same value in both vectors (6.10). No vector is null."""

    whole = True
    tabulated = True
    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[Any]:
        """Return how many agree."""
        return n - a - b + 2 * s

    def _dimension(self, n: int) -> int:
        return 2 * n


@register_kernel("c")
class ConjunctiveKernel(OneDegree):
    """C: how many conjunctions of `degree` literals hold in both vectors. No vector is null.

    Source: Polato's thesis, (6.11).

    Other parameters: as of `MonotoneConjunctiveKernel`, with literals.
    """

    logarithmic = True
    literals = 2
    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return log C(agreeing variables, degree)."""
        return log_binomials(n, self.degree)[n - a - b + 2 * s]


@register_kernel("d")
class DisjunctiveKernel(OneDegree):
    """D: how many disjunctions of `degree` literals hold in both vectors. No vector is null.

    Source: Polato's thesis, (6.12); 6.5.4 prints a wrong sign and index.

    Other parameters: as of `MonotoneDisjunctiveKernel`, with literals.
    """

    literals = 2
    saturates = True

    def of_counts(self, s: Any, a: Any, b: Any, n: int) -> NDArray[np.float64]:
        """Return the share of the 2^degree C(n, degree) disjunctions that both satisfy."""
        logs, share = log_binomials(n, self.degree), 0.5**self.degree
        return (1.0 - 2.0 * share) + share * np.exp(logs[n - a - b + 2 * s] - logs[n])

    def log_unit(self, n: int) -> float:
        """Return log 2^degree C(n, degree)."""
        return float(log_binomials(n, self.degree)[n] + self.degree * np.log(2.0))


@lru_cache(maxsize=32)
def log_binomials(n: int, c: int) -> NDArray[np.float64]:
    """Return log C(k, c) for k = 0…n, −inf where k < c; (n + 1,) float64.

    Summed as log ratios in extended precision: the difference of two log-gammas would lose
    the last digits that an exponential then magnifies.
    """
    k = np.arange(c + 1, n + 1, dtype=np.longdouble)
    out = np.full(n + 1, -np.inf)
    out[c:] = np.concatenate(([0.0], np.cumsum(np.log(k) - np.log(k - c)))).astype(np.float64)
    return out


@lru_cache(maxsize=8)
def shares_missed(n: int, d: int) -> NDArray[np.longdouble]:
    """Return C(n−k, d)/C(n, d) for k = 0…n, accurate to the last digits."""
    k = np.arange(n, dtype=np.longdouble)
    ratio = np.maximum(n - k - d, 0) / (n - k)
    return np.concatenate(([np.longdouble(1)], np.cumprod(ratio)))


@lru_cache(maxsize=8)
def shares_hit(n: int, d: int) -> NDArray[np.longdouble]:
    """Return h(k) = 1 − C(n−k, d)/C(n, d) for k = 0…n.

    h is summed from its increments g(k)·d/(n−k), all positive, so that rare items (h near 0) keep
    their leading digits.
    """
    k = np.arange(n, dtype=np.longdouble)
    increments = np.where(n - k >= d, shares_missed(n, d)[:-1] * d / (n - k), 0)
    return np.concatenate(([np.longdouble(0)], np.cumsum(increments)))


def log_choices(size: float, d: int) -> float:
    """Return log C(size, d) for an integer size ≥ d, summed in extended precision.

    The difference of log-gammas would carry the rounding of size·log(size) into every digit.
    """
    least = min(d, size - d)
    i = np.arange(int(least), dtype=np.longdouble)
    return float(np.sum(np.log((np.longdouble(size) - i) / (i + 1.0))))


def degree_path(name: str, X: ArrayLike, up_to: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield (degree, raw Gram matrix) of mc, md, c or d for the degrees 1…up_to.

    Each matrix is an elementwise product with the previous one. Source: Polato's thesis, 6.5.
    """
    check_choice("name", name, ("mc", "md", "c", "d"))
    n, dot, size, _ = overlaps(X, None)
    check_integer("up_to", up_to, 1, n)
    neither = n - size[:, None] - size + dot
    parts = [np.array(n), n - size, {"mc": dot, "md": neither}.get(name, neither + dot)]
    counts = [np.ones(part.shape) for part in parts]
    for d in range(1, up_to + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # C(k, d) from C(k, d − 1)
            counts = [c * np.maximum(k - d + 1, 0) / d for c, k in zip(counts, parts, strict=True)]
            every, one, pair = counts
            out = (np.exp2(float(d)) - 2.0) * every + pair if name == "d" else pair
        if not all(np.isfinite(part).all() for part in (counts if name == "md" else [out])):
            raise InputError(f"counts of degree {d} exceed the range of float64: use make_kernel")
        yield d, (every - one[:, None]) - (one - pair) if name == "md" else out
