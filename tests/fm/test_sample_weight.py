"""Weights of rows: as repeated rows, by every solver, and by what the objective says."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_validate

from recsys import InputError
from recsys.fm import (
    AllSubsetsClassifier,
    AllSubsetsRegressor,
    BayesianFactorizationMachineClassifier,
    BayesianFactorizationMachineRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialNetworkRegressor,
)
from recsys.fm.objective import Model, Objective, Regularization
from recsys.fm.penalties import PENALTIES
from recsys.fm.solvers.base import visiting_order
from recsys.fm.solvers.stochastic import ALONE, batch_gradient
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, Compressed, Form
from recsys.multilinear.losses import LOSSES, loss_names
from recsys.multilinear.rows import room_for
from recsys.utils.estimators import check_sample_weight, relative_weights
from tests.fm.test_fm import task
from tests.reference import fm as reference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FEW = dict(n_components=2, init_scale=0.3, max_iter=4, tol=0.0)
QUICK = [
    FactorizationMachineRegressor(**FEW),
    FactorizationMachineClassifier(degree=3, penalty="ti", gamma=0.01, **FEW),
]
SLOWER = [
    FactorizationMachineRegressor(degree=3, fit_lower="augment", **FEW),
    FactorizationMachineRegressor(init_lambda="random_signs", **FEW),
    FactorizationMachineRegressor(degree=3, fit_lower="simplex", fit_lambda=True, **FEW),
    FactorizationMachineClassifier(loss="squared_hinge", solver="block", **FEW),
    FactorizationMachineClassifier(degree=3, solver="block", **FEW),
    FactorizationMachineClassifier(penalty="cs", gamma=0.01, solver="block", **FEW),
    FactorizationMachineClassifier(penalty="ti", gamma=0.01, solver="fista", **FEW),
    FactorizationMachineRegressor(penalty="omega", gamma=0.01, solver="nmapgd", **FEW),
    FactorizationMachineClassifier(degree=3, solver="lbfgs", **FEW),
    FactorizationMachineClassifier(penalty="l1", gamma=0.01, solver="subgradient", **FEW),
    AllSubsetsRegressor(fit_lambda=True, **FEW),
    AllSubsetsClassifier(solver="block", **FEW),
    PolynomialNetworkRegressor(degree=3, **FEW),
    PolynomialNetworkRegressor(degree=3, lifted=False, fit_lower="augment", solver="lbfgs", **FEW),
]
BY_CHANCE = [
    FactorizationMachineClassifier(solver="adagrad", **FEW),
    FactorizationMachineRegressor(solver="psgd", learning_rate=0.02, batch_size=4, **FEW),
    FactorizationMachineClassifier(loss="bpr", solver="adagrad", **FEW),
]
BAYESIAN = BayesianFactorizationMachineRegressor(n_components=2, n_draws=8, burn_in=3)


def name_of(model):
    loss = getattr(model, "loss", "")
    parts = [type(model).__name__, getattr(model, "solver", ""), getattr(loss, "name", loss)]
    return "-".join([*parts, str(getattr(model, "degree", ""))])


def rows_of(model, seed):
    """Rows and targets, and integer weights of them; rows of every class keep one."""
    X, y = task(seed, n=40, classes=hasattr(model, "decision_function"))
    weights = np.random.default_rng(seed).integers(0, 5, 40)
    weights[[np.argmin(y), np.argmax(y)]] = 2
    return X, y, weights


def paired(seed, n=300):
    """Rows of a user and an item, each with a feature of its own and one more."""
    rng = np.random.default_rng(seed)
    users = np.hstack([np.eye(7), rng.normal(size=(7, 1))])[rng.integers(0, 7, n)]
    items = np.hstack([np.eye(5), rng.normal(size=(5, 1))])[rng.integers(0, 5, n)]
    X = np.hstack([users, items])
    return sp.csr_matrix(X), X @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(size=n)


def learned(model):
    return [model.intercept_, model.w_, *model.P_, model.theta_, model.component_weights_]


def check_repeated(model, X, y, weights, rtol=1e-7):
    ours = sklearn.clone(model).fit(X, y, sample_weight=weights)
    slow = sklearn.clone(model).fit(X[np.repeat(np.arange(len(y)), weights)], np.repeat(y, weights))
    for one, other in zip(learned(ours), learned(slow), strict=True):
        # Of the largest parameter: where a step ends beside 0, rounding is no small share of what is left.
        np.testing.assert_allclose(
            one, other, rtol=rtol, atol=rtol * max(1.0, np.abs(other).max(initial=0.0))
        )
    values = [[entry["objective"] for entry in fit.history_] for fit in (ours, slow)]
    np.testing.assert_allclose(*values, rtol=rtol)


@pytest.mark.thorough
@pytest.mark.parametrize("model", QUICK, ids=name_of)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_integers_are_repeated_rows(model, seed):
    check_repeated(model, *rows_of(model, seed))


@pytest.mark.thorough
@pytest.mark.parametrize("model", SLOWER, ids=name_of)
def test_integers_are_repeated_rows_by_other_solvers(model):
    check_repeated(model, *rows_of(model, 3), rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("loss", ["squared"])
def test_integers_are_repeated_rows_of_objects(degree, loss):
    X, y = paired(degree)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    model = FactorizationMachineRegressor(
        solver="pairs", split=8, degree=degree, loss=loss, **(FEW | {"n_components": 1})
    )
    check_repeated(model, X, y, weights)
    plain = sklearn.clone(model).set_params(solver="cd").fit(X, y, sample_weight=weights)
    ours = model.fit(X, y, sample_weight=weights)
    if loss == "squared":  # whose bound is the loss itself: the same steps
        np.testing.assert_allclose(ours.predict(X), plain.predict(X), rtol=1e-7, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("model", [*QUICK, *SLOWER, *BY_CHANCE, BAYESIAN], ids=name_of)
def test_zero_is_the_row_left_out_and_one_is_none_to_the_bit(model):
    X, y, weights = rows_of(model, 5)
    weights = weights * 0.7
    kept = weights > 0
    found = [
        sklearn.clone(model).fit(rows, targets, sample_weight=given).predict(X)
        for rows, targets, given in ((X, y, weights), (X[kept], y[kept], weights[kept]))
    ]
    np.testing.assert_array_equal(*found)
    alike = np.full(len(y), 1.0 if model is BAYESIAN else 3.0)
    found = [sklearn.clone(model).fit(X, y, sample_weight=given).predict(X) for given in (None, alike)]
    (np.testing.assert_allclose if model is BAYESIAN else np.testing.assert_array_equal)(*found)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(["squared", "logistic"]))
@settings(max_examples=30, deadline=None)
def test_the_objective_is_that_of_the_definition(seed, loss):
    rng = np.random.default_rng(seed)
    X, y = task(seed, n=12, classes=loss == "logistic")
    weights = rng.random(12) * 10.0 ** rng.integers(-3, 4, 12)
    model = Model.zeros([Form(ANOVA, 2, 1), Form(ANOVA, 3, 1)], X.shape[1], 2, True)
    model.z[:] = 0.5 * rng.normal(size=len(model.z))
    by = Regularization(PENALTIES["l2"], 0.3, 0.2, 0.0)
    fit = Objective(
        model,
        sp.csr_matrix(X),
        y,
        LOSSES.get(loss),
        by,
        True,
        np.random.RandomState(0),
        row_weights=relative_weights(weights),
    )
    matrices = [P[0] for P in model.tables()]
    slow = reference.weighted_objective(
        X, y, weights, model.z[0], model.w, matrices, [2, 3], loss, 0.3, 0.2
    )
    assert fit.value() == pytest.approx(slow, rel=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("solver", ["cd", "block", "lbfgs", "fista"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_fit_ends_where_no_entry_lowers_the_reference_objective(solver, loss):
    X, y = task(1, n=30, classes=loss == "logistic")
    weights = np.random.default_rng(2).exponential(size=30)
    kind = FactorizationMachineClassifier if loss == "logistic" else FactorizationMachineRegressor
    model = kind(n_components=2, alpha=0.05, beta=0.05, solver=solver, max_iter=3000, tol=1e-13)
    model.fit(X, y, sample_weight=weights)

    def value(b, w, P):
        return reference.weighted_objective(X, y, weights, b, w, [P], [2], loss, 0.05, 0.05)

    b, w, P = model.intercept_, model.w_, model.P_[0][0]
    least = value(b, w, P)
    assert model.history_[-1]["objective"] == pytest.approx(least, rel=1e-10)
    for step in (-1e-3, 1e-3):
        assert value(b + step, w, P) > least
        for j in range(len(w)):
            assert value(b, w + step * (np.arange(len(w)) == j), P) > least
            more = P.copy()
            more[j, 0] += step
            assert value(b, w, more) > least - 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("loss", loss_names(pairwise=False))
@pytest.mark.parametrize(
    "shape", [Form(ANOVA, 3, 1), Form(MIXED, 3, 1), Form(ALL_SUBSETS, 1, 1)], ids=str
)
def test_gradients_are_those_of_finite_differences_and_of_batches(shape, loss):
    X, y = task(0, n=25, classes=loss not in ("squared", "huber"))
    rng = np.random.default_rng(0)
    model = Model.zeros([shape], X.shape[1], 2, True)
    model.z[:] = 0.4 * rng.normal(size=len(model.z))
    by = Regularization(PENALTIES["l2"], 0.0, 0.0, 0.0)
    p = Objective(
        model,
        sp.csr_matrix(X),
        y,
        LOSSES.get(loss),
        by,
        True,
        np.random.RandomState(0),
        row_weights=relative_weights(rng.exponential(size=25)),
    )
    z = model.z.copy()
    _, gradient = p.smooth(z)
    for j in rng.choice(len(z), 12, replace=False):
        step = np.zeros(len(z))
        step[j] = 1e-6
        numeric = (p.smooth(z + step)[0] - p.smooth(z - step)[0]) / 2e-6
        assert gradient[j] == pytest.approx(numeric, rel=2e-4, abs=1e-6)
    p.refresh()
    layout, total = model.layout, np.zeros(len(z))
    tables = np.empty((len(layout.spec), layout.width, 2))
    batch_gradient(
        z,
        layout,
        Compressed.of(p.X),
        p.target,
        np.arange(25),
        np.full(25, ALONE),
        tables,
        room_for(layout, Compressed.of(p.X)),
        total,
    )
    np.testing.assert_allclose(total, gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("model", BY_CHANCE, ids=name_of)
def test_solvers_that_draw_rows_follow_the_weights(model):
    """Of rows with two opposite rules those with all the weight are learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    first = np.arange(400) % 2 == 0
    rule = X[:, 0] + X[:, 1] * X[:, 2]
    y = np.where(first, rule, -rule)
    if hasattr(model, "decision_function"):
        y = np.where(y > 0, 1, 0)
    longer = sklearn.clone(model).set_params(max_iter=40)
    for members in (first, ~first):
        fit = longer.fit(X, y, sample_weight=np.where(members, 1.0, 0.02))
        assert fit.score(X[members], y[members]) > 0.7


