"""The weights of the orders: given, and those that columns of ones come to."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from recsys import InputError
from recsys.fm import FactorizationMachineClassifier, FactorizationMachineRegressor
from recsys.fm.solvers.weights import project_simplex, theta_step
from recsys.links import PairFactorizationMachine
from recsys.multilinear.forms import MIXED
from tests.fm.test_lambda import objective_of
from tests.reference import fm as reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def task(n=80, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    p = rng.normal(size=d)
    theta = (0.5, -2.0, 1.0)
    y = sum(
        weight * np.array([reference.anova(p, x, t) for x in X]) for t, weight in enumerate(theta, 1)
    )
    return X, y, theta


def inhomogeneous(P, X, theta):
    """Σ_s Σ_t θ_ts A^t(p_s, x), by enumeration."""
    return sum(
        theta[t, s] * np.array([reference.anova(P[:, s], x, t + 1) for x in X])
        for t, s in np.ndindex(theta.shape)
    )


@pytest.mark.parametrize("solver", ["cd", "lbfgs", "adagrad"])
def test_a_given_theta_weighs_the_orders(solver):
    X, y, theta = task()
    model = FactorizationMachineRegressor(
        degree=3, fit_lower="inhomogeneous", theta=theta, n_components=2, max_iter=5, solver=solver
    ).fit(X, y)
    assert model.theta_.tolist() == [list(theta)]
    expected = inhomogeneous(model.P_[0][0], X, model.order_weights()) + model.intercept_ + X @ model.w_
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    assert model.order_weights().tolist() == [[weight] * 2 for weight in theta]


def test_the_true_theta_fits_where_ones_do_not():
    X, y, theta = task(200)
    common = {"degree": 3, "fit_lower": "inhomogeneous", "n_components": 2, "beta": 1e-8}
    common |= {"fit_linear": False, "max_iter": 500}
    given = FactorizationMachineRegressor(**common, theta=theta).fit(X, y)
    ones = FactorizationMachineRegressor(**common).fit(X, y)
    assert given.score(X, y) > 0.999 > 0.9 > ones.score(X, y)
    assert ones.theta_.tolist() == [[1.0, 1.0, 1.0]]


def test_the_fit_is_stationary_under_a_given_theta():
    X, y, theta = task()
    model = FactorizationMachineRegressor(
        degree=3,
        fit_lower="inhomogeneous",
        theta=theta,
        n_components=2,
        beta=0.05,
        tol=0.0,
        max_iter=3000,
        fit_linear=False,
    ).fit(X, y)
    P, weights = model.P_[0][0], np.repeat(np.array(theta)[:, None], 2, axis=1)

    def objective(P):
        rest = model.intercept_ + inhomogeneous(P, X, weights) - y
        return 0.5 * np.mean(rest**2) + 0.025 * (P**2).sum()

    assert np.abs(P).max() > 0.1
    for place in np.ndindex(P.shape):
        step = np.zeros_like(P)
        step[place] = 1e-4
        assert (objective(P + step) - objective(P - step)) / 2e-4 == pytest.approx(0.0, abs=1e-5)


def test_columns_of_ones_come_to_an_inhomogeneous_kernel():
    """(20): γ₁γ₂ and γ₁ + γ₂ at m = 3, unrolled; and a model given that θ predicts the same."""
    X, y, _ = task()
    augmented = FactorizationMachineRegressor(
        degree=3, fit_lower="augment", fit_linear=False, n_components=1, init_scale=0.5, max_iter=10
    ).fit(X, y)
    first, second = augmented.P_[0][0][-2:, 0]
    theta = augmented.order_weights()
    assert theta.ravel().tolist() == pytest.approx([first * second, first + second, 1.0])
    same = FactorizationMachineRegressor(
        degree=3,
        fit_lower="inhomogeneous",
        fit_linear=False,
        n_components=1,
        theta=theta[:, 0],
        max_iter=1,
    ).fit(X, y)
    same.P_, same.intercept_ = [augmented.P_[0][:, :-2]], augmented.intercept_
    np.testing.assert_allclose(same.predict(X), augmented.predict(X), atol=1e-9)


def test_theta_is_a_parameter_like_others_and_is_checked():
    X, y, theta = task()
    model = FactorizationMachineClassifier(degree=3, fit_lower="inhomogeneous", theta=theta, max_iter=2)
    assert clone(model).fit(X, y > 0).theta_.tolist() == [list(theta)]
    for given in ((1.0, 2.0), (1.0, 2.0, np.nan), "abc", [[1.0, 2.0, 3.0]], ["a", "b", "c"]):
        with pytest.raises(InputError, match="theta must be 3 numbers, one for each order from 1"):
            FactorizationMachineRegressor(degree=3, fit_lower="inhomogeneous", theta=given).fit(X, y)
    for lower in ("explicit", "simplex", "augment", None):
        with pytest.raises(InputError, match="theta is only for fit_lower='inhomogeneous', not"):
            FactorizationMachineRegressor(degree=3, fit_lower=lower, theta=theta).fit(X, y)


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("symmetric", [False, True])
def test_pairs_of_one_kind_have_the_columns_of_ones_of_the_source(degree, symmetric):
    """M − 1 columns beside the concatenation of both ends; twice, where pairs are symmetrised."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(15, 3))
    pairs = np.array([(i, j) for i in range(15) for j in range(15) if i != j])
    y = A[pairs[:, 0], 0] * A[pairs[:, 1], 1] > 0
    model = PairFactorizationMachine(
        degree=degree, fit_lower="augment", n_components=2, max_iter=3, symmetric=symmetric
    ).fit(A, None, pairs, y)
    (term,) = model.terms_

    def scores(ends):
        ones = np.ones((len(ends), degree - 1))
        parts = [A[ends[:, 0]], ones, A[ends[:, 1]]]  # symmetric ones have the columns at both ends
        x = np.hstack([*parts, ones] if symmetric else parts)
        P = np.vstack([term.left, term.right])
        return sum(np.array([reference.anova(P[:, s], row, degree) for row in x]) for s in range(2))

    assert (len(term.left), len(term.right)) == (2 + degree, 2 + degree if symmetric else 3)
    expected = scores(pairs) if not symmetric else 0.5 * (scores(pairs) + scores(pairs[:, ::-1]))
    np.testing.assert_allclose(
        model.decision_function(A, None, pairs), model.intercept_ + expected, atol=1e-9
    )


