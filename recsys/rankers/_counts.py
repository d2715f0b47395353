"""The linear kernel's matrix, changed by rows that come or go."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def counted_again(
    gram: NDArray[np.float32], popularity: NDArray[np.float32], rows: sp.csr_matrix, sign: int
) -> NDArray[np.float32]:
    """Return the normalised co-occurrence matrix with rows added (1) or taken out (−1).

    Its counts are whole numbers, which the normalised entries give back exactly; `popularity` changes
    in place.
    """
    old = np.sqrt(popularity.astype(np.float64))
    counts = np.rint(gram * old[:, None] * old)
    np.fill_diagonal(counts, popularity)
    ones = sp.csr_matrix((np.ones(rows.nnz), rows.indices, rows.indptr), rows.shape)
    together = sp.coo_matrix(ones.T @ ones)
    counts[together.row, together.col] += sign * together.data
    own = counts.diagonal().copy()
    scale = 1.0 / np.sqrt(np.where(own > 0, own, 1.0))
    counts *= scale[:, None] * scale
    np.fill_diagonal(counts, 1.0)
    popularity[:] = own
    return counts.astype(np.float32)
