"""Polynomial networks of powers, (γ_s + ⟨p_s, x⟩)^m."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.fm import PolynomialNetworkClassifier, PolynomialNetworkRegressor
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties.l1 import L1
from recsys.fm.penalties.l2 import L2
from recsys.fm.solvers import Options
from recsys.fm.solvers.coordinate import CoordinateDescent, binomials
from recsys.multilinear.forms import POWER, Form
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

CUT_SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def task(seed=0, n=40, d=5, kept=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < kept)
    return X, (1.0 + X[:, 0] - X[:, 1]) ** 2 - X[:, 2] * X[:, 3] + 0.05 * rng.normal(size=n)


def objective_of(seed, degree, loss="squared", penalty=L2, gamma=0.0, beta=0.1, scale=0.7):
    rng = np.random.RandomState(seed)
    X = sp.random_array((12, 5), density=0.6, random_state=rng, data_sampler=rng.standard_normal)
    X = sp.csr_matrix(sp.hstack([X, np.ones((12, 1))]))
    model = Model.zeros([Form(POWER, degree, 1)], 6, 2, True)
    model.z[:] = scale * rng.standard_normal(len(model.z))
    model.weights[:] = [[1.0, -0.5]]
    y = np.sign(rng.standard_normal(12)) if loss != "squared" else rng.standard_normal(12)
    by = Regularization(penalty(), 0.2, beta, gamma)
    return Objective(model, X, y, LOSSES.get(loss), by, True, rng)


def test_predictions_are_those_of_the_definition():
    X, y = task()
    for degree in (2, 3, 5):
        for lower in (None, "augment"):
            model = PolynomialNetworkRegressor(
                degree=degree, lifted=False, fit_lower=lower, n_components=3, max_iter=3, tol=0.0
            ).fit(X, y)
            assert [P.shape for P in model.P_] == [(1, 5 + (lower is not None), 3)]
            gamma = model.P_[0][0][5] if lower else np.zeros(3)
            w = model.w_[:5]
            b = model.intercept_ + model.w_[5:].sum()
            expected = reference.predict_powers(X, b, w, model.P_[0][0][:5], gamma, degree, np.ones(3))
            np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)


def test_a_lifted_network_of_equal_tables_is_one_of_powers():
    X, y = task()
    powers = PolynomialNetworkRegressor(
        degree=3, lifted=False, fit_lower="augment", n_components=2, max_iter=3, tol=0.0
    ).fit(X, y)
    lifted = PolynomialNetworkRegressor(
        degree=3, fit_lower="augment", n_components=2, max_iter=1, tol=0.0
    ).fit(X, y)
    assert lifted.P_[0].shape == (3, 6, 2)
    lifted.P_ = [np.repeat(powers.P_[0], 3, axis=0)]
    lifted.w_, lifted.intercept_ = powers.w_, powers.intercept_
    np.testing.assert_allclose(lifted.predict(X), powers.predict(X), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from(["squared", "logistic"]))
@settings(max_examples=30, deadline=None)
def test_the_gradient_is_that_of_finite_differences(seed, degree, loss):
    objective = objective_of(seed, degree, loss)
    z = objective.model.z.copy()
    gradient = objective.smooth(z)[1]
    numeric = np.empty_like(z)
    for i in range(len(z)):
        up, down = z.copy(), z.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        numeric[i] = (objective.smooth_value(up) - objective.smooth_value(down)) / 2e-5
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4 * (1.0 + np.abs(numeric).max()))


@given(
    st.integers(0, 10_000), st.integers(2, 5), st.sampled_from(["squared", "logistic", "squared_hinge"]),
    st.sampled_from([(L2, 0.0), (L1, 0.05)]), st.sampled_from([0.01, 0.7, 4.0]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_no_coordinate_raises_the_objective(seed, degree, loss, penalty, scale):
    objective = objective_of(seed, degree, loss, *penalty, scale=scale)
    solver = CoordinateDescent(objective, Options(0.1, 1, 1))
    last = objective.value()
    for _ in range(4):
        solver.epoch()
        value = objective.value()
        assert value <= last * (1.0 + 1e-10)
        fresh = objective.model.predict(objective.X)
        np.testing.assert_allclose(objective.pred, fresh, rtol=1e-8, atol=1e-8 * np.abs(fresh).max())
        last = value


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("degree", [2, 3])
def test_a_long_descent_ends_where_the_gradient_is_zero(degree, loss):
    objective = objective_of(3, degree, loss)
    solver = CoordinateDescent(objective, Options(0.1, 1, 1))
    for _ in range(3000):
        solver.epoch()
    gradient = objective.smooth(objective.model.z.copy())[1]
    assert np.abs(objective.model.tables()[0]).max() > 0.05  # not the stationary point of zeros
    np.testing.assert_allclose(gradient, 0.0, atol=1e-7)


def test_sparse_descent_ends_where_no_entry_can_improve():
    objective = objective_of(5, 2, penalty=L1, gamma=0.02, beta=0.0)
    solver = CoordinateDescent(objective, Options(0.1, 1, 1))
    for _ in range(3000):
        solver.epoch()
    P = objective.model.tables()[0][0].ravel()
    slopes = objective.smooth(objective.model.z.copy())[1][-P.size :]
    assert (P == 0).any() and (P != 0).any()
    np.testing.assert_allclose(slopes[P != 0], -0.02 * np.sign(P[P != 0]), atol=1e-7)
    assert np.all(np.abs(slopes[P == 0]) <= 0.02 + 1e-7)


@CUT_SHORT
@pytest.mark.parametrize("solver", ["cd", "lbfgs", "adagrad", "fista"])
def test_a_power_is_learned(solver):
    X, _ = task(2, 300, kept=1.0)
    y = (1.0 + X[:, 0] - X[:, 1]) ** 3
    model = PolynomialNetworkRegressor(
        degree=3, lifted=False, fit_lower="augment", n_components=2, beta=1e-6, solver=solver,
        max_iter=300, batch_size=8,
    )  # fmt: skip
    assert model.fit(X, y).score(X, y) > 0.95


@CUT_SHORT
def test_classes_float32_and_solvers_that_have_no_steps_for_powers():
    X, y = task(4, 200)
    model = PolynomialNetworkClassifier(lifted=False, fit_lower="augment", n_components=3)
    some, same = model.fit(X, y > 1).predict_proba(X), sp.csc_array(X.astype(np.float32))
    np.testing.assert_allclose(model.fit(same, y > 1).predict_proba(same), some, atol=1e-4)
    assert model.score(X, y > 1) > 0.8
    with pytest.raises(ValueError, match="cannot serve polynomial networks of powers: use solver='cd'"):
        PolynomialNetworkRegressor(lifted=False, solver="block").fit(X, y)
    with pytest.raises(ValueError, match="fit_lower must be one of augment"):
        PolynomialNetworkRegressor(fit_lower="explicit").fit(X, y)


def test_binomials():
    assert binomials(5).tolist() == [1.0, 5.0, 10.0, 10.0, 5.0, 1.0]
