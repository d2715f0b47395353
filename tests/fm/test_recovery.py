import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from recsys import InputError
from recsys.fm import (
    FactorizationMachineRegressor,
    SparseLowRankQuadratic,
    planted_interactions,
    recovery,
)

# Most fits here are cut short on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_planted_rows_have_the_promised_covariance_and_target():
    data = planted_interactions(20_000, 2, 3, 2, correlation=0.5, noise=0.0, seed=1)
    C = np.cov(data.X.T)
    np.testing.assert_allclose(np.diag(C), 1, atol=0.05)
    assert C[0, 1] == pytest.approx(0.5, abs=0.05) and abs(C[0, 3]) < 0.05 and abs(C[0, 7]) < 0.05
    x = data.X[0]
    assert data.y[0] == pytest.approx(x[0] * x[1] + x[0] * x[2] + x[1] * x[2] + x[3] * x[4] + x[3] * x[5] + x[4] * x[5])  # fmt: skip
    assert data.W.sum() == 6


def test_recovery_metrics():
    W = np.zeros((3, 3))
    W[0, 1] = 1.0
    P = np.array([[1.0], [1.0], [0.0]])
    assert recovery(W, P) == (0.0, 1.0, True)
    assert recovery(W, np.ones((3, 1))) == (2.0, 0.5, False)
    assert recovery(W, np.zeros((3, 1))) == (1.0, 0.0, False)
    with pytest.raises(InputError, match="shape"):
        recovery(W, np.ones((4, 1)))


def test_ti_finds_the_planted_groups():
    data = planted_interactions(400, 3, 4, 4, seed=0)
    common = dict(n_components=8, fit_linear=False, init_scale=0.1, max_iter=300, beta=1e-3)
    ti = FactorizationMachineRegressor(penalty="ti", gamma=0.1, **common).fit(data.X, data.y)
    found = recovery(data.W, ti.P_[0][0])
    assert found.success and found.f1 == 1.0


def test_the_quadratic_model_passes_scikit_learns_checks():
    failed = [row for row in check_estimator(SparseLowRankQuadratic(max_iter=20), on_fail=None, on_skip=None) if row["status"] == "failed"]  # fmt: skip
    assert not failed, failed


def test_the_quadratic_model_finds_the_pairs_and_its_objective_falls():
    data = planted_interactions(500, 1, 4, 4, seed=2)
    model = SparseLowRankQuadratic(trace=0.01, gamma=0.1, max_iter=2000).fit(data.X, data.y)
    assert model.score(data.X, data.y) > 0.95
    assert recovery(data.W, model.W_).f1 > 0.8
    objective = [entry["objective"] for entry in model.history_]
    assert objective[-1] < 0.2 * objective[0]
    with pytest.raises(InputError, match="gamma"):
        SparseLowRankQuadratic(gamma=-1).fit(data.X, data.y)


def test_a_callback_can_end_a_fit():
    data = planted_interactions(100, 1, 4, 4)
    model = FactorizationMachineRegressor(callback=lambda epoch, _: epoch == 3, tol=0.0).fit(data.X, data.y)  # fmt: skip
    assert model.n_iter_ == 3 and model.stopped_ == "callback"
