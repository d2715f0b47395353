"""Lists made without a pass over the catalogue: those of the pass."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import make_ranker
from recsys.utils.topn import LOWEST


def data(seed, users=60, items=40):
    rng = np.random.default_rng(seed)
    share = 0.6 * rng.random(items) ** rng.integers(1, 5)
    R = sp.csr_matrix(rng.random((users, items)) < share, dtype=np.float32)
    R = R.tolil()
    R[7] = 0  # who likes nothing, and who likes everything
    R[8] = 1
    return sp.csr_matrix(R)


def full(scores, R, popularity, N, skip, mask=None):
    """Return lists by sorting all scores, stably: best first, equal ones by index."""
    scores = np.where((np.diff(R.indptr) == 0)[:, None], popularity, scores).astype(scores.dtype)
    allowed = np.ones(R.shape[1], bool) if mask is None else mask
    ids = np.full((len(scores), min(N, R.shape[1])), -1)
    best = np.full(ids.shape, LOWEST, np.float32)
    for u, row in enumerate(scores):
        free = allowed.copy()
        if skip:
            free[R[u].indices] = False
        order = np.argsort(-row, kind="stable")
        chosen = order[free[order]][:N]
        ids[u, : len(chosen)], best[u, : len(chosen)] = chosen, row[chosen]
    return ids, best


@pytest.mark.parametrize("name", ["msdw", "slim"])
def test_lists_of_sparse_weights_equal_a_pass(name, monkeypatch):
    monkeypatch.setattr("recsys.rankers.scoring.SMALL", 0)
    for seed in range(4):
        R = data(seed)
        ranker = make_ranker(name, **({"top_k": 3} if name == "slim" else {})).fit(R)
        assert sp.issparse(ranker.weights_)
        if seed == 3:  # weights below 0 rank behind items without any
            ranker.weights_.data[::2] *= -1
        users = np.arange(R.shape[0])
        scores = ranker.scores(users, R)
        for N, skip in ((1, True), (10, True), (10, False), (40, True)):
            found = ranker.recommend(users, R, N=N, filter_already_liked_items=skip)
            ids, best = full(scores, R, ranker.popularity_, N, skip)
            np.testing.assert_array_equal(found.ids, ids)
            np.testing.assert_array_equal(found.scores, best)
        mask = np.arange(40) % 3 > 0
        found = ranker.recommend(users, R, N=10, filter_items=np.flatnonzero(~mask))
        np.testing.assert_array_equal(found.ids, full(scores, R, ranker.popularity_, 10, True, mask)[0])
