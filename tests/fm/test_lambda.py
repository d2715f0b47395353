"""The weights λ of the components: random signs, and learned ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError
from recsys.fm import AllSubsetsRegressor, FactorizationMachineRegressor, interactions
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers.weights import component_values, lambda_step
from recsys.multilinear.forms import ALL_SUBSETS, MIXED, Form
from recsys.multilinear.losses import LOSSES
from tests.reference import fm as reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def objective_of(seed, kind, loss, beta=1e-3):
    rng = np.random.RandomState(seed)
    X = sp.csr_matrix(rng.standard_normal((80, 5)))
    model = Model.zeros([Form(kind, 3 if kind == MIXED else 1, 1)], 5, 3, True)
    model.z[1:] = 0.5 * rng.standard_normal(len(model.z) - 1)
    model.theta[:] = rng.random(model.theta.shape)
    y = rng.standard_normal(80)
    if loss != "squared":
        y = np.where(y > 0, 1.0, -1.0)
    by = Regularization(PENALTIES["l2"], 1e-3, beta, 0.0)
    return Objective(model, X, y, LOSSES.get(loss), by, True, rng, learns_weights=True)


@pytest.mark.parametrize("kind", [ALL_SUBSETS, MIXED])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_a_step_lowers_the_objective_and_ends_where_it_is_stationary(kind, loss):
    objective = objective_of(1, kind, loss)
    values = [objective.value()]
    for _ in range(500):
        lambda_step(objective)
        values.append(objective.value())
    assert (np.diff(values) <= 1e-12).all()
    np.testing.assert_allclose(objective.pred, objective.model.predict(objective.X), atol=1e-9)
    here = values[-1]
    for s in range(3):
        for change in (-1e-3, 1e-3):
            objective.model.weights[0, s] += change
            objective.refresh()
            assert objective.value() >= here - 1e-9
            objective.model.weights[0, s] -= change


def test_values_of_components_are_those_of_the_definition():
    objective = objective_of(0, MIXED, "squared")
    P, theta = objective.model.tables()[0][0], objective.model.theta[0]
    X = objective.X.toarray()
    expected = [
        [sum(theta[t - 1] * reference.anova(P[:, s], x, t) for t in (1, 2, 3)) for s in range(3)]
        for x in X
    ]
    np.testing.assert_allclose(component_values(objective, 0), expected, atol=1e-12)


def test_a_negative_product_needs_a_negative_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = -((X @ [1.0, 1.0, 1.0, 1.0]) ** 2 - (X**2).sum(axis=1)) / 2
    common = {"n_components": 4, "beta": 1e-6, "max_iter": 300, "init_scale": 0.3, "random_state": 1}
    signs = FactorizationMachineRegressor(init_lambda="random_signs", **common).fit(X, y)
    assert set(signs.component_weights_.ravel()) == {-1.0, 1.0} and signs.score(X, y) > 0.999
    ones = FactorizationMachineRegressor(**common).fit(X, y)
    assert set(ones.component_weights_.ravel()) == {1.0}


def test_learned_weights_fit_what_ones_do_not():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (300, 4)).astype(float)
    y = 3.0 * np.prod(1.0 + X * np.array([0.5, 1.0, -0.4, 0.2]), axis=1)
    common = {"n_components": 1, "beta": 1e-6, "max_iter": 300, "fit_linear": False}
    learned = AllSubsetsRegressor(fit_lambda=True, **common).fit(X, y)
    assert learned.score(X, y) > 0.999 > AllSubsetsRegressor(**common).fit(X, y).score(X, y)
    expected = learned.intercept_ + learned.component_weights_[0, 0] * np.prod(
        1.0 + X * learned.P_[0][0][:, 0], axis=1
    )
    np.testing.assert_allclose(learned.predict(X), expected, atol=1e-9)


def test_one_order_learns_no_weights():
    with pytest.raises(InputError, match="fit_lambda"):
        FactorizationMachineRegressor(fit_lambda=True).fit(np.eye(3), np.arange(3.0))


def negative_pairs():
    """Return rows and the negative of one component of second order."""
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(400, 6)), rng.normal(size=6)
    return X, np.array([-reference.anova(p, x, 2) for x in X])


@pytest.mark.parametrize("lower", ["explicit", "augment", "inhomogeneous", "simplex"])
@pytest.mark.parametrize("solver", ["cd", "lbfgs"])
def test_predictions_are_those_of_the_definition(lower, solver):
    X, y = negative_pairs()
    X, y = X[:60], y[:60] + X[:60, 0] * X[:60, 1] * X[:60, 2]
    model = FactorizationMachineRegressor(
        degree=2 if lower == "augment" else 3,
        fit_lower=lower,
        n_components=2,
        max_iter=12,
        solver=solver,
        init_lambda="random_signs",
        fit_linear=False,
        beta=0.01,
    ).fit(X, y)
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
        assert dict(interactions(model, 15))[1, 4] == pytest.approx(pair)
    else:
        for (t, s), weight in np.ndenumerate(model.order_weights()):
            expected += weight * np.array([reference.anova(model.P_[0][0][:6, s], x, t + 1) for x in X])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    if solver == "cd":
        assert np.all(np.diff([entry["objective"] for entry in model.history_]) <= 1e-9)
