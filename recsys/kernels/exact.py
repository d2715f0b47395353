"""Raw values that are counts, as integers: exact below 2⁵³.

Elsewhere values are shares of their largest, or logarithms, which no degree overflows; scaled
back, their rounding shows in the last digits of a count. A count below 2⁵³ is therefore taken
anew in integers: functions of one overlap by Python's integers, once a value of it; mD from
a table modulo 2⁶⁴; disjunctions of conjunctions by sums without a difference, in compiled code.

What normalised values lack of 1 is taken from integers too: where values tend to 1, a float K has
lost the digits that tell vectors apart.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recsys._jit import jit
from recsys.kernels.plans import (
    CONJUNCTION,
    CONJUNCTION_L,
    CONJUNCTION_OF_DL,
    DISJUNCTION,
    DISJUNCTION_L,
    HIT_L,
    Plan,
)

EXACT = 2.0**53


class Exact(Protocol):
    """The interface of a kernel (`recsys.kernels.Kernel`) that this module needs."""

    def exact(self, n: int, s: int, a: int, b: int) -> int | Fraction | None:
        """Return the raw value of two vectors without rounding."""

    def counting(self) -> Counting | None:
        """Return the form of a kernel that counts disjunctions of conjunctions, or None."""


class Counting(NamedTuple):
    """Disjunctions over inner features, and conjunctions of these, as `counted` reads them.

    `inner` variables are in an inner feature, a conjunction (1 where the features are the variables),
    `d` inner features in a disjunction, and `outer` disjunctions in a conjunction (1 where the
    disjunctions are the formulas). `up_to`: `inner` and `d` are upper bounds instead of sizes.
    """

    inner: int
    up_to: bool
    d: int
    outer: int


def meeting(size: int, x: int, z: int, both: int, d: int) -> int:
    """Return how many d-subsets of `size` features meet both of two sets, exactly."""
    return comb(size, d) - comb(size - x, d) - comb(size - z, d) + comb(size - x - z + both, d)


def make_whole(
    kernel: Exact, plan: Plan, n: int, counts: NDArray[np.int64], a: NDArray[np.int64],
    b: NDArray[np.int64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Replace the raw values of a counting kernel, right to within a factor of 2, by integers, in place.

    `counts` are ⟨x,z⟩, (rows, others), and `a` and `b` the sizes of the vectors.
    """
    near = out < 2.0 * EXACT
    form = kernel.counting()
    if form is not None:
        _count_all(counts, a, b, near, n, form.inner, form.up_to, form.d, form.outer, out)
        return
    if plan.code == DISJUNCTION:
        _disjunctions(kernel, n, counts, a, b, near, out)
        return
    key = counts
    if plan.code in (CONJUNCTION_L, DISJUNCTION_L, HIT_L, CONJUNCTION_OF_DL):
        key = n - a[:, None] - b[None, :] + 2 * counts
    elif plan.code != CONJUNCTION:
        return  # sums and differences of integers below 2⁵³ already
    # One pair stands for all of its key; which one does not matter.
    stands = np.full(n + 1, -1)
    places = np.flatnonzero(near)
    stands[key.ravel()[places]] = places
    table = np.zeros(n + 1)
    for k in np.flatnonzero(stands >= 0):
        i, j = divmod(int(stands[k]), out.shape[1])
        table[k] = float(kernel.exact(n, int(counts[i, j]), int(a[i]), int(b[j])))  # type: ignore[arg-type]
    out[near] = table[key[near]]


