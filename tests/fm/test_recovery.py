import numpy as np
import pytest

from benchmarks.lab.planted import planted_interactions, recovery
from recsys.fm import (
    FactorizationMachineRegressor,
)

# Most fits here are cut short on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_planted_rows_have_the_promised_covariance_and_target():
    data = planted_interactions(20_000, 2, 3, 2, correlation=0.5, noise=0.0, seed=1)
    C = np.cov(data.X.T)
    np.testing.assert_allclose(np.diag(C), 1, atol=0.05)
    assert C[0, 1] == pytest.approx(0.5, abs=0.05) and abs(C[0, 3]) < 0.05 and abs(C[0, 7]) < 0.05
    x = data.X[0]
    assert data.y[0] == pytest.approx(
        x[0] * x[1] + x[0] * x[2] + x[1] * x[2] + x[3] * x[4] + x[3] * x[5] + x[4] * x[5]
    )
    assert data.W.sum() == 6


def test_recovery_metrics():
    W = np.zeros((3, 3))
    W[0, 1] = 1.0
    P = np.array([[1.0], [1.0], [0.0]])
    assert recovery(W, P) == (0.0, 1.0, True)
    assert recovery(W, np.ones((3, 1))) == (2.0, 0.5, False)
    assert recovery(W, np.zeros((3, 1))) == (1.0, 0.0, False)


def test_ti_finds_the_planted_groups():
    data = planted_interactions(400, 3, 4, 4, seed=0)
    common = dict(n_components=8, fit_linear=False, init_scale=0.1, max_iter=300, beta=1e-3)
    ti = FactorizationMachineRegressor(penalty="ti", gamma=0.1, **common).fit(data.X, data.y)
    found = recovery(data.W, ti.P_[0][0])
    assert found.success and found.f1 == 1.0


def test_a_callback_can_end_a_fit():
    data = planted_interactions(100, 1, 4, 4)
    model = FactorizationMachineRegressor(callback=lambda epoch, _: epoch == 3, tol=0.0).fit(
        data.X, data.y
    )
    assert model.n_iter_ == 3
