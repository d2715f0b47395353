"""Rows and their weights as the searches for rules take them: checked, merged, and as bitsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.errors import InputError
from recsys.kernels.base import binary_rows
from recsys.utils.features import real_array

ROUNDING = 1e-9  # of the sum of all absolute weights, within which two worths are one


def clean(X: ArrayLike, signed: ArrayLike, names: Sequence[str] = ()) -> tuple[Any, NDArray[np.float64]]:
    """Return binary CSR rows and their float64 weights, of which one at least is positive."""
    rows = binary_rows(X, "X")
    if len(names) not in (0, rows.shape[1]):
        raise InputError(f"there are {rows.shape[1]} features and {len(names)} names")
    weights = real_array("signed", signed)
    if weights.shape != (rows.shape[0],):
        raise InputError(f"there are {rows.shape[0]} rows and weights of shape {weights.shape}")
    if not np.isfinite(weights).all():
        raise InputError("the weights hold NaN or infinity")
    if not (weights > 0).any() or rows.shape[1] == 0:
        raise InputError("a rule needs at least one feature and one row of positive weight")
    return rows, weights


def merged(rows: Any, weights: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """Return the distinct rows that hold a feature, each with the sum of its copies' weights.

    A rule covers all copies of a row or none, and no row without a feature. Rows whose weights
    cancel are left out.
    """
    some = np.flatnonzero((np.diff(rows.indptr) > 0) & (weights != 0))
    bits = np.ascontiguousarray(bitsets(rows[some]))
    keys = bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize))).ravel()
    _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they came
    sums = np.bincount(copy_of.ravel(), weights[some], minlength=len(first))[order]
    kept = sums != 0
    return rows[some[first[order][kept]]], sums[kept]


def bitsets(rows: Any) -> NDArray[np.uint64]:
    """Return each CSR row as a bitset, (rows, ⌈features/64⌉)."""
    out = np.zeros((rows.shape[0], (rows.shape[1] + 63) // 64), dtype=np.uint64)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    bits = np.left_shift(np.uint64(1), (rows.indices % 64).astype(np.uint64))
    np.bitwise_or.at(out, (owner, rows.indices // 64), bits)
    return out