def exact_less_one(
    kernel: Exact, n: int, counts: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return κ(x,z)/√(κ(x,x)κ(z,z)) − 1 of a kernel with `exact`, right to its last digits.

    It is (K² − 1)/(1 + K), whose squares are fractions. Each pair of sizes with each overlap is taken
    once. Null vectors have −1. Arguments are those of `make_whole`.
    """
    less, more = np.minimum(a[:, None], b[None, :]), np.maximum(a[:, None], b[None, :])
    keys, inverse = np.unique((counts * (n + 1) + less) * (n + 1) + more, return_inverse=True)
    own: dict[int, int | Fraction] = {}
    for size in {*a.tolist(), *b.tolist()}:
        own[size] = kernel.exact(n, size, size, size)  # type: ignore[assignment]
    values = np.empty(len(keys))
    for k, key in enumerate(keys.tolist()):
        rest, large = divmod(key, n + 1)
        common, small = divmod(rest, n + 1)
        product = own[small] * own[large]
        if product:
            value = kernel.exact(n, common, small, large)
            square = value * value  # type: ignore[operator]
            values[k] = _quotient(square - product, product) / (1.0 + sqrt(_quotient(square, product)))
        else:
            values[k] = -1.0
    return values[inverse].reshape(counts.shape)


def _quotient(top: int | Fraction, bottom: int | Fraction) -> float:
    """Return the quotient, rounded once; integers may be of any size."""
    if isinstance(top, int) and isinstance(bottom, int):
        return top / bottom
    return float(Fraction(top) / bottom)


def _disjunctions(
    kernel: Exact, n: int, counts: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64],
    near: NDArray[np.bool_], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Set mD to h(a) + h(b) − h(a + b − s), where h(k) is the value of k ones with themselves.

    Modulo 2⁶⁴ a sum may pass any size on its way to a result below 2⁵³.
    """
    union = a[:, None] + b[None, :] - counts
    table = np.zeros(n + 1, dtype=np.uint64)
    needed = np.zeros(n + 1, dtype=np.bool_)
    for sizes in (a, b, union.ravel()):
        needed[sizes] = True
    for k in np.flatnonzero(needed).tolist():
        table[k] = int(kernel.exact(n, k, k, k)) % 2**64  # type: ignore[arg-type]
    value = table[a][:, None] + table[b][None, :] - table[union]
    out[near] = value[near].astype(np.float64)


# ---- kernels


@jit
def _count_all(counts, a, b, chosen, n, inner, up_to, d, outer, out):
    rows = np.zeros((5, d + 1))
    size = inner_features(n, inner, up_to)
    x = np.array([inner_features(v, inner, up_to) for v in a])
    z = np.array([inner_features(v, inner, up_to) for v in b])
    for i in range(len(a)):
        for j in range(len(b)):
            if chosen[i, j]:
                both = inner_features(counts[i, j], inner, up_to)
                value = meeting_sum(size, x[i], z[j], both, d, up_to, rows)
                out[i, j] = value if outer == 1 else choose(value, outer)


@jit
def inner_features(k, inner, up_to):
    """Return how many inner features k ones satisfy."""
    if inner == 1:
        return float(k)
    if not up_to:
        return choose(float(k), inner)
    total = 0.0
    for i in range(1, inner + 1):
        total += choose(float(k), i)
    return total


@jit
def meeting_sum(size, x, z, both, d, up_to, rows):
    """Return `meeting` as a sum of products ≥ 0, for subsets of d or (up_to) of 1…d features.

    Every term is at most the sum, so that a sum below 2⁵³ is exact and a larger one keeps its
    leading digits, where the four binomials of `meeting` would cancel. `rows` is (5, d + 1).
    """
    first, second = x - both, z - both
    if both == 0.0 and (first == 0.0 or second == 0.0):
        return 0.0
    rest = size - both - first - second
    choose_row(both, d, rows[0])
    choose_row(size - both, d, rows[1])
    choose_row(first, d, rows[2])
    choose_row(second, d, rows[3])
    choose_row(rest, d, rows[4])
    if up_to:
        for k in range(1, d + 1):
            rows[1, k] += rows[1, k - 1]
            rows[4, k] += rows[4, k - 1]
    total = 0.0
    for i in range(1, int(min(both, d)) + 1):  # i features of both sets, the others any
        if rows[1, d - i] > 0.0:
            total += rows[0, i] * rows[1, d - i]
    # None of both: i of the first alone, j of the second alone, the others of neither.
    spare = d if up_to else int(min(rest, d))
    for i in range(1, int(min(first, d - 1)) + 1):
        for j in range(max(1, d - i - spare), int(min(second, d - i)) + 1):
            total += rows[2, i] * rows[3, j] * rows[4, d - i - j]
    return total


@jit
def choose_row(k, c, out):
    """Set out[i] to C(k, i) for i = 0…c."""
    out[0] = 1.0
    for i in range(1, c + 1):
        if k < EXACT and k - i < i:
            out[i] = out[int(k) - i] if i <= k else 0.0
        else:
            out[i] = following(out[i - 1], k, i)


@jit
def choose(k, c):
    """Return C(k, c) as float64: exact below 2⁵³, nearly so above."""
    if k < c:
        return 0.0
    most = c
    if k < EXACT and k - c < c:
        most = int(k) - c
    value = 1.0
    for i in range(1, most + 1):
        value = following(value, k, i)
    return value


@jit
def following(before, k, i):
    """Return C(k, i) from C(k, i − 1)."""
    value = before * ((k - i + 1.0) / i)
    if value < EXACT:  # then the product below is less than i·2⁵³, and i ≤ 57 as 2i ≤ k
        return float((np.int64(before) * np.int64(k - i + 1.0)) // i)
    return value