@pytest.mark.parametrize("symmetric", [None, False])
def test_pairs_of_one_kind_are_scored_alike_however_the_objects_are_given(symmetric):
    rng = np.random.default_rng(3)
    A, pairs = sp.csr_matrix(rng.random((12, 5))), rng.integers(0, 12, (60, 2))
    y = np.where(rng.random(60) < 0.5, 1, -1)
    model = PairFactorizationMachine(degree=3, fit_lower="augment", symmetric=symmetric, max_iter=3).fit(
        A, None, pairs, y
    )
    once = model.decision_function(A, None, pairs)
    for other in (A, A.copy()):
        np.testing.assert_array_equal(model.decision_function(A, other, pairs), once)


@pytest.mark.thorough
@pytest.mark.parametrize("solver", ["cd", "fista", "nmapgd", "lbfgs", "subgradient"])
@pytest.mark.parametrize("seed", [0, 1])
def test_learned_weights_of_the_orders_leave_no_stale_objective(solver, seed):
    """θ moves between two epochs: what a solver compares with has to move with it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] * X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=200)
    model = FactorizationMachineRegressor(
        degree=3,
        fit_lower="simplex",
        solver=solver,
        n_components=4,
        max_iter=120,
        tol=0.0,
        init_scale=0.3,
        random_state=seed,
        beta=1e-3,
    ).fit(X, y)
    found = [entry["objective"] for entry in model.history_]
    assert len(found) == 121 and found[-1] < 0.5 * found[0]
    if solver != "nmapgd":  # which may rise below a running mean
        assert (np.diff(found) <= 1e-12).all()
    fitted = 0.5 * np.mean((model.predict(X) - y) ** 2)
    assert found[-1] == pytest.approx(
        fitted + 0.5 * 1e-3 * (model.P_[0][0] ** 2).sum() + 0.5 * model.alpha * (model.w_**2).sum()
    )


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e10, 1e17, 1e200, 1.7e308])
@pytest.mark.parametrize("seed", range(3))
def test_the_projection_onto_the_simplex_is_the_nearest_point_at_any_size(seed, size):
    v = np.random.default_rng(seed).uniform(-1.0, 1.0, 4) * size
    theta = project_simplex(v)
    assert theta.sum() == pytest.approx(1.0) and (theta >= 0).all()
    # θ is the nearest where v − θ is largest, and one value, on the entries that are above 0
    rest = v / max(size, 1.0) - theta / max(size, 1.0)
    assert np.ptp(rest[theta > 0]) <= 1e-9 and (rest <= rest[theta > 0].max() + 1e-9).all()


def test_equal_entries_share_the_simplex_alike():
    np.testing.assert_array_equal(project_simplex(np.full(4, 1e20)), np.full(4, 0.25))


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "bpr", "auc"])
def test_steps_on_the_simplex_lower_the_objective_of_any_loss_to_its_least(loss):
    objective = objective_of(4, MIXED, loss)
    theta = objective.model.theta[0]
    theta[:] = project_simplex(theta)
    objective.refresh()
    reached = [objective.value()]
    for _ in range(200):
        theta_step(objective)
        reached.append(objective.value())
    assert np.all(np.diff(reached) <= 1e-12) and reached[-1] < reached[0] - 1e-4
    kept = objective.pred.copy()
    objective.refresh()
    np.testing.assert_allclose(kept, objective.pred, atol=1e-9)
    for other in np.random.default_rng(0).dirichlet(
        np.ones(len(theta)), 50
    ):  # none on the simplex is better
        before = theta.copy()
        theta[:] = before + 0.01 * (other - before)
        objective.refresh()
        assert objective.value() >= reached[-1] - 1e-8
        theta[:] = before
