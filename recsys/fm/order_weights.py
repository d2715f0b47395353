"""The weights of the orders that share one table of factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recsys.errors import InputError
from recsys.multilinear.symmetric import elementary_polynomials
from recsys.utils.features import real_array

__all__ = ["check_theta", "weights_of_ones"]


def check_theta(theta: Any, degree: int, fit_lower: str | None) -> NDArray[np.float64]:
    """Return the given weights of the orders, (degree,): finite, and of a model that takes them."""
    if fit_lower != "inhomogeneous":
        raise InputError(f"theta is only for fit_lower='inhomogeneous', not {fit_lower!r}")
    try:
        given = real_array("theta", theta, 1, finite=True)
    except InputError:
        given = np.empty(0)
    if len(given) != degree:
        raise InputError(
            f"theta must be {degree} numbers, one for each order from 1 to degree, not {str(theta)[:60]}"
        )
    return given


def weights_of_ones(entries: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Return the weights of columns of ones, (degree, components), from their entries in P.

    Entry (t − 1, s) multiplies A^t(p_s, x): e_(degree − t) of the entries in p_s, 0 where they are
    fewer, and 1 for the highest order. Source: Blondel et al. 2016, (18)–(20).

    >>> weights_of_ones(np.array([[2.0], [3.0]]), 3).ravel()
    array([6., 5., 1.])
    """
    out = np.zeros((degree, entries.shape[1]))
    out[-1] = 1.0
    many = min(degree - 1, len(entries))
    for s in range(entries.shape[1]):
        e = elementary_polynomials(np.ascontiguousarray(entries[:, s]), many)
        out[degree - 1 - many : degree - 1, s] = e[::-1]
    return out
