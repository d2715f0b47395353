"""Polynomial networks of powers, (γ_s + ⟨p_s, x⟩)^m."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys.fm import PolynomialNetworkRegressor
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.multilinear.forms import POWER, Form
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

CUT_SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def task(seed=0, n=40, d=5, kept=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < kept)
    return X, (1.0 + X[:, 0] - X[:, 1]) ** 2 - X[:, 2] * X[:, 3] + 0.05 * rng.normal(size=n)


def objective_of(seed, degree, loss="squared", penalty=PENALTIES["l2"], gamma=0.0, beta=0.1, scale=0.7):
    rng = np.random.RandomState(seed)
    X = sp.random_array((12, 5), density=0.6, random_state=rng, data_sampler=rng.standard_normal)
    X = sp.csr_matrix(sp.hstack([X, np.ones((12, 1))]))
    model = Model.zeros([Form(POWER, degree, 1)], 6, 2, True)
    model.z[:] = scale * rng.standard_normal(len(model.z))
    model.weights[:] = [[1.0, -0.5]]
    y = np.sign(rng.standard_normal(12)) if loss != "squared" else rng.standard_normal(12)
    by = Regularization(penalty, 0.2, beta, gamma)
    return Objective(model, X, y, LOSSES.get(loss), by, True, rng)


def test_predictions_are_those_of_the_definition():
    X, y = task()
    for degree in (2, 3, 5):
        for lower in (None, "augment"):
            model = PolynomialNetworkRegressor(
                degree=degree,
                lifted=False,
                fit_lower=lower,
                n_components=3,
                max_iter=3,
                tol=0.0,
                solver="lbfgs",
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
        degree=3, lifted=False, fit_lower="augment", n_components=2, max_iter=3, tol=0.0, solver="lbfgs"
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
