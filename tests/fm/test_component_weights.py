"""Weights of the components that are learned: `fit_component_weights`."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.fm import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkRegressor,
    regularization_path,
)
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties.l2 import L2
from recsys.fm.solvers.component_weights import component_values, weights_step
from recsys.multilinear.forms import ALL_SUBSETS, MIXED, Form
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

CUT_SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOLVERS = ["cd", "block", "lbfgs", "fista", "nmapgd", "adagrad", "psgd", "katyusha", "subgradient"]
WEIGHTS = {"fit_component_weights": True}


def one_component(size=3.7, rows=300):
    """Return rows and a component of all subsets, times a size that no p has."""
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(rows, 5)), 0.4 * rng.normal(size=5)
    return X, size * np.prod(1.0 + X * p, axis=1)


def value(model, x, s):
    """K(p_s, x) by enumeration."""
    p = model.P_[0][0][:, s]
    if isinstance(model, (AllSubsetsRegressor, AllSubsetsClassifier)):
        return np.prod(1.0 + p * x)
    return sum(model.theta_[0, t - 1] * reference.anova(p, x, t) for t in range(1, model.degree + 1))


def defined(model, X):
    linear = X @ model.w_ + model.intercept_
    weights = model.component_weights_[0]
    return linear + [sum(weights[s] * value(model, x, s) for s in range(len(weights))) for x in X]


def objective_of(seed, kind, loss, beta=1e-3):
    rng = np.random.RandomState(seed)
    X = sp.csr_matrix(rng.standard_normal((80, 5)))
    model = Model.zeros([Form(kind, 3 if kind == MIXED else 1, 1)], 5, 3, True)
    model.z[1:] = 0.5 * rng.standard_normal(len(model.z) - 1)
    model.theta[:] = rng.random(model.theta.shape)
    y = rng.standard_normal(80)
    if LOSSES.get(loss).name != "squared":
        y = np.where(y > 0, 1.0, -1.0)
    by = Regularization(L2, 1e-3, beta, 0.0)
    return Objective(model, X, y, LOSSES.get(loss), by, True, rng, learns_weights=True)


@CUT_SHORT
@pytest.mark.parametrize("solver", ["cd", "block"])
def test_one_component_of_any_size_is_found(solver):
    X, y = one_component()
    common = {
        "n_components": 1,
        "beta": 1e-8,
        "fit_linear": False,
        "fit_intercept": False,
        "max_iter": 400,
    }
    starts = [AllSubsetsRegressor(**common, solver=solver, random_state=seed) for seed in range(5)]
    without = max(model.fit(X, y).score(X, y) for model in starts)
    with_weights = [model.set_params(**WEIGHTS).fit(X, y) for model in starts]
    best = max(with_weights, key=lambda model: model.score(X, y))
    assert without < 0.95 and best.score(X, y) > 0.9999
    assert best.component_weights_[0, 0] == pytest.approx(3.7, rel=0.01)


@pytest.mark.parametrize("beta", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("kind", [MIXED, ALL_SUBSETS])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_under_the_squared_loss_is_the_minimum(kind, seed, beta):
    objective = objective_of(seed, kind, "squared", beta)
    values = component_values(objective, 0)
    before = objective.pred - values @ objective.model.weights[0]
    moved = weights_step(objective)
    n, k = values.shape
    # the least squares problem, by other means
    stacked = np.vstack([values / np.sqrt(n), np.sqrt(beta) * np.eye(k)])
    goal = np.r_[(objective.y - before) / np.sqrt(n), np.zeros(k)]
    expected = np.linalg.lstsq(stacked, goal, rcond=None)[0]
    np.testing.assert_allclose(objective.model.weights[0], expected, rtol=1e-8, atol=1e-10)
    assert moved == pytest.approx(np.abs(expected - 1.0).sum())
    np.testing.assert_allclose(objective.pred, objective.model.predict(objective.X), atol=1e-9)


@pytest.mark.parametrize("kind", [MIXED, ALL_SUBSETS])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "bpr"])
def test_steps_lower_any_objective_to_its_least(loss, kind):
    objective = objective_of(1, kind, loss)
    reached = [objective.value()]
    for _ in range(400):
        weights_step(objective)
        reached.append(objective.value())
    assert np.all(np.diff(reached) <= 1e-12) and reached[-1] < reached[0] - 1e-4
    weights = objective.model.weights
    for s in range(3):  # no weight by itself lowers it further
        for step in (1e-3, -1e-3):
            weights[0, s] += step
            objective.refresh()
            assert objective.value() >= reached[-1] - 1e-10
            weights[0, s] -= step


def test_components_that_are_one_another_share_what_there_is():
    """β = 0 and a singular bound: the step is the shortest that is the minimum."""
    objective = objective_of(0, ALL_SUBSETS, "squared", 0.0)
    P = objective.model.tables()[0][0]
    P[:, 1] = P[:, 0]
    objective.refresh()
    weights_step(objective)
    weights = objective.model.weights[0]
    assert np.isfinite(weights).all() and weights[0] == pytest.approx(weights[1])


@pytest.mark.thorough
@CUT_SHORT
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("lower", ["inhomogeneous", "simplex", "all-subsets"])
def test_predictions_and_objectives_are_those_of_the_definition(lower, solver):
    if solver == "block" and lower != "all-subsets":
        return
    X, y = one_component(rows=60)
    common = {
        "n_components": 2, "max_iter": 12, "solver": solver, "beta": 0.01, "alpha": 0.02, **WEIGHTS,
        "learning_rate": 5e-4 if solver == "psgd" else 0.01,
    }  # fmt: skip
    if lower == "all-subsets":
        model = AllSubsetsRegressor(**common).fit(X, y)
    else:
        model = FactorizationMachineRegressor(degree=3, fit_lower=lower, **common).fit(X, y)
    assert not np.isin(model.component_weights_, [-1.0, 1.0]).any()
    expected = defined(model, X)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    squares = 0.01 * ((model.P_[0] ** 2).sum() + (model.component_weights_**2).sum())
    loss = 0.5 * np.mean((expected - y) ** 2) + 0.5 * (squares + 0.02 * (model.w_**2).sum())
    assert model.history_[-1]["objective"] == pytest.approx(loss, rel=1e-9)
    assert model.history_[-1]["objective"] < model.history_[0]["objective"]
    if solver in ("cd", "block", "lbfgs", "fista"):
        assert np.all(np.diff([entry["objective"] for entry in model.history_]) <= 1e-9)
    if lower != "all-subsets":
        np.testing.assert_allclose(
            model.order_weights(), np.outer(model.theta_[0, :3], model.component_weights_[0])
        )


@CUT_SHORT
def test_a_long_fit_is_stationary_in_the_weights_and_in_p():
    X, y = one_component(rows=60)
    model = FactorizationMachineRegressor(
        degree=2, fit_lower="inhomogeneous", n_components=2, beta=0.05, max_iter=3000, tol=0.0,
        fit_linear=False, **WEIGHTS,
    ).fit(X, y)  # fmt: skip
    assert model.history_[-1]["violation"] < 1e-6

    def objective(P, weights):
        parts = [weights[s] * sum(np.array([reference.anova(P[:, s], x, t) for x in X]) for t in (1, 2)) for s in range(2)]  # fmt: skip
        loss = 0.5 * np.mean((model.intercept_ + sum(parts) - y) ** 2)
        return loss + 0.025 * ((P**2).sum() + (weights**2).sum())

    P, weights = model.P_[0][0], model.component_weights_[0]
    assert np.abs(P).max() > 0.1
    for table in (P, weights):
        for place in np.ndindex(table.shape):
            both = []
            for step in (1e-4, -1e-4):
                table[place] += step
                both.append(objective(P, weights))
                table[place] -= step
            assert (both[0] - both[1]) / 2e-4 == pytest.approx(0.0, abs=1e-6)


@CUT_SHORT
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "bpr"])
def test_classes_have_weights(loss):
    X, y = one_component(rows=120)
    solver = "adagrad" if loss == "bpr" else "cd"
    common = {"n_components": 2, "max_iter": 40, "solver": solver, "loss": loss, **WEIGHTS}
    for model in (
        AllSubsetsClassifier(**common),
        FactorizationMachineClassifier(degree=3, fit_lower="inhomogeneous", **common),
    ):
        model.fit(X, y > np.median(y))
        np.testing.assert_allclose(model.decision_function(X), defined(model, X), atol=1e-8)
        assert model.score(X, y > np.median(y)) > (0.5 if loss == "bpr" else 0.85)


@CUT_SHORT
def test_weights_stay_where_a_fit_goes_on_and_come_back_from_early_stopping():
    X, y = one_component(rows=120)
    model = AllSubsetsRegressor(n_components=2, max_iter=20, warm_start=True, tol=0.0, **WEIGHTS).fit(
        X, y
    )
    more = model.history_[-1]["objective"]
    model.set_params(max_iter=3).fit(X, y)
    assert model.history_[-1]["objective"] <= more
    seen = []
    noisy = y + 3.0 * np.random.default_rng(1).normal(size=120)
    early = AllSubsetsRegressor(
        n_components=3, beta=0.0, patience=3, validation_fraction=0.5, max_iter=60, **WEIGHTS,
        callback=lambda epoch, value: seen.append(early.component_weights_.copy()) and False,
    )  # fmt: skip
    early.fit(X, noisy)
    best = int(np.argmin([entry["validation"] for entry in early.history_]))
    assert 0 < best < len(seen)
    np.testing.assert_array_equal(early.component_weights_, seen[best - 1])


def test_what_has_no_weights_refuses_them():
    X, y = one_component(rows=30)
    for model in (
        FactorizationMachineRegressor(**WEIGHTS), FactorizationMachineRegressor(degree=3, fit_lower="augment", **WEIGHTS),
        PolynomialNetworkRegressor(**WEIGHTS), PolynomialNetworkRegressor(lifted=False, **WEIGHTS),
    ):  # fmt: skip
        with pytest.raises(InputError, match="of one order P takes up a component's size"):
            model.fit(X, y)
    with pytest.raises(InputError, match="partial_fit learns no weights of components"):
        AllSubsetsRegressor(solver="adagrad", **WEIGHTS).partial_fit(X, y)
    with pytest.raises(InputError, match="set fit_component_weights=False"):
        regularization_path(FactorizationMachineRegressor(penalty="ti", **WEIGHTS), X, y)
