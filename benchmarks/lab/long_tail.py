"""Large random matrices with popular items and active users, for measurements of speed and memory."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from recsys.utils.validation import check_integer

USER_TAIL, TAIL = 0.6, 0.8  # exponents: the k-th user or item is drawn in proportion to (k + 10)^−tail


def long_tail(
    n_users: int,
    n_items: int,
    n_interactions: int,
    *,
    seed: int = 0,
) -> sp.csr_matrix:
    """Generate a large (users, items) matrix of ones whose users and items both have Zipf-like counts.

    Pairs drawn twice are replaced until so many differ, at most half of the matrix.
    """
    check_integer("n_users", n_users, 1)
    check_integer("n_items", n_items, 1)
    check_integer("n_interactions", n_interactions, 1, max(1, n_users * n_items // 2))
    rng = np.random.default_rng(seed)
    ends = []
    for size, tail in ((n_users, USER_TAIL), (n_items, TAIL)):
        total = np.cumsum((np.arange(size) + 10.0) ** -tail)
        ends.append((total / total[-1], rng.permutation(size)))
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < n_interactions:
        more = int(1.2 * (n_interactions - len(keys))) + 100
        users, items = (order[np.searchsorted(cdf, rng.random(more))] for cdf, order in ends)
        fresh = np.setdiff1d(users.astype(np.int64) * n_items + items, keys)
        room = n_interactions - len(keys)
        if len(fresh) > room:
            fresh = rng.permutation(fresh)[:room]
        keys = np.union1d(keys, fresh)
    users, items = np.divmod(keys, n_items)
    ones = np.ones(len(keys), dtype=np.float32)
    return sp.csr_matrix((ones, (users, items)), (n_users, n_items))
