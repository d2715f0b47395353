"""How many interactions a factorization machine uses, beside going through all of them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.fm import FactorizationMachineRegressor
from recsys.fm.selection import _sets_together

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@given(
    st.integers(0, 9),
    st.integers(1, 4),
    st.integers(2, 5),
    st.sampled_from([0.2, 0.5, 0.9, 1.0]),
    st.integers(0, 10_000),
)
@settings(max_examples=150, deadline=None)
def test_sets_with_a_component_in_common(features, components, size, share, seed):
    has = np.random.default_rng(seed).random((features, components)) < share
    slow = sum(has[list(some)].all(axis=0).any() for some in combinations(range(features), size))
    assert _sets_together(has, size) == slow


def test_alike_features_are_not_gone_through():
    assert _sets_together(np.ones((10**5, 2), dtype=bool), 4) == 4166416671249975000
    two = np.zeros((600, 2), dtype=bool)
    two[:400, 0], two[300:, 1] = True, True  # a hundred have both
    of_three = [n * (n - 1) * (n - 2) // 6 for n in (400, 300, 100)]
    assert _sets_together(two, 3) == of_three[0] + of_three[1] - of_three[2]


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("lower", ["explicit", None, "augment", "inhomogeneous"])
def test_used_interactions_are_those_with_a_weight(degree, lower):
    rng = np.random.default_rng(degree)
    X, y = rng.normal(size=(80, 8)), rng.normal(size=80)
    model = FactorizationMachineRegressor(
        degree=degree,
        fit_lower=lower,
        n_components=3,
        max_iter=2,
        tol=0.0,
        init_lambda="random_signs" if lower is None else "ones",
    ).fit(X, y)
    for P in model.P_:
        P[:, :8][rng.random(P[:, :8].shape) < 0.35] = 0.0
        P[:, 0] = 0.0
    order = degree if lower is None else 2
    if lower == "augment" and degree > 2:
        P, weights = model.P_[0][0], model.order_weights()[1]
        found = [(weights * P[a] * P[b]).sum() for a, b in combinations(range(8), 2)]
    else:
        found = [model.interaction_weight(some) for some in combinations(range(8), order)]
    assert 0 < model.n_used_interactions_ == np.count_nonzero(found) < len(found)


def test_a_single_order_of_three_is_sparsified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 9))
    y = 2.0 * X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=300)
    model = FactorizationMachineRegressor(
        degree=3, fit_lower=None, penalty="ti", n_components=2, max_iter=200, init_scale=0.5
    ).sparsify(X, y, 1)
    assert model.n_used_interactions_ == 1 and model.interaction_weight([0, 1, 2]) > 1.0
