"""When each pair last happened, of tables that may have a pair more than once."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike


def latest_times(
    users: ArrayLike, items: ArrayLike, moments: ArrayLike, shape: tuple[int, int]
) -> sp.csr_matrix:
    """Return the latest moment of each pair, (users, items) float64 CSR, above 0.

    Moments are of any unit; where some are not above 0 all are counted from the oldest, which is 1.

    Examples
    --------
    >>> latest_times([0, 0, 1], [1, 1, 0], [5.0, 7.0, 6.0], (2, 2)).toarray()
    array([[0., 7.],
           [6., 0.]])
    """
    u, i = np.asarray(users, dtype=np.int64), np.asarray(items, dtype=np.int64)
    when = np.asarray(moments, dtype=np.float64)
    oldest = float(when.min()) if len(when) else 1.0
    if oldest <= 0:
        when = when - oldest + 1.0
    order = np.argsort(-when, kind="stable")
    _, first = np.unique((u * shape[1] + i)[order], return_index=True)
    chosen = order[first]
    return sp.csr_matrix((when[chosen], (u[chosen], i[chosen])), shape)
