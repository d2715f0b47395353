"""What `n_used_interactions_` counts, by enumeration."""

from itertools import combinations

import numpy as np
import pytest

from recsys.fm import FactorizationMachineRegressor


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("lower", ["explicit", "augment", "inhomogeneous"])
def test_used_interactions_are_those_with_a_weight(degree, lower):
    rng = np.random.default_rng(degree)
    X, y = rng.normal(size=(80, 8)), rng.normal(size=80)
    model = FactorizationMachineRegressor(
        degree=degree, fit_lower=lower, n_components=3, max_iter=2, tol=0.0
    ).fit(X, y)
    for P in model.P_:
        P[:, :8][rng.random(P[:, :8].shape) < 0.35] = 0.0
        P[:, 0] = 0.0
    found = [model.interaction_weight(some) for some in combinations(range(8), 2)]
    assert 0 < model.n_used_interactions_ == np.count_nonzero(found) < len(found)
