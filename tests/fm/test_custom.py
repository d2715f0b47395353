"""Penalties and losses that are defined outside the package, with parameters."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from recsys import InputError
from recsys.fm import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SeparablePenalty,
    regularization_path,
)
from recsys.fm.custom import replacements
from recsys.fm.penalties import as_penalty
from recsys.fm.solvers import refusal, solver_names
from recsys.multilinear.forms import ANOVA, Form
from recsys.multilinear.losses import LOSSES
from tests.outside.penalties import MCP, Huber, ScaledRows

PAIRS = Form(ANOVA, 2, 1)
SQUARED = LOSSES.get("squared")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    left, right = rng.integers(6, size=150), rng.integers(5, size=150)
    X = np.zeros((150, 11))
    X[np.arange(150), left] = 1.0
    X[np.arange(150), 6 + right] = 1.0
    y = np.where(left < 3, 1.0, -1.0) * np.where(right < 2, 1.0, -1.0) + 0.1 * rng.normal(size=150)
    return X, y


def fitted(rows, **params):
    params = {"n_components": 2, "max_iter": 40, "tol": 0.0, "gamma": 3e-3, "init_scale": 0.2} | params
    return FactorizationMachineRegressor(**params).fit(*rows)


@pytest.mark.thorough
@pytest.mark.parametrize("penalty", [MCP(), MCP(0.5, 1.5), ScaledRows(), ScaledRows(2.0)], ids=repr)
@pytest.mark.parametrize("strength", [0.1, 0.9, 2.0])
def test_the_operator_is_the_minimum(penalty, strength):
    Q = 2.0 * np.random.default_rng(0).normal(size=(8, 3))
    P = penalty.prox(Q, strength)

    def value(R):
        return 0.5 * ((R - Q) ** 2).sum() + strength * penalty.value(PAIRS, R)

    rng = np.random.default_rng(1)
    for scale in (1.0, 0.1, 1e-3):
        for _ in range(50):
            assert value(P) <= value(P + scale * rng.normal(size=P.shape)) + 1e-12
    for j in range(len(Q)):
        for other in (0.0 * Q[j], Q[j]):
            R = P.copy()
            R[j] = other
            assert value(P) <= value(R) + 1e-12


ABLE = {
    penalty: [name for name in solver_names() if not refusal(name, SQUARED, penalty, [PAIRS])]
    for penalty in (MCP(), ScaledRows())
}


def test_solvers_take_what_has_the_operator_they_need():
    entries, by_rows = ABLE.values()
    assert set(entries) >= {"cd", "relational", "sgd", "adagrad", "psgd", "fista", "nmapgd", "katyusha"}
    assert set(by_rows) >= {"block", "sgd", "adagrad", "psgd", "fista", "nmapgd", "katyusha"}
    assert "block" not in entries and "cd" not in by_rows


def slow(solver, *before):
    """Each solver is compiled again, in 10 to 30 seconds; one is enough for a quick run."""
    return pytest.param(*before, solver, marks=[] if solver in ("cd", "fista") else pytest.mark.slow)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("penalty", "solver"),
    [slow(solver, penalty) for penalty, able in ABLE.items() for solver in able],
    ids=str,
)
def test_the_objective_falls_by_every_solver(rows, penalty, solver):
    model = fitted(rows, penalty=penalty, solver=solver, random_state=1)
    objectives = [entry["objective"] for entry in model.history_]
    assert objectives[-1] < 0.3 * objectives[0]
    rest = rows[1] - model.predict(rows[0])
    squares = (model.P_[0] ** 2).sum()
    assert objectives[-1] == pytest.approx(
        0.5 * (rest**2).mean()
        + 0.5 * model.alpha * (model.w_**2).sum()
        + 0.5 * model.beta * squares
        + model.gamma * penalty.value(PAIRS, model.P_[0][0])
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "solver", [slow(name) for name in ("cd", "block", "relational", "psgd", "fista")]
)
def test_it_is_the_built_in_one_where_they_are_equal(rows, solver):
    """MCP of a huge gamma is l1; rows of weight 1 are l21."""
    custom, name = (ScaledRows(), "l21") if solver == "block" else (MCP(gamma=1e18), "l1")
    ours = fitted(rows, penalty=custom, solver=solver)
    theirs = fitted(rows, penalty=name, solver=solver)
    np.testing.assert_allclose(ours.P_[0], theirs.P_[0], rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_a_parameter_changes_the_fit_and_compiles_nothing(rows):
    one, other = fitted(rows, penalty=MCP(gamma=1.5)), fitted(rows, penalty=MCP(gamma=30.0))
    assert np.abs(one.P_[0] - other.P_[0]).max() > 1e-6
    assert replacements(MCP(gamma=1.5), SQUARED) is replacements(MCP(gamma=30.0), SQUARED)


@pytest.mark.thorough
def test_scikit_learn_sees_the_parameters(rows):
    model = FactorizationMachineRegressor(penalty=MCP(gamma=2.0), max_iter=3, tol=0.0, n_components=2)
    assert model.get_params()["penalty__gamma"] == 2.0
    again = clone(model).set_params(penalty__gamma=5.0)
    assert again.penalty.gamma == 5.0 and model.penalty.gamma == 2.0
    search = GridSearchCV(model, {"penalty__gamma": [1.5, 4.0], "penalty": [MCP()]}, cv=2).fit(*rows)
    assert search.best_params_["penalty__gamma"] in (1.5, 4.0)
    restored = pickle.loads(pickle.dumps(model.fit(*rows)))
    assert (restored.predict(rows[0]) == model.predict(rows[0])).all()


def test_an_object_of_the_package_is_its_name(rows):
    ours, theirs = fitted(rows, penalty=as_penalty("ti")), fitted(rows, penalty="ti")
    assert (ours.P_[0] == theirs.P_[0]).all()


def test_refusals(rows):
    for penalty, said in (
        (MCP(gamma="much"), "gamma of MCP must be a finite number, not 'much'"),
        (MCP, r"penalty is the class MCP: give an object, MCP\(…\)"),
        (3, "penalty must be a name or a recsys.fm.Penalty, not 3"),
    ):
        with pytest.raises(InputError, match=said):
            fitted(rows, penalty=penalty)
    with pytest.raises(InputError, match="solver 'block' cannot serve penalty 'MCP': use solver='cd'"):
        fitted(rows, penalty=MCP(), solver="block")
    with pytest.raises(InputError, match="leaves out no interaction exactly"):
        regularization_path(FactorizationMachineRegressor(penalty=MCP()), *rows)
    with pytest.raises(InputError, match="must define one of prox_scalar and prox_row"):
        type("Nothing", (SeparablePenalty,), {})
    with pytest.raises(InputError, match="loss 'Huber' is not for classes"):
        FactorizationMachineClassifier(loss=Huber()).fit(rows[0], rows[1] > 0)
    with pytest.raises(InputError, match=r"a path has no custom loss \(Huber\(\)\)"):
        regularization_path(FactorizationMachineRegressor(loss=Huber(), penalty="ti"), *rows)


@pytest.mark.slow
@pytest.mark.parametrize("solver", solver_names())
def test_a_loss_is_the_built_in_one_where_they_are_equal(rows, solver):
    ours, theirs = (
        fitted(rows, loss=loss, solver=solver, max_iter=5, fit_signs=solver == "cd")
        for loss in (Huber(), "huber")
    )
    np.testing.assert_allclose(ours.P_[0], theirs.P_[0], rtol=1e-7, atol=1e-10)
    assert ours.history_[-1]["objective"] == pytest.approx(theirs.history_[-1]["objective"], rel=1e-9)


@pytest.mark.slow
def test_a_loss_has_parameters(rows):
    far = fitted(rows, loss=Huber(delta=0.05))
    near = fitted(rows, loss="huber")
    assert np.abs(far.P_[0] - near.P_[0]).max() > 1e-3
    objectives = [entry["objective"] for entry in far.history_]
    assert objectives[-1] < 0.5 * objectives[0] and np.diff(objectives).max() <= 1e-12


@pytest.mark.slow
def test_weights_of_orders_and_components_are_learned_under_both(rows):
    model = fitted(
        rows, loss=Huber(), penalty=MCP(), degree=3, fit_lower="simplex", fit_component_weights=True
    )
    objectives = [entry["objective"] for entry in model.history_]
    assert objectives[-1] < 0.5 * objectives[0]
