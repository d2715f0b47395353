"""Pairs by machines whose orders share one table, weighted by a θ that is learned or given."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from recsys import FitError, InputError
from recsys.fm import FactorizationMachineRegressor
from recsys.links import PairFactorizationMachine, load_link_predictor
from tests.links.contract import world
from tests.reference.fm import anova

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHARED = {"simplex": None, "inhomogeneous": (0.5, -2.0, 1.0, 0.7, 0.3)}


def machine(lower, degree, **more):
    theta = SHARED[lower]
    return PairFactorizationMachine(
        degree=degree,
        fit_lower=lower,
        theta=None if theta is None else theta[:degree],
        n_components=2,
        **more,
    )


def scores(model, A, B, pairs, P=None, theta=None):
    """Σ_s Σ_t θ_t A^t(p_s, a⊕b) and the linear part, of the concatenation, by enumeration."""
    *linear, term = model.terms_
    P = np.vstack([term.left, term.right]) if P is None else P
    theta = term.theta if theta is None else theta

    def one_way(pairs):
        rows = np.hstack([A[pairs[:, 0]], B[pairs[:, 1]]])
        out = np.full(len(rows), float(model.intercept_))
        for own in linear:
            out += rows @ np.concatenate([own.left[:, 0], own.right[:, 0]])
        for t, weight in enumerate(theta, 1):
            for p in P.T:
                out += weight * np.array([anova(p, row, t) for row in rows])
        return out

    if model.symmetric_:
        return 0.5 * (one_way(pairs) + one_way(pairs[:, ::-1]))
    return one_way(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("lower", SHARED)
@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_predictions_are_those_of_the_concatenation(lower, degree, one, linear):
    A, B, pairs, y = world(1, one, n=60)
    model = machine(lower, degree, max_iter=4, fit_linear=linear, symmetric=one, init_scale=0.3)
    model.fit(A, B, pairs, y)
    assert len(model.terms_) == 1 + linear and model.theta_.shape == (degree,)
    found = model.decision_function(A, B, pairs)
    np.testing.assert_allclose(found, scores(model, A, A if one else B, pairs), atol=1e-8)


def values(model, A, B, pairs, y, P, theta):
    """The objective at another P and θ."""
    rest = 1.0 - np.where(y, 1.0, -1.0) * scores(model, A, B, pairs, P, theta)
    return 0.5 * np.mean(rest**2) + 0.5 * model.beta * (P**2).sum()


@pytest.mark.parametrize("lower", SHARED)
@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_fit_ends_where_no_entry_and_no_theta_lowers_the_objective(lower, symmetric):
    A, _, pairs, y = world(2, one=True, n=30)
    model = machine(
        lower,
        3,
        loss="squared",
        beta=0.1,
        tol=1e-14,
        max_iter=4000,
        fit_linear=False,
        symmetric=symmetric,
        init_scale=0.3,
    ).fit(A, None, pairs, y)
    (term,) = model.terms_
    P, theta = np.vstack([term.left, term.right]), term.theta
    assert np.abs(P).max() > 0.1
    here = values(model, A, A, pairs, y, P, theta)
    assert here == pytest.approx(model.history_[-1]["objective"], abs=1e-10)

    def slope(at, move):
        above, below = at.copy(), at.copy()
        above[move] += 1e-4
        below[move] -= 1e-4
        pair = [(above, theta), (below, theta)] if at is P else [(P, above), (P, below)]
        high, low = (values(model, A, A, pairs, y, *point) for point in pair)
        return (high - low) / 2e-4

    for place in np.ndindex(P.shape):
        assert slope(P, place) == pytest.approx(0.0, abs=2e-5)
    if lower == "simplex":
        assert theta.min() >= 0.0 and theta.sum() == pytest.approx(1.0)
        slopes = np.array([slope(theta, (t,)) for t in range(3)])
        assert (slopes[theta > 1e-9] <= slopes.min() + 1e-4).all()
    else:
        assert theta.tolist() == list(SHARED[lower][:3])


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("one", [False, True])
def test_the_objective_never_rises(loss, one):
    A, B, pairs, y = world(2, one)
    model = machine("simplex", 4, loss=loss, max_iter=25, tol=0.0, beta=1e-3, init_scale=0.4)
    objective = np.array([entry["objective"] for entry in model.fit(A, B, pairs, y).history_])
    assert (np.diff(objective) <= 1e-10).all() and objective[-1] < objective[0]


def test_epochs_are_those_of_coordinate_descent_on_the_rows():
    """One object at the right end: the rows are the left objects', and the features' order is one."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(40, 5)), np.zeros((1, 1))
    pairs = np.column_stack([np.arange(40), np.zeros(40, dtype=int)])
    y = rng.random(40) < 0.5
    shape = {"degree": 3, "fit_lower": "simplex", "fit_linear": False, "n_components": 2, "beta": 1e-3}
    shape |= {"tol": 0.0, "max_iter": 7, "init_scale": 0.3}
    ours = PairFactorizationMachine(loss="squared", random_state=1, **shape).fit(A, B, pairs, y)
    first = PairFactorizationMachine(loss="squared", random_state=1, **shape | {"max_iter": 1})
    rows = FactorizationMachineRegressor(random_state=1, warm_start=True, **shape | {"max_iter": 1})
    rows.fit(A, np.where(y, 1.0, -1.0))
    first.fit(A, B, pairs, y)
    rows.P_[0][0][:] = first.terms_[0].left
    rows.theta_[0], rows.intercept_ = first.theta_, first.intercept_
    rows.set_params(max_iter=6).fit(A, np.where(y, 1.0, -1.0))
    np.testing.assert_allclose(rows.theta_[0], ours.theta_, atol=1e-9)
    np.testing.assert_allclose(rows.P_[0][0], ours.terms_[0].left, atol=1e-8)


