"""The asymmetric cosine between items: counts over powers of both popularities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.utils.sparse import masked


def weigh_rows(
    data: NDArray[np.float32],
    indices: NDArray[np.integer],
    lengths: NDArray[np.integer],
    own: NDArray[Any],
    users: NDArray[Any],
    row: float,
    column: float,
    locality: float,
) -> None:
    """Make rows of counts c_ij into (c_ij / (|U_i|^row · |U_j|^column))^locality, in place.

    The rows are of these lengths, and their items have `own` users; `users` are those of all items.
    Source: Aiolli 2013, Efficient top-N recommendation for very large scale binary rated datasets.
    """
    first, second = (np.maximum(size, 1).astype(np.float64) for size in (own, users))
    data *= np.repeat((first**-row).astype(np.float32), lengths)
    data *= (second**-column).astype(np.float32)[indices]
    if locality != 1.0:
        np.power(data, np.float32(locality), out=data)


def strongest(weights: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """Return the k largest entries of each column, the earlier of equal ones."""
    found = _largest(weights.T.tocsr(), k).T.tocsr()
    found.sort_indices()
    return found


def _largest(matrix: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """Return the k largest entries of each row, the earlier of equal ones."""
    keep = np.zeros(matrix.nnz, dtype=bool)
    for i in range(matrix.shape[0]):
        begin, end = matrix.indptr[i], matrix.indptr[i + 1]
        keep[begin + np.argsort(-matrix.data[begin:end], kind="stable")[:k]] = True
    return masked(matrix, keep)
