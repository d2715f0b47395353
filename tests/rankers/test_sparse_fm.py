"""Factorization machines with penalties as rankers."""

import numpy as np
import pytest

from recsys import make_ranker


def test_sparse_fm_is_fm_with_the_triangular_inequality_penalty(liked):
    one = make_ranker("sparse-fm", factors=4, iterations=3).fit(liked, show_progress=False)
    two = make_ranker("fm", factors=4, iterations=3, penalty="ti").fit(liked, show_progress=False)
    users = np.arange(liked.shape[0])
    np.testing.assert_array_equal(one.scores(users, liked), two.scores(users, liked))


def test_more_strength_leaves_fewer_factors(liked):
    left = []
    for gamma in (0.0, 1e-6, 1e-5, 1.0):
        model = make_ranker("sparse-fm", factors=4, iterations=10, gamma=gamma)
        model.fit(liked, show_progress=False)
        left.append(int(np.count_nonzero(model.lefts_[1])))
    assert left == sorted(left, reverse=True) and left[0] > left[-1] == 0


@pytest.mark.parametrize("name", ["fm", "hofm"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "ti"])
def test_every_penalty_ranks(name, penalty, liked):
    model = make_ranker(name, factors=2, iterations=2, penalty=penalty, gamma=1e-5)
    scores = model.fit(liked, show_progress=False).scores(np.arange(3), liked[:3])
    assert np.isfinite(scores).all()
