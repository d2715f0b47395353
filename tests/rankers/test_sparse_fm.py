"""Factorization machines with penalties as rankers."""

import numpy as np
import pytest

from recsys import make_ranker
from recsys.errors import InputError
from recsys.fm.penalties import PENALTIES


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
@pytest.mark.parametrize("penalty", PENALTIES.names())
def test_every_penalty_ranks(name, penalty, liked):
    if name == "hofm" and penalty == "omega":
        with pytest.raises(InputError, match="omega"):
            make_ranker(name, penalty=penalty)
        return
    model = make_ranker(name, factors=2, iterations=2, penalty=penalty, gamma=1e-5)
    scores = model.fit(liked, show_progress=False).scores(np.arange(3), liked[:3])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("solver", ["cd", "relational"])
def test_a_named_solver_leaves_out_what_a_strong_penalty_does(solver, liked):
    model = make_ranker("fm", factors=2, iterations=20, penalty="ti", gamma=1.0, solver=solver)
    model.fit(liked, show_progress=False)
    assert not np.any(model.lefts_[1]) and np.any(model.lefts_[0])


def test_a_solver_that_cannot_serve_is_refused_before_a_fit():
    with pytest.raises(InputError, match=r"solver 'cd' cannot serve penalty 'l21'.*block"):
        make_ranker("fm", penalty="l21", solver="cd")
