"""Digests of indices and of sets of them: deterministic pseudorandom 64-bit numbers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def row_digests(rows: sp.csr_matrix) -> NDArray[np.int64]:
    """Return a 64-bit digest of each row's set of items; 0 for an empty row. (rows,) int64.

    The sum, modulo 2⁶⁴, of a mixing of each item (SplitMix64): the order of items is of no account.
    """
    total = np.concatenate(([np.uint64(0)], np.cumsum(mixed(rows.indices), dtype=np.uint64)))
    return (total[rows.indptr[1:]] - total[rows.indptr[:-1]]).view(np.int64)


def mixed(items: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return a pseudorandom 64-bit number for each index, always the same (SplitMix64)."""
    z = (items.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