def test_pairs_of_rows_are_drawn_by_their_weights():
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    weights = np.array([3.0, 1.0, 1.0, 2.0, 5.0])
    model = Model.zeros([Form(ANOVA, 2, 1)], 2, 1, True)
    by = Regularization(PENALTIES["l2"], 0.0, 0.0, 0.0)
    X = sp.csr_matrix([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    p = Objective(
        model,
        X,
        y,
        LOSSES.get("bpr"),
        by,
        False,
        np.random.RandomState(0),
        row_weights=weights / weights.mean(),
    )
    up, down = p.draw(40_000)
    found = np.bincount(np.concatenate([up, down]), minlength=5) / 40_000
    np.testing.assert_allclose(found, [0.75, 0.25, 0.125, 0.25, 0.625], atol=0.01)
    np.testing.assert_allclose(p.shares_of(y > 0), [0.75, 0.25])
    np.testing.assert_allclose(p.shares_of(y <= 0), [0.375, 0.125])


def test_rare_columns_are_those_of_repeated_rows():
    """One row in a hundred is not rare, though its weight may come out a little below by rounding."""
    rng = np.random.default_rng(0)
    model = Model.zeros([Form(ANOVA, 2, 1)], 3, 1, True)
    by = Regularization(PENALTIES["l2"], 0.0, 0.0, 0.0)
    for rows in range(3, 12):
        weights = rng.integers(1, 9, rows)
        weights[-1] = 100 * weights[0] - weights[:-1].sum()
        X = sp.csr_matrix(np.column_stack([np.arange(rows) == k for k in range(3)]), dtype=float)
        p = Objective(
            model,
            X,
            np.zeros(rows),
            LOSSES.get("squared"),
            by,
            True,
            None,
            row_weights=weights / weights.mean(),
        )
        repeated = np.asarray((X != 0).T @ weights).ravel()
        np.testing.assert_array_equal(
            visiting_order(p.counts(), rows), visiting_order(repeated, weights.sum())
        )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "shape"),
        (np.ones((40, 1)), "shape"),
        (2.0, "shape"),
        (-np.ones(40), "must not be negative"),
        (np.full(40, np.nan), "NaN or infinity"),
        (np.full(40, np.inf), "NaN or infinity"),
        (np.zeros(40), "not zero for all"),
        (["heavy"] * 40, "real numbers"),
        ([[1.0], [1.0, 2.0]], "must be an array"),
    ],
)
@pytest.mark.parametrize("model", [QUICK[0], QUICK[1], BAYESIAN], ids=name_of)
def test_what_is_no_weight_is_refused_in_one_line(model, weights, message):
    X, y, _ = rows_of(model, 0)
    with pytest.raises(InputError, match=message) as error:
        sklearn.clone(model).fit(X, y, sample_weight=weights)
    assert "\n" not in str(error.value)


