"""Penalties of the factorization machine on pairs, against sums over all interactions."""

from itertools import combinations

import numpy as np
import pytest

from recsys.errors import InputError
from recsys.links import PairFactorizationMachine

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(12, 4)), RNG.normal(size=(9, 3))
PAIRS = np.array([(i, j) for i in range(12) for j in range(9)])
Y = np.where(A[PAIRS[:, 0], 0] * B[PAIRS[:, 1], 1] > 0, 1, -1)
OMEGA = {
    "l2": lambda p, m: 0.0,
    "l1": lambda p, m: np.abs(p).sum(),
    "ti": lambda p, m: sum(np.prod(np.abs(p[list(s)])) for s in combinations(range(len(p)), m)),
}


def fitted(**params):
    return PairFactorizationMachine(**({"n_components": 2, "tol": 0.0} | params)).fit(A, B, PAIRS, Y)


def objective(model):
    """The objective term by term: every row's interactions are multiplied out."""
    rows = np.hstack([A[PAIRS[:, 0]], B[PAIRS[:, 1]]])
    scores = np.full(len(rows), model.intercept_)
    value = 0.0
    for term in model.terms_:
        for p in np.concatenate([term.left, term.right]).T:
            value += 0.5 * model.beta * (p**2).sum()
            for s in combinations(range(len(p)), term.degree):
                scores += np.prod(rows[:, s] * p[list(s)], axis=1)
            if term.degree > 1:
                value += model.gamma * OMEGA[model.penalty](p, term.degree)
    return value + np.log1p(np.exp(-Y * scores)).mean()


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("penalty", sorted(OMEGA))
def test_the_objective_is_the_loss_and_the_penalties_by_enumeration(penalty, degree):
    model = fitted(penalty=penalty, degree=degree, gamma=3e-3, beta=1e-3, max_iter=7)
    told = [step["objective"] for step in model.history_]
    np.testing.assert_allclose(told[-1], objective(model), rtol=1e-10)
    assert all(later <= earlier + 1e-12 for earlier, later in zip(told, told[1:], strict=False))


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("penalty", ["l1", "ti"])
def test_no_entry_alone_lowers_the_objective(penalty, degree):
    model = fitted(penalty=penalty, degree=degree, gamma=1e-2, beta=2e-2, max_iter=2000)
    best = objective(model)
    zeros = [(term.left == 0).sum() + (term.right == 0).sum() for term in model.terms_[1:]]
    assert sum(zeros) > 0
    for term in model.terms_:
        for side in (term.left, term.right):
            for at in np.ndindex(side.shape):
                kept = side[at]
                for change in (-1e-3, 1e-3):
                    side[at] = kept + change
                    assert objective(model) >= best - 1e-9
                side[at] = kept


def test_without_strength_a_penalty_changes_no_bit():
    plain, other = fitted(max_iter=5), fitted(max_iter=5, penalty="ti", gamma=0.0)
    for one, two in zip(plain.terms_, other.terms_, strict=True):
        np.testing.assert_array_equal(one.left, two.left)
        np.testing.assert_array_equal(one.right, two.right)


def test_a_strong_penalty_leaves_the_linear_part():
    model = fitted(penalty="ti", gamma=10.0, max_iter=50)
    assert np.any(model.terms_[0].left) and not np.any(model.terms_[1].left)


@pytest.mark.parametrize("fit_lower", ["augment", "simplex", "inhomogeneous"])
def test_orders_that_share_a_table_have_no_penalty(fit_lower):
    with pytest.raises(InputError, match="fit_lower='explicit' or None"):
        fitted(penalty="ti", fit_lower=fit_lower)
