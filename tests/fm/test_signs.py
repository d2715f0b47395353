"""The signs of the components: `fit_signs`."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys.fm import (
    AllSubsetsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkRegressor,
)
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties.l2 import L2
from recsys.fm.signs import choose_signs, sign_matters
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

CUT_SHORT = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TRIED = [
    [Form(ANOVA, 2, 1), Form(ANOVA, 3, 1)], [Form(ALL_SUBSETS, 1, 1)], [Form(MIXED, 3, 1)],
    [Form(PRODUCT, 2, 2)], [Form(POWER, 2, 1)], [Form(ANOVA, 4, 1)],
]  # fmt: skip


def negative_pairs():
    """Return rows and the negative of one component of second order."""
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(400, 6)), rng.normal(size=6)
    return X, np.array([-reference.anova(p, x, 2) for x in X])


def objective_of(seed, forms, loss, sign):
    """Return an objective whose targets are one component of the last form, of that sign."""
    rng = np.random.RandomState(seed)
    X = sp.csr_matrix(rng.standard_normal((150, 5)))
    planted = Model.zeros(forms[:1], 5, 1, False)
    planted.z[1 + 5 :] = rng.standard_normal(len(planted.z) - 6)
    y = sign * planted.predict(X)
    y = y - np.median(y) + 3.0
    if loss == "logistic":
        y = np.where(y > 3.0, 1.0, -1.0)
    model = Model.zeros(forms, 5, 2, True)
    model.z[1:] = 0.05 * rng.standard_normal(len(model.z) - 1)
    by = Regularization(L2(), 1e-4, 1e-4, 0.0)
    return Objective(model, X, y, LOSSES.get(loss), by, True, rng)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("forms", TRIED, ids=lambda forms: f"{forms[0].kind}-{forms[0].order}")
def test_signs_are_tried_where_they_matter_and_leave_a_model_that_agrees_with_itself(forms, loss):
    objective = objective_of(3, forms, loss, -1.0)
    model, before = objective.model, objective.value()
    choose_signs(objective)
    assert objective.value() < before or not any(map(sign_matters, forms))
    np.testing.assert_allclose(objective.pred, model.predict(objective.X), rtol=1e-9, atol=1e-9)
    assert set(np.unique(model.weights)) <= {-1.0, 1.0}
    for form, weights in zip(model.forms, model.weights, strict=True):
        even = form.order % 2 == 0
        assert sign_matters(form) == (
            form.kind in (ALL_SUBSETS, MIXED) or (even and form.kind != PRODUCT)
        )
        if not sign_matters(form):
            assert weights.tolist() == [1.0, 1.0]
    if forms[0].kind in (ANOVA, POWER):
        assert model.weights[0, 0] == -1.0  # the first component has most to explain


@pytest.mark.thorough
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_sign_that_was_planted_is_found(seed, sign):
    objective = objective_of(seed, [Form(POWER, 2, 1)], "squared", sign)
    choose_signs(objective)
    assert objective.model.weights[0, 0] == sign


@CUT_SHORT
def test_one_component_is_enough_for_the_negative_of_an_even_order():
    X, y = negative_pairs()
    common = {"n_components": 1, "beta": 1e-6, "fit_linear": False, "max_iter": 300}
    without = FactorizationMachineRegressor(**common).fit(X, y)
    model = FactorizationMachineRegressor(**common, fit_signs=True).fit(X, y)
    assert without.score(X, y) < 0.8 and without.component_weights_.tolist() == [[1.0]]
    assert model.score(X, y) > 0.999 and model.component_weights_.tolist() == [[-1.0]]


@pytest.mark.thorough
@CUT_SHORT
def test_the_even_power_of_a_network_has_a_sign_too():
    X, _ = negative_pairs()
    y = (X[:, 0] + X[:, 1]) ** 2 - (X[:, 2] - X[:, 3]) ** 2
    common = {"n_components": 2, "beta": 1e-6, "lifted": False, "max_iter": 300}
    assert PolynomialNetworkRegressor(**common).fit(X, y).score(X, y) < 0.8
    model = PolynomialNetworkRegressor(**common, fit_signs=True).fit(X, y)
    assert model.score(X, y) > 0.999
    assert sorted(model.component_weights_[0]) == [-1.0, 1.0]


@CUT_SHORT
@pytest.mark.parametrize("lower", ["explicit", "augment", "inhomogeneous", "simplex"])
@pytest.mark.parametrize("solver", ["cd", "lbfgs"])
def test_predictions_are_those_of_the_definition(lower, solver):
    X, y = negative_pairs()
    X, y = X[:60], y[:60] + X[:60, 0] * X[:60, 1] * X[:60, 2]
    model = FactorizationMachineRegressor(
        degree=2 if lower == "augment" else 3, fit_lower=lower, n_components=2, max_iter=12, solver=solver, fit_signs=True,
        fit_linear=False, beta=0.01,
    ).fit(X, y)  # fmt: skip
    assert (model.component_weights_ == -1.0).any()
    expected = np.full(60, model.intercept_)
    if lower == "explicit":
        for P, order, weights in zip(model.P_, (2, 3), model.component_weights_, strict=True):
            for s in range(2):
                expected += weights[s] * np.array([reference.anova(P[0][:, s], x, order) for x in X])
        pair = sum(
            weight * model.P_[0][0][1, s] * model.P_[0][0][4, s]
            for s, weight in enumerate(model.component_weights_[0])
        )
        assert model.interaction_weight([4, 1]) == pytest.approx(pair)
        assert dict(model.top_interactions(15))[1, 4] == pytest.approx(pair)
    else:
        for (t, s), weight in np.ndenumerate(model.order_weights()):
            expected += weight * np.array([reference.anova(model.P_[0][0][:6, s], x, t + 1) for x in X])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    if solver == "cd":
        assert np.all(np.diff([entry["objective"] for entry in model.history_]) <= 1e-9)


@CUT_SHORT
def test_a_long_fit_is_stationary():
    X, y = negative_pairs()
    X, y = X[:80], y[:80]
    model = FactorizationMachineRegressor(
        n_components=2, beta=0.05, max_iter=2000, tol=0.0, fit_signs=True, fit_linear=False
    ).fit(X, y)
    P, signs, b = model.P_[0][0], model.component_weights_[0], model.intercept_

    def objective(P):
        parts = [signs[s] * np.array([reference.anova(P[:, s], x, 2) for x in X]) for s in range(2)]
        return 0.5 * np.mean((b + sum(parts) - y) ** 2) + 0.025 * (P**2).sum()

    assert -1.0 in signs and np.abs(P).max() > 0.1
    for place in np.ndindex(P.shape):
        step = np.zeros_like(P)
        step[place] = 1e-4
        assert (objective(P + step) - objective(P - step)) / 2e-4 == pytest.approx(0.0, abs=1e-5)


@CUT_SHORT
def test_other_models_and_classes_have_signs():
    X, y = negative_pairs()
    for model in (AllSubsetsRegressor, PolynomialNetworkRegressor):
        assert model(n_components=2, max_iter=3, fit_signs=True).fit(X, y).component_weights_.shape == (
            1,
            2,
        )
    common = {"n_components": 1, "fit_signs": True, "fit_linear": False}
    for kw in ({}, {"solver": "adagrad", "loss": "bpr"}, {"penalty": "cs", "solver": "fista"}):
        model = FactorizationMachineClassifier(**common, **kw, gamma=1e-5, max_iter=30)
        assert model.fit(X, y > 0).component_weights_.tolist() == [[-1.0]]


@CUT_SHORT
@pytest.mark.parametrize("lower", [None, "explicit"])
@pytest.mark.parametrize("solver", ["block", "relational"])
def test_solvers_of_whole_rows_and_objects_heed_signs(solver, lower):
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(9, 3)), rng.normal(size=(7, 3))
    i, j = rng.integers(0, 9, 150), rng.integers(0, 7, 150)
    X = np.hstack([left[i], right[j]])
    y = np.array([-reference.anova(np.array([1.0, 2.0, -1.0, 0.5, 1.0, 1.0]), x, 2) for x in X])
    common = {
        "degree": 3 if lower else 2, "fit_lower": lower, "n_components": 2, "beta": 1e-3, "tol": 0.0,
        "fit_signs": True, "random_state": 1,
    }  # fmt: skip
    model = FactorizationMachineRegressor(**common, solver=solver, max_iter=40).fit(X, y)
    assert (model.component_weights_[0] == -1.0).any()
    assert np.all(np.diff([entry["objective"] for entry in model.history_]) <= 1e-9)
    expected = model.intercept_ + X @ model.w_
    for P, order, weights in zip(model.P_, (2, 3), model.component_weights_, strict=False):
        for s in range(2):
            expected += weights[s] * np.array([reference.anova(P[0][:, s], x, order) for x in X])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    if solver == "relational":  # the steps are those of plain coordinate descent
        plain = FactorizationMachineRegressor(**common, max_iter=40).fit(X, y)
        assert model.history_[-1]["objective"] == pytest.approx(
            plain.history_[-1]["objective"], rel=1e-9
        )
    assert model.score(X, y) > 0.99


@CUT_SHORT
def test_signs_stay_where_a_fit_goes_on():
    X, y = negative_pairs()
    model = FactorizationMachineRegressor(
        n_components=2, fit_signs=True, solver="adagrad", fit_linear=False, beta=1e-6
    )
    signs = model.partial_fit(X, y).component_weights_.copy()
    assert -1.0 in signs
    np.testing.assert_array_equal(model.partial_fit(X, -y).component_weights_, signs)
    model.set_params(warm_start=True, max_iter=3)
    np.testing.assert_array_equal(model.fit(X, -y).component_weights_, signs)


@CUT_SHORT
def test_early_stopping_keeps_the_weights_of_the_orders_of_the_best_epoch():
    """As those of P: the parameters are those of the epoch of the least loss on rows kept out."""
    X, y = negative_pairs()
    seen = []
    model = FactorizationMachineRegressor(
        degree=3, fit_lower="simplex", fit_linear=False, n_components=2, beta=0.0, patience=3,
        validation_fraction=0.5, max_iter=40,
    )  # fmt: skip

    def keep(epoch, value):
        seen.append((model.theta_.copy(), model.P_[0].copy()))

    model.set_params(callback=keep)
    model.fit(X[:120], y[:120] + 2.0 * np.random.default_rng(1).normal(size=120))
    best = int(np.argmin([entry["validation"] for entry in model.history_]))
    assert 0 < best < len(seen)
    theta, P = seen[best - 1]
    assert (theta != seen[-1][0]).any()
    np.testing.assert_array_equal(model.theta_, theta)
    np.testing.assert_array_equal(model.P_[0], P)
