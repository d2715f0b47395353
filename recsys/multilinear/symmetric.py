"""Elementary symmetric polynomials: of all sizes, without one of them, and from power sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys._jit import jit
from recsys.errors import InputError
from recsys.utils.validation import check_integer, real_array

__all__ = [
    "elementary_polynomials",
    "newton_identities",
    "symmetric_polynomials",
    "with_size",
    "without",
]

# Share of e_t that must be left without one size, or the difference is not trusted.
SAFE = 0.1


def newton_identities(power_sums: Sequence[Any]) -> list[Any]:
    """Return the elementary symmetric polynomials e_1…e_m from the power sums 1…m.

    e_t = (1/t) Σ_r (−1)^(r−1) e_(t−r) p_r. What is summed may be numbers, arrays or tensors, all of one
    shape.

    Parameters
    ----------
    power_sums : sequence of m numbers, arrays or tensors
        Entry r − 1 is Σ_j z_j^r.

    Examples
    --------
    >>> newton_identities([6.0, 14.0, 36.0])  # of 1, 2, 3
    [6.0, 11.0, 6.0]
    """
    e: list[Any] = [1.0]
    try:
        for t in range(1, len(power_sums) + 1):
            e.append(sum((-1.0) ** (r - 1) * e[t - r] * power_sums[r - 1] for r in range(1, t + 1)) / t)
    except (TypeError, KeyError) as error:
        raise InputError(
            f"power_sums must be a sequence of numbers, arrays or tensors of one shape: {error}"
        ) from error
    return e[1:]


def symmetric_polynomials(a: ArrayLike, up_to: int) -> NDArray[np.float64]:
    """Return e_1…e_up_to of a: e_t is the sum of the products of t distinct entries, K_A^t(a, 1).

    Parameters
    ----------
    a : (n,) float
    up_to : int ≥ 1

    Returns
    -------
    (up_to,) float64

    Examples
    --------
    >>> symmetric_polynomials([1.0, 2.0, 3.0], 3)
    array([ 6., 11.,  6.])
    """
    vector = np.array(real_array("a", a, 1))
    return np.asarray(elementary_polynomials(vector, check_integer("up_to", up_to, 1)))


# ---- kernels


@jit
def elementary_polynomials(a, up_to):
    """Return the result of `symmetric_polynomials` for a checked vector."""
    e = np.zeros(up_to)
    for j in range(len(a)):
        for t in range(up_to - 1, 0, -1):
            e[t] += a[j] * e[t - 1]
        e[0] += a[j]
    return e


@jit
def without(e, sizes, j, out):
    """Fill out[t], t = 0…len(e), with e_t of all sizes but the j-th.

    The short recursion e_t − a·out[t − 1] cancels where the one size outweighs the others: there the
    sum is taken afresh over the others.
    """
    a = sizes[j]
    out[0] = 1.0
    for t in range(1, len(out)):
        out[t] = e[t - 1] - a * out[t - 1]
        if out[t] < SAFE * e[t - 1]:
            out[1:] = 0.0
            for i in range(len(sizes)):
                if i != j and sizes[i] != 0.0:
                    for u in range(len(out) - 1, 0, -1):
                        out[u] += sizes[i] * out[u - 1]
            return


@jit
def with_size(e, sizes, j, rest, size):
    """Replace the j-th magnitude, and update e_1…e_t from `rest`, which `without` filled."""
    sizes[j] = size
    for t in range(len(e)):
        e[t] = rest[t + 1] + size * rest[t]