def test_rows_of_one_class_with_a_weight_are_refused():
    X, y, _ = rows_of(QUICK[1], 0)
    with pytest.raises(InputError, match="two classes"):
        sklearn.clone(QUICK[1]).fit(X, y, sample_weight=y > 0)


def test_the_probit_classifier_takes_none():
    X, y, weights = rows_of(QUICK[1], 0)
    with pytest.raises(TypeError, match="sample_weight"):
        BayesianFactorizationMachineClassifier().fit(X, y, sample_weight=weights)


def test_weights_of_any_kind_and_scale_are_taken():
    np.testing.assert_array_equal(check_sample_weight([True, False], 2), [1.0, 0.0])
    np.testing.assert_allclose(relative_weights(np.array([1e307, 3e307])), [0.5, 1.5])
    np.testing.assert_allclose(relative_weights(np.array([1e-320, 3e-320])), [0.5, 1.5], rtol=1e-2)
    assert relative_weights(None) is None and relative_weights(np.full(3, 0.1)) is None


@pytest.mark.thorough
def test_scikit_learn_passes_them_on():
    X, y, weights = rows_of(QUICK[0], 1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = sklearn.clone(QUICK[0]).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True
        )
    first = np.arange(40) >= 14  # of three folds, the first of 14 rows
    alone = sklearn.clone(QUICK[0]).fit(X[first], y[first], sample_weight=weights[first])
    np.testing.assert_array_equal(found["estimator"][0].predict(X), alone.predict(X))
    right = alone.score(X[~first], y[~first], sample_weight=weights[~first])
    assert found["test_score"][0] == pytest.approx(right)


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("split", [None, 8])
def test_the_draws_are_those_of_repeated_rows(degree, split):
    X, y = paired(degree, n=60)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    model = sklearn.clone(BAYESIAN).set_params(degree=degree, split=split)
    again = np.repeat(np.arange(len(y)), weights)
    ours = sklearn.clone(model).fit(X, y, sample_weight=weights)
    slow = sklearn.clone(model).fit(X[again], y[again])
    np.testing.assert_allclose(ours.draws_, slow.draws_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.precisions_, slow.precisions_, rtol=1e-6)
    errors = [[entry["error"] for entry in fit.history_] for fit in (ours, slow)]
    np.testing.assert_allclose(*errors, rtol=1e-6)