def test_theta_is_a_parameter_and_is_checked(tmp_path):
    A, B, pairs, y = world(5, n=60)
    model = machine("inhomogeneous", 2, max_iter=2)
    assert clone(model).fit(A, B, pairs, y).theta_.tolist() == [0.5, -2.0]
    plain = PairFactorizationMachine(fit_lower="inhomogeneous", max_iter=2).fit(A, B, pairs, y)
    assert plain.theta_.tolist() == [1.0, 1.0]
    given = PairFactorizationMachine(fit_lower="inhomogeneous", theta=np.array([1.0, 3.0]), max_iter=2)
    given.fit(A, B, pairs, y).save(tmp_path / "m")
    again = load_link_predictor(tmp_path / "m")
    assert again.theta_.tolist() == [1.0, 3.0]
    np.testing.assert_array_equal(
        again.decision_function(A, B, pairs), given.decision_function(A, B, pairs)
    )
    bad = [
        (1.0,),
        (1.0, np.nan),
        "ab",
        ["1", "2"],
        [10**400, 1],
        np.array([1 + 2j, 1]),
        3.0,
        {1.0: 2.0},
        np.array(["2020", "2021"], "datetime64[Y]"),
    ]
    for theta in bad:
        with pytest.raises(InputError, match="theta must be 2 numbers, one for each order from 1"):
            PairFactorizationMachine(fit_lower="inhomogeneous", theta=theta).fit(A, B, pairs, y)
    with pytest.raises(InputError, match="theta is only for fit_lower='inhomogeneous', not"):
        PairFactorizationMachine(fit_lower="simplex", theta=(1.0, 2.0)).fit(A, B, pairs, y)


@pytest.mark.parametrize("theta", [range(1, 3), pd.Series([1.0, 2.0]), (np.float32(0.5), 2)])
def test_a_theta_of_any_kind_is_saved_as_numbers(theta, tmp_path):
    A, B, pairs, y = world(5, n=60)
    model = PairFactorizationMachine(fit_lower="inhomogeneous", theta=theta, max_iter=2).fit(
        A, B, pairs, y
    )
    model.save(tmp_path / "m")
    again = load_link_predictor(tmp_path / "m")
    assert again.theta == [float(value) for value in theta] and again.theta_.tolist() == again.theta


def test_a_fit_that_overflows_is_a_fit_error():
    X, P = np.random.default_rng(0).normal(size=(9, 3)), np.column_stack([np.arange(9)] * 2)
    y = [0, 1] * 4 + [0]
    with pytest.raises(FitError, match="scale the features, or raise beta"):
        PairFactorizationMachine(fit_lower="inhomogeneous", theta=[1e160, 1e160]).fit(X, X, P, y)
